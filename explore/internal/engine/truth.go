package engine

import (
	"slices"
	"time"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
)

// Truth is what callers were told, as a history that the oracle judges. Its
// moments are virtual nanoseconds plus the number of the step, so that steps
// between which no time passes have an order, too.
type Truth struct {
	// Policy with the limit that requests carry now.
	Policy *quota.Policy
	// Second is a further window of the subject; nil for none.
	Second *quota.Policy
	// Initial units of the subject.
	Initial int64
	// Instances of the application; client i asks instance i modulo this.
	Instances int
	// InUse are units admitted at their reply less those given back at the call; Peak
	// is the most so far.
	InUse, Peak int64
	// Rejections so far.
	Rejections int64
	// Crossed is set once time has left the window of the start.
	Crossed bool

	// others is set once another subject than the shared one has asked.
	others bool

	base   *quota.Policy // with the limit of the start
	limits []oracle.LimitChange
	// changing is set while the last of limits is under way.
	changing bool

	start  time.Time
	span   quota.Span
	now    time.Time
	step   int64
	events []oracle.Event
	open   []int // events without a reply yet
	// sessions are takes whose life has not ended: those that are to be settled, and those of which units are held.
	sessions []session
	inFlight int // most requests in flight at once
	// order tells histories apart whose events came in different orders.
	order Digest
}

// Begin empties the history.
func (t *Truth) Begin(now time.Time) {
	if t.base == nil {
		t.base = t.Policy
	}
	*t = Truth{
		Policy: t.base, Second: t.Second, base: t.base, limits: t.limits[:0], Initial: t.Initial, Instances: t.Instances,
		start: now, now: now,
		span:   t.Policy.Window.At(now),
		events: t.events[:0], open: t.open[:0], sessions: t.sessions[:0], InUse: t.Initial, Peak: t.Initial,
	}
}

// At moves on to the next step.
func (t *Truth) At(now time.Time) {
	stands := now.Equal(t.now)
	t.now = now
	t.step++
	t.expire()
	if stands {
		return
	}
	if t.Second != nil || !t.span.Contains(now) || t.Policy.Window.Kind >= quota.Rolling && now.After(t.start) {
		t.Crossed = true
	}
}

func (t *Truth) moment() int64 { return int64(t.now.Sub(t.start)) + t.step }

// call begins an operation and returns its number. What settles a take names it.
func (t *Truth) call(client int, kind oracle.Kind, units int64, take int) int {
	e := len(t.events)
	m := t.moment()
	event := oracle.Event{Call: m, Reply: m, Units: units, Kind: kind, Outcome: oracle.Failed,
		Instance: uint8(client % t.Instances)}
	if kind != oracle.Take {
		event.TakeCall = t.events[take].Call
		event.TakeReply = t.events[take].Reply
		t.settling(take, kind, units)
	}
	t.events = append(t.events, event)
	t.open = append(t.open, e)
	t.fly()
	if kind == oracle.Refund || kind == oracle.Commit {
		t.InUse -= max(0, units) // what a commit uses beyond its reservation is no leak
	}
	t.note(1, client, uint64(kind))
	return e
}

// isOf says which other subject a take is for, if it is not for the shared one.
func (t *Truth) isOf(take, other int) {
	t.events[take].Subject = uint32(other)
	t.others = t.others || other > 0
}

// grant notes that a take gets only so many of its units, before its reply.
func (t *Truth) grant(e int, units int64) {
	rest := t.events[e].Units - units
	if rest <= 0 {
		return
	}
	t.events[e].Units = units
	short := t.events[e]
	short.Units = rest
	short.Reply = t.moment()
	short.Outcome = oracle.Short
	t.events = append(t.events, short)
	t.Rejections++
	t.order.Num(uint64(rest))
}

// reply ends it.
func (t *Truth) reply(client, e int, outcome oracle.Outcome) {
	event := &t.events[e]
	event.Reply = t.moment()
	event.Outcome = outcome
	t.open = slices.DeleteFunc(t.open, func(o int) bool { return o == e })
	if event.Kind == oracle.Commit && outcome != oracle.Failed {
		t.committed(event.TakeCall)
	}
	if event.Kind == oracle.Take {
		switch outcome {
		case oracle.Admitted:
			if event.Subject == 0 {
				t.InUse += event.Units
			}
			t.admitted(e)
			t.Peak = max(t.Peak, t.InUse)
		case oracle.Rejected, oracle.RejectedDegraded:
			t.Rejections++
		}
	}
	t.fly()
	t.note(2, client, uint64(outcome))
}

// InFlight is the most requests in flight at once so far, those with their work under way among them.
func (t *Truth) InFlight() int64 { return int64(t.inFlight) }

// fly notes how many requests are in flight.
func (t *Truth) fly() {
	n := len(t.open)
	for i := range t.sessions {
		if session := &t.sessions[i]; session.admitted && session.settles && !session.committing {
			n++
		}
	}
	t.inFlight = max(t.inFlight, n)
}

// changes notes that the limit is being changed to that many units.
func (t *Truth) changes(units int64) {
	if t.changing { // it failed, and this one takes its place
		t.changed()
	}
	next := *t.Policy
	next.Limit = units
	t.Policy = &next
	t.changing = true
	t.limits = append(t.limits, oracle.LimitChange{From: t.moment(), Limit: units})
	t.note(4, 0, uint64(units))
}

// changed notes that it is in force.
func (t *Truth) changed() {
	t.limits[len(t.limits)-1].To = t.moment()
	t.changing = false
	t.note(5, 0, 0)
}

// Changed reports whether the limit has changed or may have.
func (t *Truth) Changed() bool { return len(t.limits) > 0 }

// HighestLimit is the highest of the run so far.
func (t *Truth) HighestLimit() int64 {
	highest := t.base.Limit
	for _, change := range t.limits {
		highest = max(highest, change.Limit)
	}
	return highest
}

// Order stands for what has happened, and in which order.
func (t *Truth) Order() Digest { return t.order }

func (t *Truth) note(what uint64, client int, how uint64) {
	t.order.Num(what<<32 | uint64(uint32(client+1))<<8 | how)
	t.order.Moment(t.now)
}

// history is what the oracle judges at this moment. Operations without a reply
// have failed so far: they hold nothing, and may still take effect.
func (t *Truth) history() []oracle.Event {
	m := t.moment()
	for _, o := range t.open {
		t.events[o].Reply = m
	}
	return t.events
}

// Events are a copy of the history so far.
func (t *Truth) Events() []oracle.Event { return slices.Clone(t.history()) }

// Config is what the history is judged against.
func (t *Truth) Config() oracle.Config {
	if t.changing {
		t.limits[len(t.limits)-1].To = t.moment() + 1 // a reading comes a moment later
	}
	return oracle.Config{
		Window: t.base.Window, Limit: t.base.Limit, Changes: t.limits, Epoch: t.start,
		Initial: t.initial,
	}
}

// initial are the units that a subject has used at the start.
func (t *Truth) initial(subject uint32) int64 {
	if subject > 0 {
		return 0
	}
	return t.Initial
}

// Judge is the oracle's verdict on what has happened so far.
func (t *Truth) Judge() oracle.Verdict {
	first := oracle.Judge(t.Config(), t.history())
	if t.Second == nil {
		return first
	}
	return t.judgeBoth(first)
}

// SecondLeak is the certain leak of the second window so far, in units.
func (t *Truth) SecondLeak() int64 {
	if t.Second == nil {
		return 0
	}
	verdict := oracle.Judge(t.secondConfig(), t.history())
	return verdict.LeakWorst
}

// secondConfig is what the history is judged against for the second window.
func (t *Truth) secondConfig() oracle.Config {
	config := t.Config()
	config.Window = t.Second.Window
	config.Limit = t.Second.Limit
	config.Changes = nil
	return config
}

// judgeBoth is the verdict on both windows. Nobody says which one has rejected a request: it was rejected falsely if
// there was room in each.
func (t *Truth) judgeBoth(first oracle.Verdict) oracle.Verdict {
	events := t.history()
	configs := [...]oracle.Config{t.Config(), t.secondConfig()}
	second := oracle.Judge(configs[1], events)
	both := first.With(&second)
	both.FalseRejects = 0
	both.FalseRejectUnits = 0
	for i := range events {
		if events[i].Outcome == oracle.Rejected && events[i].Kind == oracle.Take {
			units := falselyRejected(configs[:], events, i)
			both.FalseRejectUnits += units
			both.FalseRejects += min(units, 1)
		}
	}
	both.FalseRejectWorst = both.FalseRejectUnits
	both.FalseRejectPossibleWorst = max(first.FalseRejectPossibleWorst, second.FalseRejectPossibleWorst)
	return both
}

// falselyRejected is the units of a rejection for which there was room in each of the windows for certain.
func falselyRejected(configs []oracle.Config, events []oracle.Event, rejection int) (units int64) {
	alone := slices.Clone(events)
	for i := range alone {
		event := &alone[i]
		if i != rejection && event.Kind == oracle.Take && event.Outcome != oracle.Admitted && event.Outcome != oracle.Failed {
			event.Outcome = oracle.Elsewhere
		}
	}
	units = events[rejection].Units
	for _, config := range configs {
		verdict := oracle.Judge(config, alone)
		units = min(units, verdict.FalseRejectUnits)
	}
	return units
}

// Leak is the certain leak so far, in units.
func (t *Truth) Leak() int64 {
	if t.Crossed || t.Changed() || t.Second != nil || t.others {
		return t.Judge().LeakWorst
	}
	return max(0, t.Peak-max(t.Policy.Limit, t.Initial))
}

// Expect is what a counter must contain now. ok is false if nothing can be said.
func (t *Truth) Expect(counts quota.Counting) (want oracle.Expectation, ok bool, err error) {
	if t.Second != nil { // what the second window rejects counts nowhere, and nobody says which one has rejected
		return want, false, nil
	}
	m := t.moment() + 1
	events := t.history()
	if t.others {
		ofOther := func(event oracle.Event) bool { return event.Subject > 0 }
		events = slices.DeleteFunc(slices.Clone(events), ofOther)
	}
	return oracle.Expect(t.Config(), 0, events, oracle.Reading{Call: m, Reply: m}, counts)
}

// CopyTo makes another truth the same. What it held before is used again.
func (t *Truth) CopyTo(truth *Truth) {
	limits := append(truth.limits[:0], t.limits...)
	events := append(truth.events[:0], t.events...)
	open := append(truth.open[:0], t.open...)
	sessions := append(truth.sessions[:0], t.sessions...)
	*truth = *t
	truth.limits = limits
	truth.events = events
	truth.open = open
	truth.sessions = sessions
}

// Digest folds in what later verdicts depend on. If they do not depend on the
// order of the events, only the sums matter.
func (t *Truth) Digest(digest *Digest, ordered bool) {
	digest.Num(uint64(t.InUse))
	digest.Num(uint64(t.Peak))
	digest.Num(uint64(t.inFlight))
	if ordered || t.Crossed || t.others {
		digest.Fold(t.order)
		return
	}
	var sums [5]int64
	for _, event := range t.events {
		sums[min(int(event.Outcome), len(sums)-1)] += event.Units
	}
	for _, s := range sums {
		digest.Num(uint64(s))
	}
	digest.Num(uint64(len(t.open)))
}

// session is a take that its client is to settle before its life ends, or whose units are held for so long.
type session struct {
	take     int // number of the event
	ends     time.Time
	settles  bool
	admitted bool
	// doubtful is set if time has passed within the take: then its life began at
	// some moment of that, and once a commit has begun: if it never ends well, it is
	// open whether the units are used.
	doubtful bool
	// committing is set while an operation settles it.
	committing bool
	back       int64 // units that the commit gives back, or uses beyond them if negative
}

// begins notes a take that is being called; 0 is an unlimited life.
func (t *Truth) begins(take int, life time.Duration, settles bool) {
	if life > 0 {
		t.sessions = append(t.sessions, session{take: take, ends: t.now.Add(life), settles: settles})
	}
}

// admitted notes that a take was answered. Its life may be over by then, and then
// its units are in use no more.
func (t *Truth) admitted(take int) {
	for i := range t.sessions {
		if session := &t.sessions[i]; session.take == take {
			session.admitted = true
			session.doubtful = t.events[take].Reply-t.events[take].Call > int64(time.Millisecond)
		}
	}
	t.expire()
}

// ended reports whether the take's life is over: then it can be settled
// no longer.
func (t *Truth) ended(take int) bool {
	return slices.ContainsFunc(t.events, func(event oracle.Event) bool {
		return event.Kind == oracle.Expire && event.TakeCall == t.events[take].Call
	})
}

// settling notes that a commit or a refund of the take begins, which gives back so many units.
func (t *Truth) settling(take int, kind oracle.Kind, units int64) {
	for i := range t.sessions {
		if t.sessions[i].take == take {
			t.sessions[i].doubtful = true
			t.sessions[i].committing = true
			t.sessions[i].back = units
			if kind == oracle.Refund {
				t.sessions = slices.Delete(t.sessions, i, i+1)
			}
			return
		}
	}
}

// committed ends the session whose take was called at that moment: what is committed
// has no end.
func (t *Truth) committed(call int64) {
	t.sessions = slices.DeleteFunc(t.sessions, func(s session) bool { return t.events[s.take].Call == call })
}

// expire ends the sessions whose lives are over: nobody holds their units any more,
// whether or not the strategy has noticed. If that is doubtful it is open.
func (t *Truth) expire() {
	t.sessions = slices.DeleteFunc(t.sessions, func(s session) bool {
		if !s.admitted || s.ends.After(t.now) {
			return false
		}
		take := t.events[s.take]
		m := t.moment()
		event := oracle.Event{
			Call: m, Reply: m, Units: take.Units - s.back, Kind: oracle.Expire, Instance: take.Instance,
			Subject: take.Subject, TakeCall: take.Call, TakeReply: take.Reply,
		}
		if s.doubtful {
			event.Outcome = oracle.Failed
		}
		t.events = append(t.events, event)
		if take.Subject == 0 {
			t.InUse -= min(take.Units, event.Units)
		}
		t.note(3, s.take, uint64(event.Outcome))
		return true
	})
}
