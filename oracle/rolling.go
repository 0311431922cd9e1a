package oracle

import (
	"cmp"
	"math"
	"slices"
)

// rolling judges a limit on every stretch of one window's length.
//
// The certain leak rests on low: what was called after, and answered before, the
// ends of one window, must lie in it. The excesses of windows that do not overlap
// add up, and the choice of windows with the largest sum is taken. It is a lower
// bound: units that could lie in several windows are not counted at all. If chains of
// requests show more leaks than that, these are taken. The
// upper bound keeps the most units that fit wherever they are placed.
//
// What is given back frees exactly what its take still has in the window.
func (j *judge) rolling() {
	length := int64(j.cfg.Window.RealLength())
	verdict := windowVerdict{Subject: j.id, GaveBack: len(j.gives) > 0}
	j.used.reset(0)
	j.used.stay(0, 0, j.initial, length)
	j.asked.reset(0)
	j.answered.reset(0)
	// What was asked for and what was answered differ by failed requests alone.
	answered := &j.asked
	steps := 2*len(j.takes) + 2
	if verdict.GaveBack || slices.ContainsFunc(j.takes, func(event *Event) bool { return !event.answered() }) {
		answered = &j.answered
		answered.expect(steps)
		answered.mustStay(0, 0, j.initial, length)
	}
	j.asked.expect(steps)
	j.asked.mustStay(0, 0, j.initial, length)
	present := make([]stay, 0, len(j.takes)) // admitted, and used beyond reservations
	var total int64
	for _, event := range j.takes {
		total += event.Units
		j.asked.mustStay(event.Call, event.Reply, event.Units, length)
		if event.answered() && answered != &j.asked {
			answered.mustStay(event.Call, event.Reply, event.Units, length)
		}
		if event.admitted() {
			present = append(present, stay{event.Call, event.Reply, event.Units})
			verdict.Admitted += event.Units
			j.used.stay(event.Call, event.Reply, event.Units, length)
		}
	}
	admitted := len(present)
	for _, event := range j.gives {
		if stay, overran := j.giveBackRolling(event, length); overran {
			present = append(present, stay)
		}
	}
	j.used.build()
	j.falseRejects(&verdict, j.takes)
	if verdict.FalseRejects > 0 {
		j.out.NeverGiven += j.besides(length)
	}

	r := roller{length: length, limit: j.limit, initial: j.initial}
	leaks, worst, may := j.overRolling(r, present, admitted)
	if !verdict.GaveBack && len(j.cfg.Changes) == 0 {
		if chains := r.chains(present); int64(len(chains)) > excesses(leaks) {
			leaks = chains
			worst = max(worst, 1)
		}
	}
	for _, stretch := range leaks {
		verdict.Leak += stretch.excess
		j.blame(r.requests(j.takes, stretch))
	}
	verdict.sure = sure{worst, verdict.FalseRejectUnits, verdict.FalseRejectUnitsPossible}
	verdict.LeakPossible = max(worst, min(may, verdict.Admitted))
	if verdict.LeakPossible > 0 { // or nothing is ever over the limit
		j.out.LeakPossible += max(verdict.Leak, min(r.possible(&j.cfg, present), verdict.Admitted))
	}
	j.out.MaxOffered = max(j.out.MaxOffered, total)
	j.crossings(r, &verdict, leaks, answered)
	j.out.Windows = append(j.out.Windows, verdict)
}

// crossings counts the stretches in which more was asked for, or answered, than the limit.
func (j *judge) crossings(r roller, verdict *windowVerdict, leaks []stretch, answered *curve) {
	var over []stretch
	if verdict.GaveBack {
		j.out.OverOffered += j.overOffered(verdict.Leak)
	} else {
		over = j.overAsked(r, &j.asked)
		j.out.OverOffered += max(excesses(over), verdict.Leak)
	}
	if answered != &j.asked {
		over = j.overAsked(r, answered)
	}
	for i := range max(len(over), len(leaks)) {
		leak := int64(0)
		if i < len(leaks) {
			leak = leaks[i].excess
		}
		j.crossed(leak)
	}
}

// besides is a lower bound of the refused units that fitted besides all that was admitted. Requests get room in the
// order of their calls, if it is certain in every window that they can be in.
func (j *judge) besides(length int64) (units int64) {
	var given []answer // with the end of their stay
	var staying int64
	for _, event := range j.takes {
		if !event.rejected() {
			continue
		}
		for ; len(given) > 0 && given[0].reply <= event.Call; given = given[1:] {
			staying -= given[0].units
		}
		lowest := j.limit
		if len(j.cfg.Changes) > 0 {
			lowest, _ = j.cfg.between(event.Call, event.Reply+length)
		}
		left := lowest - staying - j.used.high.most(instant(event.Call), instant(event.Reply+length)-1)
		if left < event.least() {
			continue
		}
		n := min(left, event.Units)
		given = append(given, answer{reply: event.Reply + length, units: n})
		staying += n
		units += n
	}
	return units
}

// overRolling is what certainly was in windows over the limit, and what possibly was
// in one.
func (j *judge) overRolling(r roller, present []stay, admitted int) (leaks []stretch, worst, may int64) {
	if len(j.cfg.Changes) == 0 {
		leaks, worst = r.leak(&j.used.low)
		return leaks, worst, j.used.mayExceed(j.limit)
	}
	j.used.hold()
	j.flying.reset(0)
	for _, stay := range present[:admitted] {
		j.flying.add(instant(stay.call), 1)
		j.flying.add(after(stay.reply), -1)
	}
	j.flying.build()
	rises := make([]step, len(present))
	for i, stay := range present {
		rises[i] = step{instant(stay.call), stay.units}
	}
	slices.SortFunc(rises, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	effective := effectiveFrom(math.MinInt64, j.levels, j.used.held(), true)
	effective.rises = rises
	leaks, worst = r.leakAbove(&j.used.low, effective)
	may, _ = j.used.mayPass(j.levels, everLasting, &j.flying)
	return leaks, worst, may
}

// overAsked is what was asked for over the limit. The curve is built here.
func (j *judge) overAsked(r roller, c *curve) (over []stretch) {
	c.build()
	if len(j.cfg.Changes) == 0 {
		over, _ = r.leak(c)
		return over
	}
	over, _ = r.leakAbove(c, effectiveFrom(math.MinInt64, j.levels, c, false))
	return over
}

// giveBackRolling takes units out of the curves until their take would have left
// the window by itself. It returns the stay of what a commit used beyond its
// reservation.
func (j *judge) giveBackRolling(event *Event, length int64) (over stay, overran bool) {
	taken := j.names.taken(event)
	gone := instant(taken.reply + length)
	if event.Units < 0 {
		if instant(event.Call) >= gone {
			return stay{}, false
		}
		j.used.high.add(instant(event.Call), -event.Units)
		j.used.high.add(gone, event.Units)
		return stay{event.Call, max(event.Call, taken.reply), -event.Units}, true
	}
	if from, to := j.freed(event), instant(taken.call+length); from < to {
		j.used.low.add(from, -event.Units)
		j.used.low.add(to, event.Units)
	}
	if j.names.named(event) {
		j.used.free(event, after(event.Reply), gone)
	}
	return stay{}, false
}

// stay adds units that are in every window up to one length behind the moment
// they were admitted at.
func (b *bounds) stay(call, reply, units, length int64) {
	b.high.add(instant(call), units)
	b.high.add(instant(reply+length), -units)
	b.low.mustStay(call, reply, units, length)
}

// mustStay adds units if they cannot be anywhere but in the window.
func (c *curve) mustStay(call, reply, units, length int64) {
	if from, to := after(reply), instant(call+length); from < to {
		c.add(from, units)
		c.add(to, -units)
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

// stretch is one window by its last moment (doubled), and what it holds over the
// limit.
type stretch struct {
	last, excess int64
}

// sum is the most that windows which do not overlap hold over the limit together,
// if none ends later than the last of them.
type sum struct {
	stretch
	total  int64
	behind int // sums that end early enough to be part of this one
}

// leak returns windows with the largest sum of excesses of which no two overlap,
// by time, and the worst excess of any window. Of several choices with that sum it
// returns the one that ends first. The curve is a lower bound of what
// lies in the window behind every moment, and has been built.
//
// The curve is constant between two of its steps. Inside such a piece, a window is
// only of use if it is the first that follows another without overlap.
func (r roller) leak(low *curve) (chosen []stretch, worst int64) {
	var sums []sum
	behind := 0
	try := func(last, excess int64) {
		for behind < len(sums) && sums[behind].last <= last-2*r.length {
			behind++
		}
		total := excess
		if behind > 0 {
			total += sums[behind-1].total
		}
		if n := len(sums); n == 0 || total > sums[n-1].total {
			sums = append(sums, sum{stretch{last, excess}, total, behind})
		}
	}
	follow := 0
	for i, from := range low.at {
		to := int64(forever)
		if later := low.at[i+1:]; len(later) > 0 {
			to = later[0]
		}
		excess := r.excess(low.val[i], from)
		if excess <= 0 {
			continue
		}
		worst = max(worst, excess)
		try(from, excess)
		for ; follow < len(sums) && sums[follow].last+2*r.length < to; follow++ {
			try(max(from, sums[follow].last+2*r.length), excess)
		}
	}
	for n := len(sums); n > 0; n = sums[n-1].behind {
		chosen = append(chosen, sums[n-1].stretch)
	}
	slices.Reverse(chosen)
	return chosen, worst
}

// leakAbove is leak under a limit that changes, by a walk along the effective one.
func (r roller) leakAbove(low *curve, x effective) (chosen []stretch, worst int64) {
	units := low.base
	over := curve{}
	for steps := low.steps; ; {
		m := min(x.next(), nextOf(steps))
		if m == forever {
			return roller{length: r.length}.leak(&over)
		}
		x.advance(m)
		for ; len(steps) > 0 && steps[0].at == m; steps = steps[1:] {
			units += steps[0].by
		}
		now := roller{length: r.length, limit: x.limit, initial: r.initial}
		over.at, over.val = append(over.at, m), append(over.val, now.excess(units, m))
	}
}

// excess is what a window holds over the limit. Initial units are no leak: there
// is never more of it than was admitted.
func (r roller) excess(units, at int64) int64 {
	if at > 0 && at < instant(r.length) {
		return units - max(r.limit, r.initial)
	}
	return units - r.limit
}

// excesses add up what windows hold over the limit.
func excesses(leaks []stretch) (units int64) {
	for _, stretch := range leaks {
		units += stretch.excess
	}
	return units
}

// requests are those of a window that its excess belongs to, of takes by call.
func (r roller) requests(takes []*Event, w stretch) leaking {
	from, _ := slices.BinarySearchFunc(takes, w.last-2*r.length, func(event *Event, t int64) int {
		return cmp.Compare(instant(event.Call), t+1)
	})
	var answers []answer
	for _, event := range takes[from:] {
		if instant(event.Call) > w.last {
			break
		}
		if event.admitted() && after(event.Reply) <= w.last {
			answers = append(answers, answer{event.Reply, event.Units, event.Tier})
		}
	}
	return latestCovering(answers, w.excess)
}
