package figures

import (
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/internal/codes"
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
func (f *Figure) Text(summary *results.Summary, n *Notes) string {
	if f.AtRate {
		summary = summary.AtRate()
	}
	switch {
	case f.Counts == Valid && !summary.Counts():
		return f.invalid()
	case f.text != nil:
		return f.text(summary, n)
	case f.of != nil:
		if value, ok := f.of(summary); ok {
			return f.show(value, n)
		}
		return ""
	}
	v, ok := f.in(summary)
	if !ok {
		return ""
	}
	switch x := v.Interface().(type) {
	case results.Percentile:
		return n.timing(f.Timing(summary))
	case results.Figure:
		if f.Counts == Timed {
			return n.timing(f.Timing(summary))
		}
		return f.show(x.Value, n)
	}
	if value := Numeric(v); value != 0 || !f.Blank {
		return f.show(value, n)
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
func (f *Figure) show(value float64, n *Notes) string {
	switch f.Unit {
	case Percent:
		return format.Pct(value)
	case Nanoseconds:
		if value == 0 {
			return "0"
		}
		return format.NS(value)
	case PerDecision:
		return n.perDecision(value)
	case Ratio:
		return format.Digits(value)
	default:
		return format.Count(int64(value + 0.5))
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
	markBound: "≥ at least: there are too few samples for the percentile, or requests waited longer and longer at " +
		"this rate",
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

// Merge adds the notes that another table needs.
func (n *Notes) Merge(other *Notes) {
	for i, seen := range other.seen {
		n.seen[i] = n.seen[i] || seen
	}
}

// Bounds reports whether a figure is only a lower bound.
func (n *Notes) Bounds() bool { return n.seen[markBound] }

// Percentile renders one without its interval.
func (n *Notes) Percentile(percentile results.Percentile) string {
	return n.timing(Percentile(percentile))
}

// timing is the value of a timing without its interval.
func (n *Notes) timing(timing Timing) string {
	if timing.Bound {
		n.seen[markBound] = true
	}
	return timing.Value
}

func (n *Notes) perDecision(value float64) string {
	if n.Exact {
		return format.TrimZeros(format.Per(value))
	}
	return format.Per(value)
}

// statements marks those that went to the model.
func statements(summary *results.Summary, n *Notes) string {
	if cost := &summary.Cost; cost.SQL == 0 && cost.ModelSQL > 0 {
		n.seen[markModel] = true
		return n.perDecision(cost.ModelSQL) + "m"
	}
	return n.perDecision(summary.Cost.SQL)
}

// ratioText is empty in open loop, where the ratio says no more than the rate.
func ratioText(summary *results.Summary, _ *Notes) string {
	if summary.Ratio.Rounds == 0 || summary.Params.Loop == codes.OpenLoop {
		return ""
	}
	return show(summary.Ratio, false, Scale{Length: 1}).Value
}

// jobP99Text is empty if no job ran.
func jobP99Text(summary *results.Summary, n *Notes) string {
	if summary.JobP99 == nil {
		return ""
	}
	length, unit := format.TimeUnit(summary.JobP99.Value)
	return n.timing(show(*summary.JobP99, false, Scale{Length: length, Unit: unit}))
}

// micros shows nanoseconds per decision in microseconds.
func micros(of func(*results.Cost) float64) func(*results.Summary, *Notes) string {
	return func(summary *results.Summary, _ *Notes) string {
		if ns := of(&summary.Cost); ns > 0 {
			return format.Per(ns / 1e3)
		}
		return ""
	}
}

// keysWithoutTTL says how many keys will stay forever.
func keysWithoutTTL(summary *results.Summary, _ *Notes) string {
	if summary.Cost.KeysWithoutTTL == 0 {
		return ""
	}
	return format.Count(summary.Cost.KeysWithoutTTL) + " of " + format.Count(summary.Cost.KeysAtEnd)
}

func admitted(summary *results.Summary, _ *Notes) string {
	return fmt.Sprintf("%s (%s)", format.Count(summary.Admitted), format.Pct(summary.AdmittedPct()))
}

func degraded(summary *results.Summary, _ *Notes) string {
	if summary.Degraded == 0 {
		return ""
	}
	return format.Pct(summary.DegradedPct())
}

func saturated(summary *results.Summary, _ *Notes) string {
	if summary.Saturated == 0 || summary.Lateness == nil {
		return ""
	}
	return fmt.Sprintf("%d of %s", summary.Saturated, format.Plural(int64(summary.Timed), "round", "rounds"))
}

// rolling is a figure of tumbling windows that were judged as rolling ones, if one ended in mid-run.
func rolling(show func(rolling *results.Rolling, unit string) string) func(*results.Summary, *Notes) string {
	return func(summary *results.Summary, _ *Notes) string {
		if summary.Rolling == nil {
			return ""
		}
		return show(summary.Rolling, format.Plain(summary.Params.Unit))
	}
}

func leak(summary *results.Summary, _ *Notes) string {
	return format.Range(summary.Leak.Units, summary.Leak.Possible)
}

// trials says how many trials leaked. None of n is not proof of none.
func trials(summary *results.Summary, _ *Notes) string {
	leakSummary := &summary.Leak
	switch {
	case leakSummary.Trials == 0 && leakSummary.LeakedTrials == 0:
		return "no trial"
	case leakSummary.Trials == 0:
		return format.Count(leakSummary.LeakedTrials)
	case leakSummary.LeakedTrials == 0:
		return fmt.Sprintf("0 of %s (≤ %s)", format.Count(leakSummary.Trials),
			format.Pct(100*stat.RateBound(leakSummary.Trials)))
	default:
		share := format.Pct(stat.Percent(leakSummary.LeakedTrials, leakSummary.Trials))
		return fmt.Sprintf("%s of %s (%s)", format.Count(leakSummary.LeakedTrials), format.Count(leakSummary.Trials), share)
	}
}

// falseRejects are those of valid requests, certain..possible, or one figure if the
// possible ones say no more.
func falseRejects(summary *results.Summary, _ *Notes) string {
	rejects := summary.FalseRejects
	if rejects.Possible <= rejects.Count {
		return format.Pct(rejects.PctOfValid)
	}
	most := stat.Percent(rejects.Possible, rejects.Possible+summary.Admitted-summary.Leak.Requests)
	return format.PctNumber(rejects.PctOfValid) + ".." + format.Pct(max(most, rejects.PctOfValid))
}

// drift shows the worst tier at rest, and on a line of its own what background jobs
// make of it.
func drift(summary *results.Summary, _ *Notes) string {
	rest, ok := summary.AtRest()
	after, jobs := summary.AfterJobs()
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

func tierText(drift results.TierDrift) string {
	if drift.Units == 0 {
		return "0"
	}
	text := format.Signed(drift.Units) + " " + format.Plain(drift.Tier)
	if drift.Width > 0 {
		text += " (width " + format.Count(drift.Width) + ")"
	}
	return text
}

// Guarantee says what was declared on the leak, with its bound, and what came of it. A
// leak never stands next to a mere "kept".
func Guarantee(summary *results.Summary) string {
	least := Strictest(summary)
	switch {
	case summary.Verdict == results.Broken:
		return "BROKEN"
	case least == nil && len(summary.NotPromised) > 0:
		return "not promised under " + strings.Join(summary.NotPromised, ", ")
	case least == nil || least.Bound == quota.Unbounded:
		return results.NoPromise
	case least.Bound == 0 && summary.Verdict == results.Kept && summary.Leak.WorstUnits > 0:
		return "kept by its instances' clocks alone"
	case least.Bound == 0:
		return "no leak: " + summary.Verdict
	case summary.Verdict == results.Kept:
		return "within " + format.Count(least.Bound) + " per window"
	default:
		return "at most " + format.Count(least.Bound) + " per window: " + summary.Verdict
	}
}

// Errors are the shares of requests that ended in an error of each kind, of all; none
// if a record does not tell them apart.
func Errors(summary *results.Summary) (out []string) {
	if summary.ErrorKinds == nil {
		return nil
	}
	for _, kind := range []quota.ErrorKind{quota.ErrorContention, quota.ErrorTimeout, quota.ErrorStore, quota.ErrorOther,
		"killed"} {
		if n := *summary.ErrorKinds.Of(kind); n > 0 {
			out = append(out, format.Pct(stat.Percent(n, summary.Issued))+" "+string(kind))
		}
	}
	return out
}
