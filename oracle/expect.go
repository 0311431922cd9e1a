package oracle

import (
	"fmt"
	"math"

	"github.com/quotabench/quotabench/quota"
)

// Expectation is what a counter of one subject must contain when it is read, in
// units.
type Expectation struct {
	// Units is the number that must be read if the counter lost nothing and
	// invented nothing. Drift is the distance of the number read to it.
	Units Interval
	// Surplus is the part of Units that is there by the way of counting alone:
	// rejected attempts.
	Surplus Interval
	// Held is what Units would be if every failed operation had had no effect and
	// the store had noticed every expiry. Units above it are stranded.
	Held Interval
}

// Expect works out what a counter of one subject must contain at a reading.
//
// The events are those of the subject in all windows, ordered by call. Only what
// was charged to the window in force at the reading counts: the policy's window
// under tumbling policies, the subject's own window if it begins with its first
// request, one window's length back under rolling ones, everything under standing
// ones. For a bucket it is what is missing from it. A give-back counts if its take counts.
// One that names no take (see [Event]) may belong to any take before it, and only lowers the
// lower end. The subject's initial units count in the window of the epoch; under rolling
// policies, for one length from the epoch on.
//
// Whatever overlaps the reading widens the interval, and so does a failed
// operation, and a rejection without the store, in the windows that it touched:
// its effect can come later than its error. An expiry takes units away like any
// give-back: what a counter still holds of them is drift.
//
// ok is false if nothing can be said: the reading itself, or something that
// the counter contains, crosses an end of the window in force. A counter that
// counts nothing is never wrong. The only error is an unknown way of counting.
func Expect(cfg Config, subject uint32, events []Event, at Reading,
	counts quota.Counting) (want Expectation, ok bool, err error) {
	switch counts {
	case quota.CountsAdmitted, quota.CountsAttempts:
	case quota.CountsNothing:
		all := Interval{math.MinInt64 / 4, math.MaxInt64 / 4}
		return Expectation{Units: all, Held: all}, true, nil
	default:
		return want, false, fmt.Errorf("no rule for what a counter of %q must contain", counts)
	}
	attempts := counts == quota.CountsAttempts
	if cfg.Window.Kind == quota.Bucket {
		return expectBucket(cfg, subject, events, at, attempts), true, nil
	}
	initial := cfg.initial(subject)
	c := contents{at: at, attempts: attempts, kind: cfg.Window.Kind}
	if !c.open(cfg, events, initial) {
		return want, false, nil
	}
	c.fill(initial)
	names := namingOf(events)
	for i := range events {
		event := &events[i]
		if event.Call <= at.Reply && !c.add(event, names.named(event)) {
			return want, false, nil
		}
	}
	return c.want, true, nil
}

// contents adds up what a counter must contain at a reading: operation by operation,
// the units that it contains for certain and the units that it may contain.
type contents struct {
	at       Reading
	attempts bool // the counter contains rejected attempts
	kind     quota.Kind
	window   span         // in force at the reading, under a tumbling policy
	length   int64        // of a rolling window
	windows  firstRequest // all windows of the subject, if they begin with requests
	current  int          // of these, the window in force; -1 for none
	want     Expectation
}

// presence says whether units count in the window in force.
type presence uint8

const (
	absent presence = iota
	present
	either
)

// open finds the window in force. It reports false if the reading does not lie in
// one window for certain.
func (c *contents) open(cfg Config, events []Event, initial int64) bool {
	switch {
	case c.kind == quota.FirstRequest:
		return c.openOwn(events, int64(cfg.Window.RealLength()), initial)
	case c.kind.Tumbling():
		windows := spans{window: cfg.Window, epoch: cfg.Epoch}
		c.window = windows.at(c.at.Call)
		return c.at.Reply < c.window.end
	case c.kind == quota.Rolling:
		c.length = int64(cfg.Window.RealLength())
	}
	return true
}

// openOwn is open for windows that begin with their first request. The reading may
// also lie between two windows for certain.
func (c *contents) openOwn(events []Event, length, initial int64) bool {
	windows := &c.windows
	windows.judge = &judge{initial: initial}
	windows.length = length
	for i := range events {
		event := &events[i]
		if event.Kind == Take {
			windows.takes = append(windows.takes, event)
		}
	}
	windows.findWindows()
	first, last := windows.span(c.at.Call, c.at.Reply)
	if first > last {
		c.current = -1
		return true
	}
	c.current = first
	return first == last && !windows.between(c.at.Call, c.at.Reply, first, last)
}

// where is the presence of units that were charged in [call, reply].
func (c *contents) where(call, reply int64) presence {
	switch {
	case c.kind.Tumbling():
		return c.whereTumbling(call, reply)
	case c.kind == quota.FirstRequest:
		return c.whereOwn(call, reply)
	case c.kind == quota.Rolling:
		return c.whereRolling(call, reply)
	}
	return present
}

func (c *contents) whereTumbling(call, reply int64) presence {
	switch {
	case reply < c.window.start || call >= c.window.end:
		return absent
	case call < c.window.start:
		return either
	}
	return present
}

func (c *contents) whereOwn(call, reply int64) presence {
	first, last := c.windows.span(call, reply)
	switch {
	case first > last || last < c.current || first > c.current:
		return absent
	case first < last:
		return either
	}
	return present
}

func (c *contents) whereRolling(call, reply int64) presence {
	switch {
	case reply+c.length <= c.at.Call:
		return absent
	case call+c.length <= c.at.Reply:
		return either
	}
	return present
}

// fill enters the initial units.
func (c *contents) fill(units int64) {
	switch c.where(0, 0) {
	case present:
		c.both(units, units)
	case either:
		c.both(0, units)
	}
}

// apart reports whether windows follow each other: then units that lie on both
// sides of an end are charged to either.
func (c *contents) apart() bool { return c.kind.Tumbling() || c.kind == quota.FirstRequest }

// both adds to what must be read and to what is held.
func (c *contents) both(lo, hi int64) {
	c.want.Units.Lo += lo
	c.want.Units.Hi += hi
	c.want.Held.Lo += lo
	c.want.Held.Hi += hi
}

// add enters an event that was called before the reading ended. It reports false
// if it is not known whether the counter contains it.
func (c *contents) add(event *Event, named bool) bool {
	if event.Kind != Take {
		return c.give(event, named)
	}
	lies := c.where(event.Call, c.lastEffect(event))
	if lies == absent {
		return true
	}
	over := event.Reply < c.at.Call
	surely := int64(0) // units that are counted for certain, if any are
	if over && lies == present {
		surely = event.Units
	}
	switch event.Outcome {
	case Failed:
		c.want.Units.Hi += event.Units
	case Admitted:
		if lies == either && c.apart() {
			return false
		}
		c.both(surely, event.Units)
	case Short:
		if c.attempts || !over { // a store need not count attempts in full
			c.want.Units.Hi += event.Units
		}
	default:
		return c.reject(event, surely, lies)
	}
	return true
}

// lastEffect is the last moment at which a take may be charged. If the caller does not
// know whether the store has charged it, a store with windows that begin with their
// first request charges it to the window that it finds then.
func (c *contents) lastEffect(event *Event) int64 {
	unknown := event.Outcome == Failed || event.Outcome == RejectedDegraded
	if unknown && c.kind == quota.FirstRequest {
		return max(event.Reply, c.at.Reply)
	}
	return event.Reply
}

// reject enters a rejection. Units are counted for certain if attempts are.
func (c *contents) reject(event *Event, surely int64, lies presence) bool {
	over := event.Reply < c.at.Call
	degraded := event.Outcome == RejectedDegraded
	switch {
	case event.Outcome == Elsewhere || !c.attempts && !degraded:
		if !over { // it may be counted for a moment, until it is taken back
			c.both(0, event.Units)
		}
	case !c.attempts:
		c.want.Units.Hi += event.Units
		if !over {
			c.want.Held.Hi += event.Units
		}
	case degraded: // the store may have counted it
		c.want.Units.Hi += event.Units
		c.want.Surplus.Hi += event.Units
		c.want.Held.Lo += surely
		c.want.Held.Hi += event.Units
	case lies == either && c.apart():
		return false
	default:
		c.both(surely, event.Units)
		c.want.Surplus.Lo += surely
		c.want.Surplus.Hi += event.Units
	}
	return true
}

// give enters a refund, a commit or an expiry. If its take may have left the
// window, so may the units that it gave back, and the counter contains neither or
// both.
func (c *contents) give(event *Event, named bool) bool {
	if !named && c.kind != quota.Standing {
		c.giveUnnamed(event)
		return true
	}
	lies := present
	if named {
		lies = c.where(event.TakeCall, event.TakeReply)
	}
	switch {
	case lies == absent:
		c.giveLate(event)
		return true
	case lies == either && c.apart():
		return false
	}
	counted := lies == present && (!named || event.TakeReply < c.at.Call)
	done := event.Reply < c.at.Call && event.Outcome != Failed
	c.want.Units.give(event.Units, done, counted)
	if event.Outcome != Failed {
		c.want.Held.give(event.Units, done, counted)
	}
	return true
}

// giveLate enters a refund or a commit of a take whose window is over. If windows begin with requests, a counter may
// contain it: see [firstRequest].
func (c *contents) giveLate(event *Event) {
	if c.kind != quota.FirstRequest || event.Kind == Expire || c.where(event.Call, event.lastEffect()) == absent {
		return
	}
	c.want.Units.Lo -= max(0, event.Units)
	c.want.Units.Hi += max(0, -event.Units)
}

// giveUnnamed enters a give-back that names no take. The take may be any one before
// it.
func (c *contents) giveUnnamed(event *Event) {
	beginning := int64(math.MinInt64 / 4)
	if c.where(beginning, event.Reply) != absent {
		c.both(-max(event.Units, 0), max(-event.Units, 0))
	}
}

// give takes units away, or adds them if they are negative: certainly, if
// done, and otherwise possibly. counted says whether Lo contains the take.
func (i *Interval) give(units int64, done, counted bool) {
	lowers := max(units, 0)
	raises := max(-units, 0)
	if done {
		i.Hi -= lowers
	}
	i.Hi += raises
	if !counted {
		return
	}
	i.Lo -= lowers
	if done {
		i.Lo += raises
	}
}

// naming tells which give-backs name a take: all but those whose TakeCall and
// TakeReply are both 0, unless an admitted take was called and answered at the
// epoch.
type naming struct{ atEpoch bool }

func namingOf(events []Event) (names naming) {
	for i := range events {
		names.atEpoch = names.atEpoch || events[i].takenAtEpoch()
	}
	return names
}

// named reports whether a give-back names its take.
func (n naming) named(event *Event) bool {
	return n.atEpoch || event.TakeCall != 0 || event.TakeReply != 0
}

// taken is the interval of the take that a give-back is about. One that names none
// is about a take before it.
func (n naming) taken(event *Event) interval {
	if n.named(event) {
		return interval{event.TakeCall, event.TakeReply}
	}
	return interval{event.Call, event.Reply}
}

func (e *Event) takenAtEpoch() bool { return e.admitted() && e.Call == 0 && e.Reply == 0 }

// Interval of units, both ends included.
type Interval struct {
	Lo, Hi int64
}

// Width is 0 if the value is known exactly.
func (i Interval) Width() int64 { return i.Hi - i.Lo }

// Distance is how far v lies outside of the interval: positive above it,
// negative below it, 0 inside.
// It saturates: a counter that somebody overwrote can be any number.
func (i Interval) Distance(v int64) int64 {
	near := min(max(v, i.Lo), i.Hi)
	distance := v - near
	switch {
	case v > near && distance < 0:
		return math.MaxInt64
	case v < near && distance > 0:
		return -math.MaxInt64
	}
	return max(distance, -math.MaxInt64)
}

// Reading is the interval in which a counter was read, in nanoseconds since the
// run's epoch.
type Reading struct {
	Call, Reply int64
}
