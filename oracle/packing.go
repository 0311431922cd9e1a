package oracle

import (
	"cmp"
	"container/heap"
	"slices"
)

// possible is the number of units that are not among the most that fit wherever
// they are placed. Each takes up room from its call until one length after its
// reply; where too much does, those that take it up longest are left out.
func (r roller) possible(stays []stay) (out int64) {
	load := int64(0)
	byEnd := make([]*packed, 0, len(stays))
	all := make([]packed, len(stays))
	for i, s := range stays {
		all[i].stay = s
		byEnd = append(byEnd, &all[i])
	}
	byCall := slices.Clone(byEnd)
	slices.SortStableFunc(byCall, func(a, b *packed) int { return cmp.Compare(a.call, b.call) })
	slices.SortFunc(byEnd, func(a, b *packed) int { return cmp.Compare(a.reply, b.reply) })
	var kept lastReply
	fill := min(max(0, r.initial), r.limit)
	filled, emptied := fill == 0, fill == 0
	expired := 0
	trim := func() {
		for load > r.limit {
			p := kept[0]
			left := min(p.units, load-r.limit)
			p.units -= left
			load -= left
			out += left
			if p.units == 0 {
				heap.Pop(&kept)
			}
		}
	}
	for _, p := range byCall {
		if !filled && p.call >= 0 {
			filled = true
			load += fill
			for ; expired < len(byEnd) && byEnd[expired].reply+r.length <= 0; expired++ {
				load -= byEnd[expired].units
			}
			trim()
		}
		if filled && !emptied && p.call >= r.length {
			emptied = true
			load -= fill
		}
		for ; expired < len(byEnd) && byEnd[expired].reply+r.length <= p.call; expired++ {
			load -= byEnd[expired].units
		}
		load += p.units
		heap.Push(&kept, p)
		trim()
	}
	if !filled { // every request was called before the epoch
		load += fill
		for ; expired < len(byEnd) && byEnd[expired].reply+r.length <= 0; expired++ {
			load -= byEnd[expired].units
		}
		trim()
	}
	return out
}

// packed is a stay of which units are kept.
type packed struct{ stay }

// lastReply is a heap with the latest reply first. Those whose time has passed
// stay in it: they lie below all that still count.
type lastReply []*packed

func (h lastReply) Len() int           { return len(h) }
func (h lastReply) Less(i, j int) bool { return h[i].reply > h[j].reply }
func (h lastReply) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *lastReply) Push(x any)        { *h = append(*h, x.(*packed)) }
func (h *lastReply) Pop() any {
	old := *h
	p := old[len(old)-1]
	*h = old[:len(old)-1]
	return p
}
