package oracle

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// possible is the number of units that are not among the most that fit wherever
// they are placed. A request takes up room from its call until one length after its
// reply. If too much room is taken, units of the request that takes it up longest
// are left out: among intervals of which only so many may overlap, this greedy
// choice leaves out the fewest (Faigle and Nawijn, "Note on scheduling intervals
// on-line", 1995).
//
// Initial units are not part of the result, and are never left out. Under a limit that
// changes, the units that take up room while a request is under way must fit into the
// lowest limit that it can have been checked against. Before its call there may be more.
func (r rollingLimit) possible(cfg *Config, requests []stay) (units int64) {
	changes := len(cfg.Changes) > 0
	initial := max(0, r.initial)
	if !changes {
		initial = min(initial, r.limit)
	}
	all := make([]packed, 1, len(requests)+1)
	all[0] = packed{stay: stay{units: initial}, fixed: true}
	for _, request := range requests {
		all = append(all, packed{stay: request})
	}
	sweep := newPacking(all)
	var strictest lowestFirst
	for _, request := range sweep.byCall {
		sweep.endBy(request.call - r.length)
		sweep.begin(request)
		switch {
		case !changes:
			sweep.leaveOutAbove(r.limit)
		case !request.fixed:
			request.lowest, _ = cfg.between(request.call, request.reply)
			heap.Push(&strictest, request)
			// A request that is left out as a whole restricts no others.
			for sweep.load > strictest.limit(request.call) {
				sweep.leaveOut(sweep.load - strictest.limit(request.call))
			}
		}
	}
	return sweep.leftOut
}

// packing is a sweep over requests by their calls, which leaves out units so that
// the rest fits.
type packing struct {
	byCall []*packed
	// byReply are the requests that still take up room, or have not yet begun to.
	byReply []*packed
	kept    lastReply // requests that have begun, with units that can be left out
	load    int64     // units that take up room
	leftOut int64     // units
}

// packed is a request of which units are kept; all of them, if it is fixed.
type packed struct {
	stay
	fixed  bool
	lowest int64 // limit that it can have been checked against, if the limit changes
}

func newPacking(requests []packed) packing {
	byReply := make([]*packed, len(requests))
	for i := range requests {
		byReply[i] = &requests[i]
	}
	byCall := slices.Clone(byReply)
	slices.SortStableFunc(byCall, func(a, b *packed) int { return cmp.Compare(a.call, b.call) })
	slices.SortFunc(byReply, func(a, b *packed) int { return cmp.Compare(a.reply, b.reply) })
	return packing{byCall: byCall, byReply: byReply}
}

// begin lets a request take up room.
func (p *packing) begin(request *packed) {
	p.load += request.units
	if !request.fixed {
		heap.Push(&p.kept, request)
	}
}

// end ends the next request that was answered by a moment; nil if there is none.
// The moment must lie before some reply to come.
func (p *packing) end(by int64) *packed {
	next := p.byReply[0]
	if next.reply > by {
		return nil
	}
	p.byReply = p.byReply[1:]
	p.load -= next.units
	return next
}

// endBy ends all requests that were answered by a moment.
func (p *packing) endBy(moment int64) {
	for p.end(moment) != nil {
		continue
	}
}

// leaveOutAbove leaves out the units above a limit.
func (p *packing) leaveOutAbove(limit int64) {
	for p.load > limit {
		p.leaveOut(p.load - limit)
	}
}

// leaveOut leaves out up to so many units of the request with the latest reply. No
// request under way has a later one.
func (p *packing) leaveOut(units int64) {
	latest := p.kept[0]
	taken := min(latest.units, units)
	latest.units -= taken
	if latest.units == 0 {
		heap.Pop(&p.kept)
	}
	p.load -= taken
	p.leftOut += taken
}

// lastReply is a heap with the latest reply first. Requests that have ended stay in
// it: they lie below all that still take up room.
type lastReply []*packed

func (h lastReply) Len() int           { return len(h) }
func (h lastReply) Less(i, j int) bool { return cmp.Less(h[j].reply, h[i].reply) }
func (h lastReply) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *lastReply) Push(value any)    { *h = append(*h, value.(*packed)) }
func (h *lastReply) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// lowestFirst is a heap of requests with the lowest limit first.
type lowestFirst struct{ lastReply }

func (h lowestFirst) Less(i, j int) bool { return h.lastReply[i].lowest < h.lastReply[j].lowest }

// limit is the lowest limit of the requests that are under way at a moment.
func (h *lowestFirst) limit(now int64) int64 {
	for len(h.lastReply) > 0 {
		lowest := h.lastReply[0]
		if lowest.units > 0 && lowest.reply >= now {
			return lowest.lowest
		}
		heap.Pop(h)
	}
	return math.MaxInt64
}

// chains finds leaks of a rolling window that no single window shows: each admission
// pushes the next one back, by a window's length behind the one that filled the
// limit, until one would have had its reply before it was possible.
//
// The earliest admission of a request is the first moment at which one of its units
// can have been admitted in addition to the requests that had replied before its
// call: its call, or one length behind the moment since which the limit was filled.
// A request that had its reply before its earliest admission is over the limit.
//
// If requests of one unit come strictly one after the other, that one is left out,
// which is the best that can be done, and there are as few leaks as can be.
// Otherwise all that led to it is left out as well, and there may be more leaks.
func (r rollingLimit) chains(admitted []stay) (leaks []stretch) {
	if r.limit < 1 || r.initial > r.limit {
		return nil
	}
	sweep := r.newChain(admitted)
	exact := sequential(sweep.byCall)
	for i, request := range sweep.byCall {
		sweep.enterAnswered(request.call)
		earliest := request.call
		if full, is := sweep.latest.fullSince(); is {
			earliest = max(request.call, full+r.length)
		}
		sweep.earliest[i] = earliest
		if earliest <= request.reply {
			continue
		}
		leaks = append(leaks, stretch{after(request.reply), 1})
		if !exact {
			sweep.restart(i + 1)
		}
	}
	return leaks
}

// chain is a sweep over requests by their calls.
type chain struct {
	byCall   []stay
	byReply  []int   // places in byCall
	earliest []int64 // admission of each request in byCall
	first    int     // the first request in byCall that counts
	answered int     // requests in byReply that had replied before the call at hand
	initial  int64   // units that were not yet entered
	latest   latestAdmitted
}

func (r rollingLimit) newChain(admitted []stay) *chain {
	c := &chain{
		byCall:   slices.Clone(admitted),
		byReply:  make([]int, len(admitted)),
		earliest: make([]int64, len(admitted)),
		initial:  r.initial,
		latest:   latestAdmitted{limit: r.limit},
	}
	slices.SortFunc(c.byCall, func(a, b stay) int { return cmp.Compare(a.call, b.call) })
	for i := range c.byReply {
		c.byReply[i] = i
	}
	slices.SortFunc(c.byReply, func(a, b int) int { return cmp.Compare(c.byCall[a].reply, c.byCall[b].reply) })
	return c
}

// enterAnswered enters the requests that had replied before a call, at their
// earliest admission. Requests over the limit are not entered.
func (c *chain) enterAnswered(call int64) {
	if call > 0 {
		c.latest.admit(0, c.initial)
		c.initial = 0
	}
	for ; c.byCall[c.byReply[c.answered]].reply < call; c.answered++ {
		place := c.byReply[c.answered]
		request := &c.byCall[place]
		if place >= c.first && c.earliest[place] <= request.reply {
			c.latest.admit(c.earliest[place], request.units)
		}
	}
}

// restart leaves out all requests before a place in byCall.
func (c *chain) restart(first int) {
	c.first = first
	c.latest = latestAdmitted{limit: c.latest.limit}
}

// sequential reports whether all requests ask for one unit and come strictly one
// after the other.
func sequential(byCall []stay) bool {
	for i, request := range byCall {
		if request.units != 1 || i > 0 && byCall[i-1].reply >= request.call {
			return false
		}
	}
	return true
}

// latestAdmitted are the units that were admitted last: as many as the limit, and
// the rest of the admission that the first of them belongs to.
type latestAdmitted struct {
	limit, units int64
	byTime       []admission
}

// admission is when units were admitted, at the earliest.
type admission struct{ at, units int64 }

// admit adds units, and drops the oldest admission while the others are as many as
// the limit.
func (l *latestAdmitted) admit(at, units int64) {
	if units <= 0 {
		return
	}
	l.byTime = append(l.byTime, admission{at, units})
	l.units += units
	// Admissions come nearly in the order of their time.
	for i := len(l.byTime) - 1; i > 0 && l.byTime[i-1].at > at; i-- {
		l.byTime[i-1], l.byTime[i] = l.byTime[i], l.byTime[i-1]
	}
	for l.units-l.byTime[0].units >= l.limit {
		l.units -= l.byTime[0].units
		l.byTime = l.byTime[1:]
	}
}

// fullSince is the moment from which on as many units as the limit were admitted.
func (l *latestAdmitted) fullSince() (at int64, is bool) {
	if l.units < l.limit {
		return 0, false
	}
	return l.byTime[0].at, true
}
