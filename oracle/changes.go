package oracle

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/quotabench/quotabench/quota"
)

// LimitChange says that from some moment in [From, To] on, the limit is Limit. Which
// moment it is, is not known: within the interval either limit may be in force.
type LimitChange struct {
	// From and To are nanoseconds since the epoch, at least 0 and at most 2^60.
	From int64 `json:"from_ns"`
	To   int64 `json:"to_ns"`
	// Limit in units; at least 0.
	Limit int64 `json:"limit"`
}

// maxChanges is the number of changes that one history may have.
const maxChanges = 1 << 10

// validChanges refuses changes that cannot be judged.
func validChanges(window *quota.Window, changes []LimitChange) error {
	switch {
	case len(changes) == 0:
		return nil
	case window.Kind == quota.Bucket:
		return errors.New("the size of a bucket cannot change")
	case len(changes) > maxChanges:
		return fmt.Errorf("the limit changes %d times, at most %d are judged", len(changes), maxChanges)
	}
	last := int64(0)
	for i, change := range changes {
		switch {
		case change.Limit < 0:
			return fmt.Errorf("the policy has a limit of %d", change.Limit)
		case change.From > change.To || change.From < 0 || change.To > maxTime:
			return fmt.Errorf("change %d of the limit lies in no valid interval", i+1)
		case change.From < last:
			return fmt.Errorf("change %d of the limit begins before the one before it has ended", i+1)
		}
		last = change.To
	}
	return nil
}

// between is the lowest and the highest limit that can have been in force at some
// instant of [call, reply].
func (c *Config) between(call, reply int64) (lowest, highest int64) {
	next := firstFrom(c.Changes, call)
	lowest = c.Limit
	if next > 0 {
		lowest = c.Changes[next-1].Limit
	}
	highest = lowest
	for ; next < len(c.Changes) && c.Changes[next].From <= reply; next++ {
		lowest = min(lowest, c.Changes[next].Limit)
		highest = max(highest, c.Changes[next].Limit)
	}
	return lowest, highest
}

// firstFrom is the number of the first change that can have come at an instant or
// later.
func firstFrom(changes []LimitChange, instant int64) int {
	number, _ := slices.BinarySearchFunc(changes, instant, func(change LimitChange, instant int64) int {
		return cmp.Compare(change.To, instant)
	})
	return number
}

// within is the limit of a window, if it has only one.
func (c *Config) within(index int64) (limit int64, steady bool) {
	from := int64(-maxTime)
	to := int64(maxTime)
	if len(c.Changes) > 0 && c.Window.Kind.Tumbling() {
		windows := spans{window: c.Window, epoch: c.Epoch}
		window := windows.convert(c.Window.Span(index))
		from = window.start
		to = window.end - 1
	}
	lowest, highest := c.between(from, to)
	return lowest, lowest == highest
}

// limits are the lowest and the highest limit that a request may have been checked
// against.
func (j *judge) limits(event *Event) (lowest, highest int64) {
	if len(j.cfg.Changes) == 0 {
		return j.limit, j.limit
	}
	return j.cfg.between(event.Call, event.Reply)
}

// offer adds up the demand in one window, in the order of the calls.
type offer struct {
	granted  int64 // by a counter that never passes the lower limit, initial units included
	over     int64 // units that this counter has no room for
	answered int64 // units, initial ones included
	crossed  bool  // more was answered than the lower limit
}

func (o *offer) begin(initial, limit int64) {
	*o = offer{granted: initial, answered: initial, crossed: initial > limit}
}

func (o *offer) add(event *Event, lowest int64) {
	if event.Outcome == Elsewhere {
		return
	}
	room := max(0, lowest-o.granted)
	granted := min(event.Units, room)
	o.granted += granted
	o.over += event.Units - granted
	if event.Outcome != Failed {
		o.answered += event.Units
	}
	o.crossed = o.crossed || o.answered > lowest
}

// level is the lowest and the highest limit that an admission may have been checked
// against, from a moment on. Moments are doubled times.
type level struct {
	at, lowest, highest int64
}

// envelope finds the levels of the subject at hand. A request may be decided at any
// instant between its call and its reply, by the limit of any other such instant.
// So a limit reaches from the call of the first request that was answered while it
// can have been in force, to the reply of the last one that was called then.
func (j *judge) envelope() {
	begins, ends := j.reach()
	j.levels = append(j.levels[:0], level{math.MinInt64, j.limit, j.limit})
	// Limit k is possible from begins[k-1] to ends[k]; both are in order. At the moment
	// at hand, limits oldest to newest are possible.
	oldest := 0
	newest := 0
	for oldest < len(begins) {
		at := ends[oldest] + 1
		if newest < len(begins) {
			at = min(at, begins[newest])
		}
		for newest < len(begins) && begins[newest] <= at {
			newest++
		}
		for oldest < len(ends) && ends[oldest] < at {
			oldest++
		}
		j.levels = append(j.levels, j.levelOf(at, oldest, newest))
	}
}

// reach finds, for each change, the first moment at which an admission can have been
// checked against the limit behind it, and the last one for the limit before it.
func (j *judge) reach() (begins, ends []int64) {
	changes := j.cfg.Changes
	begins = make([]int64, len(changes))
	ends = make([]int64, len(changes))
	for i, change := range changes {
		begins[i] = instant(change.From)
		ends[i] = instant(change.To)
	}
	for _, event := range j.takes {
		if !event.admitted() {
			continue
		}
		for k := firstFrom(changes, event.Call); k < len(changes) && changes[k].From <= event.Reply; k++ {
			if changes[k].From >= event.Call {
				begins[k] = min(begins[k], instant(event.Call))
			}
			if changes[k].To <= event.Reply {
				ends[k] = max(ends[k], instant(event.Reply))
			}
		}
	}
	return begins, ends
}

// levelOf is the level from a moment on at which the limits oldest to newest are
// possible. Limit 0 is the one before the first change.
func (j *judge) levelOf(at int64, oldest, newest int) level {
	possible := level{at, math.MaxInt64, 0}
	for k := oldest; k <= newest; k++ {
		limit := j.limit
		if k > 0 {
			limit = j.cfg.Changes[k-1].Limit
		}
		possible.lowest = min(possible.lowest, limit)
		possible.highest = max(possible.highest, limit)
	}
	return possible
}

// levelAt is the number of the level at a moment.
func levelAt(levels []level, moment int64) int {
	next, _ := slices.BinarySearchFunc(levels, moment+1, func(l level, after int64) int {
		return cmp.Compare(l.at, after)
	})
	return next - 1
}

// steady is the limit of the moments in [from, to], if they have only one.
func (j *judge) steady(from, to int64) (limit int64, is bool) {
	if len(j.cfg.Changes) == 0 {
		return j.limit, true
	}
	number := levelAt(j.levels, from)
	first := j.levels[number]
	return first.lowest, first.lowest == first.highest && number == levelAt(j.levels, to)
}

// effective walks along the effective limit, which counts for leak: nothing leaks only
// because the limit is lowered. Units that were rightly in use then stay so until they
// are given back. So after each step the effective limit is the larger of two values:
// the limit, and the smaller one of the effective limit before and the units in use.
type effective struct {
	limit  int64 // the effective one
	levels []level
	upper  bool // the highest limit of each level counts
	level  int64
	steps  []step // of a bound on the units in use
	used   int64
	// rises are the steps that stand for units taken, if others at the same moment
	// come first: under a rolling window, units leave before others come.
	rises []step
}

// effectiveFrom begins a walk. The curve is a bound on the same side as the levels,
// and has been built.
func effectiveFrom(moment int64, levels []level, used *curve, upper bool) effective {
	limits := effective{
		levels: levels[levelAt(levels, moment):],
		upper:  upper,
		steps:  used.steps,
		used:   used.base,
	}
	limits.take(moment)
	limits.limit = limits.level
	return limits
}

// take takes all steps up to a moment.
func (e *effective) take(moment int64) {
	for len(e.levels) > 0 && e.levels[0].at <= moment {
		e.level = e.levels[0].lowest
		if e.upper {
			e.level = e.levels[0].highest
		}
		e.levels = e.levels[1:]
	}
	for len(e.steps) > 0 && e.steps[0].at <= moment {
		e.used += e.steps[0].by
		e.steps = e.steps[1:]
	}
}

// next is the moment of the next step, or forever.
func (e *effective) next() int64 {
	next := nextOf(e.steps)
	if len(e.levels) > 0 {
		next = min(next, e.levels[0].at)
	}
	return next
}

// advance goes on to a moment that is not later than the next step's.
func (e *effective) advance(moment int64) {
	e.take(moment)
	staying := e.used
	for len(e.rises) > 0 && e.rises[0].at <= moment {
		if e.rises[0].at == moment {
			staying -= e.rises[0].by
		}
		e.rises = e.rises[1:]
	}
	e.limit = max(e.level, min(e.limit, staying))
}

// nextOf is the moment of the next of these steps, or forever.
func nextOf(steps []step) int64 {
	if len(steps) == 0 {
		return forever
	}
	return steps[0].at
}

// lasting is a part of the history in which a window can last: moments in
// [from, to), and the first moment at which it can have ended.
type lasting struct {
	from, to, tail int64
}

// everLasting is the life of a window that never ends.
var everLasting = lasting{math.MinInt64, forever, forever}

// above is [curve.overLimit] under a limit that changes. last is the highest
// effective limit at the window's end.
func (b *bounds) above(levels []level, life lasting, end int64) (over excess, last int64) {
	var out rising
	limits := effectiveFrom(life.from, levels, b.held(), true)
	low := b.low.walk()
	for {
		next := limits.next()
		if next >= life.to {
			next = forever
		}
		moment := min(next, nextOf(low.steps))
		if moment == forever {
			break
		}
		nanosecond := moment >> 1 // all that happens in it is taken together
		for next < life.to && next>>1 == nanosecond {
			if next > life.tail {
				last = max(last, limits.limit)
			}
			limits.advance(next)
			next = limits.next()
		}
		low.take(after(nanosecond))
		low.used = max(0, low.used)
		out.is(max(0, min(low.used-limits.limit, low.admitted)), nanosecond)
	}
	return out.until(end), max(last, limits.limit)
}

// mayPass is [bounds.mayExceed] under a limit that changes. Leak grows by admissions
// alone: flying is how many of them are under way, and has been built. least is the
// lowest effective limit while some are.
func (b *bounds) mayPass(levels []level, life lasting, flying *curve) (most, least int64) {
	limits := effectiveFrom(life.from, levels, &b.low, false)
	high := b.held().walk()
	underWay := flying.walk()
	least = limits.limit
	none := true // no admission was under way yet
	for {
		moment := min(limits.next(), nextOf(high.steps), nextOf(underWay.steps))
		if moment == forever {
			return most, least
		}
		limits.advance(moment)
		high.take(moment)
		underWay.take(moment)
		if underWay.used == 0 {
			continue
		}
		most = max(most, min(high.used-limits.limit, high.admitted))
		if none || limits.limit < least {
			none = false
			least = limits.limit
		}
	}
}

// hold builds the upper bound on the units that callers hold, next to the one on the
// units that stores may hold.
func (b *bounds) hold() {
	if len(b.expired.steps) == 0 {
		return
	}
	b.holding.reset(b.high.base)
	b.holding.steps = append(b.holding.steps, b.high.steps...)
	b.holding.steps = append(b.holding.steps, b.expired.steps...)
	b.holding.build()
}

// held is the upper bound on the units that callers hold.
func (b *bounds) held() *curve {
	if len(b.expired.steps) == 0 {
		return &b.high
	}
	return &b.holding
}

// underWay adds an admission to a curve of admissions under way, as far as it lies in
// a window.
func (c *curve) underWay(event *Event, life lasting) {
	from := max(instant(event.Call), life.from)
	to := min(after(event.Reply), life.to)
	if event.admitted() && from < to {
		c.add(from, 1)
		c.add(to, -1)
	}
}

// fitting is the number of units that fit for certain, and the number beyond which none
// fits for certain.
type fitting struct{ least, most int64 }

// overWindow is the units that were certainly, and possibly, in use over the limit of
// a window, and the units that fit into it.
func (f *firstRequest) overWindow(window *ownWindow) (over excess, possible int64, fits fitting) {
	const end = forever / 4
	life := lasting{
		from: instant(window.earliest),
		to:   forever,
		tail: after(window.earliest + f.length - 1),
	}
	if window.latest < forever && f.length < maxTime {
		life.to = instant(window.latest + f.length)
	}
	if limit, is := f.steady(life.from, life.to-1); is {
		return f.used.low.overLimit(limit, end), f.used.mayExceed(limit), fitting{limit, limit}
	}
	f.used.hold()
	f.flying.reset(0)
	for _, request := range window.takes {
		f.flying.underWay(request.Event, life)
	}
	f.flying.build()
	over, fits.most = f.used.above(f.levels, life, end)
	possible, fits.least = f.used.mayPass(f.levels, life, &f.flying)
	return over, possible, fits
}
