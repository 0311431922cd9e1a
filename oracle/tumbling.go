package oracle

import (
	"cmp"
	"slices"
)

// rider is a request that was called in one window and answered in another.
type rider struct {
	*Event
	home     int   // its first window's place in Verdict.Windows
	unplaced int64 // admitted units that no window has taken yet
	kept     int64 // admitted units that fit wherever they are placed
	always   bool  // rejected: would have fitted into each window so far
	once     bool  // rejected: would have fitted into one of them
}

// tumbling judges windows that follow each other, one at a time.
//
// The least leak comes from placing units into windows in order, those first
// that run out of windows first. For the most, a set of units is kept that fits
// however they are placed, by letting each take up room in every window that it
// touches: what has to be left out of the largest such set is the bound. If
// units were given back, limits on what each window held by itself can be
// sharper, and the better of both ways is taken.
type tumbling struct {
	*judge

	// The window at hand.
	span
	home     int      // its place in Verdict.Windows
	initial  int64    // units in use from before the run
	here     []*Event // requests called and answered in it
	riders   []*rider // requests that came from the one before or go on to the next
	returned int64    // units given back in it of requests that were charged to it
	due      []answer
	most     int64 // units that surely do not fit beyond
	least    int64 // units that surely fit

	// Requests and calls that give back, of windows still to come.
	takes, gives []*Event
	// undone are units that were given back in the window that their take was
	// answered in, though it was called in an earlier one; made when needed.
	undone map[interval]int64

	records                          []windowLeak
	possiblePacked, possibleSwept    int64
	packedLeak, sweptLeak, overAsked int64
	packedBy, sweptBy                leaking
}

// windowLeak is what one window came to.
type windowLeak struct {
	passed        bool  // more than the limit was answered, by the window of the call
	packed, swept int64 // certain leak, by each way
	free          int64 // units that surely were free at its end
	besides       int64 // refused units that surely fitted besides the admitted ones, if its limit changed
}

func (j *judge) tumbling() {
	t := &j.windows
	*t = tumbling{
		judge: j, takes: j.takes, gives: j.gives,
		here: t.here[:0], riders: t.riders[:0], due: t.due[:0], records: t.records[:0],
	}
	first := len(j.out.Windows)
	for t.next() {
		t.bound()
		t.judgeRejections()
		t.place()
		t.keep()
		t.leave()
	}
	t.finish(j.out.Windows[first:])
}

// next moves on to the next window that a request touches.
func (t *tumbling) next() bool {
	switch {
	case len(t.riders) > 0:
		t.span = t.spans.after(t.span)
	case len(t.takes) > 0:
		t.span = t.spans.at(t.takes[0].Call)
	default:
		return false
	}
	t.initial = 0
	if t.start <= 0 && 0 < t.end {
		t.initial = t.judge.initial
	}
	t.home = len(t.out.Windows)
	w := windowVerdict{Subject: t.id, Index: t.index, Crossed: len(t.riders) > 0}
	limit, _ := t.cfg.between(t.start, t.start)
	var o offer
	o.begin(t.initial, limit)
	var visiting, asked int64
	for _, p := range t.riders {
		visiting += p.Units
	}
	t.here = t.here[:0]
	for len(t.takes) > 0 && t.takes[0].Call < t.end {
		e := t.takes[0]
		t.takes = t.takes[1:]
		asked += e.Units
		lowest, _ := t.limits(e)
		o.add(e, lowest)
		if e.admitted() {
			w.Admitted += e.Units
		}
		if e.Reply < t.end {
			t.here = append(t.here, e)
			continue
		}
		w.Crossed = true
		p := &rider{Event: e, home: t.home, always: true}
		if e.admitted() {
			p.unplaced = t.toPlace(e)
			p.kept = e.Units
		}
		t.riders = append(t.riders, p)
	}
	t.overAsked += o.over
	t.out.MaxOffered = max(t.out.MaxOffered, visiting+asked)
	t.out.Windows = append(t.out.Windows, w)
	t.records = append(t.records, windowLeak{passed: o.crossed})
	return true
}

// bound makes the curves of what was in use in this window, and takes from them
// what it alone must, or may, have leaked.
func (t *tumbling) bound() {
	u := &t.used
	u.reset(t.initial)
	var admitted int64 // possibly in this window
	for _, e := range t.here {
		if e.admitted() {
			admitted += e.Units
			u.high.add(instant(e.Call), e.Units)
			u.low.add(after(e.Reply), e.Units)
		}
	}
	for _, p := range t.riders {
		if p.admitted() {
			admitted += p.Units
			u.high.add(instant(max(p.Call, t.start)), p.Units)
		}
	}
	t.giveBack()
	u.build()

	over, may := t.overWindow()
	t.records[len(t.records)-1].swept = over.peak
	t.sweptLeak += over.peak
	t.sweptBy.add(t.answeredBy(t.here, over.at, over.peak))
	w := &t.out.Windows[t.home]
	w.LeakPossible = min(may, admitted)
	if w.Crossed || w.GaveBack {
		t.out.Linear = Linear{}
	}
	t.out.Linear.window(t.here, t.cfg.Limit, t.initial)
	t.possibleSwept += w.LeakPossible
	w.sure.leak = over.peak
}

// overWindow is what was certainly, and possibly, in use over the limit, and sets
// what fits into the window.
func (t *tumbling) overWindow() (over excess, may int64) {
	u := &t.used
	life := lasting{instant(t.start), instant(t.end), instant(t.end) - 1}
	if limit, is := t.steady(life.from, life.tail); is {
		t.most = limit
		t.least = limit
		return u.low.overLimit(limit, t.end), u.mayExceed(limit)
	}
	u.hold()
	t.flying.reset(0)
	for _, e := range t.here {
		t.flying.underWay(e, life)
	}
	for _, p := range t.riders {
		t.flying.underWay(p.Event, life)
	}
	t.flying.build()
	over, t.most = u.above(t.levels, life, t.end)
	may, t.least = u.mayPass(t.levels, life, &t.flying)
	return over, may
}

// giveBack enters into the curves what was given back by calls in this window.
// It matters only if its take was, or may have been, charged to this window: to
// one that is over nothing can be added any more.
//
// A take that was called in an earlier window and answered in this one was
// charged to either. Low does not contain it, so what was given back of it
// changes nothing there; and as soon as it is given back, this window surely does
// not contain it. A give-back that names no take is taken out of low, and left in
// high.
func (t *tumbling) giveBack() {
	w := &t.out.Windows[t.home]
	t.returned = 0
	for len(t.gives) > 0 && t.gives[0].Call < t.end {
		e := t.gives[0]
		t.gives = t.gives[1:]
		named := t.names.named(e)
		if e.Call < t.start || named && e.TakeReply < t.start {
			continue
		}
		w.GaveBack = true
		t.used.high.add(instant(e.Call), max(0, -e.Units))
		if named {
			t.used.free(e, after(e.Reply), forever)
		}
		if !named || e.TakeCall >= t.start {
			back := max(0, e.Units)
			t.returned += back
			t.used.low.add(t.freed(e), -back)
		}
	}
}

// interval of a take, which tells what was given back of it.
type interval struct{ call, reply int64 }

// toPlace is what must be put into some window of a request that was called in
// this one and is answered in a later one. What is given back in that later one
// need not: put there, it leaves nothing.
func (t *tumbling) toPlace(e *Event) int64 {
	if t.undone == nil {
		t.undone = map[interval]int64{}
		for _, g := range t.gives {
			if t.names.named(g) && g.TakeReply >= t.end && g.Call < t.spans.at(g.TakeReply).end {
				t.undone[interval{g.TakeCall, g.TakeReply}] += max(0, g.Units)
			}
		}
	}
	k := interval{e.Call, e.Reply}
	free := min(t.undone[k], e.Units)
	t.undone[k] -= free
	return e.Units - free
}

// judgeRejections checks every rejection against what was in use during the part
// of it that lies in this window.
func (t *tumbling) judgeRejections() {
	w := &t.out.Windows[t.home]
	t.falseRejects(w, t.here)
	w.sure.falseRejects = w.FalseRejectUnits
	w.sure.falsePossible = w.FalseRejectUnitsPossible
	for _, p := range t.riders {
		if p.rejected() {
			// Nothing enters the curves at or after the window's end that could matter.
			lowest, highest := t.limits(p.Event)
			surely, once := t.used.left(instant(max(p.Call, t.start)), instant(p.Reply), lowest, highest)
			p.always = p.always && p.least() <= surely
			p.once = p.once || p.least() <= once
			if p.least() <= once {
				w.sure.falsePossible += p.Units
			}
		}
	}
}

// place fills the window with those units first that have no later window, then
// with those whose last window comes first.
func (t *tumbling) place() {
	room := max(0, t.most-t.initial) + t.returned
	t.due = t.due[:0]
	var due int64
	for _, e := range t.here {
		if e.admitted() {
			due += e.Units
			t.due = append(t.due, answer{e.Reply, e.Units, e.Tier})
		}
	}
	slices.SortFunc(t.riders, func(a, b *rider) int { return cmp.Compare(a.Reply, b.Reply) })
	for _, p := range t.riders {
		if p.Reply < t.end {
			due += p.unplaced
			t.due = append(t.due, answer{p.Reply, p.unplaced, p.Tier})
			continue
		}
		placed := min(p.unplaced, max(0, room-due))
		p.unplaced -= placed
		room -= placed
	}
	leak := max(0, due-room)
	t.records[len(t.records)-1].packed = leak
	t.packedLeak += leak
	t.packedBy.add(latestCovering(t.due, leak))
}

// keep leaves out what may not fit, units with the most windows ahead first.
// Riders are in the order of their replies.
func (t *tumbling) keep() {
	load := min(t.initial, t.least)
	for _, e := range t.here {
		if e.admitted() {
			load += e.Units
		}
	}
	for _, p := range t.riders {
		load += p.kept
	}
	r := &t.records[len(t.records)-1]
	r.free = max(0, t.least-load+t.returned)
	if lowest, highest := t.cfg.between(t.start, t.end-1); lowest < highest {
		r.besides = t.besides()
	}
	excess := max(0, load-t.least)
	t.possiblePacked += excess
	for _, p := range slices.Backward(t.riders) {
		out := min(p.kept, excess)
		p.kept -= out
		excess -= out
	}
}

// besides is a lower bound of the refused units that fitted besides the admitted ones of a window whose limit
// changed. Requests get room in the order of their calls: no more than there was while each was under way, and
// than each admission that was answered later left under the limit of that time.
func (t *tumbling) besides() (units int64) {
	type request struct {
		*Event
		left int64
	}
	var admitted, refused []request
	visit := func(e *Event) {
		lowest, _ := t.limits(e)
		left, _ := t.used.left(instant(max(e.Call, t.start)), instant(e.Reply), lowest, lowest)
		switch {
		case e.admitted():
			admitted = append(admitted, request{e, left})
		case e.rejected() && e.Call >= t.start && e.Reply < t.end && left >= e.least():
			refused = append(refused, request{e, left})
		}
	}
	for _, e := range t.here {
		visit(e)
	}
	for _, p := range t.riders {
		visit(p.Event)
	}
	slices.SortFunc(admitted, func(a, b request) int { return cmp.Compare(a.Reply, b.Reply) })
	for i := len(admitted) - 2; i >= 0; i-- {
		admitted[i].left = min(admitted[i].left, admitted[i+1].left)
	}
	slices.SortFunc(refused, func(a, b request) int { return cmp.Or(cmp.Compare(a.Call, b.Call), cmp.Compare(a.left, b.left)) })
	for _, r := range refused {
		for len(admitted) > 0 && admitted[0].Reply < r.Call {
			admitted = admitted[1:]
		}
		if len(admitted) > 0 {
			r.left = min(r.left, admitted[0].left)
		}
		units = max(units, min(units+r.Units, r.left))
	}
	return units
}

// leave lets those go that were answered in this window.
func (t *tumbling) leave() {
	for _, p := range t.riders {
		if p.Reply < t.end && p.rejected() {
			t.mark(p.Event, p.always)
			t.verdictOn(&t.out.Windows[p.home], p.least(), p.Units, p.always, p.once)
		}
	}
	t.riders = slices.DeleteFunc(t.riders, func(p *rider) bool { return p.Reply < t.end })
}

// finish settles the figures that depend on all windows of the subject.
func (t *tumbling) finish(windows []windowVerdict) {
	swept := t.sweptLeak > t.packedLeak
	leak := t.packedLeak
	by := t.packedBy
	if swept {
		leak = t.sweptLeak
		by = t.sweptBy
	}
	t.blame(by)
	t.out.LeakPossible += max(leak, min(t.possiblePacked+t.overran, t.possibleSwept))
	for i := range windows {
		w := &windows[i]
		r := t.records[i]
		w.Leak = r.packed
		if swept {
			w.Leak = r.swept
		}
		w.LeakPossible = max(w.LeakPossible, w.Leak)
		t.out.NeverGiven += max(r.besides, min(r.free, w.FalseRejectUnits))
		// However the leak is spread, some window has the average of it.
		w.sure.leak = max(w.sure.leak, (leak+int64(len(windows))-1)/int64(len(windows)))
		t.crossing(r.passed, w.Leak)
	}
	if slices.ContainsFunc(windows, func(w windowVerdict) bool { return w.GaveBack }) {
		t.out.OverOffered += t.overOffered(leak)
	} else {
		t.out.OverOffered += t.overAsked
	}
}
