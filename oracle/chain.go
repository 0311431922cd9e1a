package oracle

import (
	"cmp"
	"slices"
)

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
	byCall, byReply := slices.Clone(admitted), make([]int, len(admitted))
	slices.SortFunc(byCall, func(a, b stay) int { return cmp.Compare(a.call, b.call) })
	for i := range byReply {
		byReply[i] = i
	}
	slices.SortFunc(byReply, func(a, b int) int { return cmp.Compare(byCall[a].reply, byCall[b].reply) })
	first := make([]int64, len(byCall)) // moment of each
	full, initial := filled{limit: r.limit}, r.initial
	ordered, since, done := r.ordered(byCall), 0, 0
	for i, s := range byCall {
		if s.call > 0 {
			full.admit(0, initial)
			initial = 0
		}
		for ; byCall[byReply[done]].reply < s.call; done++ {
			if k := byReply[done]; k >= since && first[k] <= byCall[k].reply {
				full.admit(first[k], byCall[k].units)
			}
		}
		first[i] = s.call
		if at, ok := full.since(); ok {
			first[i] = max(s.call, at+r.length)
		}
		if first[i] <= s.reply {
			continue
		}
		leaks = append(leaks, stretch{after(s.reply), 1})
		if !ordered {
			since, full = i+1, filled{limit: r.limit}
		}
	}
	return leaks
}

// ordered reports whether all requests ask for one unit and come strictly one after the other.
func (roller) ordered(byCall []stay) bool {
	for i, s := range byCall {
		if s.units != 1 || i > 0 && byCall[i-1].reply >= s.call {
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
