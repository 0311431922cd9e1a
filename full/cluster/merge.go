package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// handedBack is what one generator handed back.
type handedBack struct {
	dir   string
	file  results.File
	known []known
	name  string // e.g. "2/3"
}

// merge makes one record of what the generators of one run handed back, each in a directory of its own, in their order: a
// record, results.json, its histories in [historyDir], and what it knows besides in [knownName]. The verdicts are those on the
// union of the histories. A generator whose directory or history is missing, or whose files are damaged, leaves them
// undecided: the audit of the run says so. An error means that no directory has a record.
func merge(ctx context.Context, dirs []string) (results.File, error) {
	var all []handedBack
	var unread error
	for i, dir := range dirs {
		h, err := open(dir, fmt.Sprintf("%d/%d", i+1, len(dirs)))
		if err != nil {
			unread = errors.Join(unread, err)
			continue
		}
		all = append(all, h)
	}
	if len(all) == 0 {
		return results.File{}, fmt.Errorf("no generator handed back a record: %w", unread)
	}
	first := &all[0].file
	out := results.File{Schema: results.SchemaVersion, Kind: first.Kind, Seed: first.Seed, Stores: first.Stores,
		Provenance: first.Provenance, Workload: first.Workload}
	for i := range all {
		f := &all[i].file
		out.Workload.Notes = collect.Union(out.Workload.Notes, f.Workload.Notes...)
		out.Skipped = collect.Union(out.Skipped, f.Skipped...)
		out.Interrupted = out.Interrupted || f.Interrupted
		out.Sources = append(out.Sources, results.Source{Name: all[i].name, Provenance: f.Provenance, Runs: len(f.Runs)})
	}
	if err := joinRounds(ctx, &out, all, len(dirs)); err != nil {
		return out, err
	}
	out.Summaries = results.Summarise(out.Runs)
	return out, nil
}

// open reads what a generator handed back.
func open(dir, name string) (h handedBack, err error) {
	h.dir = dir
	h.name = name
	h.file, err = codec.Read(filepath.Join(dir, render.ResultsName))
	if err != nil {
		return h, err
	}
	b, err := os.ReadFile(filepath.Join(dir, knownName))
	if err != nil {
		return h, err
	}
	return h, json.Unmarshal(b, &h.known)
}

// run is the generator's run of a strategy in a round; nil if there is none.
func (h *handedBack) run(label string, round int) *results.Run {
	for i := range h.file.Runs {
		if r := &h.file.Runs[i]; r.Params.Label == label && r.Repetition == round {
			return r
		}
	}
	return nil
}

// knows is what the generator knows of a run besides.
func (h *handedBack) knows(r *results.Run) (known, error) {
	for _, k := range h.known {
		if k.Label == r.Params.Label && k.Repetition == r.Repetition {
			return k, nil
		}
	}
	return known{}, fmt.Errorf("generator %s says nothing of its clock in %s, round %d", h.name, r.Params.Label, r.Repetition)
}

// joinRounds joins the runs of each strategy and round, and judges them.
func joinRounds(ctx context.Context, out *results.File, all []handedBack, of int) error {
	type key struct {
		label string
		round int
	}
	var order []key
	for i := range all {
		for _, r := range all[i].file.Runs {
			if k := (key{r.Params.Label, r.Repetition}); !slices.Contains(order, k) {
				order = append(order, k)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b key) int { return a.round - b.round })
	out.Runs = []results.Run{}
	for _, k := range order {
		var sources []source
		var from []*handedBack
		for i := range all {
			if r := all[i].run(k.label, k.round); r != nil {
				sources = append(sources, source{all[i].name, all[i].file.Provenance.Host, r})
				from = append(from, &all[i])
			}
		}
		whole, err := joinRuns(sources)
		if err != nil {
			return fmt.Errorf("round %d of %s: %w", k.round, k.label, err)
		}
		err = decide(ctx, &whole, sources, from, of)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			undecided(&whole.Audit, err.Error())
		}
		out.Runs = append(out.Runs, whole)
	}
	return nil
}

// undecided says why a run of several generators has no verdict.
func undecided(a *results.Audit, why string) {
	for i := range a.Reasons {
		if a.Reasons[i].Code == codeUndecided {
			a.Reasons[i].Detail = format.OneLine(why)
		}
	}
}

// generatorOf is what one generator left of a run.
type generatorOf struct {
	run *results.Run
	oracle.Source
	known known
}

// decide judges one run. An error says why there is no verdict.
func decide(ctx context.Context, r *results.Run, sources []source, from []*handedBack, of int) (err error) {
	var all []generatorOf
	var histories []oracle.Source
	defer func() {
		for _, g := range all {
			err = errors.Join(err, g.Close())
		}
	}()
	span := interval{to: math.MaxInt64}
	wrong := time.Duration(0)
	for i := range from {
		x := sources[i].run
		f, err := oracle.OpenHistory(filepath.Join(from[i].dir, historyDir, x.HistoryName()))
		if err != nil {
			return fmt.Errorf("the history of generator %s is missing or damaged: %w", from[i].name, err)
		}
		all = append(all, generatorOf{run: x, Source: oracle.Source{File: f}})
		g := &all[len(all)-1]
		g.known, err = from[i].knows(x)
		if err != nil {
			return err
		}
		g.Ahead = g.known.Ahead
		g.Wrong = g.known.Wrong
		wrong = max(wrong, g.Wrong)
		histories = append(histories, g.Source)
		span.common(f.Header.Epoch.Add(-g.Ahead).UnixNano(), x.ElapsedNS)
	}
	if len(all) < of {
		return fmt.Errorf("%d of %d generators handed nothing back", of-len(all), of)
	}
	union, err := oracle.Union(histories...)
	if err != nil {
		return err
	}
	judged := *r
	judged.Audit = results.Audit{Valid: true}
	facts, why := factsOf(r, all, union)
	if _, err := harness.Judge(ctx, &judged, facts, span.visitor(union.Header.Epoch, wrong)); err != nil {
		return err
	}
	r.ElapsedNS = span.last - union.Header.Epoch.UnixNano()
	r.ThroughputPerS = span.perSecond()
	takeVerdict(r, &judged, wrong, why)
	return nil
}

// takeVerdict gives a run of several generators the verdict on all their histories, that of judged, and says what clocks cost:
// each may be wrong by so much. Promises that judged has no verdict on stay undecided; why says why that is.
func takeVerdict(r, judged *results.Run, wrong time.Duration, why string) {
	r.Audit.Reasons = slices.DeleteFunc(r.Audit.Reasons, func(x results.Reason) bool { return x.Code == codeUndecided })
	r.Audit.Valid = !slices.ContainsFunc(r.Audit.Reasons, func(x results.Reason) bool { return x.Discards == results.DiscardsCorrectness })
	r.Leak = judged.Leak
	r.LeakTiers = judged.LeakTiers
	r.FalseRejects = judged.FalseRejects
	r.FalseRejects.LongestNS = max(0, r.FalseRejects.LongestNS-2*int64(wrong))
	r.Rolling = judged.Rolling
	r.Drift = judged.Drift
	r.ClockErrorNS = int64(wrong)
	settle(r, r.Guarantee, judged.Guarantee, why)
	settle(r, r.Record, judged.Record, why)
	for _, x := range judged.Audit.Reasons {
		if x.Discards != results.DiscardsNothing { // notes are the generators' own
			r.Audit.Discard(x.Code, x.Discards, x.Detail)
		}
	}
	r.Audit.Discard("clocks", results.DiscardsNothing, clockText(r))
}

// settle gives clauses of the run the verdicts on all histories, and says which have none.
func settle(r *results.Run, all, judged []results.Clause, why string) {
	for i := range all {
		c := &all[i]
		k := slices.IndexFunc(judged, func(x results.Clause) bool { return sameClause(&x, c) })
		if k >= 0 {
			*c = judged[k]
		} else if c.Verdict != results.NoPromise {
			r.Audit.Discard("sources-not-judged", results.DiscardsNothing,
				fmt.Sprintf("the %s of %s is undecided: not judged over several generators%s", c.Property, c.Formula, why))
		}
	}
}

// clockText says what the leak of several generators is, and what their clocks cost.
func clockText(r *results.Run) string {
	return fmt.Sprintf("leak: certain %d, possible %d, clock error ±%v", r.Leak.Units, r.Leak.Possible,
		time.Duration(r.ClockErrorNS).Round(time.Microsecond))
}

// whole is the history of all generators, as that of one process is judged.
type whole struct{ *oracle.File }

func (w whole) Judge(cfg oracle.Config, visit ...oracle.Visitor) (oracle.Verdict, error) {
	return w.JudgeBy(cfg, visit...)
}

// factsOf is what generators know of a run together, and why a clause has no verdict by that.
func factsOf(r *results.Run, all []generatorOf, union *oracle.File) (f *harness.Facts, why string) {
	h := &union.Header
	f = &harness.Facts{
		Plan: &harness.Plan{Workload: &workloads.Meta{}}, Policy: &h.Policy, Epoch: h.Epoch, Initial: h.Config().Initial, LimitChanges: h.Changes,
		History: whole{union}, Tiers: h.Tiers, Partial: r.Partial, Instances: r.Params.Instances,
		Counts: harness.Counts{Admitted: r.Admitted, Rejected: r.Rejected, Degraded: r.Degraded, DegradedAdmitted: r.DegradedAdmitted},
	}
	if kinds := r.ErrorKinds; kinds != nil { // each generator asks whether they are explained
		f.Counts.Errors = *kinds
		f.Counts.Prescribed = *kinds
	}
	if w, err := workloads.Lookup(r.Workload); err == nil {
		f.Plan.Workload = w
	}
	meta, err := strategies.Lookup(r.Strategy)
	if err != nil {
		meta = &strategies.Meta{Name: r.Strategy, Counts: h.Counts}
		why = ": this program has no strategy " + r.Strategy
	}
	f.Selection = strategies.Selection{Meta: meta, Options: r.Options}
	read := harness.Readings{At: harness.AtRest}
	for i := range all {
		g := &all[i]
		f.SyncPeriod = max(f.SyncPeriod, g.known.SyncPeriod)
		read.List = append(read.List, readings(g.known.Readings, int64(g.Header.Epoch.Add(-g.Ahead).Sub(h.Epoch)), int64(g.Wrong))...)
		for _, o := range all[:i] {
			f.Apart = max(f.Apart, (g.Ahead-o.Ahead).Abs()-g.Wrong-o.Wrong)
		}
	}
	if len(read.List) > 0 {
		f.Readings = []harness.Readings{read}
	}
	if h.Policy.Window.Timeline != (quota.Timeline{}) {
		f.Apart = 0 // windows follow the coordinator's clock
	}
	if f.Apart > 0 && why == "" {
		why = fmt.Sprintf(": clocks differ by %v at least, under which it promises nothing", f.Apart)
	}
	return f, why
}

// readings are those of a generator whose epoch is so much later than the union's. Its clock may be wrong.
func readings(all []harness.Reading, later, wrong int64) (out []harness.Reading) {
	for _, x := range all {
		x.Call += later - wrong
		x.Reply += later + wrong
		out = append(out, x)
	}
	return out
}

// interval is when all generators were at work, in nanoseconds since 1970, and what was decided then.
type interval struct {
	from, to, last int64 // last is when the last of them ended
	decided        int64
}

// common takes when another generator had its pass.
func (s *interval) common(began, took int64) {
	s.from = max(s.from, began)
	s.to = min(s.to, began+took)
	s.last = max(s.last, began+took)
}

// visitor counts the decisions in the interval. The replies of events are so much later as clocks may be wrong.
func (s *interval) visitor(epoch time.Time, wrong time.Duration) func([]oracle.Event) {
	later := int64(wrong) - epoch.UnixNano()
	from := s.from + later
	to := s.to + later
	return func(events []oracle.Event) {
		for i := range events {
			if e := &events[i]; e.Kind == oracle.Take && e.Outcome != oracle.Short && e.Reply >= from && e.Reply <= to {
				s.decided++
			}
		}
	}
}

func (s *interval) perSecond() float64 {
	if s.to <= s.from {
		return 0
	}
	return float64(s.decided) / time.Duration(s.to-s.from).Seconds()
}

// report writes what each run leaked, or why that is undecided, and returns how many are.
func report(w io.Writer, f *results.File) (undecided int) {
	for i := range f.Runs {
		r := &f.Runs[i]
		text := fmt.Sprintf(" of %d generators: %s", r.Params.Sources, clockText(r))
		if why := r.Audit.Discarded(); why != "" { // it is not the number of all if one is missing
			undecided++
			text = ": undecided: " + why
		}
		fmt.Fprintf(w, "%s, round %d%s\n", r.Params.Label, r.Repetition, text)
	}
	return undecided
}
