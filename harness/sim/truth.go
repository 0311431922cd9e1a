package sim

import (
	"math"
	"slices"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
)

// subject is one holder of the policy, with what callers were told so far. One
// caller runs at a time, so plain numbers say at any moment what the oracle
// works out of intervals afterwards; the verdict is the oracle's, this is for
// the series.
type subject struct {
	name    quota.Subject
	initial int64

	inWindow
	// allowed is the limit, or what was in use when it was lowered, as far as it still is.
	allowed int64
	asked   bool     // by any request
	recent  []charge // under a rolling policy, what is still in the window; of a bucket, since it was full
	own     own
	track   *track
}

// inWindow is what counts in one window.
type inWindow struct {
	window int64 // index of the window
	used   int64 // units admitted and not given back, the initial ones included
	open   int64 // units asked for and not answered
	// loose units may be in a counter or not, forever: of calls that failed, and
	// of rejections that did not reach the store.
	loose    int64
	attempts int64 // units of rejections
	peak     int64 // certain leak so far
	overrun  int64 // units that commits used beyond reservations, which is no leak
	crossed  bool  // a request lies across the window's boundary
	cell     oracle.Cell
}

type charge struct {
	at, units int64
	of        int64 // the moment of the take, if a commit took more from a bucket
	fill      bool  // it was there at the start
	over      bool  // a commit used it beyond its reservation
}

// track is the past of a subject whose counters are read.
type track struct {
	number uint32
	marks  []mark
	lost   bool // older marks were dropped
}

// mark says that from a moment on, units were in use.
type mark struct{ at, units, attempts int64 }

// maxMarks bounds the past that is remembered of one subject.
const maxMarks = 1 << 13

func (t *track) note(at, units, attempts int64) {
	if n := len(t.marks); n > 0 && t.marks[n-1].at == at {
		t.marks[n-1] = mark{at, units, attempts}
		return
	}
	if len(t.marks) >= maxMarks {
		t.marks = slices.Delete(t.marks, 0, maxMarks/2)
		t.lost = true
	}
	t.marks = append(t.marks, mark{at, units, attempts})
}

// truth is all subjects, and sums over them.
type truth struct {
	policy   *quota.Policy
	flow     quota.Flow // of buckets
	counts   quota.Counting
	subjects []subject
	span     window
	epoch    int64 // nanoseconds since 1970
	first    int64 // the window that holds the initial fill
	// usage is what all subjects have used in the window in force.
	usage, leak, falseRejects int64
	fill                      int64 // what of usage subjects held at the start
	recent                    []charge
	head                      int
	tracks                    []*track
	tracked                   int // at most
	// Limits that change: how often one did, the least and the most that the stores may go
	// by now, and the lowest of the run.
	changed             int
	least, most, lowest int64
}

// window in force, in nanoseconds of virtual time.
type window struct{ index, start, end int64 }

// at moves on to the window of the moment.
func (t *truth) at(now int64, of func(int64) window) {
	if now < t.span.end {
		if t.policy.Window.Kind == quota.Rolling {
			t.forget(now)
		}
		return
	}
	t.span = of(now)
	t.usage = 0
	t.fill = 0
}

// forget takes out of the sum what has left a rolling window.
func (t *truth) forget(now int64) {
	length := int64(t.policy.Window.RealLength())
	for t.head < len(t.recent) && t.recent[t.head].at+length <= now {
		t.usage -= t.recent[t.head].units
		if t.recent[t.head].fill {
			t.fill -= t.recent[t.head].units
		}
		t.head++
	}
	if t.head > 1024 && t.head > len(t.recent)/2 {
		t.recent = slices.Delete(t.recent, 0, t.head)
		t.head = 0
	}
}

// touch brings a subject up to the window in force.
func (t *truth) touch(s *subject, now int64) {
	switch {
	case t.hasOwn():
		t.touchOwn(s, now)
	case s.window != t.span.index:
		s.renew(t.span.index, t.span.start)
	}
	if t.policy.Window.Kind == quota.Rolling {
		length := int64(t.policy.Window.RealLength())
		n := 0
		for n < len(s.recent) && s.recent[n].at+length <= now {
			s.used -= s.recent[n].units
			if s.recent[n].over {
				s.overrun -= s.recent[n].units
			}
			n++
		}
		s.recent = s.recent[n:]
		if n > 0 {
			s.peak = max(0, min(s.peak, s.used-s.allowed))
		}
	}
	t.allow(s)
}

// renew begins a window at the given moment.
func (s *subject) renew(index, at int64) {
	s.inWindow = inWindow{window: index}
	if s.track != nil {
		s.track.note(at, 0, 0)
	}
}

// apart reports whether a window's units are its own alone: then its cell
// says when a rejection is wrong.
func (t *truth) apart() bool { return t.policy.Window.Kind != quota.Rolling && !t.hasOwn() }

// begin notes a request.
func (t *truth) begin(number uint32, units, now int64) (s *subject, a asked) {
	s = &t.subjects[number]
	t.touch(s, now)
	if s.track == nil && len(t.tracks) < t.tracked {
		s.track = &track{number: number}
		s.track.note(math.MinInt64, s.used, 0)
		t.tracks = append(t.tracks, s.track)
	}
	s.asked = true
	s.open += units
	return s, asked{s.cell.Begin(units), t.changed}
}

// asked is what a rejection needs of the moment of its request: what had been given
// back, and how often the limit had changed.
type asked struct {
	mark    int64
	changed int
}

// end notes an answer to a request, which was granted that many of its units.
func (t *truth) end(of asking, units, granted, now int64, out oracle.Outcome) {
	subject := of.subject
	asked := of.began
	t.touch(subject, now)
	subject.own.slow = max(subject.own.slow, now-of.call)
	if of.window != subject.window {
		subject.crossed = true
		return
	}
	subject.open -= units
	switch out {
	case oracle.Admitted:
		if !subject.own.open {
			subject.own.open = true
			subject.own.begun = of.call
		}
		t.use(subject, granted, now, now, false)
		if asked.changed != t.changed { // it was right to go by the limit of before
			subject.allowed = max(subject.allowed, subject.used)
		}
		t.exceed(subject)
		subject.cell.Admit(granted)
		if rest := units - granted; rest > 0 && subject.cell.Reject(rest, asked.mark, t.heldAgainst(asked)) && t.apart() {
			t.falseRejects++
		}
	case oracle.Failed:
		subject.loose += units
		subject.cell.Fail(units)
	case oracle.Elsewhere:
		subject.cell.Fail(units)
	default:
		if subject.cell.Reject(units, asked.mark, t.heldAgainst(asked)) && t.apart() {
			t.falseRejects++
		}
		switch {
		case t.counts == quota.CountsAttempts && out == oracle.Rejected:
			subject.attempts += units
		case out == oracle.RejectedDegraded:
			subject.loose += units
		}
	}
	if subject.track != nil {
		subject.track.note(now, subject.used, subject.attempts)
	}
}

// use adds units that count from the moment at on, or with a negative number takes
// some of those back; over is set if a commit uses them beyond its reservation.
// Moments come in order except for units that are taken back.
func (t *truth) use(s *subject, units, at, now int64, over bool) {
	if over {
		s.overrun += units
	}
	if t.hasOwn() {
		t.useOwn(s, units, at, now, over)
		return
	}
	s.used += units
	t.usage += units
	if t.policy.Window.Kind == quota.Rolling {
		c := charge{at: at, units: units, over: over}
		s.recent, t.recent = charged(s.recent, c), charged(t.recent, c)
	}
}

// exceed notes what an admission leaks.
func (t *truth) exceed(s *subject) {
	if over := s.used - s.overrun - max(s.allowed, s.initialIn(t)); over > s.peak {
		t.leak += over - s.peak
		s.peak = over
	}
}

// charged puts a charge where its moment belongs.
func charged(list []charge, c charge) []charge {
	i := len(list)
	for i > 0 && list[i-1].at > c.at {
		i--
	}
	return slices.Insert(list, i, c)
}

// initialIn is what the subject had at the start, in the window that holds it.
func (s *subject) initialIn(t *truth) int64 {
	if s.window == t.first {
		return s.initial
	}
	return 0
}

// giveBack notes that the holder of units has let go of them. They belong to the
// window that their take was called in, or under a rolling policy to the moment of
// its reply: what has left the window by then is in no sum any more. A commit of more than
// was reserved gives back a negative number.
func (t *truth) giveBack(h *holding, units, now int64) {
	subject := &t.subjects[h.subject]
	t.touch(subject, now)
	at := now
	taken := h.reply + t.epoch
	switch kind := t.policy.Window.Kind; {
	case (kind.Tumbling() || kind == quota.FirstRequest) && h.window != subject.window:
		return
	case kind == quota.Rolling && taken+int64(t.policy.Window.RealLength()) <= now:
		return
	case kind == quota.Bucket || kind == quota.Rolling:
		at = taken
	}
	t.use(subject, -units, at, now, units < 0)
	t.allow(subject)
	if subject.track != nil {
		subject.track.note(now, subject.used, subject.attempts)
	}
}

// settling notes the call of a settlement. What is given back is free from then on; what a commit uses beyond its
// reservation is asked for. Until the answer a counter may contain either.
func (t *truth) settling(h *holding, units, now int64) {
	subject := &t.subjects[h.subject]
	t.touch(subject, now)
	if h.window == subject.window {
		subject.open += abs(units)
		subject.cell.Overrun(max(0, -units))
	}
	if units > 0 {
		t.giveBack(h, units, now)
	}
}

// settled notes the answer. A counter may contain the effect of one that failed, or not.
func (t *truth) settled(h *holding, units, now int64, failed bool) {
	subject := &t.subjects[h.subject]
	t.touch(subject, now)
	same := h.window == subject.window
	if same {
		subject.open -= abs(units)
	}
	switch {
	case failed:
		subject.loose += abs(units)
	case units < 0:
		t.giveBack(h, units, now)
	case same:
		subject.cell.GiveBack(units)
	}
}

// expected is what a counter must contain now.
func (t *truth) expected(s *subject, now int64) oracle.Interval {
	if t.policy.Window.Kind == quota.Bucket {
		return t.expectedOwn(s, now)
	}
	return oracle.Interval{Lo: s.used + s.attempts, Hi: s.used + s.attempts + s.open + s.loose}
}

// stale is how long ago the truth last was what a counter says, in nanoseconds;
// ok is false if it never was, as far back as is remembered.
func (t *track) stale(value, now int64) (ns int64, ok bool) {
	end := now
	for _, mark := range slices.Backward(t.marks) {
		if mark.units+mark.attempts == value {
			return now - end, true
		}
		end = mark.at
	}
	return 0, false
}
