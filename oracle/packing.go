package oracle

import (
	"cmp"
	"container/heap"
	"slices"
)

// possible is the number of units that are not among the most that fit wherever
// they are placed. Each takes up room from its call until one length after its
// reply; if too much does, those that take it up longest are left out.
//
// What was there from the start is not among them, and is never left out.
func (r roller) possible(stays []stay) (out int64) {
	all := make([]packed, 1, len(stays)+1)
	all[0] = packed{stay{units: min(max(0, r.initial), r.limit)}, true}
	for _, s := range stays {
		all = append(all, packed{s, false})
	}
	byEnd := make([]*packed, len(all))
	for i := range all {
		byEnd[i] = &all[i]
	}
	byCall := slices.Clone(byEnd)
	slices.SortStableFunc(byCall, func(a, b *packed) int { return cmp.Compare(a.call, b.call) })
	slices.SortFunc(byEnd, func(a, b *packed) int { return cmp.Compare(a.reply, b.reply) })
	var kept lastReply
	load := int64(0)
	for _, p := range byCall {
		for byEnd[0].reply+r.length <= p.call { // which p itself is not
			load -= byEnd[0].units
			byEnd = byEnd[1:]
		}
		load += p.units
		if !p.fixed {
			heap.Push(&kept, p)
		}
		for load > r.limit {
			left := kept.leaveOut(load - r.limit)
			load -= left
			out += left
		}
	}
	return out
}

// possibleUnder is [roller.possible] under a limit that changes: there may be no more
// than the lowest limit that a request can have been checked against while that request
// is under way. What was admitted before may be more.
func (r roller) possibleUnder(cfg *Config, stays []stay) (out int64) {
	all := make([]*packed, 1, len(stays)+1)
	all[0] = &packed{stay: stay{units: max(0, r.initial)}, fixed: true}
	for _, s := range stays {
		all = append(all, &packed{stay: s})
	}
	byEnd := slices.Clone(all)
	slices.SortStableFunc(all, func(a, b *packed) int { return cmp.Compare(a.call, b.call) })
	slices.SortFunc(byEnd, func(a, b *packed) int { return cmp.Compare(a.reply, b.reply) })
	var kept lastReply
	var strict lowestFirst
	load := int64(0)
	for _, p := range all {
		for byEnd[0].reply+r.length <= p.call { // which p itself is not
			load -= byEnd[0].units
			byEnd = byEnd[1:]
		}
		load += p.units
		if p.fixed {
			continue
		}
		heap.Push(&kept, p)
		lowest, _ := cfg.between(p.call, p.reply)
		heap.Push(&strict, bound{p, lowest})
		for {
			for len(strict) > 0 && (strict[0].units == 0 || strict[0].reply < p.call) {
				heap.Pop(&strict)
			}
			if len(strict) == 0 || load <= strict[0].limit {
				break
			}
			left := kept.leaveOut(load - strict[0].limit) // no reply is later than that of a request under way
			load -= left
			out += left
		}
	}
	return out
}

// bound is a request with the lowest limit that it can have been checked against.
type bound struct {
	*packed
	limit int64
}

// lowestFirst is a heap with the lowest limit first.
type lowestFirst []bound

func (h lowestFirst) Len() int           { return len(h) }
func (h lowestFirst) Less(i, j int) bool { return h[i].limit < h[j].limit }
func (h lowestFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *lowestFirst) Push(x any)        { *h = append(*h, x.(bound)) }
func (h *lowestFirst) Pop() any {
	old := *h
	b := old[len(old)-1]
	*h = old[:len(old)-1]
	return b
}

// packed is a stay of which units are kept; all of them, if it is fixed.
type packed struct {
	stay
	fixed bool
}

// lastReply is a heap with the latest reply first. Those whose time has passed
// stay in it: they lie below all that still count.
type lastReply []*packed

func (h lastReply) Len() int           { return len(h) }
func (h lastReply) Less(i, j int) bool { return cmp.Less(h[j].reply, h[i].reply) }
func (h lastReply) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *lastReply) Push(x any)        { *h = append(*h, x.(*packed)) }
func (h *lastReply) Pop() any {
	old := *h
	p := old[len(old)-1]
	*h = old[:len(old)-1]
	return p
}

// leaveOut takes up to so many units from the request that takes up room longest, and
// says how many.
func (h *lastReply) leaveOut(units int64) int64 {
	last := (*h)[0]
	left := min(last.units, units)
	if last.units -= left; last.units == 0 {
		heap.Pop(h)
	}
	return left
}
