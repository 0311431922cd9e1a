package oracle

import (
	"cmp"
	"slices"

	"github.com/quotabench/quotabench/quota"
)

// expectBucket works out what a counter of a bucket must contain: the units that are
// missing from it, as a whole number. A strategy may round either way.
//
// The fewest are missing if all that is certain was taken as early as it can have
// been, and the reading came last. The most are missing if all was taken as late as
// it can have been, and the reading came first but saw what overlaps with it.
func expectBucket(cfg Config, subject uint32, events []Event, at Reading, attempts bool) (want Expectation) {
	bucket := bucketContents{flow: cfg.Window.Flow(), at: at, names: namingOf(events)}
	initial := cfg.initial(subject)
	bucket.fill(initial)
	for i := range events {
		event := &events[i]
		switch {
		case event.Call > at.Reply:
			continue
		case event.Kind == Take:
			bucket.add(event, attempts)
		default:
			bucket.give(event)
		}
	}
	want.Units = bucket.units.interval(bucket.flow, at)
	want.Held = bucket.held.interval(bucket.flow, at)
	if !attempts {
		return want
	}
	admitted := bucketContents{flow: bucket.flow, at: at}
	admitted.fill(initial)
	for i := range events {
		event := &events[i]
		if event.Call <= at.Reply && event.admitted() {
			admitted.put(event, event.Reply < at.Call)
		}
	}
	without := admitted.units.interval(admitted.flow, at)
	want.Surplus = Interval{
		Lo: max(0, want.Units.Lo-without.Hi),
		Hi: max(0, want.Units.Hi-without.Lo),
	}
	return want
}

// bucketContents is the units taken out of a bucket: units that a counter must contain,
// and held, units that it would contain if every failed operation had had no effect.
type bucketContents struct {
	flow        quota.Flow
	at          Reading
	names       naming
	units, held takenOut
}

// takenOut is units taken out of a bucket: for certain, as early as they can have been,
// and at most, as late as they can have been.
type takenOut struct{ least, most []drop }

// drop is units that were taken out at a moment, or put back if they are negative.
type drop struct{ at, units int64 }

// fill enters the units that were missing at the epoch.
func (b *bucketContents) fill(units int64) {
	if units > 0 && b.at.Reply >= 0 {
		b.put(&Event{Units: units}, b.at.Call >= 0)
	}
}

// add enters a request.
func (b *bucketContents) add(event *Event, attempts bool) {
	over := event.Reply < b.at.Call
	switch {
	case event.Outcome == Failed:
		b.fail(event)
	case event.Outcome == Admitted:
		b.put(event, over)
	case event.Outcome == RejectedDegraded:
		b.fail(event)
		if !over || attempts {
			b.held.most = append(b.held.most, drop{min(event.Reply, b.at.Call), event.Units})
		}
	case event.Outcome == Short:
		if attempts || !over { // a store need not count attempts in full
			b.fail(event)
		}
	case attempts && event.Outcome != Elsewhere:
		b.put(event, over)
	case !over: // it may be counted for a moment, until it is taken back
		b.put(event, false)
	}
}

// put enters a request that took units out: certainly, or only possibly.
func (b *bucketContents) put(event *Event, certainly bool) {
	late := drop{min(event.Reply, b.at.Call), event.Units}
	b.units.most = append(b.units.most, late)
	b.held.most = append(b.held.most, late)
	if certainly {
		early := drop{event.Call, event.Units}
		b.units.least = append(b.units.least, early)
		b.held.least = append(b.held.least, early)
	}
}

// fail enters a request that may take effect at any moment from the call on.
func (b *bucketContents) fail(event *Event) {
	b.units.most = append(b.units.most, drop{b.at.Call, event.Units})
}

// give enters a refund, a commit or an expiry.
func (b *bucketContents) give(event *Event) {
	named := b.names.named(event)
	taken := b.names.taken(event)
	done := event.Reply < b.at.Call && event.Outcome != Failed
	late := drop{min(taken.reply, b.at.Call), -event.Units}
	if event.Units < 0 { // charged at any moment from the take to the commit
		late.at = min(event.Reply, b.at.Call)
	}
	if event.Units < 0 || done && named {
		b.units.most = append(b.units.most, late)
		b.held.most = append(b.held.most, late)
	}
	counted := !named || taken.reply < b.at.Call
	if !counted || event.Units <= 0 {
		return
	}
	early := drop{taken.call, -event.Units}
	b.units.least = append(b.units.least, early)
	if event.Outcome != Failed {
		b.held.least = append(b.held.least, early)
	}
}

// interval is how many units are missing at the end of a reading at least, and at its
// begin at most.
func (t *takenOut) interval(flow quota.Flow, at Reading) Interval {
	least := missing(flow, t.least, at.Reply)
	most := missing(flow, t.most, at.Call)
	return Interval{least.Units, max(least.Units, most.Ceil())}
}

// missing is how much is missing at a moment: the largest value, over all moments s,
// of the units taken out from s on less the inflow since; see [refill].
func missing(flow quota.Flow, drops []drop, at int64) (most quota.Level) {
	latestFirst := slices.Clone(drops)
	slices.SortStableFunc(latestFirst, func(a, b drop) int {
		putBackFirst := cmp.Compare(min(a.units, 0), min(b.units, 0))
		return cmp.Or(cmp.Compare(b.at, a.at), putBackFirst)
	})
	inflow := flow.At(at)
	taken := int64(0)
	for _, begin := range latestFirst {
		taken += begin.units
		level := flow.Less(flow.At(begin.at).Plus(taken), inflow)
		if level.Compare(most) > 0 {
			most = level
		}
	}
	return most
}
