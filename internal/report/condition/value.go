package condition

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/results"
)

// Number is what is known of a quantity: it lies between Lo and Hi.
type Number struct {
	Lo, Hi float64
	// Value is the estimate that is shown.
	Value float64
	Unit  figures.Unit
	// rounds has the value of each round of the record that it is of; nil if it is no timing.
	rounds map[int]float64
	record *Record
	// varies is set if it was measured: another pass may show another one.
	varies bool
	// few is set if it comes from so few rounds that they tell nothing of how much it varies.
	few bool
	// disturbed is set if it is a timing that is marked: a time is an upper bound then, and a
	// throughput a lower one.
	disturbed bool
	// part of the record with the figure's name, which has more of it, e.g. leak.over_quota_units.
	part object
}

func exactly(value float64) Number { return Number{Lo: value, Hi: value, Value: value} }

// between is a number of which only its bounds are known.
func between(lo, hi float64) Number { return Number{Lo: lo, Hi: hi, Value: lo} }

// Text is the number with what is known of it.
func (n Number) Text() string {
	if math.IsInf(n.Lo, 1) {
		return "none"
	}
	mark := ""
	if n.disturbed {
		mark = figures.Mark
	}
	if n.Lo == n.Hi || math.IsInf(n.Lo, 0) {
		return mark + n.show(n.Value)
	}
	if math.IsInf(n.Hi, 0) {
		return "at least " + n.show(n.Lo)
	}
	return fmt.Sprintf("%s%s (%s to %s)", mark, n.show(n.Value), n.show(n.Lo), n.show(n.Hi))
}

// Estimate is the number without what is known of it.
func (n Number) Estimate() string { return n.show(n.Value) }

// Disturbed reports whether the number is a timing that is marked.
func (n Number) Disturbed() bool { return n.disturbed }

func (n Number) show(value float64) string {
	switch n.Unit {
	case figures.Nanoseconds:
		if value != 0 {
			return format.NS(value)
		}
	case figures.Percent:
		return format.Pct(value)
	case figures.PerSecond:
		return digits(value) + "/s"
	}
	return digits(value)
}

func digits(value float64) string {
	if value == math.Trunc(value) && math.Abs(value) < 1e15 {
		return format.Count(int64(value))
	}
	if math.Abs(value) >= 1000 {
		return format.Count(int64(math.Round(value)))
	}
	return format.TrimZeros(strconv.FormatFloat(value, 'f', max(0, 3-int(math.Floor(math.Log10(math.Abs(value))))), 64))
}

// Truth is whether something holds, as far as is known.
type Truth struct {
	Yes, No bool // neither, if it is undecided
	// Why it is undecided.
	Why string
	// Close is set if another pass may decide otherwise.
	Close bool
}

// String is the truth as reports of claims have it.
func (t Truth) String() string {
	switch {
	case t.Yes:
		return "holds"
	case t.No:
		return "refuted"
	}
	return "undecided"
}

func truth(yes bool) Truth { return Truth{Yes: yes, No: !yes} }

// missing is the value of what a record lacks. Whatever is computed from it is missing, too.
type missing struct {
	why string
	// here is set if only this pass lacks it: there were too few samples.
	here bool
}

func absent(format string, args ...any) missing { return missing{why: fmt.Sprintf(format, args...)} }

var errNotComparable = errors.New("numbers are compared with numbers, and texts with texts")

// near reports whether another pass may find the two on other sides of each other: its figures are expected within
// these intervals, with intervals as wide as these, give or take the tolerance, which is a share of the limit y.
func near(x, y Number, tolerance float64) bool {
	below := x.Value <= y.Value
	by := tolerance * math.Abs(y.Value)
	switch {
	case x.few || y.few:
		return true
	case !x.varies && !y.varies:
		return false
	case below:
		return 2*x.Hi-x.Value+by > 2*y.Lo-y.Value
	}
	return 2*x.Lo-x.Value-by < 2*y.Hi-y.Value
}

// compare is a op b. Another pass may decide otherwise if two numbers are near each other.
func compare(op string, a, b any, tolerance float64) (Truth, error) {
	for _, value := range []any{a, b} {
		if m, ok := value.(missing); ok {
			return Truth{Why: m.why, Close: m.here}, nil
		}
	}
	if text, ok := a.(string); ok {
		y, same := b.(string)
		switch {
		case same && op == "==":
			return truth(text == y), nil
		case same && op == "!=":
			return truth(text != y), nil
		}
		return Truth{}, errNotComparable
	}
	number, isNumber := a.(Number)
	y, areNumbers := b.(Number)
	if !isNumber || !areNumbers {
		return Truth{}, errNotComparable
	}
	if number.disturbed != y.disturbed { // two that were disturbed alike are compared as they are
		number = number.bound()
		y = y.bound()
	}
	var t Truth
	switch op {
	case "<", "<=":
		t = order(number, y, op == "<=")
	case ">", ">=":
		t = order(y, number, op == ">=")
	case "==":
		t = equal(number, y)
	case "!=":
		t = negate(equal(number, y))
	}
	t.Close = near(number, y, tolerance)
	return t, nil
}

// bound is what is known of a number whatever other programs did.
func (n Number) bound() Number {
	switch {
	case n.disturbed && n.Unit == figures.Nanoseconds:
		n.Lo = 0
	case n.disturbed && n.Unit == figures.PerSecond:
		n.Hi = math.Inf(1)
	}
	return n
}

// equal is x == y.
func equal(x, y Number) Truth {
	exact := x.Lo == x.Hi && y.Lo == y.Hi
	switch {
	case x.Hi < y.Lo || y.Hi < x.Lo, exact && x.Lo != y.Lo:
		return truth(false)
	case exact:
		return truth(true)
	}
	return Truth{Why: overlap(x, y)}
}

// order is x < y, or x <= y.
func order(x, y Number, orEqual bool) Truth {
	switch {
	case x.Hi < y.Lo || orEqual && x.Hi == y.Lo:
		return truth(true)
	case x.Lo > y.Hi || !orEqual && x.Lo == y.Hi:
		return truth(false)
	}
	return Truth{Why: overlap(x, y)}
}

func overlap(x, y Number) string {
	return fmt.Sprintf("what is known of one side, %s, leaves open on which side of %s it is", x.Text(), y.Text())
}

// join is a && b, or a || b.
func join(and bool, a, b Truth) Truth {
	if !and {
		return negate(join(true, negate(a), negate(b)))
	}
	out := a
	switch {
	case a.No && !a.Close || b.No && !b.Close: // whatever the other is
		return truth(false)
	case a.No || b.No:
		out = truth(false)
	case a.Yes:
		out = b
	}
	out.Close = a.Close || b.Close
	return out
}

func negate(truth Truth) Truth {
	truth.Yes, truth.No = truth.No, truth.Yes
	return truth
}

// compute is a op b for numbers. The ratio of two timings is that of their rounds.
func compute(op string, a, b any) (any, error) {
	for _, value := range []any{a, b} {
		if m, ok := value.(missing); ok {
			return m, nil
		}
	}
	number, ok := a.(Number)
	y, both := b.(Number)
	if !ok || !both {
		return nil, errors.New("arithmetic takes numbers only")
	}
	switch op {
	case "+":
		return number.with(y, op, number.Lo+y.Lo, number.Hi+y.Hi, number.Value+y.Value), nil
	case "-":
		return number.with(y, op, number.Lo-y.Hi, number.Hi-y.Lo, number.Value-y.Value), nil
	case "*":
		lo, hi := ends(number.Lo*y.Lo, number.Lo*y.Hi, number.Hi*y.Lo, number.Hi*y.Hi)
		return number.with(y, op, lo, hi, number.Value*y.Value), nil
	}
	if y.Lo <= 0 && y.Hi >= 0 {
		return absent("it would be divided by %s", y.Text()), nil
	}
	if number.rounds != nil && y.rounds != nil {
		ratio := number.perRound(y)
		if quotient, ok := ratio.(Number); ok {
			return quotient.disturbedBy(number, y), nil
		}
		return ratio, nil
	}
	lo, hi := ends(number.Lo/y.Lo, number.Lo/y.Hi, number.Hi/y.Lo, number.Hi/y.Hi)
	return number.with(y, op, lo, hi, number.Value/y.Value).disturbedBy(number, y), nil
}

// disturbedBy is the quotient of two numbers. It is a bound if one of the two alone is disturbed: what disturbed both
// is in both.
func (n Number) disturbedBy(above, below Number) Number {
	n.disturbed = above.disturbed || below.disturbed
	switch {
	case above.disturbed == below.disturbed:
	case above.disturbed && above.Unit == figures.PerSecond, below.disturbed && below.Unit == figures.Nanoseconds:
		n.Hi = math.Inf(1)
	case above.disturbed && above.Unit == figures.Nanoseconds, below.disturbed && below.Unit == figures.PerSecond:
		n.Lo = 0
	}
	return n
}

func ends(all ...float64) (lo, hi float64) {
	for _, value := range all {
		if math.IsNaN(value) { // 0 times what has no bound
			return math.Inf(-1), math.Inf(1)
		}
	}
	return slices.Min(all), slices.Max(all)
}

// with is the result of an operation, in the unit that it has.
func (n Number) with(number Number, op string, lo, hi, value float64) Number {
	out := Number{Lo: lo, Hi: hi, Value: value, Unit: unitOf(n.Unit, op, number.Unit)}
	out.varies = n.varies || number.varies
	out.few = n.few || number.few
	out.disturbed = n.disturbed || number.disturbed
	return out
}

// unitOf is the unit of the result of an operation; empty if it has none.
func unitOf(left figures.Unit, op string, right figures.Unit) figures.Unit {
	switch {
	case op == "*" && plain(left):
		return right
	case op == "*" && plain(right), op == "/" && plain(right):
		return left
	case op != "*" && op != "/" && left == right:
		return left
	}
	return ""
}

func plain(unit figures.Unit) bool {
	return unit == "" || unit == figures.Count || unit == figures.Ratio
}

// perRound is the ratio of two timings, which the same rounds of one record show.
func (n Number) perRound(number Number) any {
	if n.record != number.record {
		return absent("timings of two runs cannot be divided: name both strategies in one run")
	}
	ratios := map[int]float64{}
	for round, value := range n.rounds {
		if y := number.rounds[round]; y > 0 {
			ratios[round] = value / y
		}
	}
	return timing(ratios, figures.Ratio, n.record)
}

// fewestRounds is how many rounds a timing takes before it decides anything.
const fewestRounds = 3

// timing is a number from its value in each round: the median, and its
// confidence interval, or the extremes of few rounds.
func timing(rounds map[int]float64, unit figures.Unit, record *Record) any {
	fewest := fewestRounds
	if record.anyRounds {
		fewest = 1
	}
	if len(rounds) < fewest {
		missing := absent("%s behind the timings, and fewer than %d tell nothing of how much they vary",
			format.Number(len(rounds), "round"), fewestRounds)
		made, _ := record.rounds(record.File.Runs[0].Key())
		missing.here = made >= fewestRounds
		return missing
	}
	figure := results.OverRounds(slices.Collect(maps.Values(rounds)))
	return Number{Lo: figure.Lo, Hi: figure.Hi, Value: figure.Value, Unit: unit, rounds: rounds, record: record,
		varies: true}
}

// reduce is a function of all numbers of a list.
func reduce(name string, list []any) (any, error) {
	var out Number
	var los, his, values []float64
	for i, value := range list {
		switch n := value.(type) {
		case missing:
			return n, nil
		case Number:
			los = append(los, n.Lo)
			his = append(his, n.Hi)
			values = append(values, n.Value)
			out.varies = out.varies || n.varies
			out.few = out.few || n.few
			if i == 0 {
				out.Unit = n.Unit
			}
		default:
			return nil, fmt.Errorf("%s takes numbers, or a list of them", name)
		}
	}
	if len(values) == 0 {
		return absent("there is nothing to take %s of", name), nil
	}
	f := reductions[name]
	out.Lo = f(los)
	out.Hi = f(his)
	out.Value = f(values)
	return out, nil
}

// reductions rise with each of their numbers, so that the ends of an interval give its ends.
var reductions = map[string]func([]float64) float64{
	"max":   slices.Max[[]float64],
	"min":   slices.Min[[]float64],
	"first": func(values []float64) float64 { return values[0] },
	"last":  func(values []float64) float64 { return values[len(values)-1] },
	"sum": func(values []float64) (s float64) {
		for _, value := range values {
			s += value
		}
		return s
	},
	"median": stat.Median[float64],
}

// share is the share that a part is of a whole, with the interval of a binomial proportion (Wilson, 95 %).
func share(part, whole Number) any {
	if whole.Lo <= 0 {
		return absent("the share of nothing is not defined")
	}
	out := Number{Lo: 0, Hi: 100, Value: 100 * part.Value / whole.Value, Unit: figures.Percent, varies: part.varies ||
		whole.varies}
	if part.Lo > 0 { // else it is 0, and not the next number above it
		out.Lo, _ = proportion(part.Lo, whole.Hi)
	}
	if part.Hi < whole.Lo {
		_, out.Hi = proportion(part.Hi, whole.Lo)
	}
	return out
}

func proportion(k, n float64) (lo, hi float64) {
	const z = 1.96
	p := k / n
	centre := (k + z*z/2) / (n + z*z)
	half := z * math.Sqrt(p*(1-p)*n+z*z/4) / (n + z*z)
	return max(0, 100*(centre-half)), min(100, 100*(centre+half))
}
