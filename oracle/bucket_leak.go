package oracle

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/quotabench/quotabench/quota"
)

// drawn is a stretch of time out of which more was taken than was there, from the
// call that begins it to the reply that ends it.
type drawn struct{ from, to, excess int64 }

// leak returns stretches with the largest sum of excesses of which no two overlap,
// and the worst excess of any. If note is set it fills the curve of what must
// be missing at the reply of every take. Between two of these moments it falls.
func (b *bucket) leak(list []entry, note bool) (chosen []drawn, worst int64) {
	refill := &b.tree
	refill.make(b.flow, list)
	b.replies = b.replies[:0]
	if note {
		b.least.at = b.least.at[:0]
		b.least.val = b.least.val[:0]
		b.least.tree = b.least.tree[:0]
		for _, event := range b.takes {
			b.replies = append(b.replies, event.Reply)
		}
		if b.initial > 0 {
			b.replies = append(b.replies, 0)
		}
		slices.Sort(b.replies)
		b.replies = slices.Compact(b.replies)
	}
	look := func() {
		on := refill.next()
		for refill.pending(on) {
			refill.enter(0)
		}
		worst = max(worst, refill.missing(on>>1)-b.limit)
	}
	for _, x := range b.replies {
		if x == 0 && b.initial > 0 { // the last moment at which that was not yet missing
			for refill.pending(instant(0) - 1) {
				look()
			}
			b.least.at = append(b.least.at, instant(0)-1)
			b.least.val = append(b.least.val, refill.missing(0))
		}
		for refill.pending(instant(x)) {
			look()
		}
		b.least.at = append(b.least.at, instant(x))
		b.least.val = append(b.least.val, refill.missing(x))
	}
	for refill.pending(forever) {
		look()
	}
	if worst > 0 {
		chosen = b.choose(list)
	}
	return chosen, worst
}

// choose finds the stretches with the largest sum of excesses.
func (b *bucket) choose(list []entry) (chosen []drawn) {
	type sum struct {
		drawn
		total  int64
		behind int // of those that end before this one begins
	}
	var sums []sum
	before := func(pos int64) int {
		n, _ := slices.BinarySearchFunc(sums, pos, func(s sum, pos int64) int { return cmp.Compare(s.to, pos) })
		return n
	}
	total := func(n int) int64 {
		if n == 0 {
			return 0
		}
		return sums[n-1].total
	}
	refill := &b.tree
	refill.make(b.flow, list)
	for refill.pending(forever) {
		on := refill.next()
		for refill.pending(on) {
			refill.enter(total(before(refill.peek().pos)))
		}
		if x := on >> 1; refill.missing(x)-b.limit > total(len(sums)) {
			from := refill.begin()
			n := before(from)
			all := refill.missing(x) - b.limit
			sums = append(sums, sum{drawn{from, x, all - total(n)}, all, n})
		}
	}
	for n := len(sums); n > 0; n = sums[n-1].behind {
		chosen = append(chosen, sums[n-1].drawn)
	}
	slices.Reverse(chosen)
	return chosen
}

// requests are those of a stretch that its excess belongs to.
func (b *bucket) requests(s drawn) leaking {
	from, _ := slices.BinarySearchFunc(b.takes, s.from, func(event *Event, t int64) int {
		return cmp.Compare(event.Call, t)
	})
	b.latest = b.latest[:0]
	for _, event := range b.takes[from:] {
		if event.Call > s.to {
			break
		}
		if event.admitted() && event.Reply <= s.to {
			b.latest = append(b.latest, answer{event.Reply, event.Units, event.Tier})
		}
	}
	return latestCovering(b.latest, s.excess)
}

// possible is the number of units that are not among some that fit wherever they
// are placed: if too much may be missing, those are left out that may be taken
// last.
func (b *bucket) possible() (out int64) {
	var all []packed
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
	byCall := make([]*packed, len(all))
	byReply := make([]*packed, len(all))
	for i := range all {
		byCall[i], byReply[i] = &all[i], &all[i]
	}
	slices.SortStableFunc(byCall, func(x, y *packed) int { return cmp.Compare(x.call, y.call) })
	slices.SortStableFunc(byReply, func(x, y *packed) int { return cmp.Compare(x.reply, y.reply) })
	var full quota.Level
	var kept lastReply
	flying := int64(0)
	begun := false
	for _, packed := range byCall {
		for byReply[0].reply < packed.call { // which packed itself is not
			done := byReply[0]
			byReply = byReply[1:]
			flying -= done.units
			if now := b.flow.At(done.reply); !begun || now.Compare(full) > 0 {
				full = now
				begun = true
			}
			full = full.Plus(done.units)
		}
		flying += packed.units
		if !packed.fixed {
			heap.Push(&kept, packed)
		}
		load := flying
		if begun {
			load += max(0, b.flow.Less(full, b.flow.At(packed.call)).Ceil())
		}
		for load > b.limit && len(kept) > 0 && kept[0].reply >= packed.call {
			left := kept.leaveOut(load - b.limit)
			load -= left
			flying -= left
			out += left
		}
	}
	return out
}
