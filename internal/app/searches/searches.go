// Package searches explores strategies one after the other or at the same time, and shows and
// records what is found.
package searches

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/app/terminal"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/parallel"
	tables "github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	pgstore "github.com/quotabench/quotabench/stores/postgres"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
)

// Options are what the command is told, in addition to what each search is.
type Options struct {
	*group.Settings
	// Asked is what searches are told, as it is given. What is read from texts is not in it.
	Asked          explore.Config
	Full, ExitZero bool
	Strict         bool // advice is a failure
	AllFaults      bool // a service has all that can befall it
	Parallel       int
	Timeout        time.Duration // of all searches
	On             string        // the store that findings are repeated on
	Replay         string        // a token
}

// Embedded is the store that searches run on, by the name that --redis has for it.
const Embedded = "embedded"

// exploration is one call of the command: what it writes, and where to.
type exploration struct {
	*Options
	ctx            context.Context // of the one command that it serves
	stdout, stderr io.Writer
	progress       *terminal.Progress
	page           layout.Page
	out            *session.Dir      // of --out, or nil
	server         *redisstore.Store // of --redis
	sql            *pgstore.Store    // of --postgres, once it is needed
	record         results.Exploration
	text           bytes.Buffer
	shown          int             // bytes of text that are on stdout
	unshown        error           // why stdout did not take it
	warned         bool            // that the record could not be written
	known          map[string]bool // what was shown: strategy, property and faults
	broken         string          // the first declared guarantee that broke, or panic
	violated       string          // the first violation of any property
	differs        string          // the first schedule that did not repeat
	late           []string        // strategies of which a search had no time to begin
	moving         error           // why schedules of a service do not repeat unless its clock is stopped
	invalid        string          // the first search that failed, or of which nothing may be claimed
}

// start opens the store of --redis and checks where to write.
func (s *Options) start(cmd *cobra.Command) (*exploration, error) {
	x := &exploration{
		Options: s, ctx: cmd.Context(), stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(),
		record: results.NewExploration(),
	}
	if s.Given("out") {
		dir, err := session.FreeDir(s.Settings)
		if err != nil {
			return nil, err
		}
		x.out, err = session.MakeDir(s.Settings, dir)
		if err != nil {
			return nil, err
		}
	}
	if !s.JSON {
		x.page, x.stdout = terminal.Page(cmd)
	}
	x.progress = terminal.NewProgress(x.stderr)
	x.progress.Detail(s.Quiet, s.Verbose)
	x.stderr = x.progress
	if err := x.openRedis(); err != nil {
		return nil, errors.Join(err, x.out.Release())
	}
	return x, nil
}

// openRedis opens the store of --redis, unless searches run on the embedded one.
func (x *exploration) openRedis() error {
	serves := x.Given("service")
	switch {
	case x.On == Embedded && serves && !x.Given("redis"):
		x.On = "auto"
	case x.On == Embedded:
		return nil
	}
	if x.Full && !serves {
		return x.Wrong("redis", errors.New("--full counts schedules here: leave --redis out, and give the token that "+
			"it prints to --replay"))
	}
	server, err := redisstore.Open(x.ctx, x.On, stores.Options{})
	if err != nil {
		if x.ctx.Err() != nil {
			return exit.With(exit.Interrupted, errors.New("interrupted before anything was explored"))
		}
		if spec, ok := errors.AsType[*stores.SpecError](err); ok {
			err = errors.New(spec.Why) // the name of the flag comes before it
		}
		return x.Wrong("redis", err)
	}
	if server.Admin() == nil {
		return x.Wrong("redis", errors.Join(errors.New("a schedule is repeated on one Redis server, and this is "+
			"none: leave out cluster"), server.Close()))
	}
	x.server = server
	session.RemoveDead(x.ctx, x.stderr, string(strategies.NeedRedis), server)
	return nil
}

// mostSets is how many sets of processes of a service run at the same time if no number is given.
const mostSets = 4

// Search searches or counts each strategy and writes what it finds.
func (s *Options) Search(cmd *cobra.Command, chosen []strategies.Selection, cfg explore.Config) error {
	exploration, err := s.start(cmd)
	if err != nil {
		return err
	}
	if err := exploration.openPostgres(chosen); err != nil {
		return exploration.end(err)
	}
	cfg.Postgres = exploration.postgres()
	if cfg.Service != "" {
		if err := exploration.ofService(&cfg, chosen); err != nil {
			return exploration.end(err)
		}
		// Steps come one after the other: more threads that look for work would take the processors from the processes.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(1, cfg.Workers/mostSets)))
	}
	plan := s.plan(chosen, cfg)
	s.withoutLimits(plan)
	at := cmp.Or(exploration.Parallel, runtime.GOMAXPROCS(0))
	if cfg.Service != "" { // whose searches have one Redis
		at = 1
	}
	began := clock.Nano()
	all := newProgress(plan, exploration.Full, at, exploration.beforeLeast(plan))
	defer exploration.progress.Watch(all.status)()
	alone := len(chosen) == 1
	if err := exploration.searchAll(plan, all, alone); err != nil {
		return exploration.end(exit.With(exit.Usage, err))
	}
	exploration.unrepeated(chosen[0])
	if further := exploration.least(plan); len(further) > 0 && cmd.Context().Err() == nil {
		all := newProgress(further, false, at, exploration.leftOf(began, cfg.Service))
		defer exploration.progress.Watch(all.status)()
		if err := exploration.searchAll(further, all, false); err != nil {
			return exploration.end(exit.With(exit.Usage, err))
		}
	}
	return exploration.end(exploration.concluded(chosen, cfg))
}

// concluded says what no search decided, and what to change. It is an error if nothing was searched.
func (x *exploration) concluded(chosen []strategies.Selection, cfg explore.Config) error {
	x.undecided()
	if err := x.untried(); err != nil {
		return exit.With(exit.Failed, err)
	}
	if cfg.Service == "" {
		x.advise(chosen, cfg.Policy)
	}
	ended := len(x.record.Searches) + len(x.record.Censuses) + len(x.record.Failed)
	if ended == 0 && x.invalid == "" && x.ctx.Err() == nil {
		return exit.Usagef("none of the strategies can be explored: %s", x.record.Skipped[0].Reason)
	}
	return nil
}

// searchAll makes the searches of the plan and takes in what they find. alone is set if one strategy was chosen: the
// error says why it cannot be explored at all.
func (x *exploration) searchAll(plan []asking, all *progress, alone bool) error {
	ctx, enough := all.limited(x.ctx)
	defer enough()
	for i, found := range parallel.Do(all.parallel, len(plan), x.searcher(ctx, plan, all)) {
		if found.needless {
			continue
		}
		err := x.take(plan[i].sel, found)
		if x.Asked.First && found.search != nil && len(found.search.Findings) > 0 {
			enough()
			x.skipRest(plan, i)
			break
		}
		unfit := errors.As(err, new(*explore.UnfitError))
		switch {
		case err == nil, x.ctx.Err() != nil:
		case len(plan) > i+1 && plan[i].repeatsStopped(err):
			x.moving = err
		case unfit && alone && i == 0:
			return err
		default:
			late := errors.Is(ctx.Err(), context.DeadlineExceeded)
			x.unsearched(plan[i].sel, err, late, unfit)
		}
	}
	return nil
}

// unsearched notes why a search of a strategy was not made: the time was up, the strategy is not fit for it, or it
// failed.
func (x *exploration) unsearched(sel strategies.Selection, err error, late, unfit bool) {
	switch {
	case late:
		x.late = append(x.late, sel.String())
		x.skip(sel.String(), errUntried.Error())
	case unfit:
		x.skip(sel.String(), err.Error())
		fmt.Fprintf(x.stderr, "skipped %s: %v\n", sel, err)
	default:
		x.failed(sel, err)
	}
}

// ofService has a service explored on the Redis that was opened, by as many sets of processes as can be had.
func (x *exploration) ofService(cfg *explore.Config, chosen []strategies.Selection) error {
	if x.server != nil {
		cfg.Redis = x.server.Admin()
	}
	if x.AllFaults && len(chosen) == 1 {
		x.allFaults(cfg, chosen[0])
	}
	fmt.Fprintln(&x.text, judgedBy(cfg))
	if cfg.Policy.Name != "" && cfg.Limit > bounds.MaxSpread {
		fmt.Fprintf(x.stderr, "not tried: requests in different parts of a window, which have a limit of %d at most: "+
			"give --limit\n", bounds.MaxSpread)
	}
	if x.Parallel == 0 {
		cfg.Workers = min(cfg.Workers, mostSets)
		if x.server != nil && x.server.Info().Kind == stores.KindURL { // the further databases are others'
			cfg.Workers = 1
		}
	}
	if config, err := cfg.Complete(chosen[0]); err == nil && len(chosen) == 1 && config.Workers < x.Parallel {
		return x.Wrong("parallel", errors.New("all databases of a Redis server have one set of scripts, which this search "+
			"takes from it: give --redis embedded, or leave --parallel out"))
	}
	return nil
}

// judgedBy says which limit and which window a service is held to.
func judgedBy(cfg *explore.Config) string {
	limit := "LIMIT"
	if cfg.Limit > 0 {
		limit = format.Count(cfg.Limit)
	}
	switch {
	case cfg.Policy.Name == "":
		return fmt.Sprintf("Judged by: %s requests, free again once the longest TTL of the subject's keys has passed, "+
			"since no --policy is given", limit)
	case cfg.Second.Limit > 0:
		return fmt.Sprintf("Judged by: %s %s %s, and %s", limit, cfg.Policy.Unit, cfg.Policy.Window.When(), cfg.Second.Text())
	}
	return fmt.Sprintf("Judged by: %s %s %s", limit, cfg.Policy.Unit, cfg.Policy.Window.When())
}

// allFaults has a service befallen by all faults that its search can have, and says which are left out.
func (x *exploration) allFaults(cfg *explore.Config, sel strategies.Selection) {
	all, left := cfg.AllFaults(sel)
	cfg.Faults = all
	for _, out := range left {
		fmt.Fprintf(x.stderr, "not tried: fault %s: %s\n", out.Fault, format.OneLine(out.Why.Error()))
	}
}

// searcher makes one search of the plan. The first search of a strategy ends before the others of it begin: it finds
// out whether runs of the strategy are independent of each other.
func (x *exploration) searcher(ctx context.Context, plan []asking, all *progress) func(i int) found {
	var onServer sync.Mutex // searches on PostgreSQL come one after the other
	look := func(i int) found {
		if explore.OnPostgres(plan[i].sel) {
			onServer.Lock()
			defer onServer.Unlock()
		}
		return x.look(ctx, plan[i].sel, all.begin(i))
	}
	numbers := map[string]int{}
	firsts := map[string]func() found{}
	for i := range plan {
		if name := plan[i].sel.String(); firsts[name] == nil {
			numbers[name], firsts[name] = i, sync.OnceValue(func() found { return look(i) })
		}
	}
	return func(i int) found {
		defer all.end(i)
		sel := plan[i].sel
		n := numbers[sel.String()]
		f := firsts[sel.String()]()
		if n != i && errors.Is(f.err, explore.ErrAfterAnswer) {
			return found{needless: true}
		}
		if n != i {
			// The clock may be why the first did not repeat.
			if errors.Is(f.err, explore.ErrNotDeterministic) && plan[i].cfg.ServiceClock == plan[n].cfg.ServiceClock {
				return found{needless: true}
			}
			f = look(i)
		}
		return f
	}
}

// untried records and shows the faults that the searches have left out.
func (x *exploration) untried() error {
	x.record.Untried = explore.Untried(x.record.Searches)
	var line bytes.Buffer
	if err := tables.Untried(&line, x.page, &x.record); err != nil {
		return err
	}
	if line.Len() > 0 {
		x.gap()
		x.text.Write(line.Bytes())
		x.show()
	}
	return nil
}

func (x *exploration) skip(strategy, why string) {
	x.record.Skipped = append(x.record.Skipped, results.Skipped{Strategy: strategy, Reason: why})
}

// unrepeated records why schedules of a service do not repeat: as a failure, unless a stopped clock has shown a
// violation.
func (x *exploration) unrepeated(sel strategies.Selection) {
	switch {
	case x.moving != nil && x.violated != "":
		x.skip(sel.String(), x.moving.Error())
	case x.moving != nil:
		x.failed(sel, x.moving)
	}
}

// skipRest records the strategies after the one whose violation was enough.
func (x *exploration) skipRest(plan []asking, last int) {
	n := int64(0)
	for j := last + 1; j < len(plan); j++ {
		if other := plan[j].sel.String(); other != plan[j-1].sel.String() {
			n++
			x.skip(other, "not searched: --first ended at a violation of "+plan[last].sel.String())
		}
	}
	if n > 0 {
		fmt.Fprintf(x.stderr, "ended at the first violation: %s not searched\n",
			format.Plural(n, "strategy was", "strategies were"))
	}
}

// failed records a search that ended in an error, and has the others go on.
func (x *exploration) failed(sel strategies.Selection, err error) {
	x.record.Failed = append(x.record.Failed, results.FailedExplore{
		Strategy: sel.String(), Error: format.OneLine(err.Error()), Stack: guard.Stack(err),
	})
	x.invalidate(sel.String(), err)
}

// invalidate has the command exit with 3 in the end.
func (x *exploration) invalidate(strategy string, err error) {
	line := fmt.Sprintf("%s: %s", strategy, format.OneLine(err.Error()))
	if x.invalid == "" {
		x.invalid = line
		return
	}
	fmt.Fprintf(x.stderr, "failed: %s\n", line) // the first one is told at the end
}

// found is what the search or the enumeration of one strategy returned.
type found struct {
	search   *explore.Result
	census   *results.Census
	err      error
	needless bool // an earlier search of the strategy has found that none can be made
}

// look searches one strategy, or enumerates its schedules.
func (x *exploration) look(ctx context.Context, sel strategies.Selection, cfg explore.Config) (f found) {
	switch {
	case ctx.Err() != nil:
		f.err = ctx.Err()
	case x.Full:
		f.census, f.err = explore.Enumerate(ctx, sel, cfg)
	default:
		f.search, f.err = explore.Run(ctx, sel, cfg)
	}
	return f
}

// take records and shows what was found.
func (x *exploration) take(sel strategies.Selection, f found) error {
	switch {
	case errors.Is(f.err, explore.ErrUnseen):
		x.invalidate(sel.String(), f.err)
	case f.err != nil && (f.search != nil || f.census != nil): // the strategy has ended it
		x.failed(sel, f.err)
	case f.err != nil:
		return f.err
	}
	x.gap()
	var err error
	if f.census != nil {
		x.record.Censuses = append(x.record.Censuses, f.census)
		err = tables.Census(&x.text, x.page, f.census)
	} else {
		x.record.Searches = append(x.record.Searches, f.search)
		news, again := x.news(f.search)
		if again == "" || len(news.Findings) > 0 || news.Claim != "" {
			err = tables.Search(&x.text, x.page, news, again)
		} else {
			fmt.Fprintf(&x.text, "%s found again: %s (%s, limit %d, %s)\n", sel, again, f.search.Policy, f.search.Limit,
				strings.Join(f.search.Scripts, "; "))
		}
		for i := 0; err == nil && i < len(f.search.Findings); i++ {
			finding := &f.search.Findings[i]
			x.judge(finding, true)
			if x.server != nil && f.search.Service == "" && finding.Token != "" && x.ctx.Err() == nil {
				err = x.repeat(finding.Token)
			}
		}
	}
	if err != nil {
		return err
	}
	x.keep()
	x.show()
	return nil
}

// news is a search without the findings whose property is broken, with the same faults, by
// what an earlier search of the strategy found; again names these.
func (x *exploration) news(search *explore.Result) (news *explore.Result, again string) {
	if x.known == nil {
		x.known = map[string]bool{}
	}
	cut := *search
	cut.Findings = nil
	var names []string
	for _, finding := range search.Findings {
		key := fmt.Sprintf("%s %s %s", search.Strategy, finding.Property, finding.Faults)
		if x.known[key] {
			names = append(names, fmt.Sprintf("%s in %s", finding.Property, format.Number(len(finding.Steps), "step")))
			continue
		}
		x.known[key] = true
		cut.Findings = append(cut.Findings, finding)
	}
	return &cut, strings.Join(names, ", ")
}

func (x *exploration) judge(finding *results.Finding, broken bool) {
	if broken && x.violated == "" {
		x.violated = fmt.Sprintf("%s: %s: %s", finding.Strategy, finding.Property, finding.Detail)
	}
	switch {
	case !broken || x.broken != "":
	case finding.Property == explore.Guarantee:
		x.broken = fmt.Sprintf("%s: a declared guarantee is broken: %s", finding.Strategy, finding.Detail)
	case finding.Property == explore.Panicked:
		x.broken = fmt.Sprintf("%s: %s", finding.Strategy, finding.Detail)
	}
}
