package results

import (
	"math"
	"strconv"
	"strings"
)

// formatNS renders a duration in nanoseconds with three digits and the unit that
// fits, e.g. "41.2 µs".
func formatNS(ns float64) string {
	div, unit := timeUnit(ns)
	return digits3(ns/div) + " " + unit
}

// formatNSInterval renders an interval in the unit of its middle, which is left out,
// e.g. "[38.1, 44.0]".
func formatNSInterval(middle, lo, hi float64) string {
	div, _ := timeUnit(middle)
	return "[" + digits3(lo/div) + ", " + digits3(hi/div) + "]"
}

func timeUnit(ns float64) (div float64, unit string) {
	// A value that would be printed as 1,000 of a unit is 1 of the next.
	switch a := math.Abs(ns); {
	case a < 999.5:
		return 1, "ns"
	case a < 999.5e3:
		return 1e3, "µs"
	case a < 999.5e6:
		return 1e6, "ms"
	default:
		return 1e9, "s"
	}
}

// digits3 renders x with three significant digits and no exponent; whole numbers
// keep all their digits.
func digits3(x float64) string {
	a := math.Abs(x)
	switch {
	case a >= 99.95:
		return formatCount(int64(math.Round(x)))
	case a >= 9.995:
		return strconv.FormatFloat(x, 'f', 1, 64)
	default:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
}

// formatCount renders a whole number with commas between thousands.
func formatCount(n int64) string {
	s := strconv.FormatUint(magnitude(n), 10)
	var b strings.Builder
	if n < 0 {
		b.WriteByte('-')
	}
	for i, c := range []byte(s) {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// formatSigned is formatCount with a plus sign before positive numbers.
func formatSigned(n int64) string {
	if n > 0 {
		return "+" + formatCount(n)
	}
	return formatCount(n)
}

// formatPct renders percent so that a small share is never rounded to 0 nor an
// incomplete one to 100.
func formatPct(p float64) string {
	a := math.Abs(p)
	switch {
	case p == 0:
		return "0 %"
	case a < 0.001:
		return strconv.FormatFloat(p, 'e', 0, 64) + " %"
	case a < 0.1:
		return strconv.FormatFloat(p, 'f', 3, 64) + " %"
	case a < 9.995:
		return strconv.FormatFloat(p, 'f', 2, 64) + " %"
	case p > 99.95 && p < 100:
		return ">99.9 %"
	case a < 99.95:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	default:
		return formatCount(int64(math.Round(p))) + " %"
	}
}

// formatRange renders [certain, possible], or one number where they agree.
func formatRange(certain, possible int64) string {
	if possible <= certain {
		return formatCount(certain)
	}
	return formatCount(certain) + ".." + formatCount(possible)
}

// formatPer renders a count per decision.
func formatPer(x float64) string {
	if x == 0 {
		return "0"
	}
	if x >= 0.005 {
		return digits3(x)
	}
	return "<0.01"
}

// plural renders a count and what is counted.
func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return formatCount(n) + " " + many
}

// units renders an amount of what a policy counts, whose name is a plural: "1
// e-mail", "50 requests", "1 MB".
func units(n int64, name string) string { return plural(n, singular(name), name) }

func singular(name string) string {
	switch {
	case strings.HasSuffix(name, "ies"):
		return strings.TrimSuffix(name, "ies") + "y"
	case strings.HasSuffix(name, "xes"), strings.HasSuffix(name, "tches"), strings.HasSuffix(name, "shes"), strings.HasSuffix(name, "sses"):
		return strings.TrimSuffix(name, "es")
	case strings.HasSuffix(name, "s") && !strings.HasSuffix(name, "ss"):
		return strings.TrimSuffix(name, "s")
	default:
		return name
	}
}
