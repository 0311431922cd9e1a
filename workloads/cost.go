package workloads

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
)

// costForms lists the ways to say how many units requests ask for, for help texts
// and errors: drawn evenly from the policy's own costs; always N; drawn evenly
// from A to B; drawn from a log-normal distribution, capped at the cost that one
// request in two million exceeds; as recorded in a trace.
const costForms = "policy, N or constant:N, uniform:A-B, lognormal:MEDIAN:SIGMA, recorded (traces only)"

// cost is a parsed form. Its zero value is no form.
type cost struct {
	name          string
	low, high     int64 // constant (both N) and uniform
	median, sigma float64
}

func parseCost(form string) (cost, error) {
	name, rest, more := strings.Cut(form, ":")
	if digits(form) {
		name = "constant"
		rest = form
		more = true
	}
	c := cost{name: name}
	switch {
	case (name == "policy" || name == "recorded") && !more:
		return c, nil
	case name == "constant" && more:
		n, ok := units(rest)
		if !ok {
			return cost{}, fmt.Errorf("cost %q: N is a whole number from 1 to %d", form, int64(maxCost))
		}
		c.low = n
		c.high = n
		return c, nil
	case name == "uniform" && more:
		text, b, _ := strings.Cut(rest, "-")
		var okA, okB bool
		c.low, okA = units(text)
		c.high, okB = units(b)
		if !okA || !okB || c.low > c.high {
			return cost{}, fmt.Errorf("cost %q: in uniform:A-B both are whole numbers from 1 to %d, and A is not above B", form,
				int64(maxCost))
		}
		return c, nil
	case name == "lognormal" && more:
		median, sigma, _ := strings.Cut(rest, ":")
		var errM, errS error
		c.median, errM = number(median)
		c.sigma, errS = number(sigma)
		if errM != nil || errS != nil || !(c.median >= 1 && c.median <= maxCost) || !(c.sigma > 0 && c.sigma <= maxSigma) {
			return cost{}, fmt.Errorf("cost %q: in lognormal:MEDIAN:SIGMA the median is a number from 1 to %d, and sigma "+
				"above 0 and at most %v",
				form, int64(maxCost), maxSigma)
		}
		if largest := c.median * math.Exp(c.sigma*normalTail(lognormalTail)); largest > maxCost {
			return cost{}, fmt.Errorf("cost %q goes up to %.3g units, more than %d", form, largest, int64(maxCost))
		}
		return c, nil
	}
	return cost{}, fmt.Errorf("unknown cost %q: one of %s", form, costForms)
}

// units parses the cost of one request.
func units(text string) (int64, bool) {
	if !digits(text) {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 1 && n <= maxCost
}

// String is the form that parses to c.
func (c cost) String() string {
	switch c.name {
	case "constant":
		return fmt.Sprintf("constant:%d", c.low)
	case "uniform":
		return fmt.Sprintf("uniform:%d-%d", c.low, c.high)
	case "lognormal":
		return fmt.Sprintf("lognormal:%s:%s", strconv.FormatFloat(c.median, 'g', -1, 64),
			strconv.FormatFloat(c.sigma, 'g', -1, 64))
	}
	return c.name
}

// prices draws the units that requests ask for. Its methods are safe for
// concurrent use.
type prices struct {
	list      []int64 // of the policy, or the constant; nil: one of the following
	low, high int64
	table     *lognormal
}

// prices of the form for a policy. Recorded costs have none, which is an error.
func (c cost) prices(policy *quota.Policy) (prices, error) {
	var out prices
	switch c.name {
	case "policy":
		// Limits are often lowered below the costs to see a limit reached, so
		// what can never be admitted is not refused here.
		out.list = policy.Costs
		if len(out.list) == 0 {
			out.list = []int64{1}
		}
		return out, nil
	case "recorded":
		return prices{}, errors.New("it has no recorded costs: cost recorded is for traces")
	case "constant":
		out.list = []int64{c.low}
	case "uniform":
		out.low = c.low
		out.high = c.high
	case "lognormal":
		out.table = newLognormal(c.median, c.sigma)
	}
	if least := out.draw(0); least > policy.Limit {
		return prices{}, fmt.Errorf("cost %v: every request asks for more than the limit of %d %s, so none could be admitted",
			c, policy.Limit, policy.Unit)
	}
	return out, nil
}

// draw maps a uniform value to a cost. If there is no list it is the quantile
// function: a larger value never gives a smaller cost.
func (p *prices) draw(x uint64) int64 {
	switch {
	case len(p.list) == 1:
		return p.list[0]
	case p.list != nil:
		return p.list[below(x, uint64(len(p.list)))]
	case p.table != nil:
		return p.table.quantile(x)
	}
	return p.low + int64(below(x, uint64(p.high-p.low+1)))
}

// mean of the costs, as near as reports need it.
func (p *prices) mean() float64 {
	if p.list == nil {
		const points = 1 << 16
		sum := 0.0
		for i := range uint64(points) {
			sum += float64(p.draw(i<<48 | 1<<47))
		}
		return sum / points
	}
	sum := 0.0
	for _, c := range p.list {
		sum += float64(c) / float64(len(p.list))
	}
	return sum
}

// describe says what requests cost, for notes.
func (p *prices) describe(unit string) string {
	text := fmt.Sprintf("cost of a request in %s: ", unit)
	switch {
	case len(p.list) == 1:
		return text + strconv.FormatInt(p.list[0], 10)
	case p.list != nil:
		return text + join(p.list) + ", each as likely"
	case p.table != nil:
		return text + fmt.Sprintf("%d to %d, log-normal with the median %d", p.draw(0), p.draw(math.MaxUint64), p.draw(1<<63))
	}
	return text + fmt.Sprintf("%d to %d, each as likely", p.low, p.high)
}

func join(list []int64) string {
	return format.List(list, ", ", func(v int64) string { return strconv.FormatInt(v, 10) })
}

const (
	// maxSigma bounds how far apart costs are: with 4 the largest is 300 million
	// times the median.
	maxSigma = 4.0
	// octaves of probability on either side of the median, each half of the one
	// before, and steps within one. So the table is as fine in the tails, where
	// the large costs are, as in the middle.
	octaves = 20
	steps   = 1 << stepBits
	// stepBits of a value after its leading one select the step.
	stepBits = 5
	// lognormalTail is the probability beyond the last edge on one side.
	lognormalTail = 1.0 / (1 << (octaves + 1))
)

// lognormal is the quantile function of a log-normal distribution as a table of
// integers, with straight lines between its edges. What is beyond the outermost
// edges has their cost.
type lognormal struct {
	// Edge k belongs to a tail of probability p(k), which rises from
	// lognormalTail to 1/2; upper and lower have the costs there on both sides.
	upper, lower [octaves*steps + 1]int64
}

func newLognormal(median, sigma float64) *lognormal {
	l := new(lognormal)
	for k := range l.upper {
		octave := k / steps
		step := k % steps
		tail := math.Ldexp(1+float64(step)/steps, octave) * lognormalTail
		far := math.Exp(sigma * normalTail(tail))
		l.upper[k] = max(1, int64(math.Round(median*far)))
		l.lower[k] = max(1, int64(math.Round(median/far)))
	}
	return l
}

// normalTail is the value that a standard normal variable exceeds with the given
// probability, at most 1/2.
func normalTail(p float64) float64 { return math.Sqrt2 * math.Erfcinv(2*p) }

// quantile is the cost below which the share x / 2^64 of all costs is.
func (l *lognormal) quantile(x uint64) int64 {
	edges := &l.lower
	tail := x
	if x>>63 == 1 {
		edges = &l.upper
		tail = ^x
	}
	// tail / 2^64 is the probability beyond x on its side of the median.
	octave := bits.LeadingZeros64(tail) - 1
	if octave >= octaves {
		return edges[0]
	}
	mantissa := tail << (octave + 2) // what follows the leading one
	k := (octaves-1-octave)*steps + int(mantissa>>(64-stepBits))
	from := edges[k]
	to := edges[k+1]
	part := mantissa << stepBits >> 1 // as a share of 2^63
	if from <= to {
		return from + scale(uint64(to-from), part)
	}
	return from - scale(uint64(from-to), part)
}

// scale is d times part / 2^63, rounded to the nearest.
func scale(d, part uint64) int64 {
	hi, lo := bits.Mul64(d, part)
	lo, carry := bits.Add64(lo, 1<<62, 0)
	return int64((hi+carry)<<1 | lo>>63)
}
