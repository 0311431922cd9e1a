package oracle

import (
	"cmp"
	"slices"
)

// overdraft is a stretch of time in which more was taken out than the bucket had,
// from the call that begins it to the reply that ends it.
type overdraft struct{ from, to, excess int64 }

// leak returns the stretches with the largest sum of excesses of which no two
// overlap, and the worst excess of one stretch.
func (b *bucket) leak(list []entry) (chosen []overdraft, worst int64) {
	b.refill.reset(b.flow, list)
	worst = b.worstBy(forever)
	if worst > 0 {
		chosen = b.choose(list)
	}
	return chosen, worst
}

// leakOfAdmitted is leak of all admitted units. It also fills the curve of the fewest
// units that can be missing. Between two of its moments the curve falls.
func (b *bucket) leakOfAdmitted() (chosen []overdraft, worst int64) {
	list := b.surely((*Event).admitted, true)
	b.refill.reset(b.flow, list)
	b.least.clear()
	for _, reply := range b.repliesOfTakes() {
		if reply == 0 && b.initial > 0 {
			// The last moment at which the initial units were not yet missing.
			before := instant(0) - 1
			worst = max(worst, b.worstBy(before))
			b.least.set(before, b.refill.missing(0))
		}
		worst = max(worst, b.worstBy(instant(reply)))
		b.least.set(instant(reply), b.refill.missing(reply))
	}
	worst = max(worst, b.worstBy(forever))
	if worst > 0 {
		chosen = b.choose(list)
	}
	return chosen, worst
}

// worstBy enters the entries that are known by a moment, and returns the worst excess
// of a stretch that ends where one of them became known.
func (b *bucket) worstBy(moment int64) (worst int64) {
	for b.refill.pending(moment) {
		known := b.refill.next().known
		for b.refill.pending(known) {
			b.refill.enter(0)
		}
		worst = max(worst, b.refill.missing(known>>1)-b.limit)
	}
	return worst
}

// choose finds the stretches with the largest sum of excesses: weighted interval
// scheduling, see [schedule].
//
// A stretch may begin at any entry. Entered together with each entry is the largest
// sum of the stretches that end before it. So what is missing in the end is not the
// excess of one stretch but the sum with all before it.
func (b *bucket) choose(list []entry) []overdraft {
	var stretches schedule[overdraft]
	b.refill.reset(b.flow, list)
	for b.refill.pending(forever) {
		known := b.refill.next().known
		for b.refill.pending(known) {
			before := endingBefore(stretches, b.refill.next().place)
			b.refill.enter(stretches.total(before))
		}
		end := known >> 1
		total := b.refill.missing(end) - b.limit
		if total <= stretches.total(len(stretches)) {
			continue
		}
		begin := b.refill.begin()
		before := endingBefore(stretches, begin)
		excess := total - stretches.total(before)
		stretches = append(stretches, choice[overdraft]{overdraft{begin, end, excess}, total, before})
	}
	return stretches.chosen()
}

// endingBefore is the number of stretches that end before a moment.
func endingBefore(stretches schedule[overdraft], moment int64) int {
	number, _ := slices.BinarySearchFunc(stretches, moment, func(stretch choice[overdraft], moment int64) int {
		return cmp.Compare(stretch.interval.to, moment)
	})
	return number
}

// leakedIn are the requests of a stretch that its excess belongs to.
func (b *bucket) leakedIn(stretch overdraft) leaking {
	first, _ := slices.BinarySearchFunc(b.takes, stretch.from, func(event *Event, begin int64) int {
		return cmp.Compare(event.Call, begin)
	})
	b.latest = b.latest[:0]
	for _, event := range b.takes[first:] {
		if event.Call > stretch.to {
			break
		}
		if event.admitted() && event.Reply <= stretch.to {
			b.latest = append(b.latest, answer{event.Reply, event.Units, event.Tier})
		}
	}
	return latestCovering(b.latest, stretch.excess)
}

// possible is the number of units that are not among some that fit wherever they are
// placed. At each call it assumes that answered requests took effect at their
// replies, and that those under way may take effect now. If more than the limit may
// then be missing, units of the requests with the latest replies are left out.
func (b *bucket) possible() (units int64) {
	sweep := newPacking(b.takenUnits())
	answered := meter{flow: b.flow}
	for _, request := range sweep.byCall {
		before := request.call - 1
		for ended := sweep.end(before); ended != nil; ended = sweep.end(before) {
			answered.take(ended.units, ended.reply)
		}
		sweep.begin(request)
		room := b.limit - answered.missing(request.call)
		for sweep.load > room && len(sweep.kept) > 0 && sweep.kept[0].reply >= request.call {
			sweep.leaveOut(sweep.load - room)
		}
	}
	return sweep.leftOut
}

// takenUnits are all units that were taken out. Initial units are never left out.
func (b *bucket) takenUnits() (all []packed) {
	for _, event := range b.takes {
		if event.admitted() {
			all = append(all, packed{stay: stay{event.Call, event.Reply, event.Units}})
		}
	}
	for _, event := range b.gives {
		if event.Units < 0 {
			all = append(all, packed{stay: stay{event.Call, event.Reply, -event.Units}})
		}
	}
	if b.initial > 0 {
		all = append(all, packed{stay: stay{units: b.initial}, fixed: true})
	}
	return all
}
