package oracle

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// possible is the number of units that are not among the most that fit wherever
// they are placed. Each takes up room from its call until one length after its
// reply; if too much does, those that take it up longest are left out.
//
// What was there from the start is not among them, and is never left out. Under a limit
// that changes there may be no more than the lowest limit that a request can have been
// checked against while that request is under way. What was admitted before may be more.
func (r roller) possible(cfg *Config, stays []stay) (out int64) {
	var strict lowestFirst
	changes, initial, least := len(cfg.Changes) > 0, max(0, r.initial), strict.limit
	if !changes {
		initial = min(initial, r.limit)
		least = func(int64) int64 { return r.limit }
	}
	all := make([]packed, 1, len(stays)+1)
	all[0] = packed{stay: stay{units: initial}, fixed: true}
	for _, s := range stays {
		all = append(all, packed{stay: s})
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
		switch {
		case !p.fixed:
			heap.Push(&kept, p)
		case changes:
			continue
		}
		if changes {
			p.lowest, _ = cfg.between(p.call, p.reply)
			heap.Push(&strict, p)
		}
		for load > least(p.call) {
			left := kept.leaveOut(load - least(p.call)) // no reply is later than that of a request under way
			load -= left
			out += left
		}
	}
	return out
}

// lowestFirst is a heap with the lowest limit first.
type lowestFirst struct{ lastReply }

func (h lowestFirst) Less(i, j int) bool { return h.lastReply[i].lowest < h.lastReply[j].lowest }

// limit is the lowest limit of the requests that are under way at a moment.
func (h *lowestFirst) limit(now int64) int64 {
	for len(h.lastReply) > 0 {
		if first := h.lastReply[0]; first.units > 0 && first.reply >= now {
			return first.lowest
		}
		heap.Pop(h)
	}
	return math.MaxInt64
}

// packed is a stay of which units are kept; all of them, if it is fixed.
type packed struct {
	stay
	fixed  bool
	lowest int64 // limit that it can have been checked against, if the limit changes
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
