package explore

import (
	"context"

	"github.com/quotabench/quotabench/harness/explore/internal/engine"
)

// bounds is the number of preemptions up to which a search goes on that a bound has
// ended, 0 if it does not.
func (s *search) bounds() int {
	if !s.Traits.Preempts && !s.Traits.Wall {
		return 0
	}
	return max(0, s.cfg.Preemptions)
}

// goesOn reports whether a second part follows the first, which has ended for that reason.
func (s *search) goesOn(ctx context.Context, capped string) bool {
	return capped != firstFound && s.bounds() > 0 && len(s.wanted) > 0 && ctx.Err() == nil && s.Run.Spent == ""
}

// inFlight is the actor that a further step would preempt if it is not its own, after a
// step; -1 for none. Time and the store are no actors: who was in flight before stays so.
func inFlight(w *engine.World, step engine.Choice, before int32) int32 {
	actor := before
	if id, ok := step.Actor(); ok {
		actor = int32(id)
	}
	if actor < 0 || !w.Flight(int(actor)).InFlight() {
		return -1
	}
	return actor
}

// pauseCost is how many preemptions time counts for that passes within a call: callers
// are seldom held up for as long as a key lives, so schedules in which time passes
// between calls come first.
const pauseCost = 2

// priced are the steps that need no preemption, one, and as many as a pause.
type priced [pauseCost + 1][]engine.Choice

// prices parts the steps that come next by how many preemptions they need, when an actor
// is in flight, or -1 for none. fused leaves out what would come between a command and its
// reply.
func prices(w *engine.World, actor int32, next []engine.Choice, fused bool) (out priced) {
	atRest := w.Look().AtRest
	answering := actor >= 0 && w.Flight(int(actor)) == engine.Answering
	for _, c := range next {
		id, own := c.Actor()
		own = own && id == int(actor)
		switch {
		case c.Kind == engine.TickClock && c.ID != engine.TickWaiter && !atRest:
			if !fused || !answering {
				out[pauseCost] = append(out[pauseCost], c)
			}
		case actor < 0 || own:
			out[0] = append(out[0], c)
		case !fused || !answering:
			out[1] = append(out[1], c)
		}
	}
	return out
}

// repliesMatter reports whether a fault can happen to a call between the effect of its
// command and the reply. Otherwise what comes between the two might as well come before
// the command that follows.
func (s *search) repliesMatter() bool { return s.Setup.Befalls(engine.Answering) }
