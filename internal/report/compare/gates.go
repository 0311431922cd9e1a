package compare

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Gate is a condition that must hold, such as "leak<=0" or "p99/reference<=1.2". A record
// of which it does not hold fails.
type Gate struct {
	text     string
	field    string
	by       string // of the denominator; empty for none
	op       string
	number   float64
	searches bool // it is about searches, and not about runs
	lenient  bool // it passes if it cannot be decided
}

// String is the gate as it was written.
func (g Gate) String() string { return g.text }

// operators, longer ones first.
var operators = []string{">=", "<=", "!=", ">", "<", "="}

// marks are the characters of operators.
const marks = "<>=!"

// none stands for the number 0, as in "leak=none".
const none = "none"

// ParseRunGate reads a condition on the summary of a strategy's rounds:
//
//	FIELD[/FIELD] OPERATOR NUMBER
//
// FIELD is one of [figures.Keys]. The last one may be "reference", for the same figure of
// the reference loop. The number of a latency may have a unit of time, and "none" is 0.
func ParseRunGate(text string) (Gate, error) { return parseGate(text, figures.Keys(), false) }

// ParseSearchGate reads a condition on a search. Its fields are those of [SearchFields].
func ParseSearchGate(text string, properties []results.Property) (Gate, error) {
	return parseGate(text, SearchFields(properties), true)
}

func parseGate(text string, known []string, searches bool) (Gate, error) {
	gate := Gate{text: strings.Join(strings.Fields(text), " "), searches: searches}
	at := strings.IndexAny(gate.text, marks)
	expression := gate.text
	if at >= 0 {
		expression = gate.text[:at]
	}
	field, by, ratio := strings.Cut(expression, "/")
	gate.field = strings.TrimSpace(field)
	gate.by = strings.TrimSpace(by)
	if gate.field == "" || ratio && gate.by == "" {
		return gate, fmt.Errorf("%q is no condition: give one such as %s", text, example(searches))
	}
	for _, name := range []string{gate.field, gate.by} {
		if name != "" && !slices.Contains(known, name) && (name != Reference || name == gate.field || searches) {
			return gate, quota.Unknown("field", name, known, "")
		}
	}
	if gate.by == Reference && !hasReference(gate.field) {
		return gate, fmt.Errorf("%q: the reference loop has no %s: it has throughput and percentiles", text, gate.field)
	}
	if at < 0 {
		return gate, fmt.Errorf("%q does not say what is required: give %s=%s, or a bound such as %[2]s<=2", text, expression,
			none)
	}
	return gate, gate.parseBound(text, gate.text[at:])
}

// parseBound reads an operator and a number.
func (g *Gate) parseBound(text, bound string) error {
	at := slices.IndexFunc(operators, func(op string) bool { return strings.HasPrefix(bound, op) })
	if at >= 0 {
		g.op = operators[at]
	}
	number := strings.TrimSpace(bound[len(g.op):])
	switch {
	case at < 0 || strings.IndexAny(number, marks) == 0:
		return fmt.Errorf("%q has no operator that is known: give one of %s", text, strings.Join(operators, " "))
	case number == "":
		return fmt.Errorf("%q has no number after %s", text, g.op)
	case number == none:
		return nil
	}
	var err error
	g.number, err = strconv.ParseFloat(number, 64)
	if err != nil && g.by == "" && isTime(g.field) {
		var duration time.Duration
		duration, err = time.ParseDuration(number)
		g.number = float64(duration)
	}
	if err != nil || math.IsNaN(g.number) || math.IsInf(g.number, 0) {
		return fmt.Errorf("%q: %q is no number", text, number)
	}
	return nil
}

func example(searches bool) string {
	if searches {
		return "leak=none or steps>=9"
	}
	return "leak<=0 or p99/reference<=1.2"
}

// Lenient is the gate that passes if it cannot be decided. Otherwise it fails then.
func (g Gate) Lenient() Gate {
	g.lenient = true
	return g
}

// Timed reports whether the gate is on a timing, which a simulation has not.
func (g Gate) Timed() bool {
	return !g.searches && (hasReference(g.field) || hasReference(g.by) || isTime(g.field) || isTime(g.by))
}

// holds reports whether the condition does.
func (g Gate) holds(value float64) bool {
	switch g.op {
	case ">":
		return value > g.number
	case ">=":
		return value >= g.number
	case "<":
		return value < g.number
	case "<=":
		return value <= g.number
	case "=":
		return value == g.number
	default:
		return value != g.number
	}
}

// Check checks gates for all strategies of a file. Rows that fail say which.
func Check(file *results.File, gates []Gate) (out []Row) {
	all := results.Summarise(file.Runs)
	labels := map[string]int{}
	for i := range all {
		labels[all[i].Label]++
	}
	for i := range all {
		for _, gate := range gates {
			row := gate.run(&all[i], file.Kind == results.Measured)
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

// run is the row of a gate on a summary. Nothing invalid passes.
func (g Gate) run(summary *results.Summary, measured bool) Row {
	row := Row{Figure: g.text, Kind: Condition, Verdict: Same}
	switch {
	case g.searches:
		return refused(row, "it is no condition on runs")
	case summary.Invalid > 0 || summary.Paced != nil && summary.Paced.Invalid > 0:
		return refused(row, "a round is invalid")
	case !measured && (hasReference(g.field) || hasReference(g.by)):
		return g.decide(row, 0, errors.New("a simulation has no timings"))
	}
	value, err := g.value(summary)
	if err == nil {
		err = g.doubt(summary, value)
	}
	return g.decide(row, value, err)
}

// doubt is an error if the interval of a timing leaves open whether the condition holds. What
// is known of a disturbed one is a bound alone: a time is no longer, a throughput no lower, and
// of a ratio nothing is known.
func (g Gate) doubt(summary *results.Summary, value float64) error {
	figure := figures.Of(g.field)
	if g.field == Throughput && g.by == Reference {
		figure = figures.Of("ratio")
	}
	if figure.Counts != figures.Timed {
		return nil
	}
	lo, hi := figure.Ends(summary)
	if g.by != "" && figure.Key != "ratio" { // the quotient of two, of which no interval is known
		lo = value
		hi = value
	}
	disturbed := figure.Disturbed(summary)
	switch {
	case disturbed && g.by != "":
		lo = 0
		hi = math.Inf(1)
	case disturbed && figure.Unit == figures.Nanoseconds:
		lo = 0
	case disturbed:
		hi = math.Inf(1)
	}
	holds := g.holds(value)
	switch {
	case g.holds(lo) == holds && g.holds(hi) == holds:
		return nil
	case disturbed:
		return fmt.Errorf("it is %s next to other programs: a quiet machine would tell", figure.Timing(summary))
	}
	return fmt.Errorf("it is %s: more rounds would tell, e.g. --rounds %d", figure.Timing(summary), 2*summary.Rounds)
}

// value is the figure or the ratio.
func (g Gate) value(summary *results.Summary) (float64, error) {
	value, err := figures.Of(g.field).Value(summary)
	if g.by == "" || err != nil {
		return value, err
	}
	return g.ratio(summary, value)
}

func refused(row Row, why string) Row {
	row.Verdict = Invalid
	row.Detail = why
	return row
}

func (g Gate) ratio(summary *results.Summary, value float64) (float64, error) {
	var by float64
	var err error
	switch {
	case g.by != Reference:
		by, err = figures.Of(g.by).Value(summary)
	case g.field == Throughput:
		return figures.Of("ratio").Value(summary) // of the same rounds
	default:
		by, err = figures.Of("bare." + g.field).Value(summary)
	}
	if by == 0 && err == nil {
		err = fmt.Errorf("%s is 0", g.by)
	}
	return value / by, err
}

func (g Gate) decide(row Row, value float64, err error) Row {
	if err != nil {
		row.Verdict = Inconclusive
		row.Detail = "it cannot be decided: " + err.Error()
		if !g.lenient {
			row.Verdict = Invalid
			row.Detail += "; --undecided pass accepts that"
		}
		return row
	}
	if !math.IsInf(value, 0) {
		row.Head = &value
	}
	if !g.holds(value) {
		row.Verdict = Worse
		row.Detail = fmt.Sprintf("%s is %s", strings.TrimSuffix(g.field+"/"+g.by, "/"), g.valueText(value))
	}
	return row
}

// valueText renders a value in the unit of the gate.
func (g Gate) valueText(value float64) string {
	if g.by == "" && isTime(g.field) && value > 0 {
		return format.NS(value)
	}
	return format.TrimZeros(strconv.FormatFloat(value, 'f', 3, 64))
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

// search is the row of a gate on a search.
func (g Gate) search(search *results.Search) Row {
	row := Row{Figure: g.text, Kind: Condition, Verdict: Same}
	switch {
	case !g.searches:
		return refused(row, "it is no condition on searches")
	case len(search.Withheld) > 0:
		return refused(row, "nothing may be claimed: "+search.Withheld[0].Detail)
	case !search.Tried():
		return refused(row, "nothing was tried: "+search.Capped)
	}
	value, err := searchField(search, g.field)
	if err == nil && g.by != "" {
		var by float64
		by, err = searchField(search, g.by)
		if err == nil && by == 0 {
			err = fmt.Errorf("%s is 0", g.by)
		}
		value /= by
	}
	row = g.decide(row, value, err)
	if row.Verdict == Worse {
		if finding := search.Found(results.Property(g.field)); finding != nil {
			row.Detail = finding.Detail + " in " + format.Plural(int64(len(finding.Steps)), "step", "steps")
		}
	}
	return row
}

// Reference stands in a gate for the same figure of the reference loop.
const Reference = "reference"

// SearchFields are the names that [ParseSearchGate] takes: the properties, each with the
// units by which a schedule breaks it, or 1 if it has none; "steps" of the shortest
// schedule of all; and "counterexamples", how many properties break.
func SearchFields(properties []results.Property) []string {
	return append([]string{Counterexamples, Steps}, format.Strings(properties)...)
}

func searchField(search *results.Search, name string) (float64, error) {
	switch name {
	case Counterexamples:
		return float64(len(search.Findings)), nil
	case Steps:
		fewest := math.Inf(1) // no schedule is as short as none
		for i := range search.Findings {
			fewest = min(fewest, float64(len(search.Findings[i].Steps)))
		}
		return fewest, nil
	}
	if !slices.Contains(search.Properties, results.Property(name)) {
		return 0, fmt.Errorf("%s was not looked for", name)
	}
	finding := search.Found(results.Property(name))
	if finding == nil {
		return 0, nil
	}
	return max(1, float64(format.Magnitude(finding.Units))), nil
}

// isTime reports whether a field is in nanoseconds: then its number may have a unit.
func isTime(field string) bool {
	figure := figures.Lookup(field)
	return figure != nil && figure.Unit == figures.Nanoseconds
}

// hasReference reports whether the reference loop has the same figure.
func hasReference(field string) bool {
	return field == Throughput || figures.Lookup("bare."+field) != nil
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

// At checks the condition against one point. An open loop that cannot keep up with its
// rate holds nothing: its latency is that of a queue that grows for as long as it runs.
func (g Gate) At(summary *results.Summary) Held {
	if summary.AtRate().Params.Loop == results.OpenLoop && summary.Overloaded() {
		return Held{Detail: "it cannot keep up with the rate"}
	}
	row := g.run(summary, true)
	if row.Head == nil {
		return Held{Unknown: true, Detail: cmp.Or(row.Detail, "it has no finite value")}
	}
	return Held{Holds: row.Verdict == Same, Detail: g.valueText(*row.Head)}
}

// Edge says where along a series a condition begins or ceases to hold.
type Edge struct {
	// Held at each point.
	Held []Held
	// From and To are the first and the last point of the only stretch in which it holds;
	// -1 if it holds nowhere. Stretches counts them.
	From, To, Stretches int
}

// Along checks the condition against the points of a series in their order.
func (g Gate) Along(series *results.SweepSeries) Edge {
	edge := Edge{From: -1, To: -1}
	for i := range series.Points {
		held := g.At(series.Points[i].Summary)
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
	return format.List(slices.Sorted(maps.Keys(point)), ", ", func(name string) string { return name + " " + point[name] })
}
