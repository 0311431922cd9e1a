package oracle

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/quotabench/quotabench/quota"
)

// Judge works out the verdict on a complete history. The events may come in any
// order and are not changed; it is fastest if they are ordered by subject and call.
// Each subject is judged by itself.
func Judge(cfg Config, events []Event) Verdict {
	events = ordered(events)
	var until int64
	for i := range events {
		until = max(until, events[i].Reply)
	}
	j := newJudge(cfg, until)
	for len(events) > 0 {
		number := 1 // of the first subject's events
		for number < len(events) && events[number].Subject == events[0].Subject {
			number++
		}
		j.subject(events[:number])
		events = events[number:]
	}
	return j.finish()
}

// JudgeSubjects is [Judge] on the events of one subject after the other, as
// [History.Subjects] yields them. until is the last moment of the history, in
// nanoseconds since the epoch.
func JudgeSubjects(cfg Config, until int64, subjects iter.Seq2[[]Event, error]) (Verdict, error) {
	j := newJudge(cfg, until)
	for events, err := range subjects {
		if err != nil {
			return Verdict{}, err
		}
		j.subject(events)
	}
	return j.finish(), nil
}

func newJudge(cfg Config, until int64) *judge {
	j := &judge{cfg: cfg, limit: cfg.Limit, until: until, spans: spans{window: cfg.Window, epoch: cfg.Epoch}}
	decided := len(cfg.Changes) == 0 && (cfg.Window.Kind.Tumbling() || cfg.Window.Kind == quota.Standing)
	j.out.Linear = Linear{Decided: decided, Safe: true, Exact: true}
	return j
}

func (j *judge) finish() Verdict {
	if !j.out.Linear.Decided || j.out.Issued.Requests == 0 {
		j.out.Linear = Linear{}
	}
	return j.out
}

// judge holds what is shared by all subjects, and scratch space that is used
// again for each.
type judge struct {
	cfg   Config
	limit int64
	until int64 // last reply of the history
	spans spans
	out   Verdict
	each  bool // each window is judged, also if requests only pass through; for tests

	// The subject at hand.
	id       uint32
	initial  int64
	takes    []*Event // by call
	gives    []*Event // by call
	names    naming
	rejected int64    // units of all rejections
	wrongly  int64    // units of certain false rejects
	wrong    []*Event // certain false rejects
	overran  int64    // units that commits used beyond reservations

	// reuse is the state of the last subject, whose memory is used again.
	reuse struct {
		tumbling     tumbling
		bucket       bucket
		firstRequest firstRequest
	}
	used   bounds  // units in use
	levels []level // limits that can have been in force, if the limit changes
	flying curve   // number of admissions under way, if the limit changes
	// Under rolling policies, a lower bound of the units asked for, and answered, in
	// the window that ends at each moment.
	asked, answered curve
	replies         []int64  // scratch
	latest          []answer // scratch
}

// subject judges the events of one subject.
func (j *judge) subject(events []Event) {
	if !j.cfg.about(events) {
		return
	}
	j.begin(events[0].Subject)
	j.sort(events)
	j.out.Overrun += j.overran
	if len(j.takes) == 0 {
		return
	}
	j.inFlight()
	if j.cfg.Span > 0 {
		j.inSpan()
	}
	if len(j.cfg.Changes) > 0 {
		j.envelope()
	}
	first := len(j.out.Windows)
	j.judgeWindows()
	j.total(j.out.Windows[first:])
	j.longestWrong()
	if j.cfg.Brief {
		j.out.Windows = j.out.Windows[:first]
	}
}

// begin begins a subject.
func (j *judge) begin(subject uint32) {
	j.id = subject
	j.initial = j.cfg.initial(subject)
	j.takes = j.takes[:0]
	j.gives = j.gives[:0]
	j.names = naming{}
	j.rejected = 0
	j.wrongly = 0
	j.wrong = j.wrong[:0]
	j.overran = 0
}

// sort separates takes from give-backs, and leaves out events that make no sense.
func (j *judge) sort(events []Event) {
	j.takes = slices.Grow(j.takes, len(events))
	for i := range events {
		event := &events[i]
		switch {
		case !event.wellFormed():
			j.out.Malformed++
		case event.Kind != Take:
			j.gives = append(j.gives, event)
			j.overran += max(0, -event.Units)
		default:
			j.takes = append(j.takes, event)
			j.names.atEpoch = j.names.atEpoch || event.takenAtEpoch()
			j.count(event)
		}
	}
}

// judgeWindows judges the windows of the subject, by the kind of the policy.
func (j *judge) judgeWindows() {
	kind := j.cfg.Window.Kind
	switch {
	case kind.Tumbling():
		j.tumbling()
	case kind == quota.Rolling:
		j.rolling()
	case kind == quota.Bucket:
		j.bucket()
	case kind == quota.FirstRequest:
		j.firstRequest()
	default:
		j.standing()
	}
}

// count adds a take to the sums over all subjects.
func (j *judge) count(event *Event) {
	if event.short() {
		j.out.Issued.Units += event.Units
		j.out.Rejected.Units += event.Units
		j.rejected += event.Units
		j.out.unexplained = true // it is decided together with the granted units
		return
	}
	j.out.Issued.add(event.Units)
	j.out.MaxCost = max(j.out.MaxCost, event.Units)
	switch {
	case event.admitted():
		j.out.Admitted.add(event.Units)
	case event.rejected():
		j.out.Rejected.add(event.Units)
		j.rejected += event.Units
	case event.Outcome == Elsewhere:
		j.out.Rejected.add(event.Units)
	default:
		j.out.Failed.add(event.Units)
	}
}

// inFlight finds the most requests that were being decided at once, and the most with those whose work was under way.
func (j *judge) inFlight() {
	deciding := j.atOnce(nil)
	inFlight := deciding
	if len(j.gives) > 0 {
		inFlight = j.atOnce(j.workEnds())
	}
	j.out.MaxDeciding = max(j.out.MaxDeciding, deciding)
	j.out.MaxInFlight = max(j.out.MaxInFlight, inFlight)
}

// workEnds are when the work of admitted requests ended: with the commit, or else with what gave the units back. Of
// requests that cannot be told apart it is the last end.
func (j *judge) workEnds() map[interval]int64 {
	ends := map[interval]int64{}
	committed := map[interval]bool{}
	for _, event := range j.gives {
		if !j.names.named(event) {
			continue
		}
		take := j.names.taken(event)
		commits := event.Kind == Commit
		switch {
		case commits && !committed[take]:
			committed[take] = true
			ends[take] = event.Reply
		case commits == committed[take]:
			ends[take] = max(ends[take], event.Reply)
		}
	}
	return ends
}

// atOnce is the most requests at once, by a sweep over the calls. Those that are named end later than with their
// replies. Two requests that share an instant overlap.
func (j *judge) atOnce(ends map[interval]int64) (most int64) {
	j.replies = j.replies[:0]
	for _, event := range j.takes {
		if event.short() {
			continue
		}
		end := event.Reply
		if event.admitted() {
			end = max(end, ends[interval{event.Call, event.Reply}])
		}
		j.replies = append(j.replies, end)
	}
	slices.Sort(j.replies)
	done := 0
	begun := 0
	for _, event := range j.takes {
		if event.short() {
			continue
		}
		begun++
		for j.replies[done] < event.Call {
			done++
		}
		most = max(most, int64(begun-done))
	}
	return most
}

// inSpan finds the most admitted units of requests that overlap a length of time: the
// span and, for their calls, the longest request.
func (j *judge) inSpan() {
	j.latest = j.latest[:0]
	longest := int64(0)
	for _, event := range j.takes {
		longest = max(longest, event.Reply-event.Call)
		if event.admitted() {
			j.latest = append(j.latest, answer{event.Reply, event.Units, event.Tier})
		}
	}
	slices.SortFunc(j.latest, func(a, b answer) int { return cmp.Compare(a.reply, b.reply) })
	units := int64(0)
	gone := 0
	for _, event := range j.takes {
		if !event.admitted() {
			continue
		}
		units += event.Units
		begin := event.Call - int64(j.cfg.Span) - longest
		for ; j.latest[gone].reply < begin; gone++ {
			units -= j.latest[gone].units
		}
		j.out.MaxSpan = max(j.out.MaxSpan, units)
	}
}

// total adds up the figures that a subject's windows have under all policies.
func (j *judge) total(windows []windowVerdict) {
	verdict := &j.out
	leaked := false
	for i := range windows {
		window := &windows[i]
		leaked = leaked || window.Leak > 0
		verdict.Touched.add(window)
		verdict.unexplained = verdict.unexplained || window.Crossed || window.GaveBack
		verdict.LeakUnits += window.Leak
		verdict.LeakWorst = max(verdict.LeakWorst, window.sure.leak)
		verdict.LeakPossibleWorst = max(verdict.LeakPossibleWorst, window.LeakPossible)
		verdict.FalseRejects += window.FalseRejects
		verdict.FalseRejectsPossible += window.FalseRejectsPossible
		verdict.FalseRejectUnits += window.FalseRejectUnits
		verdict.FalseRejectUnitsPossible += window.FalseRejectUnitsPossible
		verdict.FalseRejectWorst = max(verdict.FalseRejectWorst, window.sure.falseRejects)
		verdict.FalseRejectPossibleWorst = max(verdict.FalseRejectPossibleWorst, window.sure.falsePossible)
	}
	if leaked {
		verdict.LeakSubjects++
	}
}

// crossing notes a subject-window if more units than the limit were answered in it.
func (j *judge) crossing(passed bool, leak int64) {
	// A leak proves that more than the limit was answered, although some of it was
	// asked for in the window before.
	if passed || leak > 0 {
		j.crossed(leak)
	}
}

// crossedTimes notes so many crossings of a subject, or as many as leaks if that is
// more. The first of them have the leaks.
func (j *judge) crossedTimes(crossings int, leaks []int64) {
	for i := range max(crossings, len(leaks)) {
		leak := int64(0)
		if i < len(leaks) {
			leak = leaks[i]
		}
		j.crossed(leak)
	}
}

// crossed notes a subject-window in which demand exceeded the limit, and its leak.
func (j *judge) crossed(leak int64) {
	j.out.Crossings++
	j.out.CrossingLeaks = append(j.out.CrossingLeaks, leak)
	if leak > 0 {
		j.out.LeakWindows++
	}
}

// overOffered is the units asked for over the limit of a subject whose units come
// back: its demand cannot be compared with the limit, so this is the units that leaked
// or were rightly rejected.
func (j *judge) overOffered(leak int64) int64 { return leak + j.rejected - j.wrongly }

// refused enters a rejection. There was room for at least surely units all the time,
// and for at most once units at some moment.
func (j *judge) refused(verdict *windowVerdict, event *Event, surely, once int64) {
	certain, possible := j.wrongIn(event, event.least() <= surely, event.least() <= once)
	j.mark(event, certain)
	if event.short() {
		surely = max(0, min(surely, event.Units))
		once = max(0, min(once, event.Units))
		j.verdictOn(verdict, surely, once, certain, possible)
		return
	}
	j.verdictOn(verdict, event.Units, event.Units, certain, possible)
}

// refuses reports whether the event is a rejection that is judged here.
func (j *judge) refuses(event *Event) bool {
	return event.rejected() || event.Outcome == Elsewhere && j.cfg.Rejected != nil
}

// wrongIn reports whether a rejection is wrong for certain, and possibly, if this quota had room all the time, or at
// some moment.
func (j *judge) wrongIn(event *Event, always, once bool) (certain, possible bool) {
	if j.cfg.Rejected == nil {
		return always, once
	}
	return j.cfg.Rejected(event, always, once)
}

// verdictOn enters a rejection into the window of its call, with the units that were
// certainly, and possibly, rejected although there was room.
func (j *judge) verdictOn(verdict *windowVerdict, surely, maybe int64, certain, possible bool) {
	if certain {
		verdict.FalseRejects++
		verdict.FalseRejectUnits += surely
		j.wrongly += surely
	}
	if possible {
		verdict.FalseRejectsPossible++
		verdict.FalseRejectUnitsPossible += maybe
	}
}

// mark keeps a rejection if it is a false reject for certain.
func (j *judge) mark(event *Event, certain bool) {
	if certain {
		j.wrong = append(j.wrong, event)
	}
}

// longestWrong finds the longest time in which one tier of an instance gave the subject
// only false rejects: from the call of the first of consecutive answers to the reply
// of the last.
func (j *judge) longestWrong() {
	if len(j.wrong) == 0 {
		return
	}
	isWrong := make(map[*Event]bool, len(j.wrong))
	for _, event := range j.wrong {
		isWrong[event] = true
	}
	firsts := map[uint8]*Event{} // of the consecutive answers, by instance
	for _, event := range j.takes {
		first := firsts[event.Instance]
		switch {
		case !event.answered() || event.Instance == noInstance:
			continue
		case !isWrong[event]:
			delete(firsts, event.Instance)
			continue
		case first == nil || first.Tier != event.Tier:
			first = event
			firsts[event.Instance] = event
		}
		if length := event.Reply - first.Call; length > j.out.LongestWrong {
			j.out.LongestWrong = length
			j.out.LongestTier = event.Tier
		}
	}
}

// answer is an admission by the moment of its reply.
type answer struct {
	reply, units int64
	tier         uint8
}

// leaking are requests that leaked units belong to, and these units by the tier that admitted them.
type leaking struct {
	requests int64
	units    map[uint8]int64
}

func (l *leaking) add(more leaking) {
	l.requests += more.requests
	l.units = byTier(l.units, more.units)
}

// byTier adds units of tiers to others, and returns them.
func byTier(sum, units map[uint8]int64) map[uint8]int64 {
	if sum == nil {
		return maps.Clone(units)
	}
	for tier, n := range units {
		sum[tier] += n
	}
	return sum
}

// blame enters requests that leaked units belong to.
func (j *judge) blame(requests leaking) {
	j.out.LeakedRequests += requests.requests
	j.out.LeakTiers = byTier(j.out.LeakTiers, requests.units)
}

// freed is the first moment at which a give-back can have had its effect: not
// before its take had.
func (j *judge) freed(event *Event) int64 {
	if j.names.named(event) {
		return max(instant(event.Call), after(event.TakeReply))
	}
	return instant(event.Call)
}

// latestCovering are the requests answered last that hold the given number of units
// together. It reorders the slice.
func latestCovering(answers []answer, units int64) (out leaking) {
	if units == 0 {
		return out
	}
	out.units = map[uint8]int64{}
	slices.SortFunc(answers, func(a, b answer) int { return cmp.Compare(b.reply, a.reply) })
	for _, latest := range answers {
		if units <= 0 {
			break
		}
		if latest.units > 0 {
			out.units[latest.tier] += min(units, latest.units)
			units -= latest.units
			out.requests++
		}
	}
	return out
}
