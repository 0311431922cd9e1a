package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/figures"
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
	Counterexamples = "counterexamples"
	Steps           = "steps"
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
	v                float64
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
func (c *Comparison) exact(p *pair, o *Options, measured bool) {
	base := valid(p.base)
	head := valid(p.head)
	if len(base) == 0 || len(head) == 0 {
		return // which validity says
	}
	if measured {
		c.values(p, o, promised(base, head))
		c.violations(p, o, base, head, "")
		if b, h := paced(base), paced(head); len(b) > 0 && len(h) > 0 {
			c.values(p, o, promised(b, h).label(openLoop))
			c.violations(p, o, b, h, openLoop)
		}
		c.values(p, o, both{probes(base), probes(head)})
		return
	}
	var all both
	for _, h := range head {
		for _, b := range base {
			if b.Repetition != h.Repetition {
				continue
			}
			x := both{simulated(b), simulated(h)}
			if len(head) > 1 {
				x = x.label(fmt.Sprintf("round %d", h.Repetition))
			}
			all.base = append(all.base, x.base...)
			all.head = append(all.head, x.head...)
		}
	}
	c.values(p, o, all)
	c.violations(p, o, base, head, "")
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
func (c *Comparison) values(p *pair, o *Options, x both) {
	for _, h := range x.head {
		i := slices.IndexFunc(x.base, func(b value) bool { return b.figure == h.figure && b.of == h.of })
		if i < 0 {
			continue
		}
		b := x.base[i]
		r := Row{Figure: h.figure, Of: h.of, Unit: h.unit, Kind: Exact, Base: &b.v, Head: &h.v, Advisory: h.advisory}
		r.Verdict, r.Detail = o.weigh(h.figure, b.v, h.v-b.v)
		if _, given := o.Tolerances[h.figure]; !given && b.slack.allows(b.v, math.Abs(h.v-b.v)) {
			r.Verdict = Same
			r.Detail = ""
		}
		if b.disturbed || h.disturbed {
			r.Verdict = Inconclusive
			r.Detail = "connections were lost or opened in each of its cost probes: a quiet machine would tell"
		}
		c.add(p, r)
	}
}

// weigh is the verdict on an exact figure that became worse by an amount.
func (o *Options) weigh(figure string, base, worsening float64) (Verdict, string) {
	t, ok := o.Tolerances[figure]
	switch {
	case worsening < 0:
		return Better, ""
	case worsening == 0:
		return Same, ""
	case ok && t.allows(base, worsening):
		return Same, "within the tolerance of " + t.String()
	}
	return Worse, ""
}

// promised are the figures of measured runs that the strategy's clauses make exact: of
// leak and false rejects if a clause allows none, of drift at rest if both do
// and the base has none. Each is that of the worst round.
func promised(base, head []*results.Run) (x both) {
	leak := exactly(base, results.LeakProperty) || exactly(head, results.LeakProperty)
	rejects := exactly(base, results.FalseRejectProperty) || exactly(head, results.FalseRejectProperty)
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
	return !slices.ContainsFunc(runs, func(r *results.Run) bool { return !r.AllowsNone(property) })
}

func driftless(runs []*results.Run) bool {
	return !slices.ContainsFunc(runs, func(r *results.Run) bool { return r.Drift == nil || drift(r) != 0 })
}

// worst is a figure's largest value over rounds.
func worst(figure string, runs []*results.Run) value {
	out := valueOf(figure, runs[0])
	for _, r := range runs {
		out.v = max(out.v, valueOf(figure, r).v)
	}
	return out
}

// valueOf is a figure of one round.
func valueOf(figure string, r *results.Run) value {
	if figure == DriftAtRest {
		return value{figure: figure, unit: r.Params.Unit, v: drift(r)}
	}
	f := figures.Of(figure)
	v, _ := f.Round(r)
	return value{figure: figure, unit: f.UnitOf(r), v: v}
}

// drift is the size of the worst one at rest, in units.
func drift(r *results.Run) float64 {
	t, _ := r.Drift.Worst("rest")
	return float64(format.Magnitude(t.Units))
}

// paced are the open loops at the common rate, as far as they count.
func paced(runs []*results.Run) (out []*results.Run) {
	for _, r := range runs {
		if r.Paced != nil && r.Paced.Audit.Valid {
			out = append(out, r.Paced)
		}
	}
	return out
}

// probes are the costs of single decisions: exact except for their allocations, which
// are advisory.
func probes(runs []*results.Run) (out []value) {
	for _, r := range runs {
		p := r.Cost.Probe
		if p == nil {
			continue
		}
		for _, x := range []struct {
			of   string
			cost *results.ProbeCost
		}{{"the first decision", &p.First}, {"a later admission", p.Admitted}, {"a rejection", p.Rejected}} {
			if x.cost == nil {
				continue
			}
			for _, v := range costs(x.of, x.cost) {
				v.disturbed = p.Disturbed
				if v.figure == Bytes {
					v.slack = digits(v.v)
				}
				out = append(out, v)
			}
			out = append(out, value{figure: Allocs, of: x.of, unit: "allocations", v: x.cost.Allocs, slack: strays(x.cost.Allocs), advisory: true})
		}
		return out // one round has it
	}
	return nil
}

func costs(of string, c *results.ProbeCost) (out []value) {
	for _, figure := range figures.Table("compared cost") {
		f := figures.Of(figure)
		if v, ok := f.Round(&results.Run{Cost: results.Cost{ProbeCost: *c}}); ok {
			out = append(out, value{figure: figure, of: of, unit: f.Noun, v: v})
		}
	}
	return out
}

// simulated are the figures of a simulated run, all of which are exact.
func simulated(r *results.Run) (out []value) {
	for _, figure := range figures.Table("compared") {
		out = append(out, valueOf(figure, r))
	}
	out = append(out, costs("a decision", &r.Cost.ProbeCost)...)
	if r.Drift == nil {
		return out
	}
	for _, t := range r.Drift.Tiers {
		of := t.Tier + " at rest"
		if t.At != "rest" {
			of = t.Tier + " after its jobs"
		}
		worst := value{figure: DriftAtRest, of: of, unit: r.Params.Unit, v: float64(format.Magnitude(t.Units))}
		total := value{figure: DriftAtRest, of: "all readings of " + of, unit: r.Params.Unit, v: float64(t.Total)}
		out = append(out, worst, total)
	}
	return out
}

// violations adds a row for each property of which the head broke a clause, in any
// round, or the base.
func (c *Comparison) violations(p *pair, o *Options, base, head []*results.Run, of string) {
	b := broken(base)
	h := broken(head)
	for _, property := range []string{results.LeakProperty, results.FalseRejectProperty} {
		was := float64(len(b[property]))
		is := float64(len(h[property]))
		if was == 0 && is == 0 {
			continue
		}
		r := Row{
			Figure: Violations, Of: format.Join(", ", "the "+property+" guarantee", of), Unit: "clauses",
			Kind: Exact, Base: &was, Head: &is,
		}
		r.Verdict, _ = o.weigh(Violations, was, is-was)
		if is > 0 {
			r.Detail = strings.Join(h[property], "; ")
		}
		c.add(p, r)
	}
}

// broken are the clauses that were broken in any round, by property, each with what
// was measured in its first one.
func broken(runs []*results.Run) map[string][]string {
	out := map[string][]string{}
	seen := map[string]bool{}
	for _, r := range runs {
		for _, c := range r.Guarantee {
			if c.Verdict != results.Broken || seen[c.Property+c.Formula] {
				continue
			}
			seen[c.Property+c.Formula] = true
			out[c.Property] = append(out[c.Property], fmt.Sprintf("at most %s allows %s, round %d had %s",
				c.Formula, format.Count(c.Bound), r.Repetition, format.Count(c.Certain)))
		}
	}
	return out
}

// staleness compares how old what counters said was at the worst, if both sides have
// the series of a simulated run. It is advisory: no clause bounds it.
func (c *Comparison) staleness(p *pair, base, head []results.Series, o *Options) {
	if p.setting != "" {
		return // a series tells strategies apart, and no settings
	}
	of := func(all []results.Series) (out []value) {
		i := slices.IndexFunc(all, func(s results.Series) bool { return s.Strategy == p.label })
		if i < 0 || len(all[i].Samples) == 0 {
			return nil
		}
		for k, counter := range all[i].Counters {
			worst := int64(0)
			for _, x := range all[i].Samples {
				if k < len(x.Counters) {
					worst = max(worst, x.Counters[k].StalenessNS)
				}
			}
			out = append(out, value{figure: Staleness, of: counter, unit: "ms", v: float64(worst) / 1e6, advisory: true})
		}
		return out
	}
	c.values(p, o, both{of(base), of(head)})
}
