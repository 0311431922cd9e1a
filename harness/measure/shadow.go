package measure

import (
	"cmp"
	"math"
	"slices"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/oracle"
)

// reading is what a decision said of its subject's counter: the units in use once it was made. All of a subject's are a
// shadow of the counter, and cost no command.
type reading struct {
	subject     uint32
	admitted    bool
	call, reply int64 // nanoseconds since the epoch
	units, used int64
}

// maxReadings is how many a worker keeps at most.
const maxReadings = 1 << 18

// keepReading keeps what a decision said of the counter, if it is one that others have access to.
func (k *worker) keepReading(request *request) {
	decision := &request.decision
	said := request.err == nil && !decision.Degraded && decision.Remaining >= 0 && decision.Granted == 0
	if !k.drive.shadowed || !said || len(k.readings) == maxReadings {
		return
	}
	k.readings = append(k.readings, reading{
		subject: k.op.Subject, admitted: decision.Admitted, units: k.op.Units,
		call: request.call - k.drive.epoch, reply: request.reply - k.drive.epoch,
		used: request.limit.policy.Limit - decision.Remaining,
	})
}

// shadow is one subject's counter by what decisions said of it.
type shadow struct {
	list    []reading // by their calls
	initial int64     // units in use at the epoch
	// steps are the rushes of which it is known what was in use before and after them, and falls those after which less
	// was in use than before them and their own units. fell are the units of the falls.
	steps, falls int
	fell         int64
	sure         []jump
	// unsure are falls with several decisions in flight, of which a race may have lost one.
	unsure []jump
	// gaps are how often units came to be in use that no decision took, and gained how many.
	gaps   int
	gained int64
	// jump is where that was first seen.
	jump jump
}

// follow looks for changes that no decision explains. A decision that nothing else was in flight with leaves in use
// what was before it and its own units: a race cannot take units away then. Nor does a race within a rush let one of
// its decisions find less in use than there was before the rush. No race adds units that nobody asked for, however many
// decisions were in flight.
func (s *shadow) follow() {
	slices.SortFunc(s.list, func(a, b reading) int { return cmp.Compare(a.call, b.call) })
	s.followFalls()
	s.followGaps()
}

// rush is decisions each of which was in flight with another of them, or one alone.
type rush struct {
	call, reply int64 // the first and the last
	units       int64 // of the admitted
	used        int64 // in use afterwards
	least       int64 // in use before any of them, at least
	decisions   int
}

// rushes are the decisions, by their calls, in groups between which none was in flight.
func rushes(list []reading) (all []rush) {
	for _, reading := range list {
		if len(all) == 0 || reading.call > all[len(all)-1].reply {
			all = append(all, rush{call: reading.call, reply: reading.reply, least: math.MaxInt64})
		}
		last := &all[len(all)-1]
		last.reply = max(last.reply, reading.reply)
		last.used = max(last.used, reading.used)
		last.decisions++
		before := reading.used
		if reading.admitted {
			last.units += reading.units
			before -= reading.units
		}
		last.least = min(last.least, before)
	}
	return all
}

func (s *shadow) followFalls() {
	all := append([]rush{{used: s.initial, decisions: 1}}, rushes(s.list)...)
	known := true // what is in use before a rush: no race has taken a unit in the one before
	for i := 1; i < len(all); i++ {
		before := &all[i-1]
		after := &all[i]
		fell := before.used + after.units - after.used
		alone := known && (after.decisions == 1 || after.least < before.used)
		known = after.decisions == 1 || known && fell == 0
		if after.units == 0 {
			continue
		}
		if alone {
			s.steps++
		}
		if fell != 0 {
			s.noteFall(before, after, fell, alone)
		}
	}
}

// noteFall notes that fewer units are in use after a rush than expected. A stranger took them if nothing in flight
// explains it, which alone says, and perhaps otherwise. A negative fall is more than expected.
func (s *shadow) noteFall(before, after *rush, fell int64, alone bool) {
	subject := s.list[0].subject
	change := jump{
		before: harness.Reading{Subject: subject, Units: before.used},
		after:  harness.Reading{Subject: subject, Units: before.used - fell},
		from:   before.reply, to: after.call,
	}
	switch {
	case !alone:
		change.from = before.call
		change.to = after.reply
		s.unsure = append(s.unsure, change)
	case fell > 0:
		s.falls++
		s.fell += fell
		s.sure = append(s.sure, change)
		s.found(change)
	}
}

func (s *shadow) followGaps() {
	all := slices.Clone(s.list)
	slices.SortStableFunc(all, func(a, b reading) int { return cmp.Compare(a.used, b.used) })
	last := reading{subject: s.list[0].subject, used: s.initial}
	for _, next := range all {
		taken := int64(0)
		if next.admitted {
			taken = next.units
		}
		if gap := next.used - taken - last.used; gap > 0 {
			s.gaps++
			s.gained += gap
			s.found(jump{
				before: harness.Reading{Subject: last.subject, Units: last.used},
				after:  harness.Reading{Subject: next.subject, Units: next.used - taken},
				from:   min(last.reply, next.call), to: next.call,
			})
		}
		last = next
	}
}

// found keeps the first change.
func (s *shadow) found(change jump) {
	if s.jump.to == 0 || change.to < s.jump.to {
		s.jump = change
	}
}

// minSteps is how many decisions must be as expected for each that is not: a strategy that counts wrongly by itself
// does so again and again.
const minSteps = 4

// strangers are the subjects whose counter somebody else changed by an amount that shows twice: in what decisions said,
// and in the counter at rest. A strategy that counts wrongly is not taken for that: what it says and what it counts
// differ, or it does so at too many decisions.
func (c *counters) strangers(pass *pass, facts *harness.Facts) (all []jump, err error) {
	shadows := map[uint32]*shadow{}
	for _, reading := range pass.drive.readings {
		if shadows[reading.subject] == nil {
			first := &shadow{}
			if facts.Initial != nil {
				first.initial = facts.Initial(reading.subject)
			}
			shadows[reading.subject] = first
		}
		shadows[reading.subject].list = append(shadows[reading.subject].list, reading)
	}
	var steps, falls, admitted, gaps int
	for _, shadow := range shadows {
		shadow.follow()
		steps += shadow.steps
		falls += shadow.falls
		gaps += shadow.gaps
		admitted += len(shadow.list)
	}
	moment := shortestFall(shadows)
	if falls == 0 {
		moment, falls = onlyMoment(shadows)
	}
	fallsAreRare := falls > 0 && falls*minSteps <= steps
	gapsAreRare := gaps > 0 && gaps*minSteps <= admitted
	if !fallsAreRare && !gapsAreRare {
		return nil, nil
	}
	for events, err := range facts.History.Subjects() {
		if err != nil {
			return nil, err
		}
		shadow := shadows[events[0].Subject]
		if shadow == nil || len(shadow.list) != len(events) || !pass.drive.inFirstWindow(events) {
			continue
		}
		if fallsAreRare {
			shadow.resolve(moment)
		}
		drift, tier, ok := driftAtRest(facts, events)
		if ok && (fallsAreRare && shadow.fell > 0 && drift == -shadow.fell ||
			gapsAreRare && drift > 0 && drift <= shadow.gained) { // decisions at once may say the same, which is a gap, too
			shadow.jump.after.Tier = tier
			all = append(all, shadow.jump)
		}
	}
	return all, nil
}

// shortestFall is where the moment of a fall is known best.
func shortestFall(shadows map[uint32]*shadow) (shortest jump) {
	for _, shadow := range shadows {
		for _, change := range shadow.sure {
			if shortest.to == 0 || change.to-change.from < shortest.to-shortest.from {
				shortest = change
			}
		}
	}
	return shortest
}

// onlyMoment is where all falls of the run may have happened at once, and how many units fell. A race that loses
// updates does so at several moments. If it lost one alone, nothing tells it from a stranger.
func onlyMoment(shadows map[uint32]*shadow) (moment jump, units int) {
	moment.to = math.MaxInt64
	for _, shadow := range shadows {
		for _, change := range shadow.unsure {
			moment.from = max(moment.from, change.from)
			moment.to = min(moment.to, change.to)
			fell := int(change.before.Units - change.after.Units)
			if fell < 0 { // a stranger's rise is a gap
				return jump{}, 0
			}
			units += fell
		}
	}
	if moment.from > moment.to {
		return jump{}, 0
	}
	return moment, units
}

// resolve takes the falls with several decisions in flight for those of the stranger if all may have happened at the
// moment of its falls.
func (s *shadow) resolve(moment jump) {
	for _, change := range s.unsure {
		if change.to < moment.from || change.from > moment.to {
			return
		}
	}
	for _, change := range s.unsure {
		s.fell += change.before.Units - change.after.Units
		s.found(change)
	}
}

// inFirstWindow reports whether all events were in the window of the epoch.
func (d *drive) inFirstWindow(events []oracle.Event) bool {
	return !slices.ContainsFunc(events, func(event oracle.Event) bool {
		return d.window(event.Call+d.epoch).index != d.firstWindow || event.Outcome == oracle.Failed
	})
}

// driftAtRest is by how much the counter of a subject at rest differs from what its callers were told. ok is false if
// that is not known exactly.
func driftAtRest(facts *harness.Facts, events []oracle.Event) (drift int64, tier string, ok bool) {
	config := oracle.Config{Window: facts.Policy.Window, Limit: facts.Policy.Limit, Initial: facts.Initial,
		Epoch: facts.Epoch}
	for _, readings := range facts.Readings {
		for _, reading := range readings.List {
			if readings.At != harness.AtRest || reading.Subject != events[0].Subject || !reading.Known || reading.Own {
				continue
			}
			want, known, err := oracle.Expect(config, reading.Subject, events,
				oracle.Reading{Call: reading.Call, Reply: reading.Reply}, facts.Selection.Counts)
			exact := err == nil && known && want.Units.Width() == 0
			return want.Units.Distance(reading.Units), reading.Tier, exact
		}
	}
	return 0, "", false
}
