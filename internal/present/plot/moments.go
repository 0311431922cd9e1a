package plot

import (
	"fmt"
	"time"

	"gonum.org/v1/plot"

	"github.com/quotabench/quotabench/results"
)

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
	a.Label.Text, a.Tick.Marker = title, plot.TickerFunc(durationTicks)
	a.Min, a.Max = 0, max(end, 1)
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
