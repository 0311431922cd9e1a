package oracle

import (
	"math"
	"slices"
)

// bounds are the curves that every judgement of a window rests on. low never
// exceeds the units in use, whatever the order of the operations, and is reached
// by one order at each moment; high is never exceeded by what the store may
// hold. Callers hold less than that if reservations expired: what may have
// leaked is judged without those.
type bounds struct {
	low, high curve
	expired   curve // what callers no longer hold, beyond high; never built
	holding   curve // high and expired together, if the limit changes
}

func (b *bounds) reset(initial int64) {
	b.low.reset(initial)
	b.high.reset(initial)
	b.expired.reset(0)
}

// forever is the end of what never leaves its window by itself.
const forever = math.MaxInt64

// free takes units that were given back out of the upper curves, until the moment
// at which they would have left the window by themselves.
func (b *bounds) free(event *Event, from, to int64) {
	if from >= to || event.Outcome == Failed {
		return
	}
	curve := &b.high
	if event.Kind == Expire {
		curve = &b.expired
	}
	units := max(0, event.Units)
	curve.add(from, -units)
	if to < forever {
		curve.add(to, units)
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
	always = min(lowest, lowest-b.high.most(from, to))
	return always, max(always, min(highest, highest-b.low.least(from, to)))
}

// excess is what a low curve says about the time above the limit.
type excess struct {
	peak       int64 // units
	at         int64 // instant of the peak
	excursions int64
	area       float64 // unit-nanoseconds
}

// rising is an excess up to an instant.
type rising struct {
	excess
	over, from int64 // units above the limit, since that instant
}

// is says how many units are above the limit from an instant on.
func (r *rising) is(over, t int64) {
	r.area += float64(r.over) * float64(t-r.from)
	if over > 0 && r.over == 0 {
		r.excursions++
	}
	if over > r.peak {
		r.peak = over
		r.at = t
	}
	r.over = over
	r.from = t
}

// until is the excess up to the end of time.
func (r *rising) until(end int64) excess {
	r.area += float64(r.over) * float64(max(0, end-r.from))
	return r.excess
}

// overLimit walks along a low curve until the end of time (an instant).
//
// A give-back that names no take may belong to another window than the one at
// hand, and one of more units than were reserved follows an overrun that the
// curve leaves out. Both would take it below zero; real use never is, so it is
// kept there. All that happens at one instant is taken together for that.
// Units that were in use before the run began are no leak: there is never more
// of it than was admitted.
func (c *curve) overLimit(limit, end int64) excess {
	var out rising
	used := c.base
	admitted := int64(0)
	for i := 0; i < len(c.steps); {
		t := c.steps[i].at >> 1
		for ; i < len(c.steps) && c.steps[i].at>>1 == t; i++ {
			used += c.steps[i].by
			admitted += max(0, c.steps[i].by)
		}
		used = max(0, used)
		out.is(max(0, min(used-limit, admitted)), t)
	}
	return out.until(end)
}

// mayExceed is the most by which a high curve passes the limit.
func (c *curve) mayExceed(limit int64) (most int64) {
	used := c.base
	admitted := int64(0)
	for i := 0; i < len(c.steps); {
		at := c.steps[i].at
		for ; i < len(c.steps) && c.steps[i].at == at; i++ {
			used += c.steps[i].by
			admitted += max(0, c.steps[i].by)
		}
		most = max(most, min(used-limit, admitted))
	}
	return most
}
