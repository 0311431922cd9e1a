package oracle

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// The tests check the oracle against definitions that are evaluated by trying
// everything. Nothing here uses the oracle's own notions of curves, bounds or
// windows.

const (
	width  = 10 // of a tumbling test window
	offset = 3  // of the epoch within its window
)

func tumblingConfig(limit, initial int64) Config {
	return Config{
		Window:  quota.Window{Kind: quota.Fixed, Length: width},
		Limit:   limit,
		Initial: func(uint32) int64 { return initial },
		Epoch:   time.Unix(7, offset),
	}
}

// windowOf numbers windows from that of the epoch.
func windowOf(t int64) int64 { return int64(math.Floor(float64(t+offset) / width)) }

func windowStart(w int64) int64 { return w*width - offset }

// operation is an event that knows what it refers to.
type operation struct {
	Event
	of int // index of the request given back, or -1
}

func events(ops []operation) []Event {
	out := make([]Event, len(ops))
	for i, o := range ops {
		out[i] = o.Event
		if o.of >= 0 {
			out[i].TakeCall, out[i].TakeReply = ops[o.of].Call, ops[o.of].Reply
		}
	}
	return out
}

// effect is one operation at one moment.
type effect struct {
	op     int
	window int64
	at     int64
}

// orders visits every order of effects that the intervals allow, and for each
// every choice of windows if there are any. A refund comes after its request. A
// failed refund may take effect at any moment from its call on, or never.
func orders(ops []operation, windows bool, visit func([]effect)) {
	used := make([]bool, len(ops))
	seq := make([]effect, 0, len(ops))
	var rec func(now int64)
	rec = func(now int64) {
		done := true
		for i, o := range ops {
			if used[i] {
				continue
			}
			optional := o.Kind != Take && o.Outcome == Failed
			done = done && optional
			if o.of >= 0 && !used[o.of] {
				continue
			}
			last := o.Reply
			if optional {
				last = math.MaxInt64 / 2
			}
			used[i] = true
			for m := max(now, o.Call); m <= last; m = windowStart(windowOf(m) + 1) {
				seq = append(seq, effect{i, windowOf(m), m})
				rec(m)
				seq = seq[:len(seq)-1]
				if !windows || optional {
					break
				}
			}
			used[i] = false
		}
		if done {
			visit(seq)
		}
	}
	rec(math.MinInt64 / 2)
}

// within reports whether a verdict's figures say nothing that trying everything
// contradicts.
func (t truth) within(want truth) bool {
	return t.leak <= want.leak && t.worst <= want.worst && t.always <= want.always && t.falseWorst <= want.falseWorst &&
		t.possible >= want.possible && t.mostWorst >= want.mostWorst && t.once >= want.once && t.falseMost >= want.falseMost
}

// truth is what trying everything finds out.
type truth struct {
	leak, possible   int64 // sum of the windows' peak excesses: least, most
	worst, mostWorst int64 // of the worst window: least, most
	always, once     int64 // false rejects: in every order, in some order
	alwaysU, onceU   int64
	// Units of false rejects in the worst window: least, most.
	falseWorst, falseMost int64
}

// try evaluates a history of one subject under a standing policy, or under
// tumbling windows.
func try(ops []operation, limit, initial int64, windows bool) truth {
	out := truth{leak: math.MaxInt64, worst: math.MaxInt64, falseWorst: math.MaxInt64}
	fits := make([]int, len(ops))
	total := 0
	orders(ops, windows, func(seq []effect) {
		total++
		used := map[int64]int64{}
		if !windows {
			seq = append([]effect(nil), seq...)
			for i := range seq {
				seq[i].window = 0
			}
		}
		used[0] = initial
		admitted := map[int64]int64{}
		peak := map[int64]int64{}
		wrongly := map[int64]int64{}
		charged := make([]int64, len(ops))
		for _, e := range seq {
			o := ops[e.op]
			switch {
			case o.admitted():
				charged[e.op] = e.window
				used[e.window] += o.Units
				admitted[e.window] += o.Units
				peak[e.window] = max(peak[e.window], min(used[e.window]-limit, admitted[e.window]))
			case o.rejected():
				if used[e.window]+o.Units <= limit {
					fits[e.op]++
					wrongly[e.window] += o.Units
				}
			case o.of >= 0:
				used[charged[o.of]] -= o.Units
			default: // gives back what was there from the start
				used[0] -= o.Units
			}
		}
		var sum, worst, falsely int64
		for _, units := range wrongly {
			falsely = max(falsely, units)
		}
		out.falseWorst = min(out.falseWorst, falsely)
		out.falseMost = max(out.falseMost, falsely)
		for _, p := range peak {
			sum += p
			worst = max(worst, p)
		}
		out.leak = min(out.leak, sum)
		out.possible = max(out.possible, sum)
		out.worst = min(out.worst, worst)
		out.mostWorst = max(out.mostWorst, worst)
	})
	for i, o := range ops {
		if o.rejected() && fits[i] == total {
			out.always++
			out.alwaysU += o.Units
		}
		if o.rejected() && fits[i] > 0 {
			out.once++
			out.onceU += o.Units
		}
	}
	return out
}

// history makes a small random history of one subject.
type generator struct {
	*rand.Rand
	span, length int64 // of the history, and of the longest operation
	cost         int64
	refunds      bool
	failedToo    bool
	// commits settles some requests before they are refunded, also above what they
	// reserved; expiries lets some lapse instead of being refunded.
	commits, expiries bool
	// gap is the least time between a request's reply and its refund's call.
	gap int64
	// early is how far before the epoch calls may lie, and fill what refunds may
	// give back of the units that were there from the start.
	early, fill int64
}

func (g generator) interval(from int64) (call, reply int64) {
	call = from + g.Int64N(max(1, g.span-from)) - g.early
	return call, call + g.Int64N(g.length+1)
}

func (g generator) take() operation {
	o := operation{of: -1}
	o.Units = 1 + g.Int64N(g.cost)
	o.Call, o.Reply = g.interval(0)
	if g.IntN(3) == 0 {
		o.Outcome = Rejected
	}
	return o
}

func (g generator) history(n int) []operation {
	ops := make([]operation, 0, n)
	back := map[int]bool{}
	for len(ops) < n {
		if !g.refunds || g.IntN(3) > 0 {
			ops = append(ops, g.take())
			continue
		}
		if g.fill > 0 && g.IntN(3) == 0 {
			g.fill--
			o := operation{of: -1}
			o.Kind = Refund
			o.Units = 1
			o.Call = g.Int64N(g.span)
			o.Reply = o.Call + g.Int64N(g.length+1)
			ops = append(ops, o)
			continue
		}
		i := -1
		for k := range ops {
			if ops[k].admitted() && !back[k] {
				i = k
			}
		}
		if i < 0 {
			ops = append(ops, g.take())
			continue
		}
		back[i] = true
		held := ops[i].Units
		from := ops[i].Reply + g.gap
		if g.commits && g.IntN(2) == 0 {
			o := g.giveBack(Commit, i, held-g.Int64N(held+2), from)
			held = held - o.Units
			from = o.Reply + g.gap
			ops = append(ops, o)
			if g.IntN(2) == 0 {
				continue
			}
		}
		o := g.giveBack(Refund, i, held, from)
		if g.expiries && g.IntN(2) == 0 {
			o.Kind = Expire
			o.Reply = o.Call
			o.Outcome = Admitted
		}
		ops = append(ops, o)
	}
	return ops
}

func (g generator) giveBack(kind Kind, of int, units, from int64) operation {
	o := operation{of: of}
	o.Kind = kind
	o.Units = units
	o.Call = from + g.Int64N(4)
	if g.IntN(6) == 0 {
		o.Call += g.Int64N(g.span)
	}
	o.Reply = o.Call + g.Int64N(g.length+1)
	if g.failedToo && g.IntN(4) == 0 {
		o.Outcome = Failed
	}
	return o
}

// unnoticed is the same history as a store may see it: an expiry frees nothing
// there until the store finds it, if it ever does.
func unnoticed(ops []operation) []operation {
	out := append([]operation(nil), ops...)
	for i := range out {
		if out[i].Kind == Expire {
			out[i].Outcome = Failed
		}
	}
	return out
}

// truths are the figures by trying everything: leak is about what callers hold,
// false rejects about what the store may hold.
func truths(ops []operation, limit, initial int64, windows bool) truth {
	out := try(ops, limit, initial, windows)
	store := try(unnoticed(ops), limit, initial, windows)
	out.always = store.always
	out.once = store.once
	out.alwaysU = store.alwaysU
	out.onceU = store.onceU
	out.falseWorst = store.falseWorst
	out.falseMost = store.falseMost
	return out
}

// placements visits every choice of one moment per interval on a grid of half
// nanoseconds, in doubled times.
func placements(stays []stay, visit func(at []int64)) {
	at := make([]int64, len(stays))
	var rec func(i int)
	rec = func(i int) {
		if i == len(stays) {
			visit(at)
			return
		}
		for m := 2 * stays[i].call; m <= 2*stays[i].reply; m++ {
			at[i] = m
			rec(i + 1)
		}
	}
	rec(0)
}
