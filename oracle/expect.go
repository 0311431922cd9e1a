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
	x := expecting{at: at, attempts: counts == quota.CountsAttempts, kind: cfg.Window.Kind}
	switch {
	case x.kind == quota.Bucket:
		return expectBucket(cfg, subject, events, at, x.attempts), true, nil
	case x.kind == quota.FirstRequest:
		if !x.open(events, int64(cfg.Window.RealLength()), cfg.initial(subject)) {
			return want, false, nil
		}
	case x.kind.Tumbling():
		s := spans{window: cfg.Window, epoch: cfg.Epoch}
		x.window = s.at(at.Call)
		if at.Reply >= x.window.end {
			return want, false, nil
		}
	case x.kind == quota.Rolling:
		x.length = int64(cfg.Window.RealLength())
	}
	x.fill(cfg.initial(subject))
	var names naming
	for i := range events {
		names.atEpoch = names.atEpoch || events[i].takenAtEpoch()
	}
	for i := range events {
		if event := &events[i]; event.Call <= at.Reply && !x.add(event, names.named(event)) {
			return want, false, nil
		}
	}
	return x.want, true, nil
}

// presence says whether something counts in the window in force.
type presence uint8

const (
	absent presence = iota
	present
	either
)

// expecting adds up what a counter must contain.
type expecting struct {
	at       Reading
	attempts bool
	kind     quota.Kind
	window   span  // tumbling
	length   int64 // rolling
	// Of windows that begin with their first request: the one at the reading, and all.
	own     int
	windows firstRequest
	want    Expectation
}

// where is the presence of what was charged in [call, reply].
func (x *expecting) where(call, reply int64) presence {
	switch {
	case x.kind.Tumbling():
		switch {
		case reply < x.window.start || call >= x.window.end:
			return absent
		case call < x.window.start:
			return either
		}
	case x.kind == quota.FirstRequest:
		switch first, last := x.windows.span(call, reply); {
		case first > last || last < x.own || first > x.own:
			return absent
		case first < last:
			return either
		}
	case x.kind == quota.Rolling:
		switch {
		case reply+x.length <= x.at.Call:
			return absent
		case call+x.length <= x.at.Reply:
			return either
		}
	}
	return present
}

func (x *expecting) fill(units int64) {
	switch x.where(0, 0) {
	case present:
		x.both(units, units)
	case either:
		x.both(0, units)
	}
}

// apart reports whether windows follow each other: then what lies on both
// sides of an end is charged to either.
func (x *expecting) apart() bool { return x.kind.Tumbling() || x.kind == quota.FirstRequest }

// open finds the windows that begin with their first request. It reports false
// if the reading does not lie in one window, or between two, for certain.
func (x *expecting) open(events []Event, length, initial int64) bool {
	request := &x.windows
	request.judge = &judge{initial: initial}
	request.length = length
	for i := range events {
		if event := &events[i]; event.Kind == Take {
			request.takes = append(request.takes, event)
		}
	}
	request.find()
	first, last := request.span(x.at.Call, x.at.Reply)
	x.own = first
	switch {
	case first > last:
		x.own = -1
		return true
	case first < last:
		return false
	}
	return !request.between(x.at.Call, x.at.Reply, first, last)
}

func (x *expecting) both(lo, hi int64) {
	x.want.Units.Lo += lo
	x.want.Units.Hi += hi
	x.want.Held.Lo += lo
	x.want.Held.Hi += hi
}

// add enters an event that was called before the reading ended. It reports false
// if it is not known whether the counter contains it.
func (x *expecting) add(event *Event, named bool) bool {
	if event.Kind != Take {
		return x.give(event, named)
	}
	over := event.Reply < x.at.Call
	last := event.Reply
	if x.kind == quota.FirstRequest && (event.Outcome == Failed || event.Outcome == RejectedDegraded) {
		last = max(last, x.at.Reply) // the store charges it to the window that it finds
	}
	presence := x.where(event.Call, last)
	if presence == absent {
		return true
	}
	lo := int64(0)
	if over && presence == present {
		lo = event.Units
	}
	interval := &x.want.Units
	switch {
	case event.Outcome == Failed:
		interval.Hi += event.Units
	case event.Outcome == Admitted:
		if presence == either && x.apart() {
			return false
		}
		x.both(lo, event.Units)
	case event.Outcome == Short:
		if x.attempts || !over { // open whether attempts are counted in full
			interval.Hi += event.Units
		}
	case x.attempts && event.Outcome != Elsewhere:
		if event.Outcome == RejectedDegraded { // open whether the store counted it
			interval.Hi += event.Units
			x.want.Surplus.Hi += event.Units
			x.want.Held.Lo += lo
			x.want.Held.Hi += event.Units
			return true
		}
		if presence == either && x.apart() {
			return false
		}
		x.both(lo, event.Units)
		x.want.Surplus.Lo += lo
		x.want.Surplus.Hi += event.Units
	case event.Outcome == RejectedDegraded:
		interval.Hi += event.Units
		if !over {
			x.want.Held.Hi += event.Units
		}
	case !over: // may be counted for a moment, until it is taken back
		x.both(0, event.Units)
	}
	return true
}

// give enters a refund, a commit or an expiry. If its take may have left the
// window, so may what it gave back, and the counter contains neither or both.
func (x *expecting) give(event *Event, named bool) bool {
	presence := present
	switch {
	case named:
		presence = x.where(event.TakeCall, event.TakeReply)
		if presence == either && x.apart() {
			return false
		}
	case x.kind != quota.Standing:
		// Its take was no later than it was itself.
		presence = x.where(math.MinInt64/4, event.Reply)
		if presence == absent {
			return true
		}
		x.both(-max(event.Units, 0), max(-event.Units, 0))
		return true
	}
	if presence == absent {
		return true
	}
	counted := presence == present && (!named || event.TakeReply < x.at.Call) // in Lo
	done := event.Reply < x.at.Call && event.Outcome != Failed
	x.want.Units.give(event.Units, done, counted)
	if event.Outcome != Failed {
		x.want.Held.give(event.Units, done, counted)
	}
	return true
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
func (i Interval) Distance(v int64) int64 {
	return v - min(max(v, i.Lo), i.Hi)
}

// Reading is the interval in which a counter was read, in nanoseconds since the
// run's epoch.
type Reading struct {
	Call, Reply int64
}
