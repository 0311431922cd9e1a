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
	verdict := windowVerdict{Subject: t.id, Index: t.index, Crossed: len(t.riders) > 0}
	limit, _ := t.cfg.between(t.start, t.start)
	var o offer
	o.begin(t.initial, limit)
	var visiting, asked int64
	for _, rider := range t.riders {
		visiting += rider.Units
	}
	t.here = t.here[:0]
	for len(t.takes) > 0 && t.takes[0].Call < t.end {
		event := t.takes[0]
		t.takes = t.takes[1:]
		asked += event.Units
		lowest, _ := t.limits(event)
		o.add(event, lowest)
		if event.admitted() {
			verdict.Admitted += event.Units
		}
		if event.Reply < t.end {
			t.here = append(t.here, event)
			continue
		}
		verdict.Crossed = true
		p := &rider{Event: event, home: t.home, always: true}
		if event.admitted() {
			p.unplaced = t.toPlace(event)
			p.kept = event.Units
		}
		t.riders = append(t.riders, p)
	}
	t.overAsked += o.over
	t.out.MaxOffered = max(t.out.MaxOffered, visiting+asked)
	t.out.Windows = append(t.out.Windows, verdict)
	t.records = append(t.records, windowLeak{passed: o.crossed})
	return true
}

// bound makes the curves of what was in use in this window, and takes from them
// what it alone must, or may, have leaked.
func (t *tumbling) bound() {
	bounds := &t.used
	bounds.reset(t.initial)
	var admitted int64 // possibly in this window
	for _, event := range t.here {
		if event.admitted() {
			admitted += event.Units
			bounds.high.add(instant(event.Call), event.Units)
			bounds.low.add(after(event.Reply), event.Units)
		}
	}
	for _, rider := range t.riders {
		if rider.admitted() {
			admitted += rider.Units
			bounds.high.add(instant(max(rider.Call, t.start)), rider.Units)
		}
	}
	t.giveBack()
	bounds.build()

	over, may := t.overWindow()
	t.records[len(t.records)-1].swept = over.peak
	t.sweptLeak += over.peak
	t.sweptBy.add(t.answeredBy(t.here, over.at, over.peak))
	verdict := &t.out.Windows[t.home]
	verdict.LeakPossible = min(may, admitted)
	if verdict.Crossed || verdict.GaveBack {
		t.out.Linear = Linear{}
	}
	t.out.Linear.window(t.here, t.cfg.Limit, t.initial)
	t.possibleSwept += verdict.LeakPossible
	verdict.sure.leak = over.peak
}

// overWindow is what was certainly, and possibly, in use over the limit, and sets
// what fits into the window.
func (t *tumbling) overWindow() (over excess, may int64) {
	bounds := &t.used
	life := lasting{instant(t.start), instant(t.end), instant(t.end) - 1}
	if limit, is := t.steady(life.from, life.tail); is {
		t.most = limit
		t.least = limit
		return bounds.low.overLimit(limit, t.end), bounds.mayExceed(limit)
	}
	bounds.hold()
	t.flying.reset(0)
	for _, event := range t.here {
		t.flying.underWay(event, life)
	}
	for _, rider := range t.riders {
		t.flying.underWay(rider.Event, life)
	}
	t.flying.build()
	over, t.most = bounds.above(t.levels, life, t.end)
	may, t.least = bounds.mayPass(t.levels, life, &t.flying)
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
	verdict := &t.out.Windows[t.home]
	t.returned = 0
	for len(t.gives) > 0 && t.gives[0].Call < t.end {
		event := t.gives[0]
		t.gives = t.gives[1:]
		named := t.names.named(event)
		if event.Call < t.start || named && event.TakeReply < t.start {
			continue
		}
		verdict.GaveBack = true
		t.used.high.add(instant(event.Call), max(0, -event.Units))
		if named {
			t.used.free(event, after(event.Reply), forever)
		}
		if !named || event.TakeCall >= t.start {
			back := max(0, event.Units)
			t.returned += back
			t.used.low.add(t.freed(event), -back)
		}
	}
}

// interval of a take, which tells what was given back of it.
type interval struct{ call, reply int64 }

// toPlace is what must be put into some window of a request that was called in
// this one and is answered in a later one. What is given back in that later one
// need not: put there, it leaves nothing.
func (t *tumbling) toPlace(event *Event) int64 {
	if t.undone == nil {
		t.undone = map[interval]int64{}
		for _, g := range t.gives {
			if t.names.named(g) && g.TakeReply >= t.end && g.Call < t.spans.at(g.TakeReply).end {
				t.undone[interval{g.TakeCall, g.TakeReply}] += max(0, g.Units)
			}
		}
	}
	k := interval{event.Call, event.Reply}
	free := min(t.undone[k], event.Units)
	t.undone[k] -= free
	return event.Units - free
}

// judgeRejections checks every rejection against what was in use during the part
// of it that lies in this window.
func (t *tumbling) judgeRejections() {
	verdict := &t.out.Windows[t.home]
	t.falseRejects(verdict, t.here)
	verdict.sure.falseRejects = verdict.FalseRejectUnits
	verdict.sure.falsePossible = verdict.FalseRejectUnitsPossible
	for _, rider := range t.riders {
		if rider.rejected() {
			// Nothing enters the curves at or after the window's end that could matter.
			lowest, highest := t.limits(rider.Event)
			surely, once := t.used.left(instant(max(rider.Call, t.start)), instant(rider.Reply), lowest, highest)
			rider.always = rider.always && rider.least() <= surely
			rider.once = rider.once || rider.least() <= once
			if rider.least() <= once {
				verdict.sure.falsePossible += rider.Units
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
	for _, event := range t.here {
		if event.admitted() {
			due += event.Units
			t.due = append(t.due, answer{event.Reply, event.Units, event.Tier})
		}
	}
	slices.SortFunc(t.riders, func(a, b *rider) int { return cmp.Compare(a.Reply, b.Reply) })
	for _, rider := range t.riders {
		if rider.Reply < t.end {
			due += rider.unplaced
			t.due = append(t.due, answer{rider.Reply, rider.unplaced, rider.Tier})
			continue
		}
		placed := min(rider.unplaced, max(0, room-due))
		rider.unplaced -= placed
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
	for _, event := range t.here {
		if event.admitted() {
			load += event.Units
		}
	}
	for _, rider := range t.riders {
		load += rider.kept
	}
	leak := &t.records[len(t.records)-1]
	leak.free = max(0, t.least-load+t.returned)
	if lowest, highest := t.cfg.between(t.start, t.end-1); lowest < highest {
		leak.besides = t.besides()
	}
	excess := max(0, load-t.least)
	t.possiblePacked += excess
	for _, rider := range slices.Backward(t.riders) {
		out := min(rider.kept, excess)
		rider.kept -= out
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
	visit := func(event *Event) {
		lowest, _ := t.limits(event)
		left, _ := t.used.left(instant(max(event.Call, t.start)), instant(event.Reply), lowest, lowest)
		switch {
		case event.admitted():
			admitted = append(admitted, request{event, left})
		case event.rejected() && event.Call >= t.start && event.Reply < t.end && left >= event.least():
			refused = append(refused, request{event, left})
		}
	}
	for _, event := range t.here {
		visit(event)
	}
	for _, rider := range t.riders {
		visit(rider.Event)
	}
	slices.SortFunc(admitted, func(a, b request) int { return cmp.Compare(a.Reply, b.Reply) })
	for i := len(admitted) - 2; i >= 0; i-- {
		admitted[i].left = min(admitted[i].left, admitted[i+1].left)
	}
	slices.SortFunc(refused, func(a, b request) int {
		return cmp.Or(cmp.Compare(a.Call, b.Call), cmp.Compare(a.left, b.left))
	})
	for _, request := range refused {
		for len(admitted) > 0 && admitted[0].Reply < request.Call {
			admitted = admitted[1:]
		}
		if len(admitted) > 0 {
			request.left = min(request.left, admitted[0].left)
		}
		units = max(units, min(units+request.Units, request.left))
	}
	return units
}

// leave lets those go that were answered in this window.
func (t *tumbling) leave() {
	for _, rider := range t.riders {
		if rider.Reply < t.end && rider.rejected() {
			t.mark(rider.Event, rider.always)
			t.verdictOn(&t.out.Windows[rider.home], rider.least(), rider.Units, rider.always, rider.once)
		}
	}
	t.riders = slices.DeleteFunc(t.riders, func(p *rider) bool { return p.Reply < t.end })
}

// finish settles the figures that depend on all windows of the subject.
func (t *tumbling) finish(windows []windowVerdict) {
	swept := t.sweptLeak > t.packedLeak
	leak := t.packedLeak
	leaking := t.packedBy
	if swept {
		leak = t.sweptLeak
		leaking = t.sweptBy
	}
	t.blame(leaking)
	t.out.LeakPossible += max(leak, min(t.possiblePacked+t.overran, t.possibleSwept))
	for i := range windows {
		verdict := &windows[i]
		windowLeak := t.records[i]
		verdict.Leak = windowLeak.packed
		if swept {
			verdict.Leak = windowLeak.swept
		}
		verdict.LeakPossible = max(verdict.LeakPossible, verdict.Leak)
		t.out.NeverGiven += max(windowLeak.besides, min(windowLeak.free, verdict.FalseRejectUnits))
		// However the leak is spread, some window has the average of it.
		verdict.sure.leak = max(verdict.sure.leak, (leak+int64(len(windows))-1)/int64(len(windows)))
		t.crossing(windowLeak.passed, verdict.Leak)
	}
	if slices.ContainsFunc(windows, func(verdict windowVerdict) bool { return verdict.GaveBack }) {
		t.out.OverOffered += t.overOffered(leak)
	} else {
		t.out.OverOffered += t.overAsked
	}
}
