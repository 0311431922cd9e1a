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
	w       windowVerdict
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
		if n, _ := slices.BinarySearchFunc(openers, to, func(o interval, t int64) int { return cmp.Compare(o.call, t) }); n < len(openers) {
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
	f := &firstRequest{judge: j, length: int64(j.cfg.Window.RealLength()), openers: j.own.openers[:0], due: j.own.due[:0]}
	f.w = windowVerdict{Subject: j.id, GaveBack: len(j.gives) > 0}
	f.find()
	f.fill()
	for k := range f.windows {
		f.judgeWindow(k)
	}
	f.finish()
	j.own = *f
}

// find finds the windows.
func (f *firstRequest) find() {
	lost := int64(forever)
	if f.initial > 0 {
		f.openers = append(f.openers, interval{})
	}
	for _, e := range f.takes {
		switch {
		case e.admitted():
			f.w.Admitted += e.Units
			f.openers = append(f.openers, interval{e.Call, e.Reply})
		case e.Outcome == Failed:
			lost = min(lost, e.Call)
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
	for _, e := range f.takes {
		first, last := f.span(e.Call, e.Reply)
		lowest, highest := f.limits(e)
		for k := first; k <= last; k++ {
			f.windows[k].asked += e.Units
		}
		if at := min(first, len(f.windows)-1); at >= 0 {
			f.windows[at].offer.add(e, lowest)
		}
		switch {
		case e.admitted():
			m := &met{Event: e, first: first, last: last, unplaced: e.Units, kept: e.Units}
			for k := first; k <= last; k++ {
				f.windows[k].takes = append(f.windows[k].takes, m)
			}
			f.out.unexplained = f.out.unexplained || first < last
		case e.rejected():
			first = f.since(e.Call - late)
			r := &refusal{Event: e, first: first, last: last, always: e.least() <= lowest}
			r.once = e.least() <= highest && f.between(e.Call, e.Reply, first, last)
			f.out.unexplained = f.out.unexplained || first < last || r.once && first == last
			if first > last {
				f.mark(e, r.always)
				f.verdictOn(&f.w, e.least(), e.Units, r.always, r.once)
				own += b2n(r.always) * e.least()
			}
			for k := first; k <= last; k++ {
				f.windows[k].refused = append(f.windows[k].refused, r)
			}
		}
	}
	f.worstFalse = own
	f.mostFalse = own
	for _, e := range f.gives {
		t := f.names.taken(e)
		first, last := f.span(t.call, t.reply)
		if !f.names.named(e) {
			last = max(last, min(first, len(f.windows)-1))
		}
		for k := first; k <= last; k++ {
			f.windows[k].gives = append(f.windows[k].gives, e)
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
	w := &f.windows[k]
	initial := int64(0)
	first, last := f.span(0, 0)
	if f.initial > 0 && first <= k && k <= last {
		initial = f.initial
	}
	f.out.MaxOffered = max(f.out.MaxOffered, w.asked)
	u := &f.used
	u.reset(0)
	u.low.base, u.high.base = b2n(first == last)*initial, initial
	var possibly int64
	for _, m := range w.takes {
		possibly += m.Units
		u.high.add(instant(max(m.Call, w.lo)), m.Units)
		if m.first == m.last {
			u.low.add(after(m.Reply), m.Units)
		}
	}
	f.giveBack(w, k)
	u.build()

	over, may, fits := f.overWindow(w)
	w.swept = over.peak
	f.swept += over.peak
	f.sweptBy.add(f.latestOf(w, over))
	may = min(may, possibly)
	f.possibleSwept += may
	f.w.LeakPossible = max(f.w.LeakPossible, may)
	for _, r := range w.refused {
		lowest, highest := f.limits(r.Event)
		surely, once := u.left(instant(max(r.Call, w.lo)), instant(r.Reply), lowest, highest)
		r.always, r.once = r.always && r.least() <= surely, r.once || r.least() <= once
		w.maybe += b2n(r.once) * r.Units
		if k == r.last {
			f.mark(r.Event, r.always)
			f.verdictOn(&f.w, r.least(), r.Units, r.always, r.once)
			w.falsely += b2n(r.always && r.first == r.last) * r.least()
		}
	}
	f.worstFalse = max(f.worstFalse, w.falsely)
	f.mostFalse = max(f.mostFalse, w.maybe)
	f.place(w, k, b2n(first == last)*initial, fits.most)
	f.keep(w, initial, fits.least)
}

// latestOf are those requests of a window that its excess belongs to.
func (f *firstRequest) latestOf(w *opened, over excess) leaking {
	if over.peak == 0 {
		return leaking{}
	}
	f.due = f.due[:0]
	for _, m := range w.takes {
		if m.first == m.last && m.Reply <= over.at {
			f.due = append(f.due, answer{m.Reply, m.Units, m.Tier})
		}
	}
	return latestCovering(f.due, over.peak)
}

// giveBack enters what was given back of requests that are, or may be, in a window.
func (f *firstRequest) giveBack(w *opened, k int) {
	for _, e := range w.gives {
		t := f.names.taken(e)
		named := f.names.named(e)
		first, last := f.span(t.call, t.reply)
		f.used.high.add(instant(e.Call), max(0, -e.Units))
		if named {
			f.used.free(e, after(e.Reply), forever)
		}
		if back := max(0, e.Units); !named || first == last {
			w.gaveBack += back
			f.used.low.add(f.freed(e), -back)
		} else {
			for _, m := range w.takes {
				if m.Call == t.call && m.Reply == t.reply && k == first {
					part := min(back, m.unplaced)
					m.unplaced -= part
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
	slices.SortStableFunc(w.takes, func(a, b *met) int { return cmp.Or(cmp.Compare(a.last, b.last), cmp.Compare(a.Reply, b.Reply)) })
	for _, m := range w.takes {
		if m.last == k {
			due += m.unplaced
			f.due = append(f.due, answer{m.Reply, m.unplaced, m.Tier})
			continue
		}
		placed := min(m.unplaced, max(0, room-due))
		m.unplaced -= placed
		room -= placed
	}
	w.packed = max(0, due-room)
	f.packed += w.packed
	f.packedBy.add(latestCovering(f.due, w.packed))
}

// keep leaves out what may not fit, units with the most windows ahead first.
func (f *firstRequest) keep(w *opened, initial, least int64) {
	load := min(initial, least)
	for _, m := range w.takes {
		load += m.kept
	}
	excess := max(0, load-least)
	f.possiblePacked += excess
	for _, m := range slices.Backward(w.takes) { // as place has put them in order
		out := min(m.kept, excess)
		m.kept -= out
		excess -= out
	}
}

// finish settles the figures that depend on all windows of the subject.
func (f *firstRequest) finish() {
	f.w.Leak = max(f.packed, f.swept)
	by := f.packedBy
	if f.swept > f.packed {
		by = f.sweptBy
	}
	f.blame(by)
	f.out.LeakPossible += max(f.w.Leak, min(f.possiblePacked+f.overran, f.possibleSwept))
	var worst, over int64
	for k := range f.windows {
		w := &f.windows[k]
		leak := w.packed
		if f.swept > f.packed {
			leak = w.swept
		}
		worst = max(worst, w.swept)
		f.crossing(w.offer.crossed, leak)
		over += w.offer.over
	}
	if n := int64(len(f.windows)); n > 0 { // some window has the average
		worst = max(worst, (f.w.Leak+n-1)/n)
	}
	f.w.LeakPossible = max(f.w.LeakPossible, worst)
	f.w.sure = sure{worst, f.worstFalse, f.mostFalse}
	if f.w.GaveBack {
		over = f.overOffered(f.w.Leak)
	}
	f.out.OverOffered += over
	f.out.Windows = append(f.out.Windows, f.w)
}
