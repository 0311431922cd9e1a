package figures

import (
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Label names the figure in one line, apart from any table.
func (f *Figure) Label() string {
	return format.Join(": ", f.Over, f.Title())
}

// Title is the name on one line.
func (f *Figure) Title() string { return strings.ReplaceAll(f.Name, "\n", " ") }

// Text is the figure over all rounds as tables show it; empty if there is none. What
// its marks mean is added to the notes.
func (f *Figure) Text(s *results.Summary, n *Notes) string {
	if f.AtRate {
		s = s.AtRate()
	}
	switch {
	case f.Counts == Valid && !s.Counts():
		return f.invalid()
	case f.text != nil:
		return f.text(s, n)
	case f.of != nil:
		if x, ok := f.of(s); ok {
			return f.show(x, n)
		}
		return ""
	}
	v, ok := f.in(s)
	if !ok {
		return ""
	}
	switch x := v.Interface().(type) {
	case results.Percentile:
		return n.timing(f.Timing(s))
	case results.Figure:
		if f.Counts == Timed {
			return n.timing(f.Timing(s))
		}
		return f.show(x.Value, n)
	}
	if x := Numeric(v); x != 0 || !f.Blank {
		return f.show(x, n)
	}
	return ""
}

// invalid stands in place of figures of which no round counts. One column says so.
func (f *Figure) invalid() string {
	switch {
	case f.Key == "leak" || f.Key == "leak-pct":
		return "invalid"
	case f.Missing != "" || f.Blank:
		return ""
	}
	return "-"
}

// show renders a number in the figure's unit.
func (f *Figure) show(x float64, n *Notes) string {
	switch f.Unit {
	case Percent:
		return format.Pct(x)
	case Nanoseconds:
		if x == 0 {
			return "0"
		}
		return format.NS(x)
	case PerDecision:
		return n.perDecision(x)
	case Ratio:
		return format.Digits(x)
	default:
		return format.Count(int64(x + 0.5))
	}
}

// Notes collects what the marks of a table turn out to mean.
type Notes struct {
	// Exact is set for counts per decision that are whole more often than not.
	Exact bool
	seen  [len(notes)]bool
}

// The notes, in the order in which they stand below a table.
const (
	markBound = iota
	markModel
)

var notes = [...]string{
	markBound: "≥ at least: there are too few samples for the percentile, or requests waited longer and longer at this rate",
	markModel: "m statements to the in-process model, not to PostgreSQL",
}

// Lines are the notes that are needed.
func (n *Notes) Lines() (out []string) {
	for i, seen := range n.seen {
		if seen {
			out = append(out, notes[i])
		}
	}
	return out
}

// Percentile renders one without its interval.
func (n *Notes) Percentile(p results.Percentile) string { return n.timing(Percentile(p)) }

// timing is the value of a timing without its interval.
func (n *Notes) timing(t Timing) string {
	if strings.Contains(t.Value, "≥") {
		n.seen[markBound] = true
	}
	return t.Value
}

func (n *Notes) perDecision(x float64) string {
	if n.Exact {
		return format.TrimZeros(format.Per(x))
	}
	return format.Per(x)
}

// statements marks those that went to the model.
func statements(s *results.Summary, n *Notes) string {
	if c := &s.Cost; c.SQL == 0 && c.ModelSQL > 0 {
		n.seen[markModel] = true
		return n.perDecision(c.ModelSQL) + "m"
	}
	return n.perDecision(s.Cost.SQL)
}

// ratioText is empty in open loop, where the ratio says no more than the rate.
func ratioText(s *results.Summary, _ *Notes) string {
	if s.Ratio.Rounds == 0 || s.Params.Loop == results.OpenLoop {
		return ""
	}
	return show(s.Ratio, false, Scale{Length: 1}).Value
}

// jobP99Text is empty if no job ran.
func jobP99Text(s *results.Summary, n *Notes) string {
	if s.JobP99 == nil {
		return ""
	}
	length, unit := format.TimeUnit(s.JobP99.Value)
	return n.timing(show(*s.JobP99, false, Scale{Length: length, Unit: unit}))
}

// micros shows nanoseconds per decision in microseconds.
func micros(of func(*results.Cost) float64) func(*results.Summary, *Notes) string {
	return func(s *results.Summary, _ *Notes) string {
		if ns := of(&s.Cost); ns > 0 {
			return format.Per(ns / 1e3)
		}
		return ""
	}
}

// keysWithoutTTL says how many keys will stay forever.
func keysWithoutTTL(s *results.Summary, _ *Notes) string {
	if s.Cost.KeysWithoutTTL == 0 {
		return ""
	}
	return format.Count(s.Cost.KeysWithoutTTL) + " of " + format.Count(s.Cost.KeysAtEnd)
}

func admitted(s *results.Summary, _ *Notes) string {
	return fmt.Sprintf("%s (%s)", format.Count(s.Admitted), format.Pct(s.AdmittedPct()))
}

func degraded(s *results.Summary, _ *Notes) string {
	if s.Degraded == 0 {
		return ""
	}
	return format.Pct(s.DegradedPct())
}

func saturated(s *results.Summary, _ *Notes) string {
	if s.Saturated == 0 || s.Lateness == nil {
		return ""
	}
	return fmt.Sprintf("%d of %s", s.Saturated, format.Plural(int64(s.Timed), "round", "rounds"))
}

// rolling is a figure of tumbling windows that were judged as rolling ones, if one ended in mid-run.
func rolling(show func(r *results.Rolling, unit string) string) func(*results.Summary, *Notes) string {
	return func(s *results.Summary, _ *Notes) string {
		if s.Rolling == nil {
			return ""
		}
		return show(s.Rolling, format.Plain(s.Params.Unit))
	}
}

func leak(s *results.Summary, _ *Notes) string { return format.Range(s.Leak.Units, s.Leak.Possible) }

// trials says how many trials leaked. None of n is not proof of none.
func trials(s *results.Summary, _ *Notes) string {
	l := &s.Leak
	switch {
	case l.Trials == 0 && l.LeakedTrials == 0:
		return "no trial"
	case l.Trials == 0:
		return format.Count(l.LeakedTrials)
	case l.LeakedTrials == 0:
		return fmt.Sprintf("0 of %s (≤ %s)", format.Count(l.Trials), format.Pct(100*stat.RateBound(l.Trials)))
	default:
		share := format.Pct(results.Percent(l.LeakedTrials, l.Trials))
		return fmt.Sprintf("%s of %s (%s)", format.Count(l.LeakedTrials), format.Count(l.Trials), share)
	}
}

// falseRejects are those of valid requests, certain..possible, or one figure if the
// possible ones say no more.
func falseRejects(s *results.Summary, _ *Notes) string {
	f := s.FalseRejects
	if f.Possible <= f.Count {
		return format.Pct(f.PctOfValid)
	}
	most := results.Percent(f.Possible, f.Possible+s.Admitted-s.Leak.Requests)
	return strings.TrimSuffix(format.Pct(f.PctOfValid), " %") + ".." + format.Pct(max(most, f.PctOfValid))
}

// drift shows the worst tier at rest, and on a line of its own what background jobs
// make of it.
func drift(s *results.Summary, _ *Notes) string {
	rest, ok := s.AtRest()
	after, jobs := s.AfterJobs()
	switch {
	case !ok && !jobs:
		return "no counter"
	case !ok:
		return tierText(after) + " after jobs"
	case jobs && after.Units != rest.Units:
		return tierText(rest) + "\n" + format.Signed(after.Units) + " after jobs"
	default:
		return tierText(rest)
	}
}

func tierText(t results.TierDrift) string {
	if t.Units == 0 {
		return "0"
	}
	text := format.Signed(t.Units) + " " + format.Plain(t.Tier)
	if t.Width > 0 {
		text += " (width " + format.Count(t.Width) + ")"
	}
	return text
}

// Guarantee says what was declared on the leak, with its bound, and what came of it. A
// leak never stands next to a mere "kept".
func Guarantee(s *results.Summary) string {
	least := Strictest(s)
	switch {
	case s.Verdict == results.Broken:
		return "BROKEN"
	case least == nil && len(s.NotPromised) > 0:
		return "not promised under " + strings.Join(s.NotPromised, ", ")
	case least == nil || least.Bound == quota.Unbounded:
		return results.NoPromise
	case least.Bound == 0 && s.Verdict == results.Kept && s.Leak.WorstUnits > 0:
		return "kept by its instances' clocks alone"
	case least.Bound == 0:
		return "no leak: " + s.Verdict
	case s.Verdict == results.Kept:
		return "within " + format.Count(least.Bound) + " per window"
	default:
		return "at most " + format.Count(least.Bound) + " per window: " + s.Verdict
	}
}

// Errors are the shares of requests that ended in an error of each kind, of all; none
// if a record does not tell them apart.
func Errors(s *results.Summary) (out []string) {
	if s.ErrorKinds == nil {
		return nil
	}
	for _, kind := range []quota.ErrorKind{quota.ErrorContention, quota.ErrorTimeout, quota.ErrorStore, quota.ErrorOther, "killed"} {
		if n := *s.ErrorKinds.Of(kind); n > 0 {
			out = append(out, format.Pct(results.Percent(n, s.Issued))+" "+string(kind))
		}
	}
	return out
}
