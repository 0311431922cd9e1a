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
	changes := len(cfg.Changes) > 0
	initial := max(0, r.initial)
	least := strict.limit
	if !changes {
		initial = min(initial, r.limit)
		least = func(int64) int64 { return r.limit }
	}
	all := make([]packed, 1, len(stays)+1)
	all[0] = packed{stay: stay{units: initial}, fixed: true}
	for _, stay := range stays {
		all = append(all, packed{stay: stay})
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
	for _, packed := range byCall {
		for byEnd[0].reply+r.length <= packed.call { // which packed itself is not
			load -= byEnd[0].units
			byEnd = byEnd[1:]
		}
		load += packed.units
		switch {
		case !packed.fixed:
			heap.Push(&kept, packed)
		case changes:
			continue
		}
		if changes {
			packed.lowest, _ = cfg.between(packed.call, packed.reply)
			heap.Push(&strict, packed)
		}
		for load > least(packed.call) {
			left := kept.leaveOut(load - least(packed.call)) // no reply is later than that of a request under way
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
func (h *lastReply) Push(value any)    { *h = append(*h, value.(*packed)) }
func (h *lastReply) Pop() any {
	old := *h
	packed := old[len(old)-1]
	*h = old[:len(old)-1]
	return packed
}

// leaveOut takes up to so many units from the request that takes up room longest, and
// says how many.
func (h *lastReply) leaveOut(units int64) int64 {
	last := (*h)[0]
	left := min(last.units, units)
	last.units -= left
	if last.units == 0 {
		heap.Pop(h)
	}
	return left
}

// chains finds leaks of a rolling window that no single window shows: each admission pushes the next one back, by a
// window's length behind the one that filled the limit, until one would have had its reply before it was possible.
//
// For every request it works out the first moment at which a unit of it can have been admitted in addition to those
// that had replied before it was called. A request that had its own reply before that moment is over the limit. If
// requests of one unit come strictly one after the other, leaving it out is the best that can be done, and there are
// as few leaks as can be. Otherwise all that led to it is left out, too, and there may be more.
func (r roller) chains(admitted []stay) (leaks []stretch) {
	if r.limit < 1 || r.initial > r.limit {
		return nil
	}
	byCall := slices.Clone(admitted)
	byReply := make([]int, len(admitted))
	slices.SortFunc(byCall, func(a, b stay) int { return cmp.Compare(a.call, b.call) })
	for i := range byReply {
		byReply[i] = i
	}
	slices.SortFunc(byReply, func(a, b int) int { return cmp.Compare(byCall[a].reply, byCall[b].reply) })
	first := make([]int64, len(byCall)) // moment of each
	full := filled{limit: r.limit}
	initial := r.initial
	ordered := r.ordered(byCall)
	since := 0
	done := 0
	for i, stay := range byCall {
		if stay.call > 0 {
			full.admit(0, initial)
			initial = 0
		}
		for ; byCall[byReply[done]].reply < stay.call; done++ {
			if k := byReply[done]; k >= since && first[k] <= byCall[k].reply {
				full.admit(first[k], byCall[k].units)
			}
		}
		first[i] = stay.call
		if at, ok := full.since(); ok {
			first[i] = max(stay.call, at+r.length)
		}
		if first[i] <= stay.reply {
			continue
		}
		leaks = append(leaks, stretch{after(stay.reply), 1})
		if !ordered {
			since = i + 1
			full = filled{limit: r.limit}
		}
	}
	return leaks
}

// ordered reports whether all requests ask for one unit and come strictly one after the other.
func (roller) ordered(byCall []stay) bool {
	for i, stay := range byCall {
		if stay.units != 1 || i > 0 && byCall[i-1].reply >= stay.call {
			return false
		}
	}
	return true
}

// filled are the units that were admitted last, about as many as the limit, by time.
type filled struct {
	limit, units int64
	list         []admission
}

// admission is when units were admitted, at the earliest.
type admission struct{ at, units int64 }

// admit adds units, and drops those without which the rest is still as many as the limit.
func (f *filled) admit(at, units int64) {
	if units <= 0 {
		return
	}
	f.list = append(f.list, admission{at, units})
	for i := len(f.list) - 1; i > 0 && f.list[i-1].at > at; i-- { // they come nearly in their order
		f.list[i-1], f.list[i] = f.list[i], f.list[i-1]
	}
	for f.units += units; f.units-f.list[0].units >= f.limit; f.list = f.list[1:] {
		f.units -= f.list[0].units
	}
}

// since is the moment from which on as many units as the limit were admitted. ok is false if there are fewer.
func (f *filled) since() (at int64, ok bool) {
	if f.units < f.limit {
		return 0, false
	}
	return f.list[0].at, true
}
