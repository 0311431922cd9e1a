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
	g := Gate{text: strings.Join(strings.Fields(text), " "), searches: searches}
	at := strings.IndexAny(g.text, marks)
	expression := g.text
	if at >= 0 {
		expression = g.text[:at]
	}
	field, by, ratio := strings.Cut(expression, "/")
	g.field = strings.TrimSpace(field)
	g.by = strings.TrimSpace(by)
	if g.field == "" || ratio && g.by == "" {
		return g, fmt.Errorf("%q is no condition: give one such as %s", text, example(searches))
	}
	for _, name := range []string{g.field, g.by} {
		if name != "" && !slices.Contains(known, name) && (name != Reference || name == g.field || searches) {
			return g, quota.Unknown("field", name, known, "")
		}
	}
	if g.by == Reference && !hasReference(g.field) {
		return g, fmt.Errorf("%q: the reference loop has no %s: it has throughput and percentiles", text, g.field)
	}
	if at < 0 {
		return g, fmt.Errorf("%q does not say what is required: give %s=%s, or a bound such as %[2]s<=2", text, expression, none)
	}
	return g, g.parseBound(text, g.text[at:])
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
		var d time.Duration
		d, err = time.ParseDuration(number)
		g.number = float64(d)
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
func (g Gate) holds(v float64) bool {
	switch g.op {
	case ">":
		return v > g.number
	case ">=":
		return v >= g.number
	case "<":
		return v < g.number
	case "<=":
		return v <= g.number
	case "=":
		return v == g.number
	default:
		return v != g.number
	}
}

// Check checks gates for all strategies of a file. Rows that fail say which.
func Check(f *results.File, gates []Gate) (out []Row) {
	all := results.Summarise(f.Runs)
	labels := map[string]int{}
	for i := range all {
		labels[all[i].Label]++
	}
	for i := range all {
		for _, g := range gates {
			r := g.run(&all[i], f.Kind == results.Measured)
			r.Strategy = all[i].Label
			if labels[r.Strategy] > 1 {
				r.Setting = all[i].Policy + ", " + all[i].Workload
			}
			if point := all[i].Params.Point; point != nil {
				r.Setting = pointText(point)
			}
			out = append(out, r)
		}
	}
	return out
}

// CheckSearches checks gates for all searches.
func CheckSearches(x *results.Exploration, gates []Gate) (out []Row) {
	for _, s := range x.Searches {
		for _, g := range gates {
			r := g.search(s)
			r.Strategy = s.Strategy
			out = append(out, r)
		}
	}
	return out
}

// run is the row of a gate on a summary. Nothing invalid passes.
func (g Gate) run(s *results.Summary, measured bool) Row {
	r := Row{Figure: g.text, Kind: Condition, Verdict: Same}
	switch {
	case g.searches:
		return refused(r, "it is no condition on runs")
	case s.Invalid > 0 || s.Paced != nil && s.Paced.Invalid > 0:
		return refused(r, "a round is invalid")
	case !measured && (hasReference(g.field) || hasReference(g.by)):
		return g.decide(r, 0, errors.New("a simulation has no timings"))
	}
	v, err := g.value(s)
	if err == nil {
		err = g.doubt(s, v)
	}
	return g.decide(r, v, err)
}

// doubt is an error if the interval of a timing leaves open whether the condition holds. What
// is known of a disturbed one is a bound alone: a time is no longer, a throughput no lower, and
// of a ratio nothing is known.
func (g Gate) doubt(s *results.Summary, v float64) error {
	f := figures.Of(g.field)
	if g.field == Throughput && g.by == Reference {
		f = figures.Of("ratio")
	}
	if f.Counts != figures.Timed {
		return nil
	}
	lo, hi := f.Ends(s)
	if g.by != "" && f.Key != "ratio" { // the quotient of two, of which no interval is known
		lo = v
		hi = v
	}
	disturbed := f.Disturbed(s)
	switch {
	case disturbed && g.by != "":
		lo = 0
		hi = math.Inf(1)
	case disturbed && f.Unit == figures.Nanoseconds:
		lo = 0
	case disturbed:
		hi = math.Inf(1)
	}
	holds := g.holds(v)
	switch {
	case g.holds(lo) == holds && g.holds(hi) == holds:
		return nil
	case disturbed:
		return fmt.Errorf("it is %s next to other programs: a quiet machine would tell", f.Timing(s))
	}
	return fmt.Errorf("it is %s: more rounds would tell, e.g. --rounds %d", f.Timing(s), 2*s.Rounds)
}

// value is the figure or the ratio.
func (g Gate) value(s *results.Summary) (float64, error) {
	v, err := figures.Of(g.field).Value(s)
	if g.by == "" || err != nil {
		return v, err
	}
	return g.ratio(s, v)
}

func refused(r Row, why string) Row {
	r.Verdict = Invalid
	r.Detail = why
	return r
}

func (g Gate) ratio(s *results.Summary, v float64) (float64, error) {
	var by float64
	var err error
	switch {
	case g.by != Reference:
		by, err = figures.Of(g.by).Value(s)
	case g.field == Throughput:
		return figures.Of("ratio").Value(s) // of the same rounds
	default:
		by, err = figures.Of("bare." + g.field).Value(s)
	}
	if by == 0 && err == nil {
		err = fmt.Errorf("%s is 0", g.by)
	}
	return v / by, err
}

func (g Gate) decide(r Row, v float64, err error) Row {
	if err != nil {
		r.Verdict = Inconclusive
		r.Detail = "it cannot be decided: " + err.Error()
		if !g.lenient {
			r.Verdict = Invalid
			r.Detail += "; --undecided pass accepts that"
		}
		return r
	}
	if !math.IsInf(v, 0) {
		r.Head = &v
	}
	if !g.holds(v) {
		r.Verdict = Worse
		r.Detail = fmt.Sprintf("%s is %s", strings.TrimSuffix(g.field+"/"+g.by, "/"), g.valueText(v))
	}
	return r
}

// valueText renders a value in the unit of the gate.
func (g Gate) valueText(v float64) string {
	if g.by == "" && isTime(g.field) && v > 0 {
		return format.NS(v)
	}
	return format.TrimZeros(strconv.FormatFloat(v, 'f', 3, 64))
}

// gates adds a row for each gate on the head of a pair.
func (c *Comparison) gates(p *pair, o *Options) {
	if len(o.Gates) == 0 {
		return
	}
	runs := make([]results.Run, len(p.head))
	for i, r := range p.head {
		runs[i] = *r
	}
	for _, r := range Check(&results.File{Kind: c.Kind, Runs: runs}, o.Gates) {
		c.add(p, r)
	}
}

// search is the row of a gate on a search.
func (g Gate) search(s *results.Search) Row {
	r := Row{Figure: g.text, Kind: Condition, Verdict: Same}
	switch {
	case !g.searches:
		return refused(r, "it is no condition on searches")
	case len(s.Withheld) > 0:
		return refused(r, "nothing may be claimed: "+s.Withheld[0].Detail)
	case !s.Tried():
		return refused(r, "nothing was tried: "+s.Capped)
	}
	v, err := searchField(s, g.field)
	if err == nil && g.by != "" {
		var by float64
		by, err = searchField(s, g.by)
		if err == nil && by == 0 {
			err = fmt.Errorf("%s is 0", g.by)
		}
		v /= by
	}
	r = g.decide(r, v, err)
	if r.Verdict == Worse {
		if f := s.Found(results.Property(g.field)); f != nil {
			r.Detail = f.Detail + " in " + format.Plural(int64(len(f.Steps)), "step", "steps")
		}
	}
	return r
}

// Reference stands in a gate for the same figure of the reference loop.
const Reference = "reference"

// SearchFields are the names that [ParseSearchGate] takes: the properties, each with the
// units by which a schedule breaks it, or 1 if it has none; "steps" of the shortest
// schedule of all; and "counterexamples", how many properties break.
func SearchFields(properties []results.Property) []string {
	return append([]string{Counterexamples, Steps}, format.Strings(properties)...)
}

func searchField(s *results.Search, name string) (float64, error) {
	switch name {
	case Counterexamples:
		return float64(len(s.Findings)), nil
	case Steps:
		fewest := math.Inf(1) // no schedule is as short as none
		for i := range s.Findings {
			fewest = min(fewest, float64(len(s.Findings[i].Steps)))
		}
		return fewest, nil
	}
	if !slices.Contains(s.Properties, results.Property(name)) {
		return 0, fmt.Errorf("%s was not looked for", name)
	}
	f := s.Found(results.Property(name))
	if f == nil {
		return 0, nil
	}
	return max(1, float64(format.Magnitude(f.Units))), nil
}

// isTime reports whether a field is in nanoseconds: then its number may have a unit.
func isTime(field string) bool {
	f := figures.Lookup(field)
	return f != nil && f.Unit == figures.Nanoseconds
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
func (g Gate) At(s *results.Summary) Held {
	if s.AtRate().Params.Loop == results.OpenLoop && s.Overloaded() {
		return Held{Detail: "it cannot keep up with the rate"}
	}
	r := g.run(s, true)
	if r.Head == nil {
		return Held{Unknown: true, Detail: cmp.Or(r.Detail, "it has no finite value")}
	}
	return Held{Holds: r.Verdict == Same, Detail: g.valueText(*r.Head)}
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
func (g Gate) Along(s *results.SweepSeries) Edge {
	e := Edge{From: -1, To: -1}
	for i := range s.Points {
		h := g.At(s.Points[i].Summary)
		e.Held = append(e.Held, h)
		if !h.Holds {
			continue
		}
		if i == 0 || !e.Held[i-1].Holds {
			e.Stretches++
			e.From = i
		}
		e.To = i
	}
	if e.Stretches > 1 {
		e.From = -1
		e.To = -1
	}
	return e
}

// pointText names the values of swept parameters.
func pointText(point map[string]string) string {
	return format.List(slices.Sorted(maps.Keys(point)), ", ", func(name string) string { return name + " " + point[name] })
}
