package oracle

import (
	"math"

	"github.com/quotabench/quotabench/quota"
)

// Explanations of a history in which the limit changes are tried one by one: the
// moment of each change, the order and the moments of all operations, and the limit
// that each request was checked against. That limit is one that was in force at some
// instant of the request, whichever the moment of its decision was.
//
// In an explanation, an effective limit follows from one step to the next. It is the
// limit at first. When the limit changes and when units leave, it becomes the limit,
// or itself or what is in use, if the smaller of these two is more. An admission
// leaks what is then in use above the effective limit or the limit of the request,
// whichever is more.
//
// Higher limits of requests never make more leak nor fewer false rejects. So the
// highest and the lowest one of each are tried, and one of each at random.

const (
	mostOps     = 5
	mostWindows = 5
	ways        = 3 // of choosing requests' limits: highest, lowest, random
)

// puzzle is a history of one subject with its explanations.
type puzzle struct {
	Config
	initial int64
	ops     []operation
	grid    int64 // moments per nanosecond; times in explanations are doubled
	random  uint64

	moments []int64        // of the changes, in this explanation
	held    [ways][]little // limits that requests are checked against
	out     changedTruth   // over all explanations
	masks   [2]uint16      // rejections that are wrong always, once
	leaves  int
}

// changedTruth is what trying everything finds out.
type changedTruth struct {
	truth
	removed, mostRemoved int64 // fewest units that would have to go: least, most
	explained            bool  // some explanation has no wrong rejection
	contradiction        bool  // limits at random gave less or more than the others
}

// little keeps states small: they are copied at each step.
type little = int16

// state is an explanation up to some step.
type state struct {
	now     int64
	done    uint16
	changed little
	limit   little
	at      [mostOps]little
	window  [mostOps]little
	used    [mostWindows]little
	mine    [mostWindows]little
	// Of windows that begin with their first request.
	begin, open little
	by          [ways]progress
}

// progress is the part of a state that depends on the limits chosen.
type progress struct {
	effective, peak, wrongly [mostWindows]little
	kept                     [mostOps]little
	removed                  little
	wrong                    uint16
}

// solve tries all explanations.
func (p *puzzle) solve() changedTruth {
	p.out = changedTruth{
		truth:   truth{leak: math.MaxInt64, worst: math.MaxInt64, falseWorst: math.MaxInt64},
		removed: math.MaxInt64,
	}
	p.masks = [2]uint16{math.MaxUint16, 0}
	p.moments = make([]int64, len(p.Changes))
	p.leaves = 0
	p.change(0)
	p.out.always = 0
	p.out.once = 0
	for i, o := range p.ops {
		if bit := uint16(1) << i; o.rejected() {
			p.out.always += b2i(p.masks[0]&bit != 0)
			p.out.once += b2i(p.masks[1]&bit != 0)
			p.out.alwaysU += b2i(p.masks[0]&bit != 0) * o.Units
			p.out.onceU += b2i(p.masks[1]&bit != 0) * o.Units
		}
	}
	return p.out
}

// change chooses the moment of one change after the other, and then tries the rest.
func (p *puzzle) change(i int) {
	if i < len(p.Changes) {
		from := 2 * p.Changes[i].From
		if i > 0 {
			from = max(from, p.moments[i-1])
		}
		for m := from; m <= 2*p.Changes[i].To; m += 2 / p.grid {
			p.moments[i] = m
			p.change(i + 1)
		}
		return
	}
	for w := range p.held {
		p.held[w] = p.held[w][:0]
	}
	for _, o := range p.ops {
		var options []int64
		for k := 0; k <= len(p.moments); k++ {
			limit := p.Limit
			from := int64(math.MinInt64)
			to := int64(math.MaxInt64)
			if k > 0 {
				limit = p.Changes[k-1].Limit
				from = p.moments[k-1]
			}
			if k < len(p.moments) {
				to = p.moments[k]
			}
			if 2*o.Call <= to && from <= 2*o.Reply {
				options = append(options, limit)
			}
		}
		lowest := options[0]
		highest := options[0]
		for _, l := range options {
			lowest = min(lowest, l)
			highest = max(highest, l)
		}
		p.random = p.random*6364136223846793005 + 1442695040888963407
		some := options[(p.random>>33)%uint64(len(options))]
		p.held[0], p.held[1], p.held[2] = append(p.held[0], little(highest)), append(p.held[1], little(lowest)),
			append(p.held[2], little(some))
	}
	s := state{now: math.MinInt64 / 2, limit: little(p.Limit), open: -1}
	for w := range s.by {
		for k := range s.by[w].effective {
			s.by[w].effective[k] = little(p.Limit)
		}
	}
	s.used[0] = little(p.initial)
	if p.Window.Kind == quota.FirstRequest && p.initial > 0 {
		s.open = 0
	}
	p.step(&s)
}

// step tries everything that can come next.
func (p *puzzle) step(s *state) {
	complete := int(s.changed) == len(p.moments)
	if !complete && p.moments[s.changed] >= s.now {
		next := *s
		next.now = p.moments[s.changed]
		p.lower(&next)
		p.step(&next)
	}
	for i := range p.ops {
		o := &p.ops[i]
		optional := o.Kind != Take && o.Outcome == Failed
		if s.done&(1<<i) != 0 {
			continue
		}
		complete = complete && optional
		if o.of >= 0 && s.done&(1<<o.of) == 0 {
			continue
		}
		last := 2 * o.Reply
		if optional {
			last = math.MaxInt64 / 4
		}
		if int(s.changed) < len(p.moments) {
			last = min(last, p.moments[s.changed])
		}
		for m := max(s.now, 2*o.Call); m <= last; m = p.later(m) {
			next := *s
			next.now = m
			next.done |= 1 << i
			p.apply(&next, i)
			p.step(&next)
			if optional {
				break
			}
		}
	}
	if complete {
		p.leaf(s)
	}
}

// later is the next moment that can make a difference.
func (p *puzzle) later(m int64) int64 {
	switch kind := p.Window.Kind; {
	case kind == quota.Standing:
		return math.MaxInt64
	case kind.Tumbling():
		return 2 * windowStart(windowOf(m>>1)+1)
	default:
		return m + 2/p.grid
	}
}

// at is the window of a moment, or -1.
func (p *puzzle) windowAt(s *state, m int64) int {
	switch kind := p.Window.Kind; {
	case kind.Tumbling():
		return int(windowOf(m >> 1))
	case kind == quota.FirstRequest:
		if s.open < 0 || m >= int64(s.begin)+2*int64(p.Window.Length) {
			return -1
		}
		return int(s.open)
	default:
		return 0
	}
}

// age takes out of a rolling window what has left it.
func (p *puzzle) age(s *state) {
	if p.Window.Kind != quota.Rolling {
		return
	}
	length := 2 * int64(p.Window.Length)
	s.used[0], s.mine[0] = 0, 0
	if s.now < length {
		s.used[0] = little(p.initial)
	}
	for i, o := range p.ops {
		if s.done&(1<<i) == 0 || o.rejected() {
			continue
		}
		of := i
		if o.of >= 0 {
			of = o.of
		}
		switch inside := int64(s.at[of]) > s.now-length; {
		case inside && o.admitted():
			s.used[0] += little(o.Units)
			s.mine[0] += little(o.Units)
		case inside && o.of >= 0:
			s.used[0] -= little(o.Units)
		}
	}
	p.follow(s, 0)
}

// follow lets the effective limits follow what is in use.
func (p *puzzle) follow(s *state, w int) {
	for k := range s.by {
		e := &s.by[k].effective[w]
		*e = max(s.limit, min(*e, s.used[w]))
	}
}

// lower lets the limit change.
func (p *puzzle) lower(s *state) {
	p.age(s)
	s.limit = little(p.Changes[s.changed].Limit)
	s.changed++
	now := p.windowAt(s, s.now)
	if now >= 0 {
		p.follow(s, now)
	}
	for w := now + 1; w < mostWindows && p.Window.Kind.Tumbling(); w++ {
		for k := range s.by {
			s.by[k].effective[w] = s.limit
		}
	}
}

// apply lets an operation take effect.
func (p *puzzle) apply(s *state, i int) {
	o := &p.ops[i]
	s.done &^= 1 << i
	p.age(s)
	s.done |= 1 << i
	w := p.windowAt(s, s.now)
	s.at[i], s.window[i] = little(s.now), little(w)
	switch {
	case o.admitted():
		if w < 0 {
			w = int(s.open) + 1
			s.begin = little(s.now)
			s.open = little(w)
			s.window[i] = little(w)
			for k := range s.by {
				s.by[k].effective[w] = s.limit
			}
		}
		before := s.used[w]
		s.used[w] += little(o.Units)
		s.mine[w] += little(o.Units)
		for k := range s.by {
			g := &s.by[k]
			limit := p.held[k][i]
			right := min(g.effective[w], before)
			g.peak[w] = max(g.peak[w], min(s.used[w]-max(limit, right), s.mine[w]))
			g.effective[w] = max(s.limit, right, min(limit, s.used[w]))
			g.keep(p, s, i, limit)
		}
	case o.rejected():
		for k := range s.by {
			used := little(0)
			if w >= 0 {
				used = s.used[w]
			}
			if used+little(o.Units) <= p.held[k][i] {
				s.by[k].wrong |= 1 << i
				s.by[k].wrongly[max(w, 0)] += little(o.Units)
			}
		}
	default: // of what was there from the start, if of no request
		if o.of >= 0 {
			w = int(s.window[o.of])
		} else {
			w = 0
		}
		if p.Window.Kind == quota.Rolling {
			p.age(s)
			return
		}
		s.used[w] -= little(o.Units)
		if w == p.windowAt(s, s.now) {
			p.follow(s, w)
		}
	}
}

// keep counts what would have to go under a rolling window, so that every request is
// within its limit: removing the latest of those that are too many removes the fewest.
func (g *progress) keep(p *puzzle, s *state, i int, limit little) {
	if p.Window.Kind != quota.Rolling {
		return
	}
	length := 2 * int64(p.Window.Length)
	used := little(0)
	if s.now < length {
		used = little(p.initial)
	}
	for k := range p.ops {
		if k != i && s.done&(1<<k) != 0 && int64(s.at[k]) > s.now-length {
			used += g.kept[k]
		}
	}
	g.kept[i] = min(little(p.ops[i].Units), max(0, limit-used))
	g.removed += little(p.ops[i].Units) - g.kept[i]
}

// leaf enters a whole explanation.
func (p *puzzle) leaf(s *state) {
	p.leaves++
	var sum, worst, falsely [ways]int64
	for k := range s.by {
		for w := range mostWindows {
			sum[k] += int64(s.by[k].peak[w])
			worst[k] = max(worst[k], int64(s.by[k].peak[w]))
			falsely[k] = max(falsely[k], int64(s.by[k].wrongly[w]))
		}
	}
	out := &p.out
	high := &s.by[0]
	low := &s.by[1]
	other := &s.by[2]
	out.leak = min(out.leak, sum[0])
	out.possible = max(out.possible, sum[1])
	out.worst = min(out.worst, worst[0])
	out.mostWorst = max(out.mostWorst, worst[1])
	out.falseWorst = min(out.falseWorst, falsely[1])
	out.falseMost = max(out.falseMost, falsely[0])
	out.removed = min(out.removed, int64(high.removed))
	out.mostRemoved = max(out.mostRemoved, int64(low.removed))
	p.masks[0] &= low.wrong
	p.masks[1] |= high.wrong
	out.explained = out.explained || low.wrong == 0
	out.contradiction = out.contradiction || sum[2] < sum[0] || sum[2] > sum[1] ||
		other.removed < high.removed || other.removed > low.removed ||
		other.wrong&^high.wrong != 0 || low.wrong&^other.wrong != 0
}

// solveBoth solves a history as its callers see it for leak, and as a store may for
// false rejects.
func (p *puzzle) solveBoth() changedTruth {
	out := p.solve()
	for _, o := range p.ops {
		if o.Kind == Expire {
			ops := p.ops
			p.ops = unnoticed(ops)
			store := p.solve()
			p.ops = ops
			out.always = store.always
			out.once = store.once
			out.alwaysU = store.alwaysU
			out.onceU = store.onceU
			out.falseWorst = store.falseWorst
			out.falseMost = store.falseMost
			out.contradiction = out.contradiction || store.contradiction
			out.explained = store.explained
			break
		}
	}
	return out
}
