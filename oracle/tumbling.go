package oracle

import (
	"cmp"
	"math"
	"slices"
)

// rider is a request that was called in one window and answered in another.
type rider struct {
	*Event
	home     int   // place in Verdict.Windows of the window of its call
	unplaced int64 // admitted units that no window has taken yet
	kept     int64 // admitted units that fit wherever they are placed
	always   bool  // rejected: would have fitted into each window so far
	once     bool  // rejected: would have fitted into one of them
}

// tumbling judges windows that follow each other, one at a time.
//
// The certain leak is the larger one of two lower bounds: the units that find no room
// if they are placed into the windows that they can belong to ([tumbling.place]), and
// the sum over all windows of the peak of the units that lie there for certain above
// the limit ([curve.overLimit]). The second one is larger only if units were given
// back. The possible leak is the smaller one of two upper bounds: the units that are
// not among the most that fit wherever they are placed ([tumbling.keep]), and the sum
// of the most that each window by itself can exceed its limit by.
type tumbling struct {
	*judge

	// The window at hand.
	span
	home     int      // its place in Verdict.Windows
	initial  int64    // units in use from before the run
	here     []*Event // requests called and answered in it
	riders   []*rider // requests that came from the one before or go on to the next
	returned int64    // units given back in it of requests that were charged to it
	due      []answer // scratch
	most     int64    // units beyond which none fits for certain
	least    int64    // units that fit for certain

	// Requests and calls that give back, of windows still to come.
	takes, gives []*Event
	// undone are units that were given back in the window that their take was
	// answered in, though it was called in an earlier one; made when needed.
	undone map[interval]int64

	windows   []windowLeak
	overAsked int64 // units asked for over the limit
	// Both bounds of the leak, and the requests that the certain one belongs to.
	packedLeak, sweptLeak         int64
	packedBy, sweptBy             leaking
	possiblePacked, possibleSwept int64
}

// windowLeak is the result of one window.
type windowLeak struct {
	passed  bool  // more than the limit was answered, by the window of the call
	packed  int64 // certain leak by placing units into windows
	swept   int64 // certain leak by the window's peak
	free    int64 // units that were free for certain at its end
	besides int64 // refused units that fitted next to the admitted ones for certain, if its limit changed
}

func (j *judge) tumbling() {
	t := &j.reuse.tumbling
	*t = tumbling{
		judge: j, takes: j.takes, gives: j.gives,
		here: t.here[:0], riders: t.riders[:0], due: t.due[:0], windows: t.windows[:0],
	}
	first := len(j.out.Windows)
	for t.next() {
		quiet := t.quiet()
		t.enterTakes()
		t.bound()
		t.judgeRejections()
		t.place()
		t.keep()
		t.leave()
		if quiet {
			t.skipAlike()
		}
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
	t.out.Windows = append(t.out.Windows, verdict)
	t.windows = append(t.windows, windowLeak{})
	return true
}

// upcoming is the moment of the next call or reply of a request that the window at hand, or a later one, contains.
func (t *tumbling) upcoming() int64 {
	moment := int64(math.MaxInt64)
	for _, request := range t.riders {
		moment = min(moment, request.Reply)
	}
	if len(t.takes) > 0 {
		moment = min(moment, t.takes[0].Call)
	}
	if len(t.gives) > 0 {
		moment = min(moment, t.gives[0].Call)
	}
	return moment
}

// quiet reports whether requests only pass through the window at hand: none is called or answered in it, nothing is
// given back, and no units are in use from before the run. A change of the limit makes no difference: either limit
// counts from the call to the reply of each request that it came in, see [judge.envelope].
func (t *tumbling) quiet() bool {
	return !t.each && t.start > 0 && t.upcoming() >= t.end
}

// skipAlike moves on to the last of the quiet windows that follow a quiet one, which has the verdict of them all. It
// stays if units are still to be placed: each window takes some.
func (t *tumbling) skipAlike() {
	unplaced := func(request *rider) bool { return request.unplaced > 0 }
	if slices.ContainsFunc(t.riders, unplaced) {
		return
	}
	verdict := t.verdict()
	verdict.Alike = t.spans.at(t.upcoming()).index - t.index - 1
	t.index += verdict.Alike
	t.possibleSwept += verdict.Alike * verdict.LeakPossible
}

// verdict is the verdict on the window at hand, and leak its leak.
func (t *tumbling) verdict() *windowVerdict { return &t.out.Windows[t.home] }
func (t *tumbling) leak() *windowLeak       { return &t.windows[len(t.windows)-1] }

// enterTakes adds up the requests that were called in the window.
func (t *tumbling) enterTakes() {
	verdict := t.verdict()
	limit, _ := t.cfg.between(t.start, t.start)
	var demand offer
	demand.begin(t.initial, limit)
	var offered int64 // units of all requests that touch the window
	for _, request := range t.riders {
		offered += request.Units
	}
	t.here = t.here[:0]
	for len(t.takes) > 0 && t.takes[0].Call < t.end {
		event := t.takes[0]
		t.takes = t.takes[1:]
		offered += event.Units
		lowest, _ := t.limits(event)
		demand.add(event, lowest)
		if event.admitted() {
			verdict.Admitted += event.Units
		}
		if event.Reply < t.end {
			t.here = append(t.here, event)
			continue
		}
		verdict.Crossed = true
		t.ride(event)
	}
	t.leak().passed = demand.crossed
	t.overAsked += demand.over
	t.out.MaxOffered = max(t.out.MaxOffered, offered)
}

// ride adds a request that is answered in a later window.
func (t *tumbling) ride(event *Event) {
	request := &rider{Event: event, home: t.home, always: true}
	if event.admitted() {
		request.unplaced = t.toPlace(event)
		request.kept = event.Units
	}
	t.riders = append(t.riders, request)
}

// bound makes the curves of the units in use in this window, and finds the leak that
// this window alone must have, or may have.
func (t *tumbling) bound() {
	t.used.reset(t.initial)
	admitted := t.enterAdmitted()
	t.giveBack()
	t.used.build()

	over, mayExceed := t.overWindow()
	t.leak().swept = over.peak
	t.sweptLeak += over.peak
	t.sweptBy.add(t.answeredBy(t.here, over.at, over.peak))
	verdict := t.verdict()
	verdict.LeakPossible = min(mayExceed, admitted)
	t.possibleSwept += verdict.LeakPossible
	verdict.sure.leak = over.peak
	if verdict.Crossed || verdict.GaveBack {
		t.out.Linear = Linear{}
	}
	t.out.Linear.window(t.here, t.cfg.Limit, t.initial)
}

// enterAdmitted adds the admitted requests to the curves, and returns the units that
// were possibly admitted in this window.
func (t *tumbling) enterAdmitted() (units int64) {
	for _, event := range t.here {
		if event.admitted() {
			units += event.Units
			t.used.high.add(instant(event.Call), event.Units)
			t.used.low.add(after(event.Reply), event.Units)
		}
	}
	for _, request := range t.riders {
		if request.admitted() {
			units += request.Units
			t.used.high.add(instant(max(request.Call, t.start)), request.Units)
		}
	}
	return units
}

// overWindow is the units that were certainly, and possibly, in use over the limit. It
// sets how many units fit into the window.
func (t *tumbling) overWindow() (over excess, possible int64) {
	life := lasting{instant(t.start), instant(t.end), instant(t.end) - 1}
	if limit, is := t.steady(life.from, life.tail); is {
		t.most = limit
		t.least = limit
		return t.used.low.overLimit(limit, t.end), t.used.mayExceed(limit)
	}
	t.used.hold()
	t.flying.reset(0)
	for _, event := range t.here {
		t.flying.underWay(event, life)
	}
	for _, request := range t.riders {
		t.flying.underWay(request.Event, life)
	}
	t.flying.build()
	over, t.most = t.used.above(t.levels, life, t.end)
	possible, t.least = t.used.mayPass(t.levels, life, &t.flying)
	return over, possible
}

// giveBack enters the refunds, commits and expiries that were called in this window
// into the curves. They matter only if their take was, or may have been, charged to
// this window: nothing can be added to a window that is over.
//
// A take that was called in an earlier window and answered in this one was
// charged to either. The low curve does not contain it, so a give-back of it changes
// nothing there. As soon as the give-back is done, this window does not contain the
// units for certain. A give-back that names no take is taken out of the low curve, and
// left in the high one.
func (t *tumbling) giveBack() {
	t.returned = 0
	for len(t.gives) > 0 && t.gives[0].Call < t.end {
		event := t.gives[0]
		t.gives = t.gives[1:]
		named := t.names.named(event)
		if event.Call < t.start || named && event.TakeReply < t.start {
			continue
		}
		t.verdict().GaveBack = true
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

// interval is the call and the reply of a take, by which give-backs name it.
type interval struct{ call, reply int64 }

// toPlace is the units that must be put into some window, of a request that was called
// in this one and is answered in a later one. Units that are given back in that later
// window need no place: put there, they leave nothing.
func (t *tumbling) toPlace(event *Event) int64 {
	if t.undone == nil {
		t.findUndone()
	}
	take := interval{event.Call, event.Reply}
	free := min(t.undone[take], event.Units)
	t.undone[take] -= free
	return event.Units - free
}

// findUndone finds the units that are given back in the window that their take is
// answered in, of takes that are answered later than in this window.
func (t *tumbling) findUndone() {
	t.undone = map[interval]int64{}
	for _, event := range t.gives {
		if t.names.named(event) && event.TakeReply >= t.end && event.Call < t.spans.at(event.TakeReply).end {
			t.undone[t.names.taken(event)] += max(0, event.Units)
		}
	}
}

// judgeRejections checks every rejection against the units in use during the part
// of it that lies in this window.
func (t *tumbling) judgeRejections() {
	verdict := t.verdict()
	t.falseRejects(verdict, t.here)
	verdict.sure.falseRejects = verdict.FalseRejectUnits
	verdict.sure.falsePossible = verdict.FalseRejectUnitsPossible
	for _, request := range t.riders {
		if !t.refuses(request.Event) {
			continue
		}
		// Nothing enters the curves at or after the window's end that could matter.
		lowest, highest := t.limits(request.Event)
		from := instant(max(request.Call, t.start))
		surely, once := t.used.left(from, instant(request.Reply), lowest, highest)
		request.always = request.always && request.least() <= surely
		if request.least() <= once {
			request.once = true
			verdict.sure.falsePossible += request.Units
		}
	}
}

// place fills the window with the units that have no later window, then with units
// whose last window comes first. Units that have no later window and find no room
// leak. A unit can belong to windows that follow each other, so this is the greedy
// matching in a convex bipartite graph, which is the largest (Glover, "Maximum matching
// in a convex bipartite graph", 1967): as few units leak as can be.
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
	for _, request := range t.riders {
		if request.Reply < t.end { // it has no later window
			due += request.unplaced
			t.due = append(t.due, answer{request.Reply, request.unplaced, request.Tier})
			continue
		}
		placed := min(request.unplaced, max(0, room-due))
		request.unplaced -= placed
		room -= placed
	}
	leak := max(0, due-room)
	t.leak().packed = leak
	t.packedLeak += leak
	t.packedBy.add(latestCovering(t.due, leak))
}

// keep leaves out units that may not fit, those with the most windows ahead first: each
// takes up room in every window that it touches; see [rollingLimit.possible]. Riders
// are in the order of their replies.
func (t *tumbling) keep() {
	load := min(t.initial, t.least)
	for _, event := range t.here {
		if event.admitted() {
			load += event.Units
		}
	}
	for _, request := range t.riders {
		load += request.kept
	}
	leak := t.leak()
	leak.free = max(0, t.least-load+t.returned)
	if lowest, highest := t.cfg.between(t.start, t.end-1); lowest < highest {
		leak.besides = t.besides()
	}
	excess := max(0, load-t.least)
	t.possiblePacked += excess
	for _, request := range slices.Backward(t.riders) {
		leftOut := min(request.kept, excess)
		request.kept -= leftOut
		excess -= leftOut
	}
}

// roomy is a request of a window whose limit changed, with the room that was left all
// the time while it was under way.
type roomy struct {
	*Event
	left int64
}

// besides is a lower bound of the refused units that fitted next to the admitted ones
// of a window whose limit changed. Requests get room in the order of their calls: no
// more than was left while each was under way, and no more than each admission that was
// answered later left under the limit of its time.
func (t *tumbling) besides() (units int64) {
	admitted, refused := t.roomOfEach()
	// From here on, left is the least room of an admission and all answered later.
	slices.SortFunc(admitted, func(a, b roomy) int { return cmp.Compare(a.Reply, b.Reply) })
	for i := len(admitted) - 2; i >= 0; i-- {
		admitted[i].left = min(admitted[i].left, admitted[i+1].left)
	}
	slices.SortFunc(refused, func(a, b roomy) int {
		return cmp.Or(cmp.Compare(a.Call, b.Call), cmp.Compare(a.left, b.left))
	})
	for _, request := range refused {
		for len(admitted) > 0 && admitted[0].Reply < request.Call {
			admitted = admitted[1:]
		}
		left := request.left
		if len(admitted) > 0 {
			left = min(left, admitted[0].left)
		}
		units = max(units, min(units+request.Units, left))
	}
	return units
}

// roomOfEach finds the room of all admitted requests, and of the rejections that lie in
// the window and had room.
func (t *tumbling) roomOfEach() (admitted, refused []roomy) {
	requests := slices.Clone(t.here)
	for _, request := range t.riders {
		requests = append(requests, request.Event)
	}
	for _, event := range requests {
		lowest, _ := t.limits(event)
		from := instant(max(event.Call, t.start))
		left, _ := t.used.left(from, instant(event.Reply), lowest, lowest)
		inside := event.Call >= t.start && event.Reply < t.end
		switch {
		case event.admitted():
			admitted = append(admitted, roomy{event, left})
		case event.rejected() && inside && left >= event.least():
			refused = append(refused, roomy{event, left})
		}
	}
	return admitted, refused
}

// leave judges and drops the riders that were answered in this window.
func (t *tumbling) leave() {
	for _, request := range t.riders {
		if request.Reply < t.end && t.refuses(request.Event) {
			certain, possible := t.wrongIn(request.Event, request.always, request.once)
			t.mark(request.Event, certain)
			t.verdictOn(&t.out.Windows[request.home], request.least(), request.Units, certain, possible)
		}
	}
	t.riders = slices.DeleteFunc(t.riders, func(request *rider) bool { return request.Reply < t.end })
}

// finish settles the figures that depend on all windows of the subject.
func (t *tumbling) finish(windows []windowVerdict) {
	bySweep := t.sweptLeak > t.packedLeak
	leak := t.packedLeak
	leaked := t.packedBy
	if bySweep {
		leak = t.sweptLeak
		leaked = t.sweptBy
	}
	t.blame(leaked)
	possible := min(t.possiblePacked+t.overran, t.possibleSwept)
	t.out.LeakPossible += max(leak, possible)
	number := int64(len(windows))
	for i := range windows {
		number += windows[i].Alike
	}
	for i := range windows {
		verdict := &windows[i]
		window := &t.windows[i]
		verdict.Leak = window.packed
		if bySweep {
			verdict.Leak = window.swept
		}
		verdict.LeakPossible = max(verdict.LeakPossible, verdict.Leak)
		t.out.NeverGiven += max(window.besides, min(window.free, verdict.FalseRejectUnits))
		// However the leak is spread, some window has the average of it.
		average := (leak + number - 1) / number
		verdict.sure.leak = max(verdict.sure.leak, average)
		t.crossing(window.passed, verdict.Leak)
	}
	if slices.ContainsFunc(windows, func(verdict windowVerdict) bool { return verdict.GaveBack }) {
		t.out.OverOffered += t.overOffered(leak)
	} else {
		t.out.OverOffered += t.overAsked
	}
}
