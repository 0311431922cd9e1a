package sim

import (
	"cmp"
	"math"
	"slices"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// The truth is what callers were told so far, subject by subject, for the series of
// samples. One caller runs at a time, so plain numbers say at any moment what the
// oracle works out of intervals afterwards: what is in use, the leak, the false rejects
// and the contents of each counter. The verdict on a run is the oracle's.

// subject is one holder of the policy.
type subject struct {
	name    quota.Subject
	initial int64 // units in use at the start

	inWindow
	// allowed is the units that may be in use: the limit, or the units that were in use
	// when it was lowered and still are.
	allowed int64
	// issued requests, and the rejected ones among them.
	issued, rejected int64
	// recent are the units in the window by their moments, under a rolling policy; of a
	// bucket, the units taken since it was full.
	recent []charge
	own    own
	track  *track
}

// inWindow is what counts in one window.
type inWindow struct {
	window int64 // index of the window
	used   int64 // units admitted and not given back, the initial ones included
	open   int64 // units asked for and not answered
	// loose units may be in a counter or not, forever: units of calls that failed, and
	// of rejections that did not reach the store.
	loose    int64
	attempts int64 // units of rejections
	peak     int64 // certain leak so far: the most units in use above the allowed ones
	overrun  int64 // units that commits used beyond reservations, which is no leak
	crossed  bool  // a request lies across the window's boundary
	cell     oracle.Cell
}

// charge is units that count from a moment on.
type charge struct {
	at, units int64
	of        int64 // the moment of the take, if a commit took more from a bucket
	fill      bool  // initial units
	over      bool  // units that a commit used beyond its reservation
}

// track is the past of a subject whose counters are read: how many units were in use,
// and had been rejected, since when.
type track struct {
	number uint32
	marks  []mark
	lost   bool // older marks were dropped
}

// mark is the units in use, and those of rejections, from a moment on.
type mark struct{ at, units, attempts int64 }

// maxMarks bounds the past that is remembered of one subject.
const maxMarks = 1 << 13

// limited is whom the limit met.
func (t *truth) limited() *results.Limited {
	limited := &results.Limited{Most: []results.LimitedSubject{}}
	for i := range t.subjects {
		holder := &t.subjects[i]
		if holder.issued > 0 {
			limited.Of++
		}
		if holder.rejected > 0 {
			limited.Subjects++
			limited.Most = append(limited.Most, results.LimitedSubject{
				Subject: string(holder.name), Issued: holder.issued, Rejected: holder.rejected,
			})
		}
	}
	slices.SortStableFunc(limited.Most, func(a, b results.LimitedSubject) int {
		return cmp.Compare(b.Rejected, a.Rejected)
	})
	limited.Most = limited.Most[:min(len(limited.Most), results.MostLimited)]
	return limited
}

// note adds a mark. Of several at one moment, the last one counts.
func (t *track) note(at, units, attempts int64) {
	if last := len(t.marks) - 1; last >= 0 && t.marks[last].at == at {
		t.marks[last] = mark{at, units, attempts}
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
	first    int64 // the window that holds the initial units

	usage int64 // units that all subjects have in use in the window in force
	fill  int64 // the initial units among them
	// recent[head:] are the units in a rolling window, of all subjects.
	recent []charge
	head   int

	leak, falseRejects int64
	tracks             []*track
	tracked            int // the most tracks

	// If the limit changes: how often it has, the lowest and the highest that the stores
	// may check requests against now, and the lowest of the run.
	changed             int
	least, most, lowest int64
}

// window is a window in nanoseconds of virtual time, [start, end).
type window struct{ index, start, end int64 }

// at moves on to the window of a moment.
func (t *truth) at(now int64, windowAt func(int64) window) {
	if now < t.span.end {
		if t.policy.Window.Kind == quota.Rolling {
			t.forget(now)
		}
		return
	}
	t.span = windowAt(now)
	t.usage = 0
	t.fill = 0
}

// forget takes units that have left a rolling window out of the sums.
func (t *truth) forget(now int64) {
	length := int64(t.policy.Window.RealLength())
	for t.head < len(t.recent) && t.recent[t.head].at+length <= now {
		oldest := &t.recent[t.head]
		t.usage -= oldest.units
		if oldest.fill {
			t.fill -= oldest.units
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
		s.forget(now - int64(t.policy.Window.RealLength()))
	}
	t.allow(s)
}

// forget takes units that have left a rolling window out of those in use: units
// charged up to a moment.
func (s *subject) forget(upTo int64) {
	left := 0 // number of charges that have left the window
	for left < len(s.recent) && s.recent[left].at <= upTo {
		oldest := &s.recent[left]
		s.used -= oldest.units
		if oldest.over {
			s.overrun -= oldest.units
		}
		left++
	}
	s.recent = s.recent[left:]
	if left > 0 {
		s.peak = max(0, min(s.peak, s.used-s.allowed))
	}
}

// renew begins a window at the given moment.
func (s *subject) renew(index, at int64) {
	s.inWindow = inWindow{window: index}
	s.mark(at)
}

// mark notes the units in use in the past of a subject, if that is kept.
func (s *subject) mark(at int64) {
	if s.track != nil {
		s.track.note(at, s.used, s.attempts)
	}
}

// apart reports whether the units of one window count in no other: then its cell
// says which rejections are wrong.
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
	s.issued++
	s.open += units
	return s, asked{s.cell.Begin(units), t.changed}
}

// asked is the state at a request that its rejection is checked against.
type asked struct {
	mark    int64 // units that had been given back
	changed int   // how often the limit had changed
}

// end notes the answer to a request, of whose units so many were granted.
func (t *truth) end(request asking, units, granted, now int64, outcome oracle.Outcome) {
	holder := request.subject
	t.touch(holder, now)
	holder.own.slow = max(holder.own.slow, now-request.call)
	if request.window != holder.window {
		holder.crossed = true
		return
	}
	holder.open -= units
	switch outcome {
	case oracle.Admitted:
		t.admit(request, units, granted, now)
	case oracle.Failed:
		holder.loose += units
		holder.cell.Fail(units)
	case oracle.Elsewhere:
		holder.cell.Fail(units)
	default:
		t.reject(request, units)
		switch {
		case t.counts == quota.CountsAttempts && outcome == oracle.Rejected:
			holder.attempts += units
		case outcome == oracle.RejectedDegraded:
			holder.loose += units
		}
	}
	holder.mark(now)
}

// admit notes an admission. Units that were not granted are a rejection.
func (t *truth) admit(request asking, units, granted, now int64) {
	holder := request.subject
	if !holder.own.open {
		holder.own.open = true
		holder.own.begun = request.call
	}
	t.use(holder, granted, now, now, false)
	if request.began.changed != t.changed { // the limit before the change may have let it in
		holder.allowed = max(holder.allowed, holder.used)
	}
	t.exceed(holder)
	holder.cell.Admit(granted)
	if granted < units {
		t.reject(request, units-granted)
	}
}

// reject notes a rejection of so many units, and counts it if it was a false reject.
func (t *truth) reject(request asking, units int64) {
	limit := t.heldAgainst(request.began)
	wrong := request.subject.cell.Reject(units, request.began.mark, limit)
	if wrong && t.apart() {
		t.falseRejects++
	}
}

// use adds units that count from the moment at on, or takes units back if they are
// negative. over is set if a commit uses them beyond its reservation. Moments come in
// order except for units that are taken back.
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
		added := charge{at: at, units: units, over: over}
		s.recent = charged(s.recent, added)
		t.recent = charged(t.recent, added)
	}
}

// exceed notes what an admission leaks: the certain leak of a window is the peak of
// the units in use above the allowed ones.
func (t *truth) exceed(s *subject) {
	over := s.used - s.overrun - max(s.allowed, s.initialIn(t))
	if over > s.peak {
		t.leak += over - s.peak
		s.peak = over
	}
}

// charged puts a charge into a list in the order of moments.
func charged(list []charge, added charge) []charge {
	place := len(list)
	for place > 0 && list[place-1].at > added.at {
		place--
	}
	return slices.Insert(list, place, added)
}

// initialIn is the subject's initial units, if its window holds them.
func (s *subject) initialIn(t *truth) int64 {
	if s.window == t.first {
		return s.initial
	}
	return 0
}

// giveBack notes that the caller of a take gives units back. They belong to the
// window that the take was called in; under a rolling policy and in a bucket, to the
// moment of its reply. Units that have left the window are in no sum any more. A commit
// of more than was reserved gives back a negative number.
func (t *truth) giveBack(take *holding, units, now int64) {
	holder := &t.subjects[take.subject]
	t.touch(holder, now)
	kind := t.policy.Window.Kind
	at := now
	taken := take.reply + t.epoch
	switch {
	case kind == quota.FirstRequest && take.window != holder.window:
		holder.late(units)
		holder.mark(now)
		return
	case kind.Tumbling() || kind == quota.FirstRequest:
		if take.window != holder.window {
			return
		}
	case kind == quota.Rolling:
		if taken+int64(t.policy.Window.RealLength()) <= now {
			return
		}
		at = taken
	case kind == quota.Bucket:
		at = taken
	}
	t.use(holder, -units, at, now, units < 0)
	t.allow(holder)
	holder.mark(now)
}

// late notes units that are given back after the end of the window that holds them. If another window is open, a
// counter may be without them, and callers may have them again.
func (s *subject) late(units int64) {
	if !s.own.open {
		return
	}
	part := min(max(0, units), s.used)
	s.used -= part
	s.loose += part
}

// settling notes the call of a settlement. Units that are given back are free from then
// on. Units that a commit uses beyond its reservation are asked for. Until the answer a
// counter may contain either.
func (t *truth) settling(take *holding, units, now int64) {
	holder := &t.subjects[take.subject]
	t.touch(holder, now)
	if take.window == holder.window {
		holder.open += abs(units)
		holder.cell.Overrun(max(0, -units))
	}
	if units > 0 {
		t.giveBack(take, units, now)
	}
}

// settled notes the answer to a settlement. A counter may contain the effect of one
// that failed, or not.
func (t *truth) settled(take *holding, units, now int64, failed bool) {
	holder := &t.subjects[take.subject]
	t.touch(holder, now)
	same := take.window == holder.window
	if same {
		holder.open -= abs(units)
	}
	switch {
	case failed:
		holder.loose += abs(units)
	case units < 0:
		t.giveBack(take, units, now)
	case same:
		holder.cell.GiveBack(units)
	}
}

// expected is what a counter must contain now.
func (t *truth) expected(s *subject, now int64) oracle.Interval {
	if t.policy.Window.Kind == quota.Bucket {
		return t.expectedOwn(s, now)
	}
	counted := s.used + s.attempts
	return oracle.Interval{Lo: counted, Hi: counted + s.open + s.loose}
}

// stale is the age of a counter's value: how many nanoseconds ago the value was last
// right. ok is false if it was never right, as far back as the track goes.
func (t *track) stale(value, now int64) (ns int64, ok bool) {
	end := now
	for _, past := range slices.Backward(t.marks) {
		if past.units+past.attempts == value {
			return now - end, true
		}
		end = past.at
	}
	return 0, false
}
