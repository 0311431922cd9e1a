package oracle

import (
	"cmp"
	"slices"

	"github.com/quotabench/quotabench/quota"
)

// bucket judges a subject by a bucket that holds as many units as the limit and is
// refilled at an even rate: between any two moments no more may be taken out than
// it holds and than flows in meanwhile.
//
// The excess of a stretch of time is the units that were taken out in it for
// certain, because they were called and answered there, less the limit and the
// inflow. The certain leak is the largest sum of excesses of stretches that do not
// overlap ([bucket.leak]). If refills are not rounded, this is the fewest units that
// would have to go. If they are, it is a lower bound: each stretch by itself may be
// within the limit, but not all of them together.
//
// The possible leak is the admitted units that are not among some that fit wherever
// they are placed ([bucket.possible]).
//
// Most units are missing at a moment if every request took effect as late as it can
// have, and least if every request took effect as early as it can have. Units that a
// commit used beyond its reservation may be taken out at any moment from the take to
// the commit. Units that were given back count as if they had never been taken.
type bucket struct {
	*judge
	flow    quota.Flow
	verdict windowVerdict

	least   curve // the fewest units that can be missing, by the replies of all takes
	most    curve // the most units that can be missing, by the calls of all takes
	early   curve // missing units with every admission at its call, by the calls of all takes
	refill  refill
	moments []int64 // scratch
}

// entry is units that were taken out at a place in time, or with negative units put
// back as if they had never been taken there.
type entry struct {
	begin int64 // doubled moment from which the units count, at whatever place
	known int64 // doubled moment from which the place is known
	place int64
	units int64
}

// flying are the entry's units if they count before their place is known.
func (e *entry) flying() int64 {
	if e.begin < e.known {
		return e.units
	}
	return 0
}

func (j *judge) bucket() {
	b := &j.reuse.bucket
	b.judge = j
	b.flow = j.cfg.Window.Flow()
	b.verdict = windowVerdict{Subject: j.id, GaveBack: len(j.gives) > 0}
	b.countTakes()
	leaks, worst := b.leakOfAdmitted()
	b.mostMissing(false)
	b.judgeRejections()
	b.explain()
	b.judgeLeak(leaks, worst)
	b.countCrossings(leaks)
	j.out.Windows = append(j.out.Windows, b.verdict)
}

// countTakes adds up the units asked for and admitted.
func (b *bucket) countTakes() {
	var asked int64
	for _, event := range b.takes {
		asked += event.Units
		if event.admitted() {
			b.verdict.Admitted += event.Units
		}
	}
	b.out.MaxOffered = max(b.out.MaxOffered, asked)
}

// surely lists the units of takes that count, each at the earliest place. Units in
// use at the start are no leak: they are no more than the bucket holds, and are left
// out if a request came before them.
func (b *bucket) surely(counts func(*Event) bool, giveBack bool) []entry {
	list := make([]entry, 0, len(b.takes)+len(b.gives)+1)
	if b.initial > 0 && b.takes[0].Call >= 0 {
		list = append(list, entry{units: min(b.initial, b.limit)})
	}
	for _, event := range b.takes {
		if counts(event) && event.Units > 0 {
			list = append(list, entry{known: after(event.Reply), place: event.Call, units: event.Units})
		}
	}
	if !giveBack {
		return list
	}
	for _, event := range b.gives {
		if event.Units > 0 {
			taken := b.names.taken(event)
			list = append(list, entry{known: b.freed(event), place: taken.call, units: -event.Units})
		}
	}
	return list
}

// possibly lists the units that may have been taken out, each at the latest place.
// expired says whether a bucket is as full after an expiry as if the units had never
// been taken: callers hold nothing then, but the store may.
func (b *bucket) possibly(expired bool) []entry {
	list := make([]entry, 0, len(b.takes)+len(b.gives)+1)
	if b.initial > 0 {
		list = append(list, possibleEntry(0, 0, b.initial))
	}
	for _, event := range b.takes {
		if event.admitted() && event.Units > 0 {
			list = append(list, possibleEntry(event.Call, event.Reply, event.Units))
		}
	}
	for _, event := range b.gives {
		putBack := event.Units > 0 && event.Outcome != Failed && b.names.named(event)
		switch {
		case event.Units < 0: // a commit of more than was reserved
			list = append(list, possibleEntry(event.Call, event.Reply, -event.Units))
		case putBack && (expired || event.Kind != Expire):
			done := after(event.Reply)
			list = append(list, entry{begin: done, known: done, place: event.TakeReply, units: -event.Units})
		}
	}
	return list
}

// possibleEntry is units that were taken in [call, reply], at the latest place.
func possibleEntry(call, reply, units int64) entry {
	begin := instant(call)
	return entry{begin: begin, known: max(begin, after(reply)), place: reply, units: units}
}

// mostMissing fills the curve of the units that can be missing at most: those that
// are missing if all answered requests took effect at their replies, and the units
// of the requests under way. Between two of its moments the curve falls.
func (b *bucket) mostMissing(expired bool) {
	list := b.possibly(expired)
	moments := b.callsOf(list)
	byBegin := slices.Clone(list)
	slices.SortFunc(byBegin, func(x, y entry) int { return cmp.Compare(x.begin, y.begin) })
	b.refill.reset(b.flow, list)
	b.most.reset(0)
	b.most.clear()
	var flying int64
	for _, at := range moments {
		for len(byBegin) > 0 && byBegin[0].begin <= instant(at) {
			flying += byBegin[0].flying()
			byBegin = byBegin[1:]
		}
		for b.refill.pending(instant(at)) {
			flying -= b.refill.enter(0).flying()
		}
		b.most.set(instant(at), b.refill.missing(at)+flying)
	}
}

// callsOf are the calls of all takes, and of the entries that take units out.
func (b *bucket) callsOf(list []entry) []int64 {
	b.moments = b.moments[:0]
	for _, event := range b.takes {
		b.moments = append(b.moments, event.Call)
	}
	for _, taken := range list {
		call := taken.begin >> 1
		if taken.units > 0 && taken.begin == instant(call) {
			b.moments = append(b.moments, call)
		}
	}
	return b.sortedMoments()
}

// repliesOfTakes are the replies of all takes, and the epoch if units were in use
// then.
func (b *bucket) repliesOfTakes() []int64 {
	b.moments = b.moments[:0]
	for _, event := range b.takes {
		b.moments = append(b.moments, event.Reply)
	}
	if b.initial > 0 {
		b.moments = append(b.moments, 0)
	}
	return b.sortedMoments()
}

func (b *bucket) sortedMoments() []int64 {
	slices.Sort(b.moments)
	b.moments = slices.Compact(b.moments)
	return b.moments
}

// judgeRejections checks every rejection against the most and the fewest units that
// can have been missing while the request was under way.
func (b *bucket) judgeRejections() {
	for _, event := range b.takes {
		if !b.refuses(event) {
			continue
		}
		call := instant(event.Call)
		reply := instant(event.Reply)
		most := b.most.extreme(b.most.upTo(call-1), b.most.upTo(reply), true)
		least := b.least.extreme(b.least.upTo(call-1), b.least.upTo(reply), false)
		b.refused(&b.verdict, event, b.limit-most, b.limit-least)
	}
}

// explain looks for one order that explains every rejection: the one with each
// admission at its call.
func (b *bucket) explain() {
	if b.verdict.GaveBack || b.out.unexplained {
		return
	}
	b.missingEarly()
	for _, event := range b.takes {
		if !event.rejected() {
			continue
		}
		first := b.early.upTo(instant(event.Call) - 1)
		end := b.early.upTo(instant(event.Reply))
		missing := b.early.extreme(first, end, true)
		if missing+event.least() <= b.limit {
			b.out.unexplained = true
			return
		}
	}
}

// missingEarly fills the curve of the units that are missing if every admission took
// effect at its call.
func (b *bucket) missingEarly() {
	b.early.clear()
	taken := meter{flow: b.flow}
	initial := b.initial
	for _, event := range b.takes {
		if initial > 0 && event.Call >= 0 {
			taken.take(initial, 0)
			initial = 0
		}
		if event.admitted() {
			taken.take(event.Units, event.Call)
		}
		b.early.set(instant(event.Call), taken.missing(event.Call))
	}
}

// judgeLeak enters the certain leak, and finds the possible one.
func (b *bucket) judgeLeak(leaks []overdraft, worst int64) {
	verdict := &b.verdict
	for _, leak := range leaks {
		verdict.Leak += leak.excess
		b.blame(b.leakedIn(leak))
	}
	verdict.sure = sure{
		leak:          worst,
		falseRejects:  verdict.FalseRejectUnits,
		falsePossible: verdict.FalseRejectUnitsPossible,
	}
	if slices.ContainsFunc(b.gives, func(event *Event) bool { return event.Kind == Expire }) {
		b.mostMissing(true)
	}
	over := int64(0)
	if values := len(b.most.val); values > 0 {
		over = b.most.extreme(0, values, true) - b.limit
	}
	verdict.LeakPossible = max(worst, min(over, verdict.Admitted))
	if verdict.LeakPossible > 0 {
		unfitting := min(b.possible(), verdict.Admitted)
		b.out.LeakPossible += max(verdict.Leak, unfitting)
	}
}

// countCrossings counts the stretches in which more was answered than the bucket had,
// and the units that were asked for over the limit.
func (b *bucket) countCrossings(leaks []overdraft) {
	var crossed []overdraft
	if b.verdict.GaveBack {
		b.out.OverOffered += b.overOffered(b.verdict.Leak)
		crossed = b.overTaken((*Event).answered)
	} else {
		crossed = b.overTaken(func(*Event) bool { return true })
		for _, stretch := range crossed {
			b.out.OverOffered += stretch.excess
		}
		// Otherwise the same was answered as was asked for.
		if slices.ContainsFunc(b.takes, func(event *Event) bool { return !event.answered() }) {
			crossed = b.overTaken((*Event).answered)
		}
	}
	excesses := make([]int64, len(leaks))
	for i, leak := range leaks {
		excesses[i] = leak.excess
	}
	b.crossedTimes(len(crossed), excesses)
}

// overTaken finds the stretches in which requests that count asked for more than the
// bucket had.
func (b *bucket) overTaken(counts func(*Event) bool) []overdraft {
	over, _ := b.leak(b.surely(counts, false))
	return over
}
