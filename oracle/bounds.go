package oracle

import (
	"math"
	"slices"
)

// bounds are the curves that every judgement of a window rests on. low never
// exceeds the units in use, whatever the order of the operations, and is reached
// by one order at each moment. high is never exceeded by the units that the store may
// hold. Callers hold less than that if reservations expired: the possible leak is
// judged without these.
type bounds struct {
	low, high curve
	expired   curve // units of high that callers no longer hold; never built
	holding   curve // high and expired together, if the limit changes
}

func (b *bounds) reset(initial int64) {
	b.low.reset(initial)
	b.high.reset(initial)
	b.expired.reset(0)
}

// forever is the end of units that never leave their window by themselves.
const forever = math.MaxInt64

// free takes units that were given back out of the upper curves, until the moment
// at which they would have left the window by themselves.
func (b *bounds) free(event *Event, from, to int64) {
	if from >= to || event.Outcome == Failed {
		return
	}
	upper := &b.high
	if event.Kind == Expire {
		upper = &b.expired
	}
	units := max(0, event.Units)
	upper.add(from, -units)
	if to < forever {
		upper.add(to, units)
	}
}

// mayExceed is the most by which callers may hold more than the limit.
func (b *bounds) mayExceed(limit int64) int64 {
	if len(b.expired.steps) == 0 {
		return b.high.mayExceed(limit)
	}
	held := curve{base: b.high.base, steps: slices.Concat(b.high.steps, b.expired.steps)}
	held.build()
	return held.mayExceed(limit)
}

func (b *bounds) build() {
	b.low.build()
	b.high.build()
}

// left is how many units fit into the lowest limit at every moment of [from, to], and
// how many into the highest at some moment. Moments are doubled times.
func (b *bounds) left(from, to, lowest, highest int64) (always, once int64) {
	most := max(0, b.high.most(from, to))
	least := max(0, b.low.least(from, to))
	always = lowest - most
	return always, max(always, highest-least)
}

// walk adds up the steps of a curve.
type walk struct {
	steps    []step // still to come
	used     int64
	admitted int64 // units taken so far
}

func (c *curve) walk() walk { return walk{steps: c.steps, used: c.base} }

// take takes all steps up to a moment.
func (w *walk) take(moment int64) {
	taken := 0
	for taken < len(w.steps) && w.steps[taken].at <= moment {
		by := w.steps[taken].by
		w.used += by
		w.admitted += max(0, by)
		taken++
	}
	w.steps = w.steps[taken:]
}

// excess is the units in use above the limit over time.
type excess struct {
	peak       int64   // units
	at         int64   // instant of the peak
	excursions int64   // stretches of time above the limit
	area       float64 // unit-nanoseconds
}

// rising is an excess up to an instant.
type rising struct {
	excess
	over, from int64 // units above the limit, since that instant
}

// is says how many units are above the limit from an instant on.
func (r *rising) is(over, instant int64) {
	r.area += float64(r.over) * float64(instant-r.from)
	if over > 0 && r.over == 0 {
		r.excursions++
	}
	if over > r.peak {
		r.peak = over
		r.at = instant
	}
	r.over = over
	r.from = instant
}

// until is the excess up to the end of time.
func (r *rising) until(end int64) excess {
	r.area += float64(r.over) * float64(max(0, end-r.from))
	return r.excess
}

// overLimit is the excess of a low curve until the end of time (an instant): its peak
// is the certain leak of a window by itself.
//
// A give-back that names no take may belong to another window than the one at
// hand, and one of more units than were reserved follows an overrun that the
// curve leaves out. Both would take it below zero. Real use never is, so the sum is
// kept at zero, after all steps of one nanosecond. Units that were in use before the
// run are no leak: there is never more of it than was admitted.
func (c *curve) overLimit(limit, end int64) excess {
	var out rising
	low := c.walk()
	for len(low.steps) > 0 {
		nanosecond := low.steps[0].at >> 1
		low.take(after(nanosecond))
		low.used = max(0, low.used)
		over := min(low.used-limit, low.admitted)
		out.is(max(0, over), nanosecond)
	}
	return out.until(end)
}

// mayExceed is the most by which a high curve passes the limit.
func (c *curve) mayExceed(limit int64) (most int64) {
	high := c.walk()
	for len(high.steps) > 0 {
		high.take(high.steps[0].at)
		most = max(most, min(high.used-limit, high.admitted))
	}
	return most
}
