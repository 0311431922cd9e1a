package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/condition"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// The names of exact figures that have rules of their own. Those of runs are also samples if no clause promises
// them.
const (
	Leak            = "leak"
	WorstLeak       = "leak-worst"
	FalseRejects    = "false-rejects"
	DriftAtRest     = "drift"
	Violations      = "violations"
	Bytes           = "bytes"
	Allocs          = "allocs"
	Staleness       = "staleness"
	Counterexamples = string(condition.Counterexamples)
	Steps           = string(condition.Steps)
	Units           = "units"
	Schedules       = "leaking-schedules"
	BrokenAgain     = "broken-again"
	OtherReplies    = "other-replies"
)

// Figures are the names that a tolerance can be set for.
func Figures() []string {
	own := []string{DriftAtRest, Allocs, Staleness, Steps, Units, Schedules}
	return slices.Concat(figures.Table("compared"), figures.Table("compared cost"), own)
}

// value of an exact figure; more is worse.
type value struct {
	figure, of, unit string
	value            float64
	slack            Tolerance // by how much it may differ either way if no tolerance is given
	advisory         bool
	// disturbed is set for a cost that is no more than a bound: see [results.Probe].
	disturbed bool
}

// digits is by how much the bytes of a measured decision may differ: 2 % or 8 bytes.
// Moments, and what is left of a window, are sent as texts, whose lengths depend on when it
// was measured.
func digits(base float64) Tolerance { return Tolerance{By: max(8, 0.02*base)} }

// strays is by how much allocations may differ, which those of the whole process are: 5 %
// or two.
func strays(base float64) Tolerance { return Tolerance{By: max(2, 0.05*base)} }

// exact compares all figures of a pair that are exact.
func (c *Comparison) exact(p *pair, options *Options, measured bool) {
	base := valid(p.base)
	head := valid(p.head)
	if len(base) == 0 || len(head) == 0 {
		return // which validity says
	}
	if measured {
		c.values(p, options, promised(base, head))
		c.violations(p, options, base, head, "")
		if runs, h := paced(base), paced(head); len(runs) > 0 && len(h) > 0 {
			c.values(p, options, promised(runs, h).label(openLoop))
			c.violations(p, options, runs, h, openLoop)
		}
		c.values(p, options, both{probes(base), probes(head)})
		return
	}
	var all both
	for _, run := range head {
		for _, b := range base {
			if b.Repetition != run.Repetition {
				continue
			}
			x := both{simulated(b), simulated(run)}
			if len(head) > 1 {
				x = x.label(fmt.Sprintf("round %d", run.Repetition))
			}
			all.base = append(all.base, x.base...)
			all.head = append(all.head, x.head...)
		}
	}
	c.values(p, options, all)
	c.violations(p, options, base, head, "")
}

// openLoop is the part of a measurement at the common rate.
const openLoop = "the open loop"

// both sides' values.
type both struct{ base, head []value }

// label says what has the values, in addition to what they say themselves.
func (b both) label(of string) both {
	for _, side := range [][]value{b.base, b.head} {
		for i := range side {
			side[i].of = format.Join(", ", side[i].of, of)
		}
	}
	return b
}

// values adds a row for each figure that both sides have.
func (c *Comparison) values(p *pair, options *Options, x both) {
	for _, h := range x.head {
		i := slices.IndexFunc(x.base, func(b value) bool { return b.figure == h.figure && b.of == h.of })
		if i < 0 {
			continue
		}
		b := x.base[i]
		row := Row{Figure: h.figure, Of: h.of, Unit: h.unit, Kind: Exact, Base: &b.value, Head: &h.value,
			Advisory: h.advisory}
		row.Verdict, row.Detail = options.weigh(h.figure, b.value, h.value-b.value)
		if _, given := options.Tolerances[h.figure]; !given && b.slack.allows(b.value, math.Abs(h.value-b.value)) {
			row.Verdict = Same
			row.Detail = ""
		}
		if b.disturbed || h.disturbed {
			row.Verdict = Inconclusive
			row.Detail = "connections were lost or opened in each of its cost probes: a quiet machine would tell"
		}
		c.add(p, row)
	}
}

// weigh is the verdict on an exact figure that became worse by an amount.
func (o *Options) weigh(figure string, base, worsening float64) (Verdict, string) {
	tolerance, ok := o.Tolerances[figure]
	switch {
	case worsening < 0:
		return Better, ""
	case worsening == 0:
		return Same, ""
	case ok && tolerance.allows(base, worsening):
		return Same, "within the tolerance of " + tolerance.String()
	}
	return Worse, ""
}

// promised are the figures of measured runs that the strategy's clauses make exact: of
// leak and false rejects if a clause allows none, of drift at rest if both do
// and the base has none. Each is that of the worst round.
func promised(base, head []*results.Run) (x both) {
	leak := exactly(base, string(quota.PropertyLeak)) || exactly(head, string(quota.PropertyLeak))
	rejects := exactly(base, string(quota.PropertyFalseReject)) || exactly(head, string(quota.PropertyFalseReject))
	if leak {
		x.base = append(x.base, worst(Leak, base))
		x.head = append(x.head, worst(Leak, head))
	}
	if rejects {
		x.base = append(x.base, worst(FalseRejects, base))
		x.head = append(x.head, worst(FalseRejects, head))
	}
	if leak && rejects && driftless(base) {
		x.base = append(x.base, worst(DriftAtRest, base))
		x.head = append(x.head, worst(DriftAtRest, head))
	}
	return x
}

// exactly reports whether a clause allows no unit in any round.
func exactly(runs []*results.Run, property string) bool {
	return !slices.ContainsFunc(runs, func(run *results.Run) bool { return !run.AllowsNone(property) })
}

func driftless(runs []*results.Run) bool {
	return !slices.ContainsFunc(runs, func(run *results.Run) bool { return run.Drift == nil || drift(run) != 0 })
}

// worst is a figure's largest value over rounds.
func worst(figure string, runs []*results.Run) value {
	out := valueOf(figure, runs[0])
	for _, run := range runs {
		out.value = max(out.value, valueOf(figure, run).value)
	}
	return out
}

// valueOf is a figure of one round.
func valueOf(figure string, run *results.Run) value {
	if figure == DriftAtRest {
		return value{figure: figure, unit: run.Params.Unit, value: drift(run)}
	}
	f := figures.Of(figure)
	v, _ := f.Round(run)
	return value{figure: figure, unit: f.UnitOf(run), value: v}
}

// drift is the size of the worst one at rest, in units.
func drift(run *results.Run) float64 {
	tierDrift, _ := run.Drift.Worst("rest")
	return float64(format.Magnitude(tierDrift.Units))
}

// paced are the open loops at the common rate, as far as they count.
func paced(runs []*results.Run) (out []*results.Run) {
	for _, run := range runs {
		if run.Paced != nil && run.Paced.Audit.Valid {
			out = append(out, run.Paced)
		}
	}
	return out
}

// probes are the costs of single decisions: exact except for their allocations, which
// are advisory.
func probes(runs []*results.Run) (out []value) {
	for _, run := range runs {
		probe := run.Cost.Probe
		if probe == nil {
			continue
		}
		for _, x := range []struct {
			of   string
			cost *results.ProbeCost
		}{{"the first decision", &probe.First}, {"a later admission", probe.Admitted}, {"a rejection", probe.Rejected}} {
			if x.cost == nil {
				continue
			}
			for _, value := range costs(x.of, x.cost) {
				value.disturbed = probe.Disturbed
				if value.figure == Bytes {
					value.slack = digits(value.value)
				}
				out = append(out, value)
			}
			out = append(out, value{figure: Allocs, of: x.of, unit: "allocations", value: x.cost.Allocs,
				slack: strays(x.cost.Allocs), advisory: true})
		}
		return out // one round has it
	}
	return nil
}

func costs(of string, cost *results.ProbeCost) (out []value) {
	for _, figure := range figures.Table("compared cost") {
		f := figures.Of(figure)
		if v, ok := f.Round(&results.Run{Cost: results.Cost{ProbeCost: *cost}}); ok {
			out = append(out, value{figure: figure, of: of, unit: f.Noun, value: v})
		}
	}
	return out
}

// simulated are the figures of a simulated run, all of which are exact.
func simulated(run *results.Run) (out []value) {
	for _, figure := range figures.Table("compared") {
		out = append(out, valueOf(figure, run))
	}
	out = append(out, costs("a decision", &run.Cost.ProbeCost)...)
	if run.Drift == nil {
		return out
	}
	for _, drift := range run.Drift.Tiers {
		of := drift.Tier + " at rest"
		if drift.At != "rest" {
			of = drift.Tier + " after its jobs"
		}
		worst := value{figure: DriftAtRest, of: of, unit: run.Params.Unit, value: float64(format.Magnitude(drift.Units))}
		total := value{figure: DriftAtRest, of: "all readings of " + of, unit: run.Params.Unit, value: float64(drift.Total)}
		out = append(out, worst, total)
	}
	return out
}

// violations adds a row for each property of which the head broke a clause, in any
// round, or the base.
func (c *Comparison) violations(p *pair, options *Options, base, head []*results.Run, of string) {
	b := broken(base)
	h := broken(head)
	for _, property := range []string{string(quota.PropertyLeak), string(quota.PropertyFalseReject)} {
		was := float64(len(b[property]))
		is := float64(len(h[property]))
		if was == 0 && is == 0 {
			continue
		}
		row := Row{
			Figure: Violations, Of: format.Join(", ", "the "+property+" guarantee", of), Unit: "clauses",
			Kind: Exact, Base: &was, Head: &is,
		}
		row.Verdict, _ = options.weigh(Violations, was, is-was)
		if is > 0 {
			row.Detail = strings.Join(h[property], "; ")
		}
		c.add(p, row)
	}
}

// broken are the clauses that were broken in any round, by property, each with what
// was measured in its first one.
func broken(runs []*results.Run) map[string][]string {
	out := map[string][]string{}
	seen := map[string]bool{}
	for _, run := range runs {
		for _, clause := range run.Guarantee {
			if clause.Verdict != results.Broken || seen[clause.Property+clause.Formula] {
				continue
			}
			seen[clause.Property+clause.Formula] = true
			out[clause.Property] = append(out[clause.Property], fmt.Sprintf("at most %s allows %s, round %d had %s",
				clause.Formula, format.Count(clause.Bound), run.Repetition, format.Count(clause.Certain)))
		}
	}
	return out
}

// staleness compares how old what counters said was at the worst, if both sides have
// the series of a simulated run. It is advisory: no clause bounds it.
func (c *Comparison) staleness(p *pair, base, head []results.Series, options *Options) {
	if p.setting != "" {
		return // a series tells strategies apart, and no settings
	}
	of := func(all []results.Series) (out []value) {
		i := slices.IndexFunc(all, func(series results.Series) bool { return series.Strategy == p.label })
		if i < 0 || len(all[i].Samples) == 0 {
			return nil
		}
		for k, counter := range all[i].Counters {
			worst := int64(0)
			for _, sample := range all[i].Samples {
				if k < len(sample.Counters) {
					worst = max(worst, sample.Counters[k].StalenessNS)
				}
			}
			out = append(out, value{figure: Staleness, of: counter, unit: "ms", value: float64(worst) / 1e6, advisory: true})
		}
		return out
	}
	c.values(p, options, both{of(base), of(head)})
}
