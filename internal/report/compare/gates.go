package compare

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/condition"
	"github.com/quotabench/quotabench/results"
)

// Gate is a condition that must hold, such as "leak<=0" or "p99/reference<=1.2". A record
// of which it does not hold fails.
type Gate struct {
	condition *condition.Expression
	searches  bool // it is about searches, and not about runs
	lenient   bool // it passes if it cannot be decided
}

// String is the gate as it was written, with single spaces.
func (g Gate) String() string { return g.condition.String() }

// ParseRunGate reads a condition on the summary of a strategy's rounds. Its figures are those of
// docs/metrics.md. "p99/reference" is a figure divided by the same one of the reference loop. A time
// may have a unit, and "none" is 0.
func ParseRunGate(text string) (Gate, error) {
	return parseGate(text, condition.Scope{Subject: condition.Run})
}

// ParseSearchGate reads a condition on a search. Its figures are those of [condition.SearchFields].
func ParseSearchGate(text string, properties []results.Property) (Gate, error) {
	return parseGate(text, condition.Scope{Subject: condition.Search, Properties: properties})
}

func parseGate(text string, scope condition.Scope) (Gate, error) {
	expression, err := condition.ParseCondition(text, scope)
	return Gate{condition: expression, searches: scope.Subject == condition.Search}, err
}

// Lenient is the gate that passes if it cannot be decided. Otherwise it fails then.
func (g Gate) Lenient() Gate {
	g.lenient = true
	return g
}

// Timed reports whether the gate is on a timing, which a simulation has not.
func (g Gate) Timed() bool { return !g.searches && g.condition.Timed() }

// Check checks gates for all strategies of a file. Rows that fail say which.
func Check(file *results.File, gates []Gate) (out []Row) {
	all := results.Summarise(file.Runs)
	labels := map[string]int{}
	for i := range all {
		labels[all[i].Label]++
	}
	for i := range all {
		for _, gate := range gates {
			row, _ := gate.run(file, &all[i])
			row.Strategy = all[i].Label
			if labels[row.Strategy] > 1 {
				row.Setting = all[i].Policy + ", " + all[i].Workload
			}
			if point := all[i].Params.Point; point != nil {
				row.Setting = pointText(point)
			}
			out = append(out, row)
		}
	}
	return out
}

// CheckSearches checks gates for all searches.
func CheckSearches(exploration *results.Exploration, gates []Gate) (out []Row) {
	for _, search := range exploration.Searches {
		for _, gate := range gates {
			row := gate.search(search)
			row.Strategy = search.Strategy
			out = append(out, row)
		}
	}
	return out
}

// gates adds a row for each gate on the head of a pair.
func (c *Comparison) gates(p *pair, options *Options) {
	if len(options.Gates) == 0 {
		return
	}
	runs := make([]results.Run, len(p.head))
	for i, run := range p.head {
		runs[i] = *run
	}
	for _, row := range Check(&results.File{Kind: c.Kind, Runs: runs}, options.Gates) {
		c.add(p, row)
	}
}

// run is the row of the gate on a strategy of a file, and the figure that was compared first, if one was.
// Nothing invalid passes.
func (g Gate) run(file *results.File, summary *results.Summary) (row Row, compared *condition.Number) {
	switch {
	case g.searches:
		return g.refused("it is no condition on runs"), nil
	case summary.Invalid > 0 || summary.Paced != nil && summary.Paced.Invalid > 0:
		return g.refused("a round is invalid"), nil
	case file.Kind != results.Measured && g.condition.Timed():
		return g.undecided("a simulation has no timings"), nil
	}
	evaluation := condition.OfRun(file, summary)
	truth, err := evaluation.Truth(g.condition)
	if err != nil {
		return g.refused(err.Error()), nil
	}
	left, _ := evaluation.Compared()
	open := !truth.Yes && !truth.No
	if open && left != nil && g.condition.Timed() {
		truth.Why += ": " + remedy(*left, summary)
	}
	return g.decided(evaluation, truth), left
}

// remedy says what would decide a condition on a timing.
func remedy(figure condition.Number, summary *results.Summary) string {
	if figure.Disturbed() {
		return "a machine without other programs would tell"
	}
	return "more rounds would tell, e.g. --rounds " + strconv.Itoa(2*summary.Rounds)
}

// search is the row of the gate on a search.
func (g Gate) search(search *results.Search) Row {
	switch {
	case !g.searches:
		return g.refused("it is no condition on searches")
	case len(search.Withheld) > 0:
		return g.refused("nothing may be claimed: " + search.Withheld[0].Detail)
	case !search.Tried():
		return g.refused("nothing was tried: " + search.Capped)
	}
	evaluation := condition.OfSearch(search)
	truth, err := evaluation.Truth(g.condition)
	if err != nil {
		return g.refused(err.Error())
	}
	row := g.decided(evaluation, truth)
	if row.Verdict == Worse { // the condition does not hold
		row.Detail = cmp.Or(g.finding(search), row.Detail)
	}
	return row
}

// finding describes that of the first property in the condition that has one; "" if none has.
func (g Gate) finding(search *results.Search) string {
	for _, property := range g.condition.Properties() {
		finding := search.Found(property)
		if finding != nil {
			steps := format.Plural(int64(len(finding.Steps)), "step", "steps")
			return finding.Detail + " in " + steps
		}
	}
	return ""
}

// row is one that passes.
func (g Gate) row() Row { return Row{Figure: g.String(), Kind: Condition, Verdict: Same} }

// refused is the row of a record of which nothing may be claimed.
func (g Gate) refused(why string) Row {
	row := g.row()
	row.Verdict = Invalid
	row.Detail = why
	return row
}

// undecided is the row of a condition that the record leaves open.
func (g Gate) undecided(why string) Row {
	row := g.row()
	row.Verdict = Inconclusive
	row.Detail = "it cannot be decided: " + why
	if !g.lenient {
		row.Verdict = Invalid
		row.Detail += "; --undecided pass accepts that"
	}
	return row
}

// decided is the row of a condition with a truth, and with the figure that was compared first.
func (g Gate) decided(evaluation *condition.Evaluation, truth condition.Truth) Row {
	if !truth.Yes && !truth.No {
		return g.undecided(truth.Why)
	}
	row := g.row()
	left, _ := evaluation.Compared()
	if left != nil && !math.IsInf(left.Value, 0) {
		row.Head = &left.Value
	}
	if truth.Yes {
		return row
	}
	row.Verdict = Worse
	if left != nil {
		row.Detail = evaluation.Words(nil) + " is " + left.Text()
	}
	return row
}

// Held says how a condition fares at one point of a sweep.
type Held struct {
	// Holds is set if the condition does, and an open loop keeps up with its rate.
	Holds bool
	// Unknown is set if there is no figure that counts, which is taken for no.
	Unknown bool
	// Detail is the value that the condition was checked against, or why it does not hold
	// or is not known.
	Detail string
}

// At checks the condition against one point of a file. An open loop that cannot keep up with its
// rate holds nothing: its latency is that of a queue that grows for as long as it runs.
func (g Gate) At(file *results.File, summary *results.Summary) Held {
	if summary.AtRate().Params.Loop == codes.OpenLoop && summary.Overloaded() {
		return Held{Detail: "it cannot keep up with the rate"}
	}
	row, compared := g.run(file, summary)
	if row.Head == nil {
		return Held{Unknown: true, Detail: cmp.Or(row.Detail, "it has no finite value")}
	}
	return Held{Holds: row.Verdict == Same, Detail: compared.Estimate()}
}

// Edge says where along a series a condition begins or ceases to hold.
type Edge struct {
	// Held at each point.
	Held []Held
	// From and To are the first and the last point of the only stretch in which it holds;
	// -1 if it holds nowhere. Stretches counts them.
	From, To, Stretches int
}

// Along checks the condition against the points of a file's series in their order.
func (g Gate) Along(file *results.File, series *results.SweepSeries) Edge {
	edge := Edge{From: -1, To: -1}
	for i := range series.Points {
		held := g.At(file, series.Points[i].Summary)
		edge.Held = append(edge.Held, held)
		if !held.Holds {
			continue
		}
		if i == 0 || !edge.Held[i-1].Holds {
			edge.Stretches++
			edge.From = i
		}
		edge.To = i
	}
	if edge.Stretches > 1 {
		edge.From = -1
		edge.To = -1
	}
	return edge
}

// pointText names the values of swept parameters.
func pointText(point map[string]string) string {
	names := slices.Sorted(maps.Keys(point))
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = name + " " + point[name]
	}
	return strings.Join(texts, ", ")
}
