package oracle

import (
	"cmp"
	"slices"
	"time"
)

// firstRequest judges windows that are the subject's own: one begins when a request
// is admitted while none is open, and lasts its length.
//
// The moment of an admission is only known to lie between call and reply. So a
// window begins between two moments, and the next one between two moments that lie
// further apart, unless a pause brings them together again ([openings]). A request
// can belong to any of the windows that it can have met with the earliest and the
// latest begin of each. A failed request may have begun a window at any moment from
// its call on.
//
// The certain leak is the larger one of two lower bounds: the units that find no room
// if they are placed into the windows that they can belong to, those whose last
// window comes first before others ([firstRequest.place]); and the sum over all
// windows of the peak of the units that lie there for certain above the limit. The
// possible leak is the smaller one of the two corresponding upper bounds
// ([firstRequest.keep]). All begins are taken to be free of each other, which they
// are not. The bounds are reached if requests are short compared with the windows
// and the pauses between these.
//
// What settles a request after the end of its window may be charged to the window that
// is open then, or to none: a limiter with one counter for a subject does not tell them
// apart.
//
// Stores keep a time to live in whole milliseconds, so a window may last up to one
// millisecond longer (or a hundredth of its length if that is less). A rejection in
// that time is not wrong for certain.
type firstRequest struct {
	*judge
	length  int64
	openers []interval // of admitted requests, which may begin a window
	windows []ownWindow
	verdict windowVerdict
	due     []answer // scratch: units that have no later window, by their replies

	// Units of the false rejects of one window, certain and possible ones, at worst.
	worstFalse, mostFalse int64
	// The certain leak of all windows by placing units into them, and by their peaks,
	// and the requests that it belongs to.
	packed, swept     int64
	packedBy, sweptBy leaking
	// The possible leak by both ways.
	possiblePacked, possibleSwept int64
}

// ownWindow is a window of a subject, and the operations that it may hold.
type ownWindow struct {
	// The window begins between these moments; latest is forever if it need not
	// begin at all.
	earliest, latest int64
	takes            []*candidate
	refused          []*refusal
	gives            []*Event

	asked    int64 // units of all requests that can have met it
	offer    offer // of the requests that met it first
	gaveBack int64 // units given back of requests that it holds
	late     int64 // units given back in it of requests that an earlier one holds
	packed   int64 // certain leak by placing units into windows
	swept    int64 // certain leak by the peak of the window
	falsely  int64 // units of certain false rejects
	maybe    int64 // units of possible false rejects
}

// candidate is an admitted request with the windows that it can have met.
type candidate struct {
	*Event
	first, last int
	unplaced    int64 // units that no window has taken yet
	kept        int64 // units that fit wherever they are placed
}

// refusal is a rejection with the windows that it can have met, and whether it was
// wrong for certain, or possibly, by the windows judged so far.
type refusal struct {
	*Event
	first, last  int
	always, once bool
}

// openings finds the windows of one subject from its admitted requests, by call. No
// window begins before the one before it has ended. lost is the call of the first
// failed request, or forever.
func openings(openers []interval, lost, length int64) (windows []ownWindow) {
	if len(openers) == 0 {
		return nil
	}
	requests := newOpeners(openers, lost)
	window := ownWindow{
		earliest: min(requests.leastCalls[0], lost),
		latest:   requests.leastReplies[0],
	}
	for {
		windows = append(windows, window)
		earliest, found := requests.earliestFrom(window.earliest + length)
		if !found {
			return windows
		}
		latest := int64(forever)
		if window.latest < forever {
			latest = requests.latestFrom(window.latest + length)
		}
		window = ownWindow{earliest: earliest, latest: latest}
	}
}

// openers are the requests that may begin windows.
type openers struct {
	byCall, byReply []interval
	leastCalls      []int64 // the least call of byReply[i:]
	leastReplies    []int64 // the least reply of byCall[i:]
	lost            int64   // the first call of a failed request, or forever
}

func newOpeners(byCall []interval, lost int64) openers {
	o := openers{
		byCall:       byCall,
		byReply:      slices.Clone(byCall),
		leastCalls:   make([]int64, len(byCall)),
		leastReplies: make([]int64, len(byCall)),
		lost:         lost,
	}
	slices.SortFunc(o.byReply, func(a, b interval) int { return cmp.Compare(a.reply, b.reply) })
	call := int64(forever)
	reply := int64(forever)
	for i := len(byCall) - 1; i >= 0; i-- {
		call = min(call, o.byReply[i].call)
		reply = min(reply, o.byCall[i].reply)
		o.leastCalls[i] = call
		o.leastReplies[i] = reply
	}
	return o
}

// earliestFrom is the first moment, from the given one on, at which a request can
// begin a window. There is none if all had replied before.
func (o *openers) earliestFrom(moment int64) (earliest int64, found bool) {
	first, _ := slices.BinarySearchFunc(o.byReply, moment, func(request interval, moment int64) int {
		return cmp.Compare(request.reply, moment)
	})
	if first == len(o.byReply) {
		return 0, false
	}
	return max(moment, min(o.leastCalls[first], o.lost)), true
}

// latestFrom is the moment by which a request has begun a window, if none is open
// from the given moment on. It is forever if no request is called from then on.
func (o *openers) latestFrom(moment int64) int64 {
	first, _ := slices.BinarySearchFunc(o.byCall, moment, func(request interval, moment int64) int {
		return cmp.Compare(request.call, moment)
	})
	if first == len(o.byCall) {
		return forever
	}
	return o.leastReplies[first]
}

// span is the windows that an effect in [call, reply] can have met. The last is
// before the first if it lies between two windows for certain.
func (f *firstRequest) span(call, reply int64) (first, last int) {
	return f.since(call), f.until(reply)
}

// since is the first window that is open at a moment or begins after it.
func (f *firstRequest) since(call int64) int {
	first, _ := slices.BinarySearchFunc(f.windows, call, func(window ownWindow, call int64) int {
		if window.latest < forever && window.latest+f.length <= call {
			return -1
		}
		return 1
	})
	return first
}

// until is the last window that begins by a moment.
func (f *firstRequest) until(reply int64) int {
	after, _ := slices.BinarySearchFunc(f.windows, reply, func(window ownWindow, reply int64) int {
		if window.earliest <= reply {
			return -1
		}
		return 1
	})
	return after - 1
}

// between reports whether an effect in [call, reply] can lie in no window: between
// the earliest end of one and the latest begin of the next. The first and the last
// window are the effect's span.
func (f *firstRequest) between(call, reply int64, first, last int) bool {
	for k := max(first-1, -1); k <= last; k++ {
		ended := int64(-maxTime)
		if k >= 0 {
			ended = f.windows[k].earliest + f.length
		}
		begun := int64(forever)
		if k+1 < len(f.windows) {
			begun = f.windows[k+1].latest
		}
		if max(call, ended) < begun && reply >= ended {
			return true
		}
	}
	return false
}

func (j *judge) firstRequest() {
	f := &firstRequest{
		judge:   j,
		length:  int64(j.cfg.Window.RealLength()),
		openers: j.reuse.firstRequest.openers[:0],
		due:     j.reuse.firstRequest.due[:0],
		verdict: windowVerdict{Subject: j.id, GaveBack: len(j.gives) > 0},
	}
	f.findWindows()
	f.fill()
	for k := range f.windows {
		f.judgeWindow(k)
	}
	f.finish()
	j.reuse.firstRequest = *f
}

// findWindows finds the moments between which each window of the subject began, and adds up the admitted units.
func (f *firstRequest) findWindows() {
	firstFailed := int64(forever) // call; a failed request may have begun a window, too
	if f.initial > 0 {
		f.openers = append(f.openers, interval{}) // units in use at the epoch are in a window that began by then
	}
	for _, event := range f.takes {
		switch {
		case event.admitted():
			f.verdict.Admitted += event.Units
			f.openers = append(f.openers, interval{event.Call, event.Reply})
		case event.Outcome == Failed:
			firstFailed = min(firstFailed, event.Call)
		}
	}
	slices.SortStableFunc(f.openers, func(a, b interval) int { return cmp.Compare(a.call, b.call) })
	f.windows = openings(f.openers, firstFailed, f.length)
}

// fill puts requests and give-backs into all windows that they can have met.
func (f *firstRequest) fill() {
	f.beginOffers()
	for _, event := range f.takes {
		first, last := f.span(event.Call, event.Reply)
		f.enterOffer(event, first, last)
		switch {
		case event.admitted():
			f.enterAdmitted(event, first, last)
		case f.refuses(event):
			f.enterRejected(event, last)
		}
	}
	f.mostFalse = f.worstFalse
	for _, event := range f.gives {
		f.enterGive(event)
	}
}

// beginOffers begins each window's offer with the units in use at its begin.
func (f *firstRequest) beginOffers() {
	first, _ := f.span(0, 0)
	for k := range f.windows {
		window := &f.windows[k]
		initial := int64(0)
		if k == first {
			initial = max(0, f.initial)
		}
		limit, _ := f.cfg.between(window.earliest, window.earliest)
		window.offer.begin(initial, limit)
	}
}

// enterOffer adds what a request asked for to the windows that it can have met.
func (f *firstRequest) enterOffer(event *Event, first, last int) {
	for k := first; k <= last; k++ {
		f.windows[k].asked += event.Units
	}
	if len(f.windows) > 0 {
		lowest, _ := f.limits(event)
		met := min(first, len(f.windows)-1)
		f.windows[met].offer.add(event, lowest)
	}
}

// enterAdmitted puts an admitted request into the windows that it can have met.
func (f *firstRequest) enterAdmitted(event *Event, first, last int) {
	request := &candidate{Event: event, first: first, last: last, unplaced: event.Units, kept: event.Units}
	for k := first; k <= last; k++ {
		f.windows[k].takes = append(f.windows[k].takes, request)
	}
	if first < last {
		f.out.unexplained = true
	}
}

// enterRejected puts a rejection into the windows that it can have met. A rejection
// between two windows is judged here.
func (f *firstRequest) enterRejected(event *Event, last int) {
	first := f.since(event.Call - f.grace())
	lowest, highest := f.limits(event)
	request := &refusal{Event: event, first: first, last: last}
	request.always = event.least() <= lowest
	request.once = event.least() <= highest && f.between(event.Call, event.Reply, first, last)
	if first < last || request.once && first == last {
		f.out.unexplained = true
	}
	if first > last {
		f.judgeRefusal(request)
		if request.always {
			f.worstFalse += event.least()
		}
	}
	for k := first; k <= last; k++ {
		f.windows[k].refused = append(f.windows[k].refused, request)
	}
}

// grace is how much longer than its length a store may keep a window.
func (f *firstRequest) grace() int64 { return min(int64(time.Millisecond), f.length/100) }

// enterGive puts a refund, commit or expiry into the windows that its take can have
// met.
func (f *firstRequest) enterGive(event *Event) {
	taken := f.names.taken(event)
	first, last := f.span(taken.call, taken.reply)
	if !f.names.named(event) { // between two windows it belongs to the next one
		last = max(last, min(first, len(f.windows)-1))
	}
	for k := first; k <= last; k++ {
		f.windows[k].gives = append(f.windows[k].gives, event)
	}
	if f.names.named(event) && event.Kind != Expire {
		f.enterLate(event, last)
	}
}

// enterLate adds what a refund or a commit gives back to the windows that it can have met after the last one that its
// take can have met.
func (f *firstRequest) enterLate(event *Event, last int) {
	from, until := f.span(event.Call, event.lastEffect())
	for k := max(from, last+1); k <= until; k++ {
		f.windows[k].late += max(0, event.Units)
	}
}

// judgeWindow checks one window against the limit, by what certainly and possibly
// lies in it.
func (f *firstRequest) judgeWindow(k int) {
	window := &f.windows[k]
	f.out.MaxOffered = max(f.out.MaxOffered, window.asked)
	surely, possibly := f.initialIn(k)
	f.used.reset(0)
	f.used.low.base = surely
	f.used.high.base = possibly
	admitted := f.enterTakes(window)
	f.giveBack(window, k)
	f.used.build()

	over, mayExceed, fits := f.overWindow(window)
	over.peak = max(0, over.peak-window.late)
	window.swept = over.peak
	f.swept += over.peak
	f.sweptBy.add(f.leakedIn(window, over))
	possibleLeak := min(mayExceed, admitted)
	f.possibleSwept += possibleLeak
	f.verdict.LeakPossible = max(f.verdict.LeakPossible, possibleLeak)

	f.judgeRefusals(window, k)
	f.place(window, k, surely, fits.most)
	f.keep(window, possibly, fits.least)
}

// initialIn is how many of the initial units a window holds for certain, and how many
// it can hold.
func (f *firstRequest) initialIn(k int) (surely, possibly int64) {
	first, last := f.span(0, 0)
	if f.initial <= 0 || k < first || k > last {
		return 0, 0
	}
	if first == last {
		surely = f.initial
	}
	return surely, f.initial
}

// enterTakes adds the admitted requests of a window to the curves, and returns the
// units that can lie in it.
func (f *firstRequest) enterTakes(window *ownWindow) (units int64) {
	for _, request := range window.takes {
		units += request.Units
		f.used.high.add(instant(max(request.Call, window.earliest)), request.Units)
		if request.first == request.last {
			f.used.low.add(after(request.Reply), request.Units)
		}
	}
	return units
}

// judgeRefusals checks the rejections that a window can have met against the room in
// it. A rejection is judged with its last window.
func (f *firstRequest) judgeRefusals(window *ownWindow, k int) {
	for _, request := range window.refused {
		lowest, highest := f.limits(request.Event)
		from := instant(max(request.Call, window.earliest))
		surely, once := f.used.left(from, instant(request.Reply), lowest, highest+window.late)
		request.always = request.always && request.least() <= surely
		request.once = request.once || request.least() <= once
		if request.once {
			window.maybe += request.Units
		}
		if k < request.last {
			continue
		}
		f.judgeRefusal(request)
		if request.always && request.first == request.last {
			window.falsely += request.least()
		}
	}
	f.worstFalse = max(f.worstFalse, window.falsely)
	f.mostFalse = max(f.mostFalse, window.maybe)
}

// judgeRefusal enters a rejection of which all windows are known.
func (f *firstRequest) judgeRefusal(request *refusal) {
	request.always, request.once = f.wrongIn(request.Event, request.always, request.once)
	f.mark(request.Event, request.always)
	f.verdictOn(&f.verdict, request.least(), request.Units, request.always, request.once)
}

// leakedIn are the requests of a window that its certain excess belongs to.
func (f *firstRequest) leakedIn(window *ownWindow, over excess) leaking {
	if over.peak == 0 {
		return leaking{}
	}
	f.due = f.due[:0]
	for _, request := range window.takes {
		if request.first == request.last && request.Reply <= over.at {
			f.due = append(f.due, answer{request.Reply, request.Units, request.Tier})
		}
	}
	return latestCovering(f.due, over.peak)
}

// giveBack enters the give-backs of takes that a window holds, or may hold.
func (f *firstRequest) giveBack(window *ownWindow, k int) {
	for _, event := range window.gives {
		taken := f.names.taken(event)
		named := f.names.named(event)
		first, last := f.span(taken.call, taken.reply)
		f.used.high.add(instant(event.Call), max(0, -event.Units))
		if named {
			f.used.free(event, after(event.Reply), forever)
		}
		back := max(0, event.Units)
		switch {
		case !named || first == last:
			window.gaveBack += back
			f.used.low.add(f.freed(event), -back)
		case k == first:
			window.unplace(taken, back)
		}
	}
}

// unplace takes units that were given back out of the requests of an interval: they
// need no place in any window.
func (w *ownWindow) unplace(taken interval, units int64) {
	for _, request := range w.takes {
		if request.Call == taken.call && request.Reply == taken.reply {
			part := min(units, request.unplaced)
			request.unplaced -= part
			units -= part
		}
	}
}

// place fills the window with the units that have no later window, then with units
// whose last window comes first. See [tumbling.place].
func (f *firstRequest) place(window *ownWindow, k int, initial, most int64) {
	room := max(0, most-initial) + window.gaveBack + window.late
	var due int64
	f.due = f.due[:0]
	slices.SortStableFunc(window.takes, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.last, b.last), cmp.Compare(a.Reply, b.Reply))
	})
	for _, request := range window.takes {
		if request.last == k {
			due += request.unplaced
			f.due = append(f.due, answer{request.Reply, request.unplaced, request.Tier})
			continue
		}
		placed := min(request.unplaced, max(0, room-due))
		request.unplaced -= placed
		room -= placed
	}
	window.packed = max(0, due-room)
	f.packed += window.packed
	f.packedBy.add(latestCovering(f.due, window.packed))
}

// keep leaves out the units that may not fit, those with the most windows ahead
// first. Requests are in the order of place.
func (f *firstRequest) keep(window *ownWindow, initial, least int64) {
	load := min(initial, least)
	for _, request := range window.takes {
		load += request.kept
	}
	excess := max(0, load-least)
	f.possiblePacked += excess
	for _, request := range slices.Backward(window.takes) {
		leftOut := min(request.kept, excess)
		request.kept -= leftOut
		excess -= leftOut
	}
}

// finish settles the figures that depend on all windows of the subject.
func (f *firstRequest) finish() {
	bySweep := f.swept > f.packed
	f.verdict.Leak = f.packed
	leaked := f.packedBy
	if bySweep {
		f.verdict.Leak = f.swept
		leaked = f.sweptBy
	}
	f.blame(leaked)
	possible := min(f.possiblePacked+f.overran, f.possibleSwept)
	f.out.LeakPossible += max(f.verdict.Leak, possible)

	var worst, overAsked int64
	for k := range f.windows {
		window := &f.windows[k]
		leak := window.packed
		if bySweep {
			leak = window.swept
		}
		worst = max(worst, window.swept)
		f.crossing(window.offer.crossed, leak)
		overAsked += window.offer.over
	}
	if windows := int64(len(f.windows)); windows > 0 { // some window has the average
		average := (f.verdict.Leak + windows - 1) / windows
		worst = max(worst, average)
	}
	f.verdict.LeakPossible = max(f.verdict.LeakPossible, worst)
	f.verdict.sure = sure{leak: worst, falseRejects: f.worstFalse, falsePossible: f.mostFalse}
	if f.verdict.GaveBack {
		overAsked = f.overOffered(f.verdict.Leak)
	}
	f.out.OverOffered += overAsked
	f.out.Windows = append(f.out.Windows, f.verdict)
}
