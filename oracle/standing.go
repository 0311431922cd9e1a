package oracle

import "time"

// standing judges units that count from their admission until they are given
// back. The certain leak is the peak of the units that were in use for certain above
// the limit. The possible leak is the most that can have been in use above it.
func (j *judge) standing() {
	verdict := windowVerdict{Subject: j.id, GaveBack: len(j.gives) > 0}
	demand := j.enterStanding(&verdict)

	over, mayExceed := j.overStanding()
	verdict.Leak = over.peak
	verdict.LeakPossible = max(verdict.Leak, min(mayExceed, verdict.Admitted))
	j.out.LeakPossible += verdict.LeakPossible
	j.blame(j.answeredBy(j.takes, over.at, over.peak))
	j.out.Standing.Excursions += over.excursions
	j.out.Standing.UnitSeconds += over.area / float64(time.Second)

	j.falseRejects(&verdict, j.takes)
	if verdict.GaveBack {
		j.out.Linear = Linear{}
	}
	j.out.Linear.window(j.takes, j.limit, j.initial)
	verdict.sure = sure{
		leak:          verdict.Leak,
		falseRejects:  verdict.FalseRejectUnits,
		falsePossible: verdict.FalseRejectUnitsPossible,
	}
	if verdict.GaveBack {
		j.out.OverOffered += j.overOffered(verdict.Leak)
	} else {
		j.out.OverOffered += demand.over
	}
	j.crossing(demand.crossed, verdict.Leak)
	j.out.Windows = append(j.out.Windows, verdict)
}

// enterStanding makes the curves of the units in use, and adds up the demand.
func (j *judge) enterStanding(verdict *windowVerdict) (demand offer) {
	j.used.reset(j.initial)
	demand.begin(j.initial, j.limit)
	var asked int64
	for _, event := range j.takes {
		asked += event.Units
		lowest, _ := j.limits(event)
		demand.add(event, lowest)
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
	j.out.MaxOffered = max(j.out.MaxOffered, asked)
	return demand
}

// overStanding is the units that were certainly, and possibly, in use over the limit.
func (j *judge) overStanding() (over excess, possible int64) {
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
	possible, _ = j.used.mayPass(j.levels, everLasting, &j.flying)
	return over, possible
}

// falseRejects judges the rejections among requests that lie in one window.
func (j *judge) falseRejects(verdict *windowVerdict, takes []*Event) {
	for _, event := range takes {
		if j.refuses(event) {
			lowest, highest := j.limits(event)
			surely, once := j.used.left(instant(event.Call), instant(event.Reply), lowest, highest)
			j.refused(verdict, event, surely, once)
		}
	}
}

// give enters units that are given back. A refund that failed took effect at the
// latest when the application let go, and possibly never in the store; nor may the
// store notice an expiry. Units that a commit used beyond its reservation are in use,
// but never leak for certain.
func (j *judge) give(event *Event) {
	j.used.high.add(instant(event.Call), max(0, -event.Units))
	j.used.low.add(j.freed(event), -max(0, event.Units))
	j.used.free(event, after(event.Reply), forever)
}

// answeredBy are the requests that hold the given number of units together: the ones
// answered last of all that were admitted by an instant.
func (j *judge) answeredBy(takes []*Event, instant, units int64) leaking {
	if units == 0 {
		return leaking{}
	}
	j.latest = j.latest[:0]
	for _, event := range takes {
		if event.admitted() && event.Reply <= instant {
			j.latest = append(j.latest, answer{event.Reply, event.Units, event.Tier})
		}
	}
	return latestCovering(j.latest, units)
}
