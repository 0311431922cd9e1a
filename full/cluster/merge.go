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
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
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

// merge makes one record of what the generators of one run handed back, each in a directory of its own, in their order:
// a record, results.json, its histories in [historyDir], and what it knows besides in [knownName]. The verdicts are
// those on the union of the histories. A generator whose directory or history is missing, or whose files are damaged,
// leaves them undecided: the audit of the run says so. An error means that no directory has a record.
func merge(ctx context.Context, dirs []string) (results.File, error) {
	var all []handedBack
	var unread error
	for i, dir := range dirs {
		back, err := open(dir, fmt.Sprintf("%d/%d", i+1, len(dirs)))
		if err != nil {
			unread = errors.Join(unread, err)
			continue
		}
		all = append(all, back)
	}
	if len(all) == 0 {
		return results.File{}, fmt.Errorf("no generator handed back a record: %w", unread)
	}
	first := &all[0].file
	out := results.File{Schema: results.SchemaVersion, Kind: first.Kind, Seed: first.Seed, Stores: first.Stores,
		Provenance: first.Provenance, Workload: first.Workload}
	for i := range all {
		file := &all[i].file
		out.Workload.Notes = collect.Union(out.Workload.Notes, file.Workload.Notes...)
		out.Skipped = collect.Union(out.Skipped, file.Skipped...)
		out.Interrupted = out.Interrupted || file.Interrupted
		out.Sources = append(out.Sources,
			results.Source{Name: all[i].name, Provenance: file.Provenance, Runs: len(file.Runs)})
	}
	if err := joinRounds(ctx, &out, all, len(dirs)); err != nil {
		return out, err
	}
	out.Summaries = results.Summarise(out.Runs)
	return out, nil
}

// open reads what a generator handed back.
func open(dir, name string) (back handedBack, err error) {
	back.dir = dir
	back.name = name
	back.file, err = codec.Read(filepath.Join(dir, files.ResultsName))
	if err != nil {
		return back, err
	}
	data, err := os.ReadFile(filepath.Join(dir, knownName))
	if err != nil {
		return back, err
	}
	return back, json.Unmarshal(data, &back.known)
}

// run is the generator's run of a strategy in a round; nil if there is none.
func (h *handedBack) run(label string, round int) *results.Run {
	for i := range h.file.Runs {
		if run := &h.file.Runs[i]; run.Params.Label == label && run.Repetition == round {
			return run
		}
	}
	return nil
}

// knows is what the generator knows of a run besides.
func (h *handedBack) knows(run *results.Run) (known, error) {
	for _, k := range h.known {
		if k.Label == run.Params.Label && k.Repetition == run.Repetition {
			return k, nil
		}
	}
	return known{}, fmt.Errorf("generator %s says nothing of its clock in %s, round %d", h.name, run.Params.Label,
		run.Repetition)
}

// joinRounds joins the runs of each strategy and round, and judges them.
func joinRounds(ctx context.Context, out *results.File, all []handedBack, of int) error {
	type key struct {
		label string
		round int
	}
	var order []key
	for i := range all {
		for _, run := range all[i].file.Runs {
			if k := (key{run.Params.Label, run.Repetition}); !slices.Contains(order, k) {
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
			if run := all[i].run(k.label, k.round); run != nil {
				sources = append(sources, source{all[i].name, all[i].file.Provenance.Host, run})
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
func undecided(audit *results.Audit, why string) {
	for i := range audit.Reasons {
		if audit.Reasons[i].Code == codeUndecided {
			audit.Reasons[i].Detail = format.OneLine(why)
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
func decide(ctx context.Context, run *results.Run, sources []source, from []*handedBack, of int) (err error) {
	var all []generatorOf
	var histories []oracle.Source
	defer func() {
		for _, generatorOf := range all {
			err = errors.Join(err, generatorOf.Close())
		}
	}()
	span := interval{to: math.MaxInt64}
	wrong := time.Duration(0)
	for i := range from {
		x := sources[i].run
		file, err := oracle.OpenHistory(filepath.Join(from[i].dir, historyDir, x.HistoryName()))
		if err != nil {
			return fmt.Errorf("the history of generator %s is missing or damaged: %w", from[i].name, err)
		}
		all = append(all, generatorOf{run: x, Source: oracle.Source{File: file}})
		g := &all[len(all)-1]
		g.known, err = from[i].knows(x)
		if err != nil {
			return err
		}
		g.Ahead = g.known.Ahead
		g.Wrong = g.known.Wrong
		wrong = max(wrong, g.Wrong)
		histories = append(histories, g.Source)
		span.common(file.Header.Epoch.Add(-g.Ahead).UnixNano(), x.ElapsedNS)
	}
	if len(all) < of {
		return fmt.Errorf("%d of %d generators handed nothing back", of-len(all), of)
	}
	union, err := oracle.Union(histories...)
	if err != nil {
		return err
	}
	judged := *run
	judged.Audit = results.Audit{Valid: true}
	facts, why := factsOf(run, all, union)
	if _, err := harness.Judge(ctx, &judged, facts, span.visitor(union.Header.Epoch, wrong)); err != nil {
		return err
	}
	run.ElapsedNS = span.last - union.Header.Epoch.UnixNano()
	run.ThroughputPerS = span.perSecond()
	takeVerdict(run, &judged, wrong, why)
	return nil
}

// takeVerdict gives a run of several generators the verdict on all their histories, that of judged, and says what
// clocks cost: each may be wrong by so much. Promises that judged has no verdict on stay undecided; why says why that
// is.
func takeVerdict(r, judged *results.Run, wrong time.Duration, why string) {
	r.Audit.Reasons = slices.DeleteFunc(r.Audit.Reasons, func(reason results.Reason) bool {
		return reason.Code == codeUndecided
	})
	r.Audit.Valid = !slices.ContainsFunc(r.Audit.Reasons, func(reason results.Reason) bool {
		return reason.Discards == codes.DiscardsCorrectness
	})
	r.Leak = judged.Leak
	r.LeakTiers = judged.LeakTiers
	r.FalseRejects = judged.FalseRejects
	r.FalseRejects.LongestNS = max(0, r.FalseRejects.LongestNS-2*int64(wrong))
	r.Rolling = judged.Rolling
	r.Drift = judged.Drift
	r.ClockErrorNS = int64(wrong)
	settle(r, r.Guarantee, judged.Guarantee, why)
	settle(r, r.Record, judged.Record, why)
	for _, reason := range judged.Audit.Reasons {
		if reason.Discards != codes.DiscardsNothing { // notes are the generators' own
			r.Audit.Add(reason)
		}
	}
	r.Audit.Discard("clocks", codes.DiscardsNothing, clockText(r))
}

// settle gives clauses of the run the verdicts on all histories, and says which have none.
func settle(run *results.Run, all, judged []results.Clause, why string) {
	for i := range all {
		clause := &all[i]
		k := slices.IndexFunc(judged, func(x results.Clause) bool { return sameClause(&x, clause) })
		if k >= 0 {
			*clause = judged[k]
		} else if clause.Verdict != results.NoPromise {
			run.Audit.Discard("sources-not-judged", codes.DiscardsNothing,
				fmt.Sprintf("the %s of %s is undecided: not judged over several generators%s", clause.Property, clause.Formula,
					why))
		}
	}
}

// clockText says what the leak of several generators is, and what their clocks cost.
func clockText(run *results.Run) string {
	return fmt.Sprintf("leak: certain %d, possible %d, clock error ±%v", run.Leak.Units, run.Leak.Possible,
		time.Duration(run.ClockErrorNS).Round(time.Microsecond))
}

// whole is the history of all generators, as that of one process is judged.
type whole struct{ *oracle.File }

func (w whole) Judge(cfg oracle.Config, visit ...oracle.Visitor) (oracle.Verdict, error) {
	return w.JudgeBy(cfg, visit...)
}

// factsOf is what generators know of a run together, and why a clause has no verdict by that.
func factsOf(run *results.Run, all []generatorOf, union *oracle.File) (facts *harness.Facts, why string) {
	header := &union.Header
	facts = &harness.Facts{
		Plan: &harness.Plan{Traffic: harness.Traffic{Workload: &workloads.Meta{}}}, Policy: &header.Policy,
		Epoch: header.Epoch, Initial: header.Config().Initial, LimitChanges: header.Changes,
		History: whole{union}, Tiers: header.Tiers, Partial: run.Partial, Instances: run.Params.Instances,
		Counts: harness.Counts{Admitted: run.Admitted, Rejected: run.Rejected, Degraded: run.Degraded,
			DegradedAdmitted: run.DegradedAdmitted},
	}
	if kinds := run.ErrorKinds; kinds != nil { // each generator asks whether they are explained
		facts.Counts.Errors = *kinds
		facts.Counts.Prescribed = *kinds
	}
	if meta, err := workloads.Lookup(run.Workload); err == nil {
		facts.Plan.Workload = meta
	}
	meta, err := strategies.Lookup(run.Strategy)
	if err != nil {
		meta = &strategies.Meta{Name: run.Strategy, Counts: header.Counts}
		why = ": this program has no strategy " + run.Strategy
	}
	facts.Selection = strategies.Selection{Meta: meta, Options: run.Options}
	read := harness.Readings{At: harness.AtRest}
	for i := range all {
		generatorOf := &all[i]
		facts.SyncPeriod = max(facts.SyncPeriod, generatorOf.known.SyncPeriod)
		read.List = append(read.List, readings(generatorOf.known.Readings,
			int64(generatorOf.Header.Epoch.Add(-generatorOf.Ahead).Sub(header.Epoch)), int64(generatorOf.Wrong))...)
		for _, o := range all[:i] {
			facts.Apart = max(facts.Apart, (generatorOf.Ahead-o.Ahead).Abs()-generatorOf.Wrong-o.Wrong)
		}
	}
	if len(read.List) > 0 {
		facts.Readings = []harness.Readings{read}
	}
	if header.Policy.Window.Timeline != (quota.Timeline{}) {
		facts.Apart = 0 // windows follow the coordinator's clock
	}
	if facts.Apart > 0 && why == "" {
		why = fmt.Sprintf(": clocks differ by %v at least, under which it promises nothing", facts.Apart)
	}
	return facts, why
}

// readings are those of a generator whose epoch is so much later than the union's. Its clock may be wrong.
func readings(all []harness.Reading, later, wrong int64) (out []harness.Reading) {
	for _, reading := range all {
		reading.Call += later - wrong
		reading.Reply += later + wrong
		out = append(out, reading)
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
			if event := &events[i]; event.Kind == oracle.Take && event.Outcome != oracle.Short && event.Reply >= from &&
				event.Reply <= to {
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
func report(w io.Writer, file *results.File) (undecided int) {
	for i := range file.Runs {
		run := &file.Runs[i]
		text := fmt.Sprintf(" of %d generators: %s", run.Params.Sources, clockText(run))
		if why := run.Audit.Discarded(); why != "" { // it is not the number of all if one is missing
			undecided++
			text = ": undecided: " + why
		}
		fmt.Fprintf(w, "%s, round %d%s\n", run.Params.Label, run.Repetition, text)
	}
	return undecided
}
