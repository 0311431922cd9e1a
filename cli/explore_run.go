package cli

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

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/harness/odds"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/ordered"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/compare"
	"github.com/quotabench/quotabench/results/render"
	tables "github.com/quotabench/quotabench/results/text"
	"github.com/quotabench/quotabench/results/text/layout"
	"github.com/quotabench/quotabench/stores"
	pgstore "github.com/quotabench/quotabench/stores/postgres"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
)

// explorationFile is the name of the record in the directory of --out.
const explorationFile = render.ExplorationName

// exploration is one call of the command: what it writes, and where to.
type exploration struct {
	*exploreSettings
	ctx            context.Context //nolint:containedctx // of the one command that it serves
	stdout, stderr io.Writer
	progress       *progress
	page           layout.Page
	out            *output           // of --out, or nil
	server         *redisstore.Store // of --on
	sql            *pgstore.Store    // of --postgres, once it is needed
	record         results.Exploration
	text           bytes.Buffer
	shown          int    // bytes of text that are on stdout
	unshown        error  // why stdout did not take it
	warned         bool   // that the record could not be written
	broken         string // the first declared guarantee that broke, or panic
	violated       string // the first violation of any property
	differs        string // the first schedule that did not repeat
	invalid        string // the first search that failed, or of which nothing may be claimed
}

// start opens the store of --on and checks where to write.
func (s *exploreSettings) start(cmd *cobra.Command) (_ *exploration, err error) {
	x := &exploration{
		exploreSettings: s, ctx: cmd.Context(), stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(),
		record: results.NewExploration(),
	}
	if s.given("out") {
		dir, err := s.outDir()
		if err != nil {
			return nil, err
		}
		if x.out, err = s.makeOut(dir); err != nil {
			return nil, err
		}
	}
	if !s.asJSON {
		x.page, x.stdout = pageOf(cmd)
	}
	x.progress = newProgress(x.stderr)
	x.stderr = x.progress
	defer func() {
		if err != nil {
			err = released(x.out, err)
		}
	}()
	if s.on == embeddedStore {
		return x, nil
	}
	if s.full {
		return nil, s.wrong("on", errors.New("--full counts schedules here: leave --on out, and give the token that it prints to --replay"))
	}
	server, err := redisstore.Open(x.ctx, s.on, stores.Options{})
	if err != nil {
		if x.ctx.Err() != nil {
			return nil, fail(ExitInterrupted, errors.New("interrupted before anything was explored"))
		}
		return nil, s.wrong("on", errors.New(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "--redis", "--on"), "--on ")))
	}
	if server.Admin() == nil {
		return nil, s.wrong("on", errors.Join(errors.New("a schedule is repeated on one Redis server, and this is none: leave out cluster"), server.Close()))
	}
	x.server = server
	removeDead(x.ctx, x.stderr, string(strategies.NeedRedis), server)
	return x, nil
}

// asking is one search or enumeration of the command.
type asking struct {
	sel strategies.Selection
	cfg explore.Config
}

// plan lists the searches of the chosen strategies: one for each where anything is said
// about what is to happen in it, and those of [explore.Searches] otherwise.
func (s *exploreSettings) plan(chosen []strategies.Selection, cfg explore.Config) (out []asking) {
	said := s.full
	for _, name := range []string{"policy", "limit", "instances", "clients", "script", "used", "skew", "faults", "times", "jobs"} {
		said = said || s.given(name)
	}
	for _, sel := range chosen {
		if said {
			out = append(out, asking{sel, cfg})
			continue
		}
		for _, c := range explore.Searches(sel, cfg) {
			out = append(out, asking{sel, c})
		}
	}
	return out
}

// explore searches or counts each strategy and writes what it finds.
func (s *exploreSettings) explore(cmd *cobra.Command, chosen []strategies.Selection, cfg explore.Config) error {
	x, err := s.start(cmd)
	if err != nil {
		return err
	}
	if err := x.openPostgres(chosen); err != nil {
		return x.end(err)
	}
	if x.sql != nil {
		cfg.Postgres = x.sql
	}
	plan := s.plan(chosen, cfg)
	var onServer sync.Mutex // searches on PostgreSQL come one after the other
	at := cmp.Or(x.parallel, runtime.GOMAXPROCS(0))
	all := newSearches(plan, x.full, at, x.timeout)
	searching, enough := context.WithCancel(x.ctx)
	defer enough()
	defer x.progress.watch(all.status)()
	for i, found := range ordered.Do(at, len(plan), func(i int) found {
		if explore.OnPostgres(plan[i].sel) {
			onServer.Lock()
			defer onServer.Unlock()
		}
		defer all.end(i)
		f := x.look(searching, plan[i].sel, all.begin(i))
		if f.err == nil && f.search != nil && (len(chosen) == 1 || x.given("odds-rate")) {
			if err := odds.Simulate(searching, plan[i].sel, plan[i].cfg, x.oddsRate, isolates, f.search); err != nil {
				fmt.Fprintf(x.stderr, "%s could not be simulated: %s\n", plan[i].sel, format.OneLine(err.Error()))
			}
		}
		return f
	}) {
		sel := plan[i].sel
		err := x.take(sel, found)
		if x.first && found.search != nil && len(found.search.Findings) > 0 {
			enough()
			n := 0
			for j := i + 1; j < len(plan); j++ {
				if other := plan[j].sel.String(); other != plan[j-1].sel.String() {
					n++
					x.record.Skipped = append(x.record.Skipped, results.Skipped{Strategy: other, Reason: "not searched: --first ended at a violation of " + sel.String()})
				}
			}
			if n > 0 {
				fmt.Fprintf(x.stderr, "ended at the first violation: %s not searched\n", format.Plural(int64(n), "strategy was", "strategies were"))
			}
			break
		}
		if err == nil || x.ctx.Err() != nil {
			continue
		}
		var unfit *explore.UnfitError
		switch {
		case errors.As(err, &unfit) && len(chosen) > 1:
			x.record.Skipped = append(x.record.Skipped, results.Skipped{Strategy: sel.String(), Reason: err.Error()})
			fmt.Fprintf(x.stderr, "skipped %s: %v\n", sel, err)
		case errors.As(err, &unfit):
			return x.end(fail(ExitUsage, err))
		default:
			x.failed(sel, err)
		}
	}
	if len(x.record.Searches)+len(x.record.Censuses)+len(x.record.Failed) == 0 && x.ctx.Err() == nil {
		return x.end(usagef("none of the strategies can be explored: %s", x.record.Skipped[0].Reason))
	}
	return x.end(nil)
}

// failed records a search that ended in an error, and has the others go on.
func (x *exploration) failed(sel strategies.Selection, err error) {
	x.record.Failed = append(x.record.Failed, results.FailedExplore{
		Strategy: sel.String(), Error: format.OneLine(err.Error()), Stack: harness.Stack(err),
	})
	x.invalidate(sel, err)
}

// invalidate has the command exit with 3 in the end.
func (x *exploration) invalidate(sel strategies.Selection, err error) {
	line := fmt.Sprintf("%s: %s", sel, format.OneLine(err.Error()))
	if x.invalid == "" {
		x.invalid = line
		return
	}
	fmt.Fprintf(x.stderr, "failed: %s\n", line) // the first one is told at the end
}

// found is what the search or the enumeration of one strategy returned.
type found struct {
	search *explore.Result
	census *explore.Census
	err    error
}

// look searches one strategy, or enumerates its schedules.
func (x *exploration) look(ctx context.Context, sel strategies.Selection, cfg explore.Config) (f found) {
	switch {
	case ctx.Err() != nil:
		f.err = ctx.Err()
	case isolates && sel.Foreign && x.full:
		f.census, f.err = explore.IsolatedCensus(ctx, sel, cfg)
	case isolates && sel.Foreign:
		f.search, f.err = explore.Isolated(ctx, sel, cfg)
	case x.full:
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
		x.invalidate(sel, f.err)
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
		err = tables.Search(&x.text, x.page, f.search)
		for i := 0; err == nil && i < len(f.search.Findings); i++ {
			b := &f.search.Findings[i]
			x.judge(b, true)
			if x.server != nil && b.Token != "" && x.ctx.Err() == nil {
				err = x.repeat(b.Token)
			}
		}
	}
	if err != nil {
		return err
	}
	x.keep()
	return x.show()
}

func (x *exploration) judge(f *results.Finding, broken bool) {
	if broken && x.violated == "" {
		x.violated = fmt.Sprintf("%s: %s: %s", f.Strategy, f.Property, f.Detail)
	}
	switch {
	case !broken || x.broken != "":
	case f.Property == explore.Guarantee:
		x.broken = fmt.Sprintf("%s: a declared guarantee is broken: %s", f.Strategy, f.Detail)
	case f.Property == explore.Panicked:
		x.broken = fmt.Sprintf("%s: %s", f.Strategy, f.Detail)
	}
}

// gap separates two reports.
func (x *exploration) gap() {
	if x.text.Len() > 0 {
		x.text.WriteByte('\n')
	}
}

// show writes what was reported since the last time, so that a long list of
// strategies shows as it goes.
func (x *exploration) show() error {
	if x.asJSON {
		return nil
	}
	var n int
	var err error
	x.progress.aside(func() { n, err = x.stdout.Write(x.text.Bytes()[x.shown:]) })
	x.shown += n
	if err != nil && x.unshown == nil {
		x.unshown = fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// end writes what was found, stops the server and picks the exit code:
// of failed, where that is not nil.
func (x *exploration) end(failed error) error {
	x.progress.end()
	x.record.Interrupted = x.ctx.Err() != nil
	err := x.write(failed)
	err = released(x.out, errors.Join(err, x.closeStores()))
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return fail(ExitFailed, err)
	case x.record.Interrupted:
		return fail(ExitInterrupted, errors.New("interrupted: what was found so far is written, searches that had not ended say so"))
	case x.invalid != "":
		return fail(ExitFailed, errors.New(x.invalid))
	case x.differs != "":
		return fail(ExitFailed, errors.New(x.differs))
	case x.violated != "" && !x.exitZero:
		err = fail(ExitGate, errors.New(cmp.Or(x.broken, x.violated)))
	}
	return gated(x.stderr, err, compare.CheckSearches(&x.record, x.gates))
}

func (x *exploration) write(failed error) error {
	if failed != nil && len(x.record.Searches)+len(x.record.Censuses)+len(x.record.Replays) == 0 {
		return nil
	}
	if x.asJSON {
		record, err := codec.ExplorationJSON(&x.record)
		if err != nil {
			return err
		}
		if _, err := x.stdout.Write(record); err != nil {
			x.unshown = fmt.Errorf("write the record: %w", err)
		}
	}
	if x.out == nil {
		return x.unshown
	}
	w := writer{out: x.out}
	if _, err := render.Each(&render.Bundle{Exploration: &x.record, About: aboutStrategy}, w.put); err != nil {
		return err
	}
	if len(w.written) > 0 {
		fmt.Fprintf(x.stderr, "\nwritten to %s: %s\n", x.out.dir, writtenFiles(w.written))
	}
	if err := w.err(); err != nil {
		return err
	}
	return x.unshown
}

// keep writes the record as it is, so that nothing found is lost whatever happens
// later. The last write reports what fails.
func (x *exploration) keep() {
	if x.out == nil {
		return
	}
	record := x.record
	record.Interrupted = true // until the last strategy says otherwise
	b, err := codec.ExplorationJSON(&record)
	if err == nil {
		err = x.out.write(explorationFile, b)
	}
	if err != nil && !x.warned {
		x.warned = true
		fmt.Fprintln(x.stderr, "warning: "+format.OneLine(err.Error()))
	}
}
