package oracle

import (
	"cmp"
	"container/heap"
	"slices"
)

// rolling judges a limit on every stretch of one window's length.
//
// For the certain leak, all units called at or after a moment and answered
// within one length of it must lie in the same window; the excesses of windows
// that do not overlap add up, and the choice of windows with the largest sum is
// taken. It is a lower bound: units that could lie in several windows are not
// counted at all. The upper bound keeps the most units that fit wherever they
// are placed. What is given back frees room in low from the call on; high keeps
// it in use, since nothing tells whether the request it belongs to would have
// left the window by itself.
func (j *judge) rolling() {
	length := int64(j.cfg.Window.RealLength())
	w := WindowVerdict{Subject: j.id}
	j.used.reset(0)
	j.used.stay(0, 0, j.initial, length)
	admitted := make([]stay, 0, len(j.takes))
	answered := make([]stay, 0, len(j.takes))
	asked := make([]stay, 0, len(j.takes))
	var total int64
	for _, e := range j.takes {
		s := stay{e.Call, e.Reply, e.Units}
		asked = append(asked, s)
		total += e.Units
		if e.Outcome != Failed {
			answered = append(answered, s)
		}
		if e.admitted() {
			admitted = append(admitted, s)
			w.Admitted += e.Units
			j.used.stay(e.Call, e.Reply, e.Units, length)
		}
	}
	present := slices.Clone(admitted) // and what commits used beyond reservations
	for _, e := range j.gives {
		if e.Units < 0 {
			j.used.high.add(instant(e.Call), -e.Units)
			j.used.high.add(instant(e.Reply+length), e.Units)
			present = append(present, stay{e.Call, e.Reply, -e.Units})
			continue
		}
		j.used.low.add(instant(e.Call), -e.Units)
		j.used.low.add(instant(e.Call+length), e.Units)
	}
	j.used.build()
	j.falseRejects(&w)

	r := roller{length: length, limit: j.limit, initial: j.initial}
	chosen, worst := r.leak(admitted, j.gives)
	for _, c := range chosen {
		w.Leak += c.excess
		j.out.Violations++
		j.out.LeakedRequests += r.requests(admitted, c)
	}
	w.sure = sure{worst, w.FalseRejectUnits, w.FalseRejectUnitsPossible}
	w.LeakPossible = max(worst, min(j.used.high.mayExceed(j.limit), w.Admitted))
	j.out.LeakPossible += max(w.Leak, min(r.possible(present), w.Admitted))
	j.out.MaxOffered = max(j.out.MaxOffered, total)
	if j.gaveBack {
		j.out.OverOffered += j.overOffered(w.Leak)
	} else {
		over, _ := r.leak(asked, nil)
		for _, c := range over {
			j.out.OverOffered += c.excess
		}
	}
	if over, _ := r.leak(answered, nil); len(over) > 0 || w.Leak > 0 {
		j.crossing(j.limit+1, w.Leak)
	}
	j.out.Windows = append(j.out.Windows, w)
}

// stay adds units that are in every window up to one length behind the moment
// they were admitted at.
func (b *bounds) stay(call, reply, units, length int64) {
	b.high.add(instant(call), units)
	b.high.add(instant(reply+length), -units)
	if from, to := after(reply), instant(call+length); from < to {
		b.low.add(from, units)
		b.low.add(to, -units)
	}
}

// stay is a request by its interval.
type stay struct {
	call, reply, units int64
}

// roller finds leaks under a rolling window.
type roller struct {
	length, limit, initial int64
}

// stretch is one window, [from, from + length).
type stretch struct {
	from, excess int64
}

// leak returns disjoint windows with the largest sum of excesses, and the worst
// excess of any window. The stays are ordered by call.
func (r roller) leak(stays []stay, gives []*Event) (chosen []stretch, worst int64) {
	// A request that took longer than the window never surely lies in one. All
	// others that were called before a window and answered before its end drop
	// out by subtraction: no other call before it can reach its end.
	in := make([]stay, 0, len(stays)+1)
	for _, s := range stays {
		if s.reply-s.call < r.length {
			in = append(in, s)
		}
	}
	at, _ := slices.BinarySearchFunc(in, int64(0), func(s stay, t int64) int { return cmp.Compare(s.call, t) })
	if r.initial > 0 {
		in = slices.Insert(in, at, stay{0, 0, r.initial})
	} else {
		at = -1
	}
	byReply := slices.Clone(in)
	slices.SortFunc(byReply, func(a, b stay) int { return cmp.Compare(a.reply, b.reply) })

	n := len(in)
	excess := make([]int64, n)
	next := make([]int, n) // first window that does not overlap
	var called, replied, before, until int64
	i, k, g, h := 0, 0, 0, 0
	for a := range in {
		from, to := in[a].call, in[a].call+r.length
		for ; i < n && in[i].call < from; i++ {
			called += in[i].units
		}
		for ; k < n && byReply[k].reply < to; k++ {
			replied += byReply[k].units
		}
		for ; g < len(gives) && gives[g].Call < from; g++ {
			before += max(0, gives[g].Units)
		}
		for ; h < len(gives) && gives[h].Call < to; h++ {
			until += max(0, gives[h].Units)
		}
		units := replied - called
		mine := units // not there from the start
		if at >= 0 && from <= 0 && 0 < to {
			mine -= r.initial
		}
		excess[a] = max(0, min(units-(until-before)-r.limit, mine))
		worst = max(worst, excess[a])
	}
	j := n
	for a := n - 1; a >= 0; a-- {
		for j > 0 && in[j-1].call >= in[a].call+r.length {
			j--
		}
		next[a] = j
	}
	best := make([]int64, n+1)
	for a := n - 1; a >= 0; a-- {
		best[a] = max(best[a+1], excess[a]+best[next[a]])
	}
	for a := 0; a < n; {
		if best[a] == best[a+1] {
			a++
			continue
		}
		chosen = append(chosen, stretch{in[a].call, excess[a]})
		a = next[a]
	}
	return chosen, worst
}

// requests counts those of a window that its excess belongs to.
func (r roller) requests(stays []stay, w stretch) int64 {
	from, _ := slices.BinarySearchFunc(stays, w.from, func(s stay, t int64) int { return cmp.Compare(s.call, t) })
	var in []answer
	for _, s := range stays[from:] {
		if s.call >= w.from+r.length {
			break
		}
		if s.reply < w.from+r.length {
			in = append(in, answer{s.reply, s.units})
		}
	}
	return latestCovering(in, w.excess)
}

// possible is the number of units that are not among the most that fit wherever
// they are placed. Each takes up room from its call until one length after its
// reply; where too much does, those that take it up longest are left out.
func (r roller) possible(stays []stay) (out int64) {
	load := int64(0)
	byEnd := make([]*packed, 0, len(stays))
	for _, s := range stays {
		byEnd = append(byEnd, &packed{stay: s})
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
