package oracle

import (
	"cmp"
	"math"
	"slices"
)

// rolling judges a subject by a limit on every stretch of time of one window's
// length.
//
// The excess of a window is the units that lie in it for certain, less the limit.
// A request lies in it for certain if it was called after the window began and
// answered before it ended.
//
// The certain leak is the largest sum of excesses of windows that do not overlap
// ([rollingLimit.leak]), or the number of requests that chains of others pushed
// behind their own replies ([rollingLimit.chains]), if that is more. It is a lower
// bound: units that could lie in several windows are counted in none.
//
// The possible leak is the admitted units that are not among the most that fit
// wherever they are placed ([rollingLimit.possible]).
type rolling struct {
	*judge
	window  rollingLimit
	verdict windowVerdict
	// present are the admitted requests, and behind them the units that commits
	// used beyond their reservations. admitted is the number of the requests.
	present  []stay
	admitted int
	// separate is set if the curve of the answered units differs from the curve of the
	// units asked for.
	separate bool
	leaks    []stretch
}

func (j *judge) rolling() {
	length := int64(j.cfg.Window.RealLength())
	r := rolling{
		judge:   j,
		window:  rollingLimit{length: length, limit: j.limit, initial: j.initial},
		verdict: windowVerdict{Subject: j.id, GaveBack: len(j.gives) > 0},
	}
	r.enterInitial()
	r.enterTakes()
	r.enterGives()
	r.used.build()
	r.judgeRejections()
	r.judgeLeak()
	r.countCrossings()
	j.out.Windows = append(j.out.Windows, r.verdict)
}

// enterInitial begins the curves with the units in use at the epoch.
func (r *rolling) enterInitial() {
	length := r.window.length
	r.used.reset(0)
	r.used.addStay(0, 0, r.initial, length)
	steps := 2*len(r.takes) + 2
	r.asked.reset(0)
	r.asked.expect(steps)
	r.asked.addCertainStay(0, 0, r.initial, length)
	// Only the units of failed requests were asked for and not answered. If units were
	// given back, the curve of the units asked for is not used.
	unanswered := func(event *Event) bool { return !event.answered() }
	r.separate = r.verdict.GaveBack || slices.ContainsFunc(r.takes, unanswered)
	r.answered.reset(0)
	if r.separate {
		r.answered.expect(steps)
		r.answered.addCertainStay(0, 0, r.initial, length)
	}
}

// enterTakes adds the requests to the curves.
func (r *rolling) enterTakes() {
	length := r.window.length
	r.present = make([]stay, 0, len(r.takes))
	var total int64
	for _, event := range r.takes {
		total += event.Units
		if event.Outcome != Elsewhere {
			r.asked.addCertainStay(event.Call, event.Reply, event.Units, length)
		}
		if r.separate && event.answered() {
			r.answered.addCertainStay(event.Call, event.Reply, event.Units, length)
		}
		if event.admitted() {
			r.present = append(r.present, stay{event.Call, event.Reply, event.Units})
			r.verdict.Admitted += event.Units
			r.used.addStay(event.Call, event.Reply, event.Units, length)
		}
	}
	r.admitted = len(r.present)
	r.out.MaxOffered = max(r.out.MaxOffered, total)
}

// enterGives adds refunds, commits and expiries to the curves.
func (r *rolling) enterGives() {
	for _, event := range r.gives {
		if event.Units < 0 {
			r.enterOverrun(event)
		} else {
			r.enterGiveBack(event)
		}
	}
}

// enterOverrun adds the units that a commit used beyond its reservation. They leave
// the window together with the units of their take.
func (r *rolling) enterOverrun(event *Event) {
	taken := r.names.taken(event)
	gone := instant(taken.reply + r.window.length)
	if instant(event.Call) >= gone {
		return
	}
	units := -event.Units
	r.used.high.add(instant(event.Call), units)
	r.used.high.add(gone, -units)
	r.present = append(r.present, stay{event.Call, max(event.Call, taken.reply), units})
}

// enterGiveBack takes units out of the curves until they would have left the window
// by themselves, with their take.
func (r *rolling) enterGiveBack(event *Event) {
	taken := r.names.taken(event)
	freed := r.freed(event)
	leaves := instant(taken.call + r.window.length)
	if freed < leaves {
		r.used.low.add(freed, -event.Units)
		r.used.low.add(leaves, event.Units)
	}
	if r.names.named(event) {
		r.used.free(event, after(event.Reply), instant(taken.reply+r.window.length))
	}
}

// judgeRejections finds false rejects, and how many of the refused units fitted.
func (r *rolling) judgeRejections() {
	r.falseRejects(&r.verdict, r.takes)
	if r.verdict.FalseRejects > 0 {
		r.out.NeverGiven += r.neverGiven()
	}
}

// neverGiven is a lower bound of the refused units that fitted next to all admitted
// units. Refused requests get room in the order of their calls, if there is room in
// every window that they can lie in.
func (r *rolling) neverGiven() (units int64) {
	var granted []answer // rejections that got room, by the end of their stay
	var staying int64
	for _, event := range r.wrong {
		for len(granted) > 0 && granted[0].reply <= event.Call {
			staying -= granted[0].units
			granted = granted[1:]
		}
		end := event.Reply + r.window.length
		lowest := r.limit
		if len(r.cfg.Changes) > 0 {
			lowest, _ = r.cfg.between(event.Call, end)
		}
		inUse := r.used.high.most(instant(event.Call), instant(end)-1)
		room := lowest - staying - inUse
		if room < event.least() {
			continue
		}
		fitting := min(room, event.Units)
		granted = append(granted, answer{reply: end, units: fitting})
		staying += fitting
		units += fitting
	}
	return units
}

// judgeLeak finds the certain and the possible leak.
func (r *rolling) judgeLeak() {
	leaks, worst, possible := r.overLimit()
	if !r.verdict.GaveBack && len(r.cfg.Changes) == 0 {
		chains := r.window.chains(r.present)
		if int64(len(chains)) > excesses(leaks) {
			leaks = chains
			worst = max(worst, 1)
		}
	}
	verdict := &r.verdict
	for _, leak := range leaks {
		verdict.Leak += leak.excess
		r.blame(r.window.leakedIn(r.takes, leak))
	}
	verdict.sure = sure{
		leak:          worst,
		falseRejects:  verdict.FalseRejectUnits,
		falsePossible: verdict.FalseRejectUnitsPossible,
	}
	verdict.LeakPossible = max(worst, min(possible, verdict.Admitted))
	if verdict.LeakPossible > 0 { // otherwise no window is ever over the limit
		unfitting := min(r.window.possible(&r.cfg, r.present), verdict.Admitted)
		r.out.LeakPossible += max(verdict.Leak, unfitting)
	}
	r.leaks = leaks
}

// overLimit finds the windows that are over the limit for certain, the worst excess
// of one window, and the largest excess that one window can have.
func (r *rolling) overLimit() (leaks []stretch, worst, possible int64) {
	if len(r.cfg.Changes) == 0 {
		leaks, worst = r.window.leak(&r.used.low)
		return leaks, worst, r.used.mayExceed(r.limit)
	}
	r.used.hold()
	limits := effectiveFrom(math.MinInt64, r.levels, r.used.held(), true)
	limits.rises = r.rises()
	leaks, worst = r.window.leakAbove(&r.used.low, limits)

	r.flying.reset(0)
	for _, request := range r.present[:r.admitted] {
		r.flying.add(instant(request.call), 1)
		r.flying.add(after(request.reply), -1)
	}
	r.flying.build()
	possible, _ = r.used.mayPass(r.levels, everLasting, &r.flying)
	return leaks, worst, possible
}

// rises are the steps up of the upper curve, by time.
func (r *rolling) rises() []step {
	steps := make([]step, len(r.present))
	for i, request := range r.present {
		steps[i] = step{instant(request.call), request.units}
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return steps
}

// countCrossings counts the windows in which more than the limit was answered, and
// the units that were asked for over the limit.
func (r *rolling) countCrossings() {
	var crossed []stretch
	if r.verdict.GaveBack {
		r.out.OverOffered += r.overOffered(r.verdict.Leak)
	} else {
		crossed = r.overCurve(&r.asked)
		r.out.OverOffered += max(excesses(crossed), r.verdict.Leak)
	}
	if r.separate {
		crossed = r.overCurve(&r.answered)
	}
	leaks := make([]int64, len(r.leaks))
	for i, leak := range r.leaks {
		leaks[i] = leak.excess
	}
	r.crossedTimes(len(crossed), leaks)
}

// overCurve builds a curve of units asked for or answered, and finds the windows in
// which they are over the limit.
func (r *rolling) overCurve(units *curve) (over []stretch) {
	units.build()
	if len(r.cfg.Changes) == 0 {
		over, _ = r.window.leak(units)
		return over
	}
	limits := effectiveFrom(math.MinInt64, r.levels, units, false)
	over, _ = r.window.leakAbove(units, limits)
	return over
}

// stay is a request by its interval.
type stay struct {
	call, reply, units int64
}

// addStay adds units that lie in every window whose end is at most one length
// behind the moment of their admission.
func (b *bounds) addStay(call, reply, units, length int64) {
	b.high.add(instant(call), units)
	b.high.add(instant(reply+length), -units)
	b.low.addCertainStay(call, reply, units, length)
}

// addCertainStay adds units to the windows that they lie in for certain, by the
// windows' ends.
func (c *curve) addCertainStay(call, reply, units, length int64) {
	from := after(reply)
	to := instant(call + length)
	if from < to {
		c.add(from, units)
		c.add(to, -units)
	}
}

// rollingLimit is a limit on the units of every window of one length.
type rollingLimit struct {
	length, limit, initial int64
}

// stretch is one window by its last moment (doubled), and what it holds over the
// limit.
type stretch struct {
	last, excess int64
}

// leak returns the windows with the largest sum of excesses of which no two
// overlap, by time, and the worst excess of any window: weighted interval
// scheduling, see [schedule]. The curve is a lower bound of the units in the window
// that ends at each moment, and has been built.
//
// The curve is constant between two of its steps. So the windows to choose from are
// those that end at a step, and those that begin where one of the others has ended.
func (r rollingLimit) leak(low *curve) (chosen []stretch, worst int64) {
	windows := windowSchedule{length: 2 * r.length}
	for i, from := range low.at {
		excess := r.excess(low.val[i], from)
		if excess <= 0 {
			continue
		}
		to := int64(forever)
		if i+1 < len(low.at) {
			to = low.at[i+1]
		}
		worst = max(worst, excess)
		windows.add(from, excess)
		windows.addFollowers(from, to, excess)
	}
	return windows.chosen(), worst
}

// windowSchedule is a schedule of windows of one length (doubled).
type windowSchedule struct {
	schedule[stretch]
	length   int64
	before   int // choices that end before the window added last begins
	followed int // choices of which the window right behind them was added
}

// add offers the window that ends at a moment.
func (w *windowSchedule) add(last, excess int64) {
	for w.before < len(w.schedule) && w.schedule[w.before].interval.last <= last-w.length {
		w.before++
	}
	total := w.total(w.before) + excess
	if len(w.schedule) == 0 || total > w.total(len(w.schedule)) {
		w.schedule = append(w.schedule, choice[stretch]{stretch{last, excess}, total, w.before})
	}
}

// addFollowers offers the windows that end in [from, to) and are the first to
// follow another without overlap.
func (w *windowSchedule) addFollowers(from, to, excess int64) {
	for w.followed < len(w.schedule) {
		last := w.schedule[w.followed].interval.last + w.length
		if last >= to {
			return
		}
		w.add(max(from, last), excess)
		w.followed++
	}
}

// leakAbove is leak under a limit that changes. An excess then is what a window
// holds over the effective limit at its end.
func (r rollingLimit) leakAbove(low *curve, limits effective) (chosen []stretch, worst int64) {
	var over curve
	units := low.base
	steps := low.steps
	for {
		moment := min(limits.next(), nextOf(steps))
		if moment == forever {
			break
		}
		limits.advance(moment)
		for len(steps) > 0 && steps[0].at == moment {
			units += steps[0].by
			steps = steps[1:]
		}
		window := rollingLimit{length: r.length, limit: limits.limit, initial: r.initial}
		over.set(moment, window.excess(units, moment))
	}
	return rollingLimit{length: r.length}.leak(&over)
}

// excess is what the window that ends at a moment holds over the limit. Initial
// units are no leak: there is never more of it than was admitted.
func (r rollingLimit) excess(units, last int64) int64 {
	if last > 0 && last < instant(r.length) {
		return units - max(r.limit, r.initial)
	}
	return units - r.limit
}

// excesses is the sum of what windows hold over the limit.
func excesses(windows []stretch) (units int64) {
	for _, window := range windows {
		units += window.excess
	}
	return units
}

// leakedIn are the requests of a window that its excess belongs to. The takes are
// ordered by call.
func (r rollingLimit) leakedIn(takes []*Event, window stretch) leaking {
	begin := window.last - 2*r.length
	first, _ := slices.BinarySearchFunc(takes, begin, func(event *Event, begin int64) int {
		return cmp.Compare(instant(event.Call), begin+1)
	})
	var answers []answer
	for _, event := range takes[first:] {
		if instant(event.Call) > window.last {
			break
		}
		if event.admitted() && after(event.Reply) <= window.last {
			answers = append(answers, answer{event.Reply, event.Units, event.Tier})
		}
	}
	return latestCovering(answers, window.excess)
}
