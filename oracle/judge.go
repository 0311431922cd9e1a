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
		n := 1
		for n < len(events) && events[n].Subject == events[0].Subject {
			n++
		}
		j.subject(events[:n])
		events = events[n:]
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

	// Of the subject at hand.
	id       uint32
	initial  int64
	takes    []*Event // by call
	gives    []*Event // by call
	names    naming
	rejected int64    // units of all rejections
	wrongly  int64    // units of certain false rejects
	wrong    []*Event // these
	overran  int64    // units that commits used beyond reservations

	windows tumbling
	buckets bucket
	own     firstRequest
	used    bounds
	levels  []level // if the limit changes
	flying  curve   // admissions under way, likewise
	// Under rolling policies, what was asked for and what was answered.
	asked, answered curve
	replies         []int64
	latest          []answer
}

func (j *judge) subject(events []Event) {
	if !j.cfg.about(events) {
		return
	}
	first := len(j.out.Windows)
	j.id = events[0].Subject
	j.initial = j.cfg.initial(j.id)
	j.takes = slices.Grow(j.takes[:0], len(events))
	j.gives = j.gives[:0]
	j.rejected = 0
	j.wrongly = 0
	j.wrong = j.wrong[:0]
	j.overran = 0
	j.names = naming{}
	for i := range events {
		event := &events[i]
		if !event.wellFormed() {
			j.out.Malformed++
			continue
		}
		if event.Kind != Take {
			j.gives = append(j.gives, event)
			j.overran += max(0, -event.Units)
			continue
		}
		j.takes = append(j.takes, event)
		j.names.atEpoch = j.names.atEpoch || event.takenAtEpoch()
		j.count(event)
	}
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
	switch {
	case j.cfg.Window.Kind.Tumbling():
		j.tumbling()
	case j.cfg.Window.Kind == quota.Rolling:
		j.rolling()
	case j.cfg.Window.Kind == quota.Bucket:
		j.bucket()
	case j.cfg.Window.Kind == quota.FirstRequest:
		j.firstRequest()
	default:
		j.standing()
	}
	j.total(j.out.Windows[first:])
	j.stretches()
	if j.cfg.Brief {
		j.out.Windows = j.out.Windows[:first]
	}
}

func (j *judge) count(event *Event) {
	if event.short() {
		j.out.Issued.Units += event.Units
		j.out.Rejected.Units += event.Units
		j.rejected += event.Units
		j.out.unexplained = true // it is decided together with what was granted
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

// inFlight finds the most requests at once. Two that share an instant overlap.
func (j *judge) inFlight() {
	j.replies = j.replies[:0]
	for _, event := range j.takes {
		if !event.short() {
			j.replies = append(j.replies, event.Reply)
		}
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
		j.out.MaxInFlight = max(j.out.MaxInFlight, int64(begun-done))
	}
}

// inSpan finds the most units within a length of time.
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
		for ; j.latest[gone].reply < event.Call-int64(j.cfg.Span)-longest; gone++ {
			units -= j.latest[gone].units
		}
		j.out.MaxSpan = max(j.out.MaxSpan, units)
	}
}

// total adds up what the subject's windows have in common under all policies.
func (j *judge) total(windows []windowVerdict) {
	verdict := &j.out
	leaked := false
	for i := range windows {
		windowVerdict := &windows[i]
		verdict.Touched.add(windowVerdict)
		verdict.unexplained = verdict.unexplained || windowVerdict.Crossed || windowVerdict.GaveBack
		leaked = leaked || windowVerdict.Leak > 0
		verdict.LeakUnits += windowVerdict.Leak
		verdict.LeakWorst = max(verdict.LeakWorst, windowVerdict.sure.leak)
		verdict.LeakPossibleWorst = max(verdict.LeakPossibleWorst, windowVerdict.LeakPossible)
		verdict.FalseRejects += windowVerdict.FalseRejects
		verdict.FalseRejectsPossible += windowVerdict.FalseRejectsPossible
		verdict.FalseRejectUnits += windowVerdict.FalseRejectUnits
		verdict.FalseRejectUnitsPossible += windowVerdict.FalseRejectUnitsPossible
		verdict.FalseRejectWorst = max(verdict.FalseRejectWorst, windowVerdict.sure.falseRejects)
		verdict.FalseRejectPossibleWorst = max(verdict.FalseRejectPossibleWorst, windowVerdict.sure.falsePossible)
	}
	if leaked {
		verdict.LeakSubjects++
	}
}

// crossing notes a subject-window of which more units than the limit were answered,
// or not.
func (j *judge) crossing(passed bool, leak int64) {
	// A leak proves that more than the limit was answered, though some of it was
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

func (j *judge) crossed(leak int64) {
	j.out.Crossings++
	j.out.CrossingLeaks = append(j.out.CrossingLeaks, leak)
	if leak > 0 {
		j.out.LeakWindows++
	}
}

// overOffered is for subjects whose units come back, so what was asked for
// cannot be checked against the limit.
func (j *judge) overOffered(leak int64) int64 { return leak + j.rejected - j.wrongly }

// refused enters a rejection for which there was room for at least surely units all
// the time, and for at most once at some moment.
func (j *judge) refused(verdict *windowVerdict, event *Event, surely, once int64) {
	j.mark(event, event.least() <= surely)
	if event.short() {
		j.verdictOn(verdict, max(0, min(surely, event.Units)), max(0, min(once, event.Units)), surely > 0, once > 0)
		return
	}
	j.verdictOn(verdict, event.Units, event.Units, event.Units <= surely, event.Units <= once)
}

// verdictOn enters a rejection into the window it was called in, with the units that
// were certainly, and possibly, rejected although there was room.
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

// mark keeps a rejection that was certainly wrong.
func (j *judge) mark(event *Event, certain bool) {
	if certain {
		j.wrong = append(j.wrong, event)
	}
}

// stretches finds for how long one tier of an instance rejected the subject wrongly: in how long a row of the answers
// there, from the call of the first to the reply of the last.
func (j *judge) stretches() {
	if len(j.wrong) == 0 {
		return
	}
	isWrong := make(map[*Event]bool, len(j.wrong))
	for _, event := range j.wrong {
		isWrong[event] = true
	}
	first := map[uint8]*Event{} // of the row at hand, by instance
	for _, event := range j.takes {
		f := first[event.Instance]
		switch {
		case !event.answered() || event.Instance == noInstance:
			continue
		case !isWrong[event]:
			delete(first, event.Instance)
			continue
		case f == nil || f.Tier != event.Tier:
			f = event
			first[event.Instance] = event
		}
		if length := event.Reply - f.Call; length > j.out.LongestWrong {
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

func (l *leaking) add(o leaking) {
	l.requests += o.requests
	l.units = byTier(l.units, o.units)
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
func (j *judge) blame(l leaking) {
	j.out.LeakedRequests += l.requests
	j.out.LeakTiers = byTier(j.out.LeakTiers, l.units)
}

// freed is the first moment at which a give-back can have had its effect: not
// before its take had.
func (j *judge) freed(event *Event) int64 {
	if j.names.named(event) {
		return max(instant(event.Call), after(event.TakeReply))
	}
	return instant(event.Call)
}

// latestCovering are the requests that hold the given number of units when
// they are taken from the one answered last backwards. It reorders the slice.
func latestCovering(answers []answer, units int64) (out leaking) {
	if units == 0 {
		return out
	}
	out.units = map[uint8]int64{}
	slices.SortFunc(answers, func(a, b answer) int { return cmp.Compare(b.reply, a.reply) })
	for _, answer := range answers {
		if units <= 0 {
			break
		}
		if answer.units > 0 {
			out.units[answer.tier] += min(units, answer.units)
			units -= answer.units
			out.requests++
		}
	}
	return out
}
