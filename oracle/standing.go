package oracle

import "time"

// standing judges units that count from their admission until they are given
// back.
func (j *judge) standing() {
	verdict := windowVerdict{Subject: j.id, GaveBack: len(j.gives) > 0}
	j.used.reset(j.initial)
	var asked int64
	var o offer
	o.begin(j.initial, j.limit)
	for _, event := range j.takes {
		asked += event.Units
		lowest, _ := j.limits(event)
		o.add(event, lowest)
		if event.admitted() {
			verdict.Admitted += event.Units
			j.used.high.add(instant(event.Call), event.Units)
			j.used.low.add(after(event.Reply), event.Units)
		}
	}
	for _, event := range j.gives {
		j.give(event)
	}
	j.used.build()

	over, may := j.overStanding()
	verdict.Leak = over.peak
	verdict.LeakPossible = max(verdict.Leak, min(may, verdict.Admitted))
	j.out.LeakPossible += verdict.LeakPossible
	j.blame(j.answeredBy(j.takes, over.at, over.peak))
	j.out.Standing.Excursions += over.excursions
	j.out.Standing.UnitSeconds += over.area / float64(time.Second)

	j.falseRejects(&verdict, j.takes)
	if verdict.GaveBack {
		j.out.Linear = Linear{}
	}
	j.out.Linear.window(j.takes, j.limit, j.initial)
	verdict.sure = sure{verdict.Leak, verdict.FalseRejectUnits, verdict.FalseRejectUnitsPossible}
	j.out.MaxOffered = max(j.out.MaxOffered, asked)
	if verdict.GaveBack {
		j.out.OverOffered += j.overOffered(verdict.Leak)
	} else {
		j.out.OverOffered += o.over
	}
	j.crossing(o.crossed, verdict.Leak)
	j.out.Windows = append(j.out.Windows, verdict)
}

// overStanding is what was certainly, and possibly, in use over the limit.
func (j *judge) overStanding() (over excess, may int64) {
	if len(j.cfg.Changes) == 0 {
		return j.used.low.overLimit(j.limit, j.until), j.used.mayExceed(j.limit)
	}
	j.used.hold()
	j.flying.reset(0)
	for _, event := range j.takes {
		j.flying.underWay(event, everLasting)
	}
	j.flying.build()
	over, _ = j.used.above(j.levels, everLasting, j.until)
	may, _ = j.used.mayPass(j.levels, everLasting, &j.flying)
	return over, may
}

// falseRejects judges the rejections among requests that lie in one window.
func (j *judge) falseRejects(verdict *windowVerdict, takes []*Event) {
	for _, event := range takes {
		if event.rejected() {
			lowest, highest := j.limits(event)
			surely, once := j.used.left(instant(event.Call), instant(event.Reply), lowest, highest)
			j.refused(verdict, event, surely, once)
		}
	}
}

// give takes units back that belong to the window at hand, if no window says
// otherwise. A refund that failed took effect at the latest when the application
// let go, and possibly never in the store; nor may the store notice an expiry.
// What a commit used beyond its reservation is use, but never leak for certain.
func (j *judge) give(event *Event) {
	j.used.high.add(instant(event.Call), max(0, -event.Units))
	j.used.low.add(j.freed(event), -max(0, event.Units))
	j.used.free(event, after(event.Reply), forever)
}

// answeredBy are, of the requests admitted by the instant t, those answered
// last that hold the given number of units.
func (j *judge) answeredBy(takes []*Event, t, units int64) leaking {
	if units == 0 {
		return leaking{}
	}
	j.latest = j.latest[:0]
	for _, event := range takes {
		if event.admitted() && event.Reply <= t {
			j.latest = append(j.latest, answer{event.Reply, event.Units, event.Tier})
		}
	}
	return latestCovering(j.latest, units)
}
