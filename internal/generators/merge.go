package generators

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
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
// records it was merged from. It ends with ctx, between two runs.
func Decide(ctx context.Context, merged *results.File, from []results.Named) error {
	for i := range merged.Runs {
		r := &merged.Runs[i]
		if r.Params.Generators == 0 {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := decide(r, from); err != nil {
			r.Audit.Undecided(err.Error())
		}
	}
	merged.Summaries = results.Summarise(merged.Runs)
	return nil
}

// decide judges one run. An error says why there is no verdict.
func decide(r *results.Run, from []results.Named) (err error) {
	var all []*oracle.File
	defer func() {
		for _, f := range all {
			err = errors.Join(err, f.Close())
		}
	}()
	of := 0
	span := interval{}
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
		all = append(all, f)
		span.common(f.Header.Epoch.Add(-f.Header.ClockAhead), time.Duration(x.ElapsedNS))
	}
	if len(all) < of {
		return fmt.Errorf("%d of %d generators handed nothing back", of-len(all), of)
	}
	union, err := all[0].Join(all[1:]...)
	if err != nil {
		return err
	}
	wrong := union.Header.ClockWrong
	judged, err := harness.JudgeFile(union, span.visitor(union.Header.Epoch, wrong))
	if err != nil {
		return err
	}
	r.ElapsedNS, r.ThroughputPerS = int64(span.last.Sub(union.Header.Epoch)), span.perSecond()
	r.Decide(&judged, wrong)
	return nil
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

// interval is when all generators were at work, and what was decided then.
type interval struct {
	from, to, last time.Time // last is when the last of them ended
	decided        int64
}

// common takes what another generator had its pass in.
func (s *interval) common(began time.Time, took time.Duration) {
	ended := began.Add(took)
	if s.from.IsZero() || began.After(s.from) {
		s.from = began
	}
	if s.to.IsZero() || ended.Before(s.to) {
		s.to = ended
	}
	if ended.After(s.last) {
		s.last = ended
	}
}

// visitor counts the decisions in the interval. The replies of events are so much later as
// clocks may be wrong.
func (s *interval) visitor(epoch time.Time, wrong time.Duration) oracle.Visitor {
	from, to := int64(s.from.Sub(epoch)+wrong), int64(s.to.Sub(epoch)+wrong)
	return func(events []oracle.Event) error {
		for i := range events {
			if e := &events[i]; e.Kind == oracle.Take && e.Outcome != oracle.Short && e.Reply >= from && e.Reply <= to {
				s.decided++
			}
		}
		return nil
	}
}

func (s *interval) perSecond() float64 {
	if !s.to.After(s.from) {
		return 0
	}
	return float64(s.decided) / s.to.Sub(s.from).Seconds()
}

// Report writes what each run of several generators leaked, or why that is undecided, and
// returns how many are.
func Report(w io.Writer, f *results.File) (undecided int) {
	for i := range f.Runs {
		r := &f.Runs[i]
		if r.Params.Generators == 0 {
			continue
		}
		text := r.ClockText()
		if why := r.Audit.Discarded(); why != "" {
			undecided++
			text = "undecided: " + why
		}
		fmt.Fprintf(w, "%s, round %d of %d generators: %s\n", r.Params.Label, r.Repetition, r.Params.Generators, text)
	}
	return undecided
}
