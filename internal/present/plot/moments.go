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
	midnight := time.Date(y, m, d, 0, 0, 0, 0, start.Location())
	next, name := dateSteps(span)
	for i := 0; ; i++ {
		at := next(midnight, i)
		if at.After(last) {
			return title, ticks
		}
		if !at.Before(start) {
			ticks = append(ticks, plot.Tick{Value: float64(at.Sub(start)), Label: name(at)})
		}
	}
}

// dateSteps returns the i-th tick from a midnight on, and how it is named.
func dateSteps(span time.Duration) (next func(midnight time.Time, i int) time.Time, name func(time.Time) string) {
	clock := func(t time.Time) string {
		if t.Hour() == 0 && t.Minute() == 0 {
			return t.Format("2 Jan")
		}
		return t.Format("15:04")
	}
	for _, step := range []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour,
		12 * time.Hour} {
		if span/step <= 10 {
			return func(midnight time.Time, i int) time.Time {
				y, m, d := midnight.Date()
				// By the clock on the wall, also on the day on which it is changed.
				return time.Date(y, m, d, 0, 0, 0, int(step)*i%int(day), midnight.Location()).AddDate(0, 0, int(step)*i/int(day))
			}, clock
		}
	}
	for _, days := range []int{1, 2, 5, 10} {
		if span/(time.Duration(days)*day) <= 12 {
			return func(midnight time.Time, i int) time.Time { return midnight.AddDate(0, 0, i*days) },
				func(t time.Time) string { return t.Format("2 Jan") }
		}
	}
	months := 1 + int(span/(12*31*day))
	return func(midnight time.Time, i int) time.Time {
		return time.Date(midnight.Year(), midnight.Month()+time.Month(i*months), 1, 0, 0, 0, 0, midnight.Location())
	}, func(t time.Time) string { return t.Format("Jan 2006") }
}
