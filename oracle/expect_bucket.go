package oracle

import (
	"cmp"
	"slices"

	"github.com/quotabench/quotabench/quota"
)

// expectBucket works out what a counter of a bucket must contain: what is missing
// from it, in whole units. A strategy may round either way.
//
// The least is there when all that is certain was taken as early as it can have
// been, and the reading came last; the most when all was taken as late as it can
// have been, and the reading came first but saw what overlaps with it.
func expectBucket(cfg Config, subject uint32, events []Event, at Reading, attempts bool) (want Expectation) {
	x := missing{flow: cfg.Window.Flow(), at: at}
	for i := range events {
		x.names.atEpoch = x.names.atEpoch || events[i].takenAtEpoch()
	}
	if n := cfg.initial(subject); n > 0 && at.Reply >= 0 {
		x.put(0, 0, n, at.Call >= 0)
	}
	counted := x.lists // without what is there by the way of counting alone
	for i := range events {
		event := &events[i]
		if event.Call > at.Reply {
			continue
		}
		if event.Kind != Take {
			x.give(event)
			continue
		}
		over := event.Reply < at.Call
		switch {
		case event.Outcome == Failed:
			x.failed(event)
		case event.Outcome == Admitted:
			x.put(event.Call, event.Reply, event.Units, over)
		case event.Outcome == RejectedDegraded:
			x.failed(event)
			if !over || attempts {
				x.heldHi = append(x.heldHi, drop{min(event.Reply, at.Call), event.Units})
			}
		case event.Outcome == Short:
			if attempts || !over { // open whether attempts are counted in full
				x.failed(event)
			}
		case attempts && event.Outcome != Elsewhere:
			x.put(event.Call, event.Reply, event.Units, over)
		case !over: // may be counted for a moment, until it is taken back
			x.put(event.Call, event.Reply, event.Units, false)
		}
	}
	want.Units = x.interval(x.drops, x.hi)
	want.Held = x.interval(x.heldLo, x.heldHi)
	if attempts {
		missing := x
		missing.lists = counted
		for i := range events {
			if event := &events[i]; event.Call <= at.Reply && event.admitted() {
				missing.put(event.Call, event.Reply, event.Units, event.Reply < at.Call)
			}
		}
		without := missing.interval(missing.drops, missing.hi)
		want.Surplus = Interval{max(0, want.Units.Lo-without.Hi), max(0, want.Units.Hi-without.Lo)}
	}
	return want
}

// drop is what was taken out at a moment.
type drop struct{ at, units int64 }

// lists are what a counter contains at least and at most, and what it would contain
// if every failed operation had had no effect.
type lists struct{ drops, hi, heldLo, heldHi []drop }

type missing struct {
	lists
	flow  quota.Flow
	at    Reading
	names naming
}

// put enters what was taken in [call, reply]: certainly, or only possibly.
func (x *missing) put(call, reply, units int64, certainly bool) {
	hi := drop{min(reply, x.at.Call), units}
	x.hi = append(x.hi, hi)
	x.heldHi = append(x.heldHi, hi)
	if certainly {
		x.drops = append(x.drops, drop{call, units})
		x.heldLo = append(x.heldLo, drop{call, units})
	}
}

// failed enters what may take effect at any moment from the call on.
func (x *missing) failed(event *Event) { x.hi = append(x.hi, drop{x.at.Call, event.Units}) }

// give enters a refund, a commit or an expiry.
func (x *missing) give(event *Event) {
	named := x.names.named(event)
	taken := x.names.taken(event)
	done := event.Reply < x.at.Call && event.Outcome != Failed
	late := drop{min(taken.reply, x.at.Call), -event.Units}
	early := drop{taken.call, -event.Units}
	if event.Units < 0 { // charged at any moment from the take to the commit
		late.at = min(event.Reply, x.at.Call)
	}
	if event.Units < 0 || done && named {
		x.hi = append(x.hi, late)
		x.heldHi = append(x.heldHi, late)
	}
	if counted := !named || taken.reply < x.at.Call; counted && event.Units > 0 {
		x.drops = append(x.drops, early)
		if event.Outcome != Failed {
			x.heldLo = append(x.heldLo, early)
		}
	}
}

// interval is what is missing when it is read last and first.
func (x *missing) interval(lo, hi []drop) Interval {
	least := x.lack(lo, x.at.Reply)
	return Interval{least.Units, max(least.Units, x.lack(hi, x.at.Call).Ceil())}
}

// lack is what is missing at a moment.
func (x *missing) lack(list []drop, at int64) quota.Level {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b drop) int {
		return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(min(a.units, 0), min(b.units, 0)))
	})
	now := x.flow.At(at)
	var most quota.Level
	sum := int64(0)
	for _, drop := range list { // the latest first, and what was put back before what was taken
		sum += drop.units
		if level := x.flow.Less(x.flow.At(drop.at).Plus(sum), now); level.Compare(most) > 0 {
			most = level
		}
	}
	return most
}
