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
func percentAxis(axis *plot.Axis, values []float64) {
	least := math.Inf(1)
	most := 0.0
	for _, value := range values {
		most = max(most, value)
		if value > 0 {
			least = min(least, value)
		}
	}
	if most == 0 {
		least = 1
		most = 100 // an empty scale, so that 0 is seen to be little
	}
	// A decade at least below the largest value, so that little is seen to be little.
	scale := percentScale{floor: math.Floor(math.Log10(min(least, most/5)))}
	top := max(math.Log10(most), scale.floor+1) + 0.12
	// The strip takes the same share of the height whatever the scale spans.
	scale.strip = 0.4 * (top - scale.floor)
	axis.Scale = scale
	axis.Min = -0.5 * scale.strip
	axis.Max = math.Pow(10, top)
	ticks := logTicks(percentTick)(math.Pow(10, scale.floor), axis.Max)
	axis.Tick.Marker = plot.ConstantTicks(append(ticks, plot.Tick{Label: "none found"}))
}

// percentTick renders a round share in percent.
func percentTick(value float64) string {
	if value < 1 {
		return strconv.FormatFloat(value, 'f', -int(math.Floor(math.Log10(value*1.0001))), 64) + " %"
	}
	return format.Count(int64(value+0.5)) + " %"
}

// linearAxis includes 0 and ends at round values.
func linearAxis(axis *plot.Axis, values []float64) {
	lo := 0.0
	hi := 0.0
	for _, value := range values {
		if !math.IsNaN(value) {
			lo = min(lo, value)
			hi = max(hi, value)
		}
	}
	step := niceStep(hi - lo)
	axis.Tick.Marker = plot.TickerFunc(linearTicks)
	axis.Min = math.Floor(lo/step) * step
	axis.Max = math.Ceil(max(hi/step, 1)) * step
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
func tickValue(value float64) string {
	a := math.Abs(value)
	short := func(div float64, unit string) string { return strconv.FormatFloat(value/div, 'g', 4, 64) + unit }
	switch {
	case a >= 1e9:
		return short(1e9, " G")
	case a >= 1e6:
		return short(1e6, " M")
	case a >= 1e4:
		return short(1e3, " k")
	case a >= 1e3 && value == math.Trunc(value):
		return format.Count(int64(value))
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
		duration time.Duration
		name     string
	}{{time.Minute, " min"}, {time.Hour, " h"}, {day, " d"}} {
		if of := float64(u.duration); hi > 2*of {
			unit = of
			name = func(ns float64) string { return tickValue(ns/of) + u.name }
		}
	}
	ticks := linearTicks(lo/unit, hi/unit)
	for i := range ticks {
		if tick := &ticks[i]; tick.Value != 0 {
			tick.Value *= unit
			tick.Label = name(tick.Value)
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
func timeAxis(axis *plot.Axis, lo, hi float64) {
	lo = max(lo, 1) / 1.1
	hi = max(hi, 1) * 1.1
	if short := 3 / (hi / lo); short > 1 { // keep noise from looking like a difference
		lo = lo / math.Sqrt(short)
		hi = hi * math.Sqrt(short)
	}
	axis.Scale, axis.Tick.Marker = plot.LogScale{}, logTicks(tickNS)
	axis.Min = lo
	axis.Max = hi
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
					tick := plot.Tick{Value: float64(m) * math.Pow(10, decade)}
					if tick.Value < lo || tick.Value > hi {
						continue
					}
					if strings.Contains(labelled, strconv.Itoa(m)) {
						tick.Label = name(tick.Value)
						n++
					}
					ticks = append(ticks, tick)
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
func settingsAxis(axis *plot.Axis, title string, values []string) (place map[string]float64) {
	numbers := make([]float64, len(values))
	even := false
	smallest := math.Inf(1)
	for i, text := range values {
		n, ok := stat.ParseValue(text)
		numbers[i] = n
		if n > 0 {
			smallest = min(smallest, n)
		}
		even = even || !ok || math.IsNaN(n) || math.IsInf(n, 0)
	}
	axis.Label.Text = title
	even = even || slices.Max(numbers) <= 1 && slices.ContainsFunc(numbers, func(n float64) bool {
		return n > 0.9 && n < 1
	})
	if least := slices.Min(numbers); !even && slices.Max(numbers) >= 20*smallest {
		even = least <= 0
		if !even {
			axis.Scale = plot.LogScale{}
		}
	}
	place = map[string]float64{}
	var ticks []plot.Tick
	for i, text := range values {
		at := numbers[i]
		if even {
			at = float64(i)
		}
		if _, known := place[text]; known {
			continue
		}
		place[text] = at
		label := text
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			label = format.Count(n)
		}
		ticks = append(ticks, plot.Tick{Value: at, Label: label})
		axis.Min = min(axis.Min, at)
		axis.Max = max(axis.Max, at)
	}
	slices.SortFunc(ticks, func(a, b plot.Tick) int { return cmp.Compare(a.Value, b.Value) })
	axis.Tick.Marker = plot.ConstantTicks(ticks)
	return place
}

// apart takes the names of ticks away that would touch the one before.
func apart(axis *plot.Axis, canvas draw.Canvas) plot.ConstantTicks {
	ticks := slices.Clone(axis.Tick.Marker.Ticks(axis.Min, axis.Max))
	slices.SortStableFunc(ticks, func(a, b plot.Tick) int { return cmp.Compare(a.Value, b.Value) })
	free := canvas.Min.X - canvas.Max.X
	for i := range ticks {
		tick := &ticks[i]
		length := canvas.X(axis.Norm(tick.Value))
		half := axis.Tick.Label.Width(tick.Label) / 2
		switch {
		case tick.IsMinor():
		case length-half < free:
			tick.Label = ""
		default:
			free = length + half + 6
		}
	}
	return ticks
}

// momentsAxis is linear from the start of a series to its last sample: dates if it
// has a calendar, and the time since the start otherwise.
func momentsAxis(axis *plot.Axis, series *results.Series) {
	end := time.Duration(series.Samples[len(series.Samples)-1].AtNS)
	spanAxis(axis, "time since the start", float64(end))
	start, err := time.Parse(time.RFC3339Nano, series.Start)
	if err != nil {
		return
	}
	if zone, err := time.LoadLocation(series.Zone); err == nil && series.Zone != "" {
		start = start.In(zone)
	}
	axis.Label.Text, axis.Tick.Marker = dates(start, end)
}

// spanAxis is linear from 0 to end nanoseconds.
func spanAxis(axis *plot.Axis, title string, end float64) {
	axis.Label.Text = title
	axis.Tick.Marker = plot.TickerFunc(durationTicks)
	axis.Min = 0
	axis.Max = max(end, 1)
}

// dates are a stretch of time and its ticks: dates, and hours if it is short.
func dates(start time.Time, span time.Duration) (title string, ticks plot.ConstantTicks) {
	last := start.Add(span)
	title = fmt.Sprintf("%s to %s", start.Format("2 January 2006 15:04"), last.Format("2 January 2006 15:04 MST"))
	y, month, d := start.Date()
	step := stepOf(span)
	if step.months > 0 {
		d = 1
	}
	for i := 0; ; i++ {
		// By the clock on the wall, also on the day on which it is changed.
		clock := step.clock * time.Duration(i)
		at := time.Date(y, month+time.Month(i*step.months), d+i*step.days+int(clock/day), 0, 0, 0, int(clock%day),
			start.Location())
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
	for _, clock := range []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour,
		6 * time.Hour,
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
