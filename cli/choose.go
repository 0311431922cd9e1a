package cli

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/choose"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/format"
	tables "github.com/quotabench/quotabench/internal/present/text"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/internal/session"
	"github.com/quotabench/quotabench/internal/settings"
	"github.com/quotabench/quotabench/internal/settings/group"
	"github.com/quotabench/quotabench/internal/terminal"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
	"github.com/quotabench/quotabench/strategies"
)

// chooseSettings are the questions of a choice, and where to try strategies.
type chooseSettings struct {
	*group.Settings
	question      choose.Config // as far as it is taken over as it is given
	leak, settles string
}

// What --uploads takes.
const (
	settlesAuto = "auto"
	settlesYes  = "yes"
	settlesNo   = "no"
)

func newChooseSettings() *chooseSettings {
	return &chooseSettings{
		Settings: group.New(group.Choose), leak: "0", settles: settlesAuto,
		question: choose.Config{Regions: 1, Rate: choose.DefaultRate, Subjects: choose.DefaultSubjects, Outage: choose.OutageAny,
			Budget: choose.DefaultBudget},
	}
}

// asked are the settings that no other command has.
func (s *chooseSettings) asked() []settings.Setting {
	q, settles := &s.question, []string{settlesAuto, settlesYes, settlesNo}
	return []settings.Setting{
		{Name: "regions", Common: true, Title: settings.What, Value: settings.Whole(&q.Regions, 1, choose.MaxRegions)},
		{Name: "rate", Common: true, Title: settings.Load, Value: settings.Decimal(&q.Rate, harness.MaxRate)},
		{Name: "clock-spread", Common: true, Title: settings.Trouble, Value: settings.Span(&q.Skew,
			harness.MaxClockSkew), Computed: true},
		{Name: "subjects", Common: true, Title: settings.Workload, Value: settings.Whole(&q.Subjects, 1, choose.MaxSubjects)},
		{Name: "leak", Common: true, Title: settings.What, Value: settings.Named(&s.leak, "units such as 5, or a share of the limit such as 1%"),
			Complete: settings.Words("0", "1%")},
		{Name: "p99", Common: true, Title: settings.What, Value: settings.Span(&q.P99, measure.MaxDuration), Computed: true},
		{Name: "redis-down", Common: true, Title: settings.Trouble,
			Value: settings.Text((*string)(&q.Outage), choose.Outages()...)},
		{Name: "uploads", Common: true, Title: settings.What, Value: settings.Text(&s.settles, settles...)},
		{Name: "budget", Common: true, Title: settings.What, Value: settings.SpanFrom(&q.Budget, choose.LeastBudget, measure.MaxDuration)},
	}
}

func chooseCommand() *cobra.Command {
	s := newChooseSettings()
	cmd := described("choose", &cobra.Command{
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := session.Before(cmd.Context(), s.configure)
			if err != nil {
				return err
			}
			return s.choose(cmd, cfg)
		},
	})
	s.register(cmd)
	return cmd
}

func (s *chooseSettings) register(cmd *cobra.Command) {
	s.Register(cmd, s.Subject(), s.asked(), s.Seeded(), s.Stores(), s.Verbosity(), s.Output())
}

// configure turns the settings into a question.
func (s *chooseSettings) configure() (choose.Config, error) {
	c := s.question
	c.Instances, c.Seed = s.Instances, s.Seed
	chosen, err := s.Selections()
	if err != nil {
		return c, err
	}
	if c.Policy, err = group.LookupPolicy(s.Policy); err != nil {
		return c, s.Wrong("policy", err)
	}
	c.Settles = s.settles == settlesYes || s.settles == settlesAuto && c.Policy.Window.Kind == quota.Standing
	if c.TolerateLeak, err = leakOf(s.leak, c.Policy.Limit); err != nil {
		return c, s.Wrong("leak", err)
	}
	for _, x := range chosen {
		if why, not := x.Excludes(strategies.ModeExplore); not && x.Client != "" && x.Client != strategies.PlainClient {
			return c, s.Wrong("strategy", fmt.Errorf("%s: %s", x, why))
		}
		if s.Given("strategy") || x.Form != strategies.Baseline {
			c.Strategies = append(c.Strategies, x)
		}
	}
	switch { // 0 is no question: the search would take its own default for it
	case c.Rate == 0:
		return c, s.Wrong("rate", errors.New("give the requests per second, more than 0"))
	case c.Seed == 0:
		return c, s.Wrong("seed", errors.New("searches have no seed 0: give 1 or more"))
	}
	if err := s.CheckStores(); err != nil {
		return c, err
	}
	err = c.Complete()
	return c, fail(ExitUsage, err)
}

// leakOf reads units, or a share of the limit in percent.
func leakOf(text string, limit int64) (int64, error) {
	bad := fmt.Errorf("give units such as 5, or a share of the limit such as 1%%, not %q", text)
	if share, ok := strings.CutSuffix(strings.TrimSpace(text), "%"); ok {
		pct, err := strconv.ParseFloat(strings.TrimSpace(share), 64)
		if err != nil || !(pct >= 0 && pct <= 100) {
			return 0, bad
		}
		return int64(math.Floor(pct / 100 * float64(limit))), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > quota.MaxLimit {
		return 0, bad
	}
	return n, nil
}

// The files of a choice, next to the record of each stage.
const (
	choiceFile = "choice.json"
	choiceText = "choice.txt"
)

// choose runs the stages, and writes the answer and all records.
func (s *chooseSettings) choose(cmd *cobra.Command, cfg choose.Config) (err error) {
	x, err := session.Open(cmd, s.Settings, cfg.StoresNeeded())
	if err != nil {
		return err
	}
	defer func() { err = x.Close(err) }()
	cfg.Stores = x.Stores
	if err := x.Begin(); err != nil {
		return err
	}
	told := &told{progress: x.Progress, quiet: s.Quiet, end: clock.Nano() + int64(cfg.Budget)}
	cfg.Observer = told
	stop := x.Progress.Watch(told.status)
	res, err := choose.Run(x.Ctx, cfg)
	stop()
	x.Progress.End()
	if err != nil {
		return session.InterruptedOr(x.Ctx, err, ExitFailed)
	}
	return s.answered(x, res)
}

// answered shows the answer and writes the records.
func (s *chooseSettings) answered(x *session.Session, res *choose.Result) error {
	page, stdout := terminal.Page(x.Cmd)
	record, err := codec.ChoiceJSON(&res.Choice)
	if err != nil {
		return fail(ExitFailed, err)
	}
	var shown, whole bytes.Buffer
	if err := errors.Join(tables.Choice(&shown, page, &res.Choice, s.Verbose),
		tables.Choice(&whole, layout.Page{}, &res.Choice, true)); err != nil {
		return fail(ExitFailed, err)
	}
	first := shown.Bytes()
	if s.JSON {
		first, stdout = record, x.Cmd.OutOrStdout()
	}
	_, unshown := stdout.Write(first)
	w := session.Writer{Dir: x.Dir}
	put := func(name string, b []byte) { _ = w.Put(render.Output{Name: name, Bytes: b}) } // err says what failed
	put(choiceFile, record)
	put(choiceText, []byte(format.Visible(whole.String())))
	explored, err := codec.ExplorationJSON(&res.Exploration)
	if err == nil {
		put(render.ExplorationName, explored)
	}
	for _, kind := range []struct {
		kind string
		of   map[string]results.File
	}{{results.Simulated, res.Simulations}, {results.Measured, res.Runs}} {
		for _, name := range slices.Sorted(maps.Keys(kind.of)) {
			b, failed := codec.Encode(stageFile(x, kind.kind, kind.of[name], res.Interrupted))
			if err = errors.Join(err, failed); failed == nil {
				put(name+".json", b)
			}
		}
	}
	fmt.Fprintf(x.Stderr, "\n%s\n", w.Where())
	switch err = errors.Join(err, w.Err(), unshown); {
	case err != nil:
		return fail(ExitFailed, err)
	case res.Interrupted:
		return fail(ExitInterrupted, errors.New("interrupted: the answer is what was known by then"))
	case len(res.Candidates) == 0:
		return fail(ExitGate, errors.New("no strategy that could be tested fits"))
	}
	return nil
}

// stageFile is the record of a stage.
func stageFile(x *session.Session, kind string, r results.File, interrupted bool) results.File {
	f := session.Simulated(x.Seed, nil, nil)
	if kind == results.Measured {
		f = x.Measured(r.Workload.Name, nil)
	}
	f.Workload, f.Runs, f.Interrupted = r.Workload, r.Runs, interrupted
	return f
}

// told shows how far a choice has come. Its methods but status are called one at a time.
type told struct {
	progress *terminal.Progress
	quiet    bool
	end      int64 // of the budget, on the clock

	mu           sync.Mutex
	stage, doing string
}

// Stage implements [choose.Observer].
func (t *told) Stage(name string, n int) {
	t.mu.Lock()
	t.stage, t.doing = name, ""
	t.mu.Unlock()
	if !t.quiet {
		t.progress.Line(fmt.Sprintf("%s: %s left", name, format.Plural(int64(n), "strategy is", "strategies are")))
	}
}

// Doing implements [choose.Observer].
func (t *told) Doing(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doing = what
}

// status is what the choice does, and how long it takes at most.
func (t *told) status() terminal.Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	return terminal.Status{Text: format.Join(": ", t.stage, t.doing), Most: max(0, time.Duration(t.end-clock.Nano()))}
}
