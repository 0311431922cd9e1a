package oracle

import "time"

// standing judges units that count from their admission until they are given
// back.
func (j *judge) standing() {
	w := windowVerdict{Subject: j.id, GaveBack: len(j.gives) > 0}
	j.used.reset(j.initial)
	var asked int64
	var o offer
	o.begin(j.initial, j.limit)
	for _, e := range j.takes {
		asked += e.Units
		lowest, _ := j.limits(e)
		o.add(e, lowest)
		if e.admitted() {
			w.Admitted += e.Units
			j.used.high.add(instant(e.Call), e.Units)
			j.used.low.add(after(e.Reply), e.Units)
		}
	}
	for _, e := range j.gives {
		j.give(e)
	}
	j.used.build()

	over, may := j.overStanding()
	w.Leak = over.peak
	w.LeakPossible = max(w.Leak, min(may, w.Admitted))
	j.out.LeakPossible += w.LeakPossible
	j.blame(j.answeredBy(j.takes, over.at, over.peak))
	j.out.Standing.Excursions += over.excursions
	j.out.Standing.UnitSeconds += over.area / float64(time.Second)

	if j.falseRejects(&w, j.takes); w.GaveBack {
		j.out.Linear = Linear{}
	}
	j.out.Linear.window(j.takes, j.limit, j.initial)
	w.sure = sure{w.Leak, w.FalseRejectUnits, w.FalseRejectUnitsPossible}
	j.out.MaxOffered = max(j.out.MaxOffered, asked)
	if w.GaveBack {
		j.out.OverOffered += j.overOffered(w.Leak)
	} else {
		j.out.OverOffered += o.over
	}
	j.crossing(o.crossed, w.Leak)
	j.out.Windows = append(j.out.Windows, w)
}

// overStanding is what was certainly, and possibly, in use over the limit.
func (j *judge) overStanding() (over excess, may int64) {
	if len(j.cfg.Changes) == 0 {
		return j.used.low.overLimit(j.limit, j.until), j.used.mayExceed(j.limit)
	}
	j.used.hold()
	j.flying.reset(0)
	for _, e := range j.takes {
		j.flying.underWay(e, everLasting)
	}
	j.flying.build()
	over, _ = j.used.above(j.levels, everLasting, j.until)
	may, _ = j.used.mayPass(j.levels, everLasting, &j.flying)
	return over, may
}

// falseRejects judges the rejections among requests that lie in one window.
func (j *judge) falseRejects(w *windowVerdict, takes []*Event) {
	for _, e := range takes {
		if e.rejected() {
			lowest, highest := j.limits(e)
			surely, once := j.used.left(instant(e.Call), instant(e.Reply), lowest, highest)
			j.refused(w, e, surely, once)
		}
	}
}

// give takes units back that belong to the window at hand, if no window says
// otherwise. A refund that failed took effect at the latest when the application
// let go, and possibly never in the store; nor may the store notice an expiry.
// What a commit used beyond its reservation is use, but never leak for certain.
func (j *judge) give(e *Event) {
	j.used.high.add(instant(e.Call), max(0, -e.Units))
	j.used.low.add(j.freed(e), -max(0, e.Units))
	j.used.free(e, after(e.Reply), forever)
}

// answeredBy are, of the requests admitted by the instant t, those answered
// last that hold the given number of units.
func (j *judge) answeredBy(takes []*Event, t, units int64) leaking {
	if units == 0 {
		return leaking{}
	}
	j.latest = j.latest[:0]
	for _, e := range takes {
		if e.admitted() && e.Reply <= t {
			j.latest = append(j.latest, answer{e.Reply, e.Units, e.Tier})
		}
	}
	return latestCovering(j.latest, units)
}
