package explore

import (
	"slices"

	"github.com/quotabench/quotabench/harness/explore/engine"
	"github.com/quotabench/quotabench/quota"
)

// DefaultPreemptions bounds the second part of a search that is not given a bound. Most
// races need one or two.
const DefaultPreemptions = 2

// bounds is the number of preemptions up to which a search goes on that a bound has
// ended, 0 where it does not.
func (s *search) bounds() int {
	if _, ok := s.Engine.(engine.Flights); !ok {
		return 0
	}
	return max(0, s.cfg.Preemptions)
}

// inFlight is the actor that a further step would preempt if it is not its own, after a
// step; -1 for none. Time and the store are no actors: who was in flight before stays so.
func inFlight(e engine.Engine, step engine.Choice, before int32) int32 {
	actor := before
	if id, ok := step.Actor(); ok {
		actor = int32(id)
	}
	if f, ok := e.(engine.Flights); !ok || actor < 0 || f.Flight(int(actor)) == engine.Resting {
		return -1
	}
	return actor
}

// priced parts the steps of the actor in flight from those that preempt it: steps of
// others, passing time, an eviction. fused leaves out what would come between a command
// and its reply.
func priced(e engine.Engine, actor int32, next []engine.Choice, fused bool) (free, costly []engine.Choice) {
	own := func(c engine.Choice) bool {
		id, ok := c.Actor()
		return ok && id == int(actor)
	}
	for _, c := range next {
		if own(c) {
			free = append(free, c)
		} else {
			costly = append(costly, c)
		}
	}
	if len(free) == 0 { // it cannot go on
		return costly, nil
	}
	if f, ok := e.(engine.Flights); fused && ok && f.Flight(int(actor)) == engine.Answering {
		return free, nil
	}
	return free, costly
}

// repliesMatter reports whether a fault can happen to a call between the effect of its
// command and the reply. Otherwise what comes between the two might as well come before
// the command that follows.
func (s *search) repliesMatter() bool {
	return slices.ContainsFunc(s.cfg.Faults, func(f quota.Fault) bool {
		return f == quota.FaultCrash || f == quota.FaultLostReply || f == quota.FaultRetry
	})
}
