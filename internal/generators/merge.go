package generators

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// Merge makes one record of what the generators of one run handed back, each in a directory
// of its own: a record, results.json, and its histories in [HistoryDir]. The verdicts are
// those on the union of the histories. A generator whose directory or history is missing, or
// whose files are damaged, leaves them undecided: the audit of the run says so. An error
// means that no directory has a record, or that the records are not of one run.
func Merge(ctx context.Context, dirs []string) (results.File, error) {
	var files []results.Named
	var unread error
	for _, dir := range dirs {
		f, err := codec.Read(filepath.Join(dir, "results.json"))
		if err != nil {
			unread = errors.Join(unread, err)
			continue
		}
		files = append(files, results.Named{Name: filepath.Join(dir, "results.json"), File: f})
	}
	if len(files) == 0 {
		return results.File{}, fmt.Errorf("no generator handed back a record: %w", unread)
	}
	merged, err := results.Merge(files)
	if err != nil {
		return merged, err
	}
	return merged, Decide(ctx, &merged, files)
}

// Decide gives the runs of a merged record the verdicts on the histories that lie beside the
// records it was merged from. It ends with ctx.
func Decide(ctx context.Context, merged *results.File, from []results.Named) error {
	for i := range merged.Runs {
		r := &merged.Runs[i]
		if r.Params.Generators == 0 {
			continue
		}
		err := decide(ctx, r, from)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			r.Audit.Undecided(err.Error())
		}
	}
	merged.Summaries = results.Summarise(merged.Runs)
	return nil
}

// generator is what one of them left of a run.
type generator struct {
	run     *results.Run
	history *oracle.File
}

// decide judges one run. An error says why there is no verdict.
func decide(ctx context.Context, r *results.Run, from []results.Named) (err error) {
	var all []generator
	var others []*oracle.File
	defer func() {
		for _, g := range all {
			err = errors.Join(err, g.history.Close())
		}
	}()
	of := 0
	span := interval{to: math.MaxInt64}
	for i := range from {
		x := part(&from[i].File, r)
		if x == nil {
			continue
		}
		if _, err := fmt.Sscanf(x.Params.Generator, "%d/%d", new(int), &of); err != nil {
			return fmt.Errorf("the generator %q has no valid form", x.Params.Generator)
		}
		f, err := oracle.OpenHistory(filepath.Join(filepath.Dir(from[i].Name), HistoryDir, x.HistoryName()))
		if err != nil {
			return fmt.Errorf("the history of generator %s is missing or damaged: %w", x.Params.Generator, err)
		}
		all, others = append(all, generator{x, f}), append(others, f)
		span.common(f.Header.Epoch.Add(-f.Header.ClockAhead).UnixNano(), x.ElapsedNS)
	}
	if len(all) < of {
		return fmt.Errorf("%d of %d generators handed nothing back", of-len(all), of)
	}
	union, err := others[0].Join(others[1:]...)
	if err != nil {
		return err
	}
	wrong := union.Header.ClockWrong
	judged := *r
	judged.Audit = results.Audit{Valid: true, TimingsValid: true}
	facts, why := together(r, all, union)
	if _, err := harness.Judge(ctx, &judged, facts, span.visitor(union.Header.Epoch, wrong)); err != nil {
		return err
	}
	r.ElapsedNS, r.ThroughputPerS = span.last-union.Header.Epoch.UnixNano(), span.perSecond()
	r.Decide(&judged, wrong, why)
	return nil
}

// whole is the history of all generators, as that of one process is judged.
type whole struct{ *oracle.File }

func (w whole) Judge(cfg oracle.Config, visit ...oracle.Visitor) (oracle.Verdict, error) {
	return w.JudgeBy(cfg, visit...)
}

// together is what generators know of a run together, and why a clause has no verdict by that.
func together(r *results.Run, all []generator, union *oracle.File) (f *harness.Facts, why string) {
	h := &union.Header
	f = &harness.Facts{
		Plan: &harness.Plan{Workload: &workloads.Meta{}}, Policy: &h.Policy, Epoch: h.Epoch, Initial: h.Config().Initial, LimitChanges: h.Changes,
		History: whole{union}, Tiers: h.Tiers, Partial: r.Partial, Instances: r.Params.Instances,
		Counts: harness.Counts{Admitted: r.Admitted, Rejected: r.Rejected, Degraded: r.Degraded, DegradedAdmitted: r.DegradedAdmitted},
	}
	if kinds := r.ErrorKinds; kinds != nil { // each generator asks whether they are explained
		f.Counts.Errors, f.Counts.Prescribed = *kinds, *kinds
	}
	if w, err := workloads.Lookup(r.Workload); err == nil {
		f.Plan.Workload = w
	}
	meta, err := strategies.Lookup(r.Strategy)
	if err != nil {
		meta, why = &strategies.Meta{Name: r.Strategy, Counts: h.Counts}, ": this program has no strategy "+r.Strategy
	}
	f.Selection = strategies.Selection{Meta: meta, Options: r.Options}
	read := harness.Readings{At: harness.AtRest}
	for i := range all {
		g := &all[i].history.Header
		f.SyncPeriod = max(f.SyncPeriod, time.Duration(all[i].run.SyncPeriodNS))
		read.List = append(read.List, readings(all[i].run, int64(g.Epoch.Add(-g.ClockAhead).Sub(h.Epoch)), int64(g.ClockWrong))...)
		for _, o := range all[:i] {
			f.Apart = max(f.Apart, (g.ClockAhead-o.history.Header.ClockAhead).Abs()-g.ClockWrong-o.history.Header.ClockWrong)
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
func readings(r *results.Run, later, wrong int64) (out []harness.Reading) {
	for _, tier := range slices.Sorted(maps.Keys(r.Readings)) {
		for _, x := range r.Readings[tier] {
			out = append(out, harness.Reading{Subject: uint32(x[0]), Call: x[1] + later - wrong, Reply: x[2] + later + wrong,
				Tier: tier, Units: x[3], Known: x[4] == 1})
		}
	}
	return out
}

// part is the run of a record that was merged into r; nil if there is none.
func part(f *results.File, r *results.Run) *results.Run {
	for i := range f.Runs {
		x := &f.Runs[i]
		if x.Repetition == r.Repetition && x.Params.Label == r.Params.Label && x.Params.Generator != "" {
			return x
		}
	}
	return nil
}

// interval is when all generators were at work, in nanoseconds since 1970, and what was decided then.
type interval struct {
	from, to, last int64 // last is when the last of them ended
	decided        int64
}

// common takes when another generator had its pass.
func (s *interval) common(began, took int64) {
	s.from, s.to, s.last = max(s.from, began), min(s.to, began+took), max(s.last, began+took)
}

// visitor counts the decisions in the interval. The replies of events are so much later as
// clocks may be wrong.
func (s *interval) visitor(epoch time.Time, wrong time.Duration) func([]oracle.Event) {
	later := int64(wrong) - epoch.UnixNano()
	from, to := s.from+later, s.to+later
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

// Report writes what each run of several generators leaked, or why that is undecided, and
// returns how many are.
func Report(w io.Writer, f *results.File) (undecided int) {
	for i := range f.Runs {
		r := &f.Runs[i]
		if r.Params.Generators == 0 {
			continue
		}
		text := fmt.Sprintf(" of %d generators: %s", r.Params.Generators, r.ClockText())
		if why := r.Audit.Discarded(); why != "" { // it is not the number of all if one is missing
			undecided++
			text = ": undecided: " + why
		}
		fmt.Fprintf(w, "%s, round %d%s\n", r.Params.Label, r.Repetition, text)
	}
	return undecided
}
