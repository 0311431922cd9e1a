package cli

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/app/shortlist"
	"github.com/quotabench/quotabench/internal/app/terminal"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/render"
)

// The time that the stages before the measurement may take.
const (
	stagesShare = 3                // of the budget: a third
	stagesTime  = 20 * time.Second // without a budget
)

// mustName refuses what only makes sense for strategies that are named.
func mustName(settings *group.Settings) error {
	switch {
	case !settings.Considers() && len(settings.Survive) > 0:
		return settings.Wrong("survive",
			errors.New("it is for a run that names no strategy: leave the names out, or use --require"))
	case settings.Considers() && settings.Sweeps():
		return settings.NoSweep("name the strategies whose setting varies, e.g. quotabench run incr-expire")
	case settings.Considers() && settings.Against != "":
		return settings.Wrong("against", errors.New("name the strategies to compare, e.g. quotabench run incr-expire"))
	}
	return nil
}

// considered is the shortlist of a run that names no strategy.
func considered(settings *group.Settings, cfg *measure.Config) (*shortlist.Shortlist, error) {
	faults, err := settings.Faults()
	if err != nil {
		return nil, err
	}
	policy, further, err := settings.BothPolicies()
	if err != nil {
		return nil, err
	}
	var second *quota.Policy
	if further.Name != "" {
		second = &further
	}
	if settings.Given("limit") {
		policy.Limit = settings.Config.Policy.Limit
	}
	budget := stagesTime
	if cfg.Budget > 0 {
		budget = cfg.Budget / stagesShare
	}
	return shortlist.New(shortlist.Question{
		Strategies: cfg.Strategies,
		Policy:     policy,
		Second:     second,
		Instances:  cfg.Instances,
		GivesBack:  cfg.Workload.GivesBack,
		Survive:    faults,
		Seed:       cfg.Seed,
		Budget:     budget,
		Most:       group.MostConsidered,
	}), nil
}

// narrow leaves in the job's only point the strategies of its shortlist that can be measured here.
func (j *job) narrow(x *session.Session) error {
	cfg := &j.points[0]
	cfg.Stores = x.Stores
	j.short.LeaveOut(cfg.CannotRun)
	cfg.Strategies = j.short.Measure()
	if len(cfg.Strategies) == 0 {
		return nil
	}
	err := cfg.Complete() // the stores are known now
	if err == nil {
		err = cfg.CheckRoom(x.Ctx)
	}
	return fail(exit.Usage, err)
}

// finish takes the strategies of the shortlist through the stages that take time, and takes that time from the budget.
func (j *job) finish(x *session.Session) error {
	cfg := &j.points[0]
	begun := clock.Nano()
	told := &stagesProgress{quiet: x.Quiet, progress: x.Progress}
	stop := x.Progress.Watch(told.status)
	err := j.short.Finish(x.Ctx, x.Stores, told)
	stop()
	if err != nil {
		return session.InterruptedOr(x.Ctx, err, exit.Failed)
	}
	cfg.Strategies = j.short.Measure()
	if cfg.Budget > 0 {
		spent := time.Duration(clock.Nano() - begun)
		cfg.Budget = max(time.Millisecond, cfg.Budget-spent)
	}
	return nil
}

// nothingLeft ends a run that has no strategy to measure. The record says why.
func (j *job) nothingLeft(x *session.Session, file *results.File) error {
	file.Interrupted = x.Ctx.Err() != nil
	if err := x.WriteBundle(&render.Bundle{File: file}); err != nil {
		return err
	}
	if file.Interrupted {
		return fail(exit.Interrupted, errors.New("interrupted before anything was measured: what is known of strategies is "+
			"written"))
	}
	return fail(exit.Gate, errors.New("no strategy is left to measure: the reasons are above"))
}

// required checks the conditions of a run. If it named no strategy, they rule out those that do not meet them, and are
// not violated as long as one is left to recommend.
func required(file *results.File, gates []compare.Gate) []compare.Row {
	rows := compare.Check(file, gates)
	if file.Considered == nil {
		return rows
	}
	for i := range rows {
		if rows[i].Fails(false) {
			ruleOut(file, &rows[i])
		}
	}
	if recommended(file) {
		rows = slices.DeleteFunc(rows, func(row compare.Row) bool { return row.Fails(false) })
	}
	return rows
}

// ruleOut marks a measured strategy that does not meet a condition.
func ruleOut(file *results.File, row *compare.Row) {
	at := slices.IndexFunc(file.Considered, func(considered results.Considered) bool {
		return considered.Strategy == row.Strategy && considered.Outcome == codes.Taken
	})
	if at < 0 {
		return // an earlier condition is not met either
	}
	file.Considered[at] = results.Considered{
		Strategy: row.Strategy, Outcome: codes.Excluded, Stage: codes.StageRequirement, Cause: codes.NotMet,
		Condition: row.Figure, Detail: row.Detail,
	}
}

// answered is the outcome of a run that has to recommend a strategy.
func answered(file *results.File, err error) error {
	if err != nil || file.Considered == nil || recommended(file) {
		return err
	}
	return fail(exit.Gate, errors.New("no strategy that was measured can be recommended"))
}

// recommended reports whether the record recommends a strategy.
func recommended(file *results.File) bool {
	return slices.ContainsFunc(ranking.Of(*file), func(setting ranking.Setting) bool { return setting.Cheapest() != nil })
}

// stagesProgress shows how far the stages have come. Its methods except status are called one at a time.
type stagesProgress struct {
	quiet    bool
	progress *terminal.Progress

	mu    sync.Mutex
	stage codes.Stage
	doing string
}

var _ shortlist.Observer = (*stagesProgress)(nil)

// Stage implements [shortlist.Observer].
func (p *stagesProgress) Stage(name codes.Stage, left int) {
	p.mu.Lock()
	p.stage = name
	p.doing = ""
	p.mu.Unlock()
	if !p.quiet {
		p.progress.Line(fmt.Sprintf("%s: %s", name, format.Plural(int64(left), "strategy", "strategies")))
	}
}

// Doing implements [shortlist.Observer].
func (p *stagesProgress) Doing(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing = what
}

// status is what the stages do at the moment.
func (p *stagesProgress) status() terminal.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return terminal.Status{Text: format.Join(": ", string(p.stage), p.doing)}
}
