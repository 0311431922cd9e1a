package plot

import (
	"fmt"
	"math"
	"time"

	"github.com/quotabench/quotabench/results"
)

const day = 24 * time.Hour

// momentsAxis is linear from the start of a series to its last sample: dates where it
// has a calendar, and the time since the start elsewhere.
func momentsAxis(s *results.Series) axis {
	end := time.Duration(s.Samples[len(s.Samples)-1].AtNS)
	start, err := time.Parse(time.RFC3339Nano, s.Start)
	if err != nil {
		return spanAxis(end)
	}
	if zone, err := time.LoadLocation(s.Zone); err == nil && s.Zone != "" {
		start = start.In(zone)
	}
	return dateAxis(start, end)
}

// spanAxis is linear from the start to end.
func spanAxis(end time.Duration) axis {
	a := axis{title: "time since the start", hi: max(float64(end), 1)}
	step := timeStep(end)
	for at := time.Duration(0); float64(at) <= a.hi*1.0001; at += step {
		a.ticks = append(a.ticks, tick{at: float64(at), label: tickTime(at)})
	}
	return a
}

// dateAxis names dates, and hours where the stretch is short.
func dateAxis(start time.Time, end time.Duration) axis {
	last := start.Add(end)
	a := axis{title: fmt.Sprintf("%s to %s", start.Format("2 January 2006 15:04"), last.Format("2 January 2006 15:04 MST")),
		hi: max(float64(end), 1)}
	y, m, d := start.Date()
	midnight := time.Date(y, m, d, 0, 0, 0, 0, start.Location())
	next, name := dateSteps(end)
	for i := 0; ; i++ {
		at := next(midnight, i)
		if at.After(last) {
			return a
		}
		if !at.Before(start) {
			a.ticks = append(a.ticks, tick{at: float64(at.Sub(start)), label: name(at)})
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

// timeStep is a round distance of ticks on the axis of time.
func timeStep(end time.Duration) time.Duration {
	for _, d := range []time.Duration{
		time.Microsecond, 10 * time.Microsecond, 100 * time.Microsecond, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond,
		100 * time.Millisecond, 500 * time.Millisecond,
		time.Second, 5 * time.Second, 10 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour,
		day, 2 * day, 5 * day, 10 * day, 30 * day, 90 * day,
	} {
		if end/d <= 10 {
			return d
		}
	}
	return 365 * day * time.Duration(math.Ceil(float64(end)/float64(3650*day)))
}

// tickTime prints a tick's time, e.g. "6 h".
func tickTime(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d >= day && d%day == 0:
		return fmt.Sprintf("%d d", d/day)
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	default:
		return tickNS(float64(d))
	}
}
