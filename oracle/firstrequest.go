package oracle

import (
	"cmp"
	"slices"
	"time"
)

// firstRequest judges windows that are the subject's own: one begins when a request
// is admitted while none is open, and lasts its length.
//
// That moment is known as well as the request's effect is, so a window begins
// between two moments, and the next one between two that lie further apart, unless
// a pause brings them together again. A request belongs to one of the windows that
// it can have met with the earliest and with the latest begin of each. If it can
// have met several, it is placed among them as under a tumbling policy. All begins
// are taken to be free of each other, which they are not: the certain figures are
// lower bounds, the possible ones upper bounds, and both are reached if requests
// are short compared with the windows and the pauses between these.
//
// A failed request may have begun a window at any moment from its call on.
//
// Stores keep a time to live in whole milliseconds, so a window may last up to one
// longer (a hundredth of its length if that is less). A rejection in that time is
// not wrong for certain.
type firstRequest struct {
	*judge
	length  int64
	openers []interval // of admitted requests, which may begin a window
	windows []opened
	verdict windowVerdict
	due     []answer

	worstFalse, mostFalse         int64
	packed, swept                 int64
	packedBy, sweptBy             leaking
	possiblePacked, possibleSwept int64
}

// opened is a window: the moments between which it begins, and what may lie in it.
type opened struct {
	lo, hi                        int64 // forever if it need not begin at all
	takes                         []*met
	refused                       []*refusal
	gives                         []*Event
	asked                         int64 // by all that can have met it
	offer                         offer // of those that met it first
	gaveBack                      int64
	packed, swept, falsely, maybe int64
}

// met is an admitted request with the windows that it can have met.
type met struct {
	*Event
	first, last    int
	unplaced, kept int64
}

// refusal is a rejection with the windows that it can have met.
type refusal struct {
	*Event
	first, last  int
	always, once bool
}

// openings finds the windows of one subject from its admitted requests, by call.
// lost is the call of the first failed request, or forever.
func openings(openers []interval, lost, length int64) (out []opened) {
	if len(openers) == 0 {
		return nil
	}
	byReply := slices.Clone(openers)
	slices.SortFunc(byReply, func(a, b interval) int { return cmp.Compare(a.reply, b.reply) })
	// What replies from here on can do: the least call of all that reply no earlier,
	// and the least reply of all that are called no earlier.
	calls := make([]int64, len(openers))
	replies := make([]int64, len(openers))
	call := int64(forever)
	reply := int64(forever)
	for i := len(openers) - 1; i >= 0; i-- {
		call = min(call, byReply[i].call)
		reply = min(reply, openers[i].reply)
		calls[i], replies[i] = call, reply
	}
	w := opened{lo: min(calls[0], lost), hi: replies[0]}
	for {
		out = append(out, w)
		from := w.lo + length
		to := w.hi
		if to < forever {
			to += length
		}
		n, _ := slices.BinarySearchFunc(byReply, from, func(o interval, t int64) int { return cmp.Compare(o.reply, t) })
		if n == len(byReply) {
			return out
		}
		w = opened{lo: max(from, min(calls[n], lost)), hi: forever}
		if n, _ := slices.BinarySearchFunc(openers, to, func(o interval, t int64) int {
			return cmp.Compare(o.call, t)
		}); n < len(openers) {
			w.hi = replies[n]
		}
	}
}

// span is the windows that an effect in [call, reply] can have met. The last is
// before the first if it lies between two windows for certain.
func (f *firstRequest) span(call, reply int64) (first, last int) {
	return f.since(call), f.until(reply)
}

// since is the first window that is open at a moment or begins after it.
func (f *firstRequest) since(call int64) int {
	first, _ := slices.BinarySearchFunc(f.windows, call, func(w opened, t int64) int {
		if w.hi < forever && w.hi+f.length <= t {
			return -1
		}
		return 1
	})
	return first
}

// until is the last window that begins by a moment.
func (f *firstRequest) until(reply int64) int {
	after, _ := slices.BinarySearchFunc(f.windows, reply, func(w opened, t int64) int {
		if w.lo <= t {
			return -1
		}
		return 1
	})
	return after - 1
}

// between reports whether an effect in [call, reply] can lie in no window.
func (f *firstRequest) between(call, reply int64, first, last int) bool {
	for k := max(first-1, -1); k <= last; k++ {
		from := int64(-maxTime)
		to := int64(forever)
		if k >= 0 {
			from = f.windows[k].lo + f.length
		}
		if k+1 < len(f.windows) {
			to = f.windows[k+1].hi
		}
		if max(call, from) < to && reply >= from {
			return true
		}
	}
	return false
}

func (j *judge) firstRequest() {
	request := &firstRequest{judge: j, length: int64(j.cfg.Window.RealLength()), openers: j.own.openers[:0],
		due: j.own.due[:0]}
	request.verdict = windowVerdict{Subject: j.id, GaveBack: len(j.gives) > 0}
	request.find()
	request.fill()
	for k := range request.windows {
		request.judgeWindow(k)
	}
	request.finish()
	j.own = *request
}

// find finds the windows.
func (f *firstRequest) find() {
	lost := int64(forever)
	if f.initial > 0 {
		f.openers = append(f.openers, interval{})
	}
	for _, event := range f.takes {
		switch {
		case event.admitted():
			f.verdict.Admitted += event.Units
			f.openers = append(f.openers, interval{event.Call, event.Reply})
		case event.Outcome == Failed:
			lost = min(lost, event.Call)
		}
	}
	slices.SortStableFunc(f.openers, func(a, b interval) int { return cmp.Compare(a.call, b.call) })
	f.windows = openings(f.openers, lost, f.length)
}

// fill puts requests and give-backs into all windows that they can have met.
func (f *firstRequest) fill() {
	own := int64(0)
	late := min(int64(time.Millisecond), f.length/100)
	begin, _ := f.span(0, 0)
	for k := range f.windows {
		initial := int64(0)
		if f.initial > 0 && begin == k {
			initial = f.initial
		}
		limit, _ := f.cfg.between(f.windows[k].lo, f.windows[k].lo)
		f.windows[k].offer.begin(initial, limit)
	}
	for _, event := range f.takes {
		first, last := f.span(event.Call, event.Reply)
		lowest, highest := f.limits(event)
		for k := first; k <= last; k++ {
			f.windows[k].asked += event.Units
		}
		if at := min(first, len(f.windows)-1); at >= 0 {
			f.windows[at].offer.add(event, lowest)
		}
		switch {
		case event.admitted():
			m := &met{Event: event, first: first, last: last, unplaced: event.Units, kept: event.Units}
			for k := first; k <= last; k++ {
				f.windows[k].takes = append(f.windows[k].takes, m)
			}
			f.out.unexplained = f.out.unexplained || first < last
		case event.rejected():
			first = f.since(event.Call - late)
			r := &refusal{Event: event, first: first, last: last, always: event.least() <= lowest}
			r.once = event.least() <= highest && f.between(event.Call, event.Reply, first, last)
			f.out.unexplained = f.out.unexplained || first < last || r.once && first == last
			if first > last {
				f.mark(event, r.always)
				f.verdictOn(&f.verdict, event.least(), event.Units, r.always, r.once)
				own += b2n(r.always) * event.least()
			}
			for k := first; k <= last; k++ {
				f.windows[k].refused = append(f.windows[k].refused, r)
			}
		}
	}
	f.worstFalse = own
	f.mostFalse = own
	for _, event := range f.gives {
		interval := f.names.taken(event)
		first, last := f.span(interval.call, interval.reply)
		if !f.names.named(event) {
			last = max(last, min(first, len(f.windows)-1))
		}
		for k := first; k <= last; k++ {
			f.windows[k].gives = append(f.windows[k].gives, event)
		}
	}
}

func b2n(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// judgeWindow checks one window against the limit, by what certainly and possibly
// lies in it.
func (f *firstRequest) judgeWindow(k int) {
	opened := &f.windows[k]
	initial := int64(0)
	first, last := f.span(0, 0)
	if f.initial > 0 && first <= k && k <= last {
		initial = f.initial
	}
	f.out.MaxOffered = max(f.out.MaxOffered, opened.asked)
	bounds := &f.used
	bounds.reset(0)
	bounds.low.base, bounds.high.base = b2n(first == last)*initial, initial
	var possibly int64
	for _, met := range opened.takes {
		possibly += met.Units
		bounds.high.add(instant(max(met.Call, opened.lo)), met.Units)
		if met.first == met.last {
			bounds.low.add(after(met.Reply), met.Units)
		}
	}
	f.giveBack(opened, k)
	bounds.build()

	over, may, fits := f.overWindow(opened)
	opened.swept = over.peak
	f.swept += over.peak
	f.sweptBy.add(f.latestOf(opened, over))
	may = min(may, possibly)
	f.possibleSwept += may
	f.verdict.LeakPossible = max(f.verdict.LeakPossible, may)
	for _, refusal := range opened.refused {
		lowest, highest := f.limits(refusal.Event)
		surely, once := bounds.left(instant(max(refusal.Call, opened.lo)), instant(refusal.Reply), lowest, highest)
		refusal.always, refusal.once = refusal.always && refusal.least() <= surely, refusal.once || refusal.least() <= once
		opened.maybe += b2n(refusal.once) * refusal.Units
		if k == refusal.last {
			f.mark(refusal.Event, refusal.always)
			f.verdictOn(&f.verdict, refusal.least(), refusal.Units, refusal.always, refusal.once)
			opened.falsely += b2n(refusal.always && refusal.first == refusal.last) * refusal.least()
		}
	}
	f.worstFalse = max(f.worstFalse, opened.falsely)
	f.mostFalse = max(f.mostFalse, opened.maybe)
	f.place(opened, k, b2n(first == last)*initial, fits.most)
	f.keep(opened, initial, fits.least)
}

// latestOf are those requests of a window that its excess belongs to.
func (f *firstRequest) latestOf(w *opened, over excess) leaking {
	if over.peak == 0 {
		return leaking{}
	}
	f.due = f.due[:0]
	for _, met := range w.takes {
		if met.first == met.last && met.Reply <= over.at {
			f.due = append(f.due, answer{met.Reply, met.Units, met.Tier})
		}
	}
	return latestCovering(f.due, over.peak)
}

// giveBack enters what was given back of requests that are, or may be, in a window.
func (f *firstRequest) giveBack(w *opened, k int) {
	for _, event := range w.gives {
		interval := f.names.taken(event)
		named := f.names.named(event)
		first, last := f.span(interval.call, interval.reply)
		f.used.high.add(instant(event.Call), max(0, -event.Units))
		if named {
			f.used.free(event, after(event.Reply), forever)
		}
		if back := max(0, event.Units); !named || first == last {
			w.gaveBack += back
			f.used.low.add(f.freed(event), -back)
		} else {
			for _, met := range w.takes {
				if met.Call == interval.call && met.Reply == interval.reply && k == first {
					part := min(back, met.unplaced)
					met.unplaced -= part
					back -= part
				}
			}
		}
	}
}

// place fills the window with those units first that have no later window, then
// with those whose last window comes first. See [tumbling.place].
func (f *firstRequest) place(w *opened, k int, initial, most int64) {
	room := max(0, most-initial) + w.gaveBack
	var due int64
	f.due = f.due[:0]
	slices.SortStableFunc(w.takes, func(a, b *met) int {
		return cmp.Or(cmp.Compare(a.last, b.last), cmp.Compare(a.Reply, b.Reply))
	})
	for _, met := range w.takes {
		if met.last == k {
			due += met.unplaced
			f.due = append(f.due, answer{met.Reply, met.unplaced, met.Tier})
			continue
		}
		placed := min(met.unplaced, max(0, room-due))
		met.unplaced -= placed
		room -= placed
	}
	w.packed = max(0, due-room)
	f.packed += w.packed
	f.packedBy.add(latestCovering(f.due, w.packed))
}

// keep leaves out what may not fit, units with the most windows ahead first.
func (f *firstRequest) keep(w *opened, initial, least int64) {
	load := min(initial, least)
	for _, met := range w.takes {
		load += met.kept
	}
	excess := max(0, load-least)
	f.possiblePacked += excess
	for _, met := range slices.Backward(w.takes) { // as place has put them in order
		out := min(met.kept, excess)
		met.kept -= out
		excess -= out
	}
}

// finish settles the figures that depend on all windows of the subject.
func (f *firstRequest) finish() {
	f.verdict.Leak = max(f.packed, f.swept)
	leaking := f.packedBy
	if f.swept > f.packed {
		leaking = f.sweptBy
	}
	f.blame(leaking)
	f.out.LeakPossible += max(f.verdict.Leak, min(f.possiblePacked+f.overran, f.possibleSwept))
	var worst, over int64
	for k := range f.windows {
		opened := &f.windows[k]
		leak := opened.packed
		if f.swept > f.packed {
			leak = opened.swept
		}
		worst = max(worst, opened.swept)
		f.crossing(opened.offer.crossed, leak)
		over += opened.offer.over
	}
	if n := int64(len(f.windows)); n > 0 { // some window has the average
		worst = max(worst, (f.verdict.Leak+n-1)/n)
	}
	f.verdict.LeakPossible = max(f.verdict.LeakPossible, worst)
	f.verdict.sure = sure{worst, f.worstFalse, f.mostFalse}
	if f.verdict.GaveBack {
		over = f.overOffered(f.verdict.Leak)
	}
	f.out.OverOffered += over
	f.out.Windows = append(f.out.Windows, f.verdict)
}
