package plot

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/format"
)

// percentScale maps shares in percent to an axis: logarithmic, with a strip of its own
// for 0, which no logarithm reaches.
type percentScale struct {
	floor float64 // exponent of the smallest decade shown
	strip float64 // distance from 0 to it, in decades
}

func (s percentScale) at(pct float64) float64 {
	if pct <= 0 {
		return 0
	}
	// Nothing above 0 may sit on the line of 0.
	return max(s.strip+math.Log10(pct)-s.floor, s.strip/2)
}

// percentAxis makes the axis for values in percent, and the scale that places them.
func percentAxis(title string, values []float64) (axis, percentScale) {
	least, most := math.Inf(1), 0.0
	for _, v := range values {
		if most = max(most, v); v > 0 {
			least = min(least, v)
		}
	}
	if most == 0 {
		least, most = 1, 100 // an empty scale, so that 0 is seen to be little
	}
	// A decade at least below the largest value, so that little is seen to be little.
	s := percentScale{floor: math.Floor(math.Log10(min(least, most/5)))}
	top := max(math.Log10(most), s.floor+1) + 0.12
	// The strip takes the same share of the height whatever the scale spans.
	s.strip = 0.4 * (top - s.floor)
	shift := s.strip - s.floor
	a := axis{title: title, lo: -0.5 * s.strip, hi: shift + top, ticks: []tick{{0, "0 %"}}}
	for _, t := range logTicks(s.floor, top, percentTick) {
		t.at += shift
		a.ticks = append(a.ticks, t)
	}
	return a, s
}

// percentTick renders a round share in percent.
func percentTick(m float64, exponent int) string {
	if exponent < 0 {
		return strconv.FormatFloat(m*math.Pow10(exponent), 'f', -exponent, 64) + " %"
	}
	return format.Count(int64(m*math.Pow10(exponent))) + " %"
}

// linearAxis includes 0 and ends at round values.
func linearAxis(title string, values []float64) axis {
	lo, hi := 0.0, 0.0
	for _, v := range values {
		if !math.IsNaN(v) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	step := niceStep(hi - lo)
	a := axis{title: title, lo: math.Floor(lo/step) * step}
	a.hi = max(math.Ceil(hi/step)*step, a.lo+step)
	for i := 0; ; i++ {
		v := a.lo + float64(i)*step
		if v > a.hi+step/2 {
			return a
		}
		if math.Abs(v) < step/1e6 {
			v = 0
		}
		a.ticks = append(a.ticks, tick{at: v, label: tickValue(v)})
	}
}

// niceStep is a round distance of ticks.
func niceStep(span float64) float64 {
	if !(span > 0) {
		return 1
	}
	raw := span / 4
	p := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*p >= raw {
			return m * p
		}
	}
	return 10 * p
}

// tickValue prints a tick's value, e.g. "20 k".
func tickValue(v float64) string {
	a := math.Abs(v)
	short := func(div float64, unit string) string { return strconv.FormatFloat(v/div, 'g', 4, 64) + unit }
	switch {
	case a >= 1e9:
		return short(1e9, " G")
	case a >= 1e6:
		return short(1e6, " M")
	case a >= 1e4:
		return short(1e3, " k")
	case a >= 1e3 && v == math.Trunc(v):
		return format.Count(int64(v))
	default:
		return short(1, "")
	}
}

// settings are the values of a parameter as places on an axis.
type settings struct {
	axis  axis
	place map[string]float64
}

// settingsAxis places values of a parameter: in proportion where they are numbers or
// durations, logarithmically where they span a factor of 20 and more, and evenly in
// the order given where they are neither, or where 0 is among numbers of such a span.
func settingsAxis(title string, values []string) settings {
	out := settings{axis: axis{title: title}, place: map[string]float64{}}
	numbers := make([]float64, len(values))
	numeric, least, most := true, math.Inf(1), math.Inf(-1)
	for i, v := range values {
		n, ok := number(v)
		numeric = numeric && ok
		numbers[i] = n
		least, most = min(least, n), max(most, n)
	}
	smallest := math.Inf(1)
	for _, n := range numbers {
		if n > 0 {
			smallest = min(smallest, n)
		}
	}
	wide := numeric && most >= 20*smallest
	for i, v := range values {
		at := float64(i)
		switch {
		case numeric && wide && least > 0:
			at = math.Log10(numbers[i])
		case numeric && !wide:
			at = numbers[i]
		}
		out.place[v] = at
	}
	out.axis.lo, out.axis.hi = math.Inf(1), math.Inf(-1)
	for v, at := range out.place {
		out.axis.ticks = append(out.axis.ticks, tick{at, v})
		out.axis.lo, out.axis.hi = min(out.axis.lo, at), max(out.axis.hi, at)
	}
	slices.SortFunc(out.axis.ticks, func(a, b tick) int { return compareFloat(a.at, b.at) })
	for i := range out.axis.ticks {
		t := &out.axis.ticks[i]
		if n, err := strconv.ParseInt(t.label, 10, 64); err == nil {
			t.label = format.Count(n)
		}
	}
	room := (out.axis.hi - out.axis.lo) * 0.04
	if room == 0 {
		room = 1
	}
	out.axis.lo, out.axis.hi = out.axis.lo-room, out.axis.hi+room
	return out
}

// number reads a number, a share in percent or a duration.
func number(s string) (float64, bool) {
	if v, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
		return v, true
	}
	d, err := time.ParseDuration(s)
	return float64(d), err == nil
}
