package plot

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/results"
)

// nines is the scale of percentiles: each further nine takes the same room.
type nines struct{}

// Normalize implements plot.Normalizer.
func (nines) Normalize(lo, hi, q float64) float64 {
	return plot.LinearScale{}.Normalize(stat.Nines(lo), stat.Nines(hi), stat.Nines(q))
}

// percentScale is logarithmic, with a strip of its own for 0, which no logarithm reaches.
type percentScale struct {
	floor float64 // exponent of the smallest decade shown
	strip float64 // distance from 0 to it, in decades
}

// Normalize implements plot.Normalizer. Values below 0 are decades to the left of it.
func (s percentScale) Normalize(lo, hi, pct float64) float64 {
	return plot.LinearScale{}.Normalize(s.at(lo), s.at(hi), s.at(pct))
}

func (s percentScale) at(pct float64) float64 {
	if pct <= 0 {
		return pct
	}
	// Nothing above 0 may sit on the line of 0.
	return max(s.strip+math.Log10(pct)-s.floor, s.strip/2)
}

// percentAxis is for shares in percent.
func percentAxis(a *plot.Axis, values []float64) {
	least := math.Inf(1)
	most := 0.0
	for _, v := range values {
		most = max(most, v)
		if v > 0 {
			least = min(least, v)
		}
	}
	if most == 0 {
		least = 1
		most = 100 // an empty scale, so that 0 is seen to be little
	}
	// A decade at least below the largest value, so that little is seen to be little.
	s := percentScale{floor: math.Floor(math.Log10(min(least, most/5)))}
	top := max(math.Log10(most), s.floor+1) + 0.12
	// The strip takes the same share of the height whatever the scale spans.
	s.strip = 0.4 * (top - s.floor)
	a.Scale = s
	a.Min = -0.5 * s.strip
	a.Max = math.Pow(10, top)
	ticks := logTicks(percentTick)(math.Pow(10, s.floor), a.Max)
	a.Tick.Marker = plot.ConstantTicks(append(ticks, plot.Tick{Label: "none found"}))
}

// percentTick renders a round share in percent.
func percentTick(v float64) string {
	if v < 1 {
		return strconv.FormatFloat(v, 'f', -int(math.Floor(math.Log10(v*1.0001))), 64) + " %"
	}
	return format.Count(int64(v+0.5)) + " %"
}

// linearAxis includes 0 and ends at round values.
func linearAxis(a *plot.Axis, values []float64) {
	lo := 0.0
	hi := 0.0
	for _, v := range values {
		if !math.IsNaN(v) {
			lo = min(lo, v)
			hi = max(hi, v)
		}
	}
	step := niceStep(hi - lo)
	a.Tick.Marker = plot.TickerFunc(linearTicks)
	a.Min = math.Floor(lo/step) * step
	a.Max = math.Ceil(max(hi/step, 1)) * step
}

// linearTicks are at round distances.
func linearTicks(lo, hi float64) (ticks []plot.Tick) {
	step := niceStep(hi - lo)
	// Adding 0 leaves no negative 0.
	for i := math.Ceil(lo/step-1e-6) + 0; i*step <= hi+step/1e6; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: tickValue(i * step)})
	}
	return ticks
}

// niceStep is a round distance of ticks.
func niceStep(span float64) float64 {
	if !(span > 0) {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(span/5)))
	for _, m := range []float64{1, 2, 5} {
		if m*p >= span/5 {
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

const day = 24 * time.Hour

// durationTicks are round in the largest unit of time that suits the end of an axis in nanoseconds.
func durationTicks(lo, hi float64) []plot.Tick {
	unit := 1.0
	name := tickNS
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{time.Minute, " min"}, {time.Hour, " h"}, {day, " d"}} {
		if of := float64(u.of); hi > 2*of {
			unit = of
			name = func(ns float64) string { return tickValue(ns/of) + u.name }
		}
	}
	ticks := linearTicks(lo/unit, hi/unit)
	for i := range ticks {
		if t := &ticks[i]; t.Value != 0 {
			t.Value *= unit
			t.Label = name(t.Value)
		}
	}
	return ticks
}

// tickNS renders a round duration without needless digits, e.g. "200 µs".
func tickNS(ns float64) string {
	div, unit := format.TimeUnit(ns)
	return format.TrimZeros(format.Digits(ns/div)) + " " + unit
}

// timeAxis is logarithmic, from lo to hi nanoseconds.
func timeAxis(a *plot.Axis, lo, hi float64) {
	lo = max(lo, 1) / 1.1
	hi = max(hi, 1) * 1.1
	if short := 3 / (hi / lo); short > 1 { // keep noise from looking like a difference
		lo = lo / math.Sqrt(short)
		hi = hi * math.Sqrt(short)
	}
	a.Scale, a.Tick.Marker = plot.LogScale{}, logTicks(tickNS)
	a.Min = lo
	a.Max = hi
}

// logTicks marks 1 to 9 in every decade of a logarithmic axis. It labels full
// decades, or also 2 and 5, or all nine, whatever it takes to label three.
func logTicks(name func(float64) string) plot.TickerFunc {
	return func(lo, hi float64) (ticks []plot.Tick) {
		for _, labelled := range []string{"1", "125", "123456789"} {
			ticks = nil
			n := 0
			for decade := math.Floor(math.Log10(lo)); math.Pow(10, decade) <= hi; decade++ {
				for m := 1; m < 10; m++ {
					t := plot.Tick{Value: float64(m) * math.Pow(10, decade)}
					if t.Value < lo || t.Value > hi {
						continue
					}
					if strings.Contains(labelled, strconv.Itoa(m)) {
						t.Label = name(t.Value)
						n++
					}
					ticks = append(ticks, t)
				}
			}
			if n >= 3 {
				break
			}
		}
		return ticks
	}
}

// settingsAxis places values of a parameter: in proportion if they are numbers or
// durations, logarithmically if they span a factor of 20 and more, and evenly in
// the order given if they are neither, if 0 is among numbers of such a span, or if
// they are shares, of which those near 1 would crowd.
func settingsAxis(a *plot.Axis, title string, values []string) (place map[string]float64) {
	numbers := make([]float64, len(values))
	even := false
	smallest := math.Inf(1)
	for i, v := range values {
		n, ok := results.SweepNumber(v)
		numbers[i] = n
		if n > 0 {
			smallest = min(smallest, n)
		}
		even = even || !ok || math.IsNaN(n) || math.IsInf(n, 0)
	}
	a.Label.Text = title
	even = even || slices.Max(numbers) <= 1 && slices.ContainsFunc(numbers, func(n float64) bool { return n > 0.9 && n < 1 })
	if least := slices.Min(numbers); !even && slices.Max(numbers) >= 20*smallest {
		even = least <= 0
		if !even {
			a.Scale = plot.LogScale{}
		}
	}
	place = map[string]float64{}
	var ticks []plot.Tick
	for i, v := range values {
		at := numbers[i]
		if even {
			at = float64(i)
		}
		if _, known := place[v]; known {
			continue
		}
		place[v] = at
		label := v
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			label = format.Count(n)
		}
		ticks = append(ticks, plot.Tick{Value: at, Label: label})
		a.Min = min(a.Min, at)
		a.Max = max(a.Max, at)
	}
	slices.SortFunc(ticks, func(a, b plot.Tick) int { return cmp.Compare(a.Value, b.Value) })
	a.Tick.Marker = plot.ConstantTicks(ticks)
	return place
}

// apart takes the names of ticks away that would touch the one before.
func apart(a *plot.Axis, c draw.Canvas) plot.ConstantTicks {
	ticks := slices.Clone(a.Tick.Marker.Ticks(a.Min, a.Max))
	slices.SortStableFunc(ticks, func(a, b plot.Tick) int { return cmp.Compare(a.Value, b.Value) })
	free := c.Min.X - c.Max.X
	for i := range ticks {
		t := &ticks[i]
		x := c.X(a.Norm(t.Value))
		half := a.Tick.Label.Width(t.Label) / 2
		switch {
		case t.IsMinor():
		case x-half < free:
			t.Label = ""
		default:
			free = x + half + 6
		}
	}
	return ticks
}

// momentsAxis is linear from the start of a series to its last sample: dates if it
// has a calendar, and the time since the start otherwise.
func momentsAxis(a *plot.Axis, s *results.Series) {
	end := time.Duration(s.Samples[len(s.Samples)-1].AtNS)
	spanAxis(a, "time since the start", float64(end))
	start, err := time.Parse(time.RFC3339Nano, s.Start)
	if err != nil {
		return
	}
	if zone, err := time.LoadLocation(s.Zone); err == nil && s.Zone != "" {
		start = start.In(zone)
	}
	a.Label.Text, a.Tick.Marker = dates(start, end)
}

// spanAxis is linear from 0 to end nanoseconds.
func spanAxis(a *plot.Axis, title string, end float64) {
	a.Label.Text = title
	a.Tick.Marker = plot.TickerFunc(durationTicks)
	a.Min = 0
	a.Max = max(end, 1)
}

// dates are a stretch of time and its ticks: dates, and hours if it is short.
func dates(start time.Time, span time.Duration) (title string, ticks plot.ConstantTicks) {
	last := start.Add(span)
	title = fmt.Sprintf("%s to %s", start.Format("2 January 2006 15:04"), last.Format("2 January 2006 15:04 MST"))
	y, m, d := start.Date()
	step := stepOf(span)
	if step.months > 0 {
		d = 1
	}
	for i := 0; ; i++ {
		// By the clock on the wall, also on the day on which it is changed.
		clock := step.clock * time.Duration(i)
		at := time.Date(y, m+time.Month(i*step.months), d+i*step.days+int(clock/day), 0, 0, 0, int(clock%day), start.Location())
		if at.After(last) {
			return title, ticks
		}
		name := at.Format(step.name)
		if name == "00:00" {
			name = at.Format(dayName)
		}
		if !at.Before(start) {
			ticks = append(ticks, plot.Tick{Value: float64(at.Sub(start)), Label: name})
		}
	}
}

// dayName is how ticks of days are written.
const dayName = "2 Jan"

// dateStep is a distance of ticks from a midnight on, and how they are written.
type dateStep struct {
	months, days int
	clock        time.Duration
	name         string
}

// stepOf is the distance that suits a stretch of time.
func stepOf(span time.Duration) dateStep {
	for _, clock := range []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour,
		12 * time.Hour} {
		if span/clock <= 10 {
			return dateStep{clock: clock, name: "15:04"}
		}
	}
	for _, days := range []int{1, 2, 5, 10} {
		if span/(time.Duration(days)*day) <= 12 {
			return dateStep{days: days, name: dayName}
		}
	}
	return dateStep{months: 1 + int(span/(12*31*day)), name: "Jan 2006"}
}
