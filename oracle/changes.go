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
	k, _ := slices.BinarySearchFunc(c.Changes, call, func(change LimitChange, t int64) int {
		return cmp.Compare(change.To, t)
	})
	lowest = c.Limit
	if k > 0 {
		lowest = c.Changes[k-1].Limit
	}
	highest = lowest
	for ; k < len(c.Changes) && c.Changes[k].From <= reply; k++ {
		lowest = min(lowest, c.Changes[k].Limit)
		highest = max(highest, c.Changes[k].Limit)
	}
	return lowest, highest
}

// within is the limit of a window, if it has only one.
func (c *Config) within(index int64) (limit int64, steady bool) {
	from := int64(-maxTime)
	to := int64(maxTime)
	if len(c.Changes) > 0 && c.Window.Kind.Tumbling() {
		s := spans{window: c.Window, epoch: c.Epoch}
		span := s.convert(c.Window.Span(index))
		from = span.start
		to = span.end - 1
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

// offer adds up what was asked for in one window, in the order of the calls.
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
	granted := min(event.Units, max(0, lowest-o.granted))
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
	changes := j.cfg.Changes
	begin := make([]int64, len(changes))
	end := make([]int64, len(changes))
	for i, change := range changes {
		begin[i], end[i] = instant(change.From), instant(change.To)
	}
	for _, event := range j.takes {
		if !event.admitted() {
			continue
		}
		k, _ := slices.BinarySearchFunc(changes, event.Call, func(change LimitChange, t int64) int {
			return cmp.Compare(change.To, t)
		})
		for ; k < len(changes) && changes[k].From <= event.Reply; k++ {
			if change := changes[k]; change.From >= event.Call {
				begin[k] = min(begin[k], instant(event.Call))
			}
			if changes[k].To <= event.Reply {
				end[k] = max(end[k], instant(event.Reply))
			}
		}
	}
	j.levels = append(j.levels[:0], level{math.MinInt64, j.limit, j.limit})
	// Limit k is possible from begin[k-1] to end[k]; both are in order.
	for oldest, newest := 0, 0; oldest < len(changes); {
		at := end[oldest] + 1
		if newest < len(changes) {
			at = min(at, begin[newest])
		}
		for newest < len(changes) && begin[newest] <= at {
			newest++
		}
		for oldest < len(changes) && end[oldest] < at {
			oldest++
		}
		l := level{at, math.MaxInt64, 0}
		for k := oldest; k <= newest; k++ {
			limit := j.limit
			if k > 0 {
				limit = changes[k-1].Limit
			}
			l.lowest = min(l.lowest, limit)
			l.highest = max(l.highest, limit)
		}
		j.levels = append(j.levels, l)
	}
}

// levelAt is the number of the level at a moment.
func levelAt(levels []level, m int64) int {
	k, _ := slices.BinarySearchFunc(levels, m+1, func(l level, t int64) int { return cmp.Compare(l.at, t) })
	return k - 1
}

// steady is the limit of the moments in [from, to], if they have only one.
func (j *judge) steady(from, to int64) (limit int64, is bool) {
	if len(j.cfg.Changes) == 0 {
		return j.limit, true
	}
	level := j.levels[levelAt(j.levels, from)]
	return level.lowest, level.lowest == level.highest && levelAt(j.levels, from) == levelAt(j.levels, to)
}

// effective walks along the limit that counts for leak: nothing leaks by a limit
// that is lowered. What was rightly in use then stays so until it is given back.
// So after each step it is the limit, or what it was before or what is in use if
// the smaller of these two is more.
type effective struct {
	limit  int64 // the effective one
	levels []level
	upper  bool // of each level the highest limit
	level  int64
	steps  []step // of a bound on the units in use
	used   int64
	// rises are the steps that stand for units taken, when others at the same moment
	// come first: under a rolling window, units leave before others come.
	rises []step
}

// effectiveFrom begins a walk. The curve is a bound on the same side as the levels,
// and has been built.
func effectiveFrom(m int64, levels []level, c *curve, upper bool) (x effective) {
	x = effective{levels: levels[levelAt(levels, m):], upper: upper, steps: c.steps, used: c.base}
	x.take(m)
	x.limit = x.level
	return x
}

// take takes all steps up to a moment.
func (x *effective) take(m int64) {
	for len(x.levels) > 0 && x.levels[0].at <= m {
		x.level = x.levels[0].lowest
		if x.upper {
			x.level = x.levels[0].highest
		}
		x.levels = x.levels[1:]
	}
	for len(x.steps) > 0 && x.steps[0].at <= m {
		x.used += x.steps[0].by
		x.steps = x.steps[1:]
	}
}

// next is the moment of the next step, or forever.
func (x *effective) next() int64 {
	m := nextOf(x.steps)
	if len(x.levels) > 0 {
		m = min(m, x.levels[0].at)
	}
	return m
}

// advance goes on to a moment that is not later than the next step's.
func (x *effective) advance(m int64) {
	x.take(m)
	before := x.used
	for ; len(x.rises) > 0 && x.rises[0].at <= m; x.rises = x.rises[1:] {
		if x.rises[0].at == m {
			before -= x.rises[0].by
		}
	}
	x.limit = max(x.level, min(x.limit, before))
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
func (b *bounds) above(levels []level, w lasting, end int64) (over excess, last int64) {
	var out rising
	effective := effectiveFrom(w.from, levels, b.held(), true)
	used := b.low.base
	admitted := int64(0)
	for steps := b.low.steps; ; {
		next := effective.next()
		if next >= w.to {
			next = forever
		}
		m := min(next, nextOf(steps))
		if m == forever {
			break
		}
		t := m >> 1
		for ; next < w.to && next>>1 == t; next = effective.next() {
			if next > w.tail {
				last = max(last, effective.limit)
			}
			effective.advance(next)
		}
		for ; len(steps) > 0 && steps[0].at>>1 == t; steps = steps[1:] {
			used += steps[0].by
			admitted += max(0, steps[0].by)
		}
		used = max(0, used)
		out.is(max(0, min(used-effective.limit, admitted)), t)
	}
	return out.until(end), max(last, effective.limit)
}

// mayPass is [bounds.mayExceed] under a limit that changes. Leak grows by admissions
// alone: flying is how many of them are under way, and has been built. least is the
// lowest effective limit while some are.
func (b *bounds) mayPass(levels []level, w lasting, flying *curve) (most, least int64) {
	effective := effectiveFrom(w.from, levels, &b.low, false)
	high := b.held().steps
	under := flying.steps
	used := b.held().base
	admitted := int64(0)
	n := int64(0)
	none := true
	least = effective.limit
	for {
		m := min(effective.next(), nextOf(high), nextOf(under))
		if m == forever {
			return most, least
		}
		effective.advance(m)
		for ; len(high) > 0 && high[0].at <= m; high = high[1:] {
			used += high[0].by
			admitted += max(0, high[0].by)
		}
		for ; len(under) > 0 && under[0].at <= m; under = under[1:] {
			n += under[0].by
		}
		if n == 0 {
			continue
		}
		most = max(most, min(used-effective.limit, admitted))
		if none || effective.limit < least {
			none = false
			least = effective.limit
		}
	}
}

// hold builds the upper bound on what callers hold, next to that on what stores may.
func (b *bounds) hold() {
	if len(b.expired.steps) == 0 {
		return
	}
	b.holding.reset(b.high.base)
	b.holding.steps = append(append(b.holding.steps, b.high.steps...), b.expired.steps...)
	b.holding.build()
}

// held is the upper bound on what callers hold.
func (b *bounds) held() *curve {
	if len(b.expired.steps) == 0 {
		return &b.high
	}
	return &b.holding
}

// underWay adds an admission to a curve of those under way, as far as it lies in a
// window.
func (c *curve) underWay(event *Event, w lasting) {
	from := max(instant(event.Call), w.from)
	to := min(after(event.Reply), w.to)
	if event.admitted() && from < to {
		c.add(from, 1)
		c.add(to, -1)
	}
}

// fitting is how many units surely fit, and beyond how many surely none do.
type fitting struct{ least, most int64 }

// overWindow is what was certainly, and possibly, in use over the limit of a window,
// and what fits into it.
func (f *firstRequest) overWindow(w *ownWindow) (over excess, may int64, fits fitting) {
	bounds := &f.used
	life := lasting{instant(w.earliest), forever, after(w.earliest + f.length - 1)}
	if w.latest < forever && f.length < maxTime {
		life.to = instant(w.latest + f.length)
	}
	if limit, is := f.steady(life.from, life.to-1); is {
		return bounds.low.overLimit(limit, forever/4), bounds.mayExceed(limit), fitting{limit, limit}
	}
	bounds.hold()
	f.flying.reset(0)
	for _, request := range w.takes {
		f.flying.underWay(request.Event, life)
	}
	f.flying.build()
	over, fits.most = bounds.above(f.levels, life, forever/4)
	may, fits.least = bounds.mayPass(f.levels, life, &f.flying)
	return over, may, fits
}
