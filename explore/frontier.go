package explore

import (
	"context"
	"slices"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/kit/format"
)

// levels hold what is to be tried by the preemptions that it needs and by its depth.
type levels[T any] [][][]T

func (l *levels[T]) add(preemptions, depth int, x T) {
	for len(*l) <= preemptions {
		*l = append(*l, nil)
	}
	level := &(*l)[preemptions]
	for len(*level) <= depth {
		*level = append(*level, nil)
	}
	(*level)[depth] = append((*level)[depth], x)
}

// node is a state that was reached, by the step that led to it.
type node struct {
	parent int32
	choice uint32 // number in graph.choices
}

// open is a state with steps that have not been tried.
type open struct {
	node int32
	// actor that is in flight, -1 for none or if preemptions are not counted.
	actor int32
	next  []uint32
	// trail of all actors; what leads here need not be worked out once more.
	trail []engine.Digest
	// paused is for how long calls were held up on the way here.
	paused time.Duration
	// ahead is what its only step leads to, and those that follow it, if that is known already.
	ahead []outcome
	// asleep says which steps need not be tried; nil if none.
	asleep []asleep
}

// graph is what a walk over states has met. Nothing is kept of a state but how to get
// there: every edge is a run of its own from the start.
type graph struct {
	nodes []node
	seen  map[engine.Digest]struct{}
	// choices that schedules are made of, and their numbers.
	choices []engine.Choice
	numbers map[engine.Choice]uint32
	levels  levels[open]
	// waiting is how many states are open, and held the bytes that they take.
	waiting, held int64
}

func newGraph(root engine.Digest) *graph {
	return &graph{
		nodes: []node{{parent: -1}}, seen: map[engine.Digest]struct{}{root: {}}, numbers: map[engine.Choice]uint32{},
	}
}

// What is held in memory, in bytes: of a state with its digest, which is an entry of a
// map that is between half and wholly full, of an open state without its lists, and of what a step leads to.
const stateBytes, openBytes, aheadBytes = 8 + 32, 120, 256

// bytes that the graph takes.
func (g *graph) bytes() int64 { return int64(len(g.nodes))*stateBytes + g.held }

func (o *open) bytes() int64 {
	return openBytes + 4*int64(len(o.next)) + 16*int64(len(o.trail)) + asleepBytes*int64(len(o.asleep)) +
		aheadBytes*int64(len(o.ahead))
}

// number of a choice.
func (g *graph) number(choice engine.Choice) uint32 {
	n, ok := g.numbers[choice]
	if !ok {
		n = uint32(len(g.choices))
		g.choices = append(g.choices, choice)
		g.numbers[choice] = n
	}
	return n
}

// add opens a state for steps that need so many preemptions.
func (g *graph) add(preemptions, depth int, o open, next []engine.Choice) {
	if len(next) == 0 {
		return
	}
	o.next = make([]uint32, len(next))
	for i, choice := range next {
		o.next[i] = g.number(choice)
	}
	g.levels.add(preemptions, depth, o)
	g.waiting++
	g.held += o.bytes()
}

// at is the level of a depth, empty if there is none.
func (g *graph) at(preemptions, depth int) []open {
	if preemptions >= len(g.levels) || depth >= len(g.levels[preemptions]) {
		return nil
	}
	return g.levels[preemptions][depth]
}

// close lets go of an open state.
func (g *graph) close(o *open) {
	g.waiting--
	g.held -= o.bytes()
	*o = open{}
}

// pathTo appends the steps to a state to buf.
func (g *graph) pathTo(at int32, buf []engine.Choice) []engine.Choice {
	n := 1 // most callers append a step
	for i := at; i != 0; i = g.nodes[i].parent {
		n++
	}
	buf = slices.Grow(buf, n)
	for at != 0 {
		buf = append(buf, g.choices[g.nodes[at].choice])
		at = g.nodes[at].parent
	}
	slices.Reverse(buf)
	return buf
}

// full says which bound the graph has come to; empty if none.
func (g *graph) full(cfg *Config) string {
	switch {
	case len(g.nodes) >= cfg.MaxStates:
		return format.Number(len(g.nodes), "state")
	case cfg.MaxMemory > 0 && g.bytes() >= cfg.MaxMemory:
		return format.Count(cfg.MaxMemory>>10) + " KiB of memory for " + format.Number(len(g.nodes), "state")
	default:
		return ""
	}
}

// bounds is the number of preemptions up to which a search goes on that a bound has
// ended, 0 if it does not.
func (s *search) bounds() int {
	if !s.Traits.Preempts && !s.Traits.Wall {
		return 0
	}
	return max(0, s.cfg.Preemptions)
}

// goesOn reports whether a second part follows the first, which has ended before its end.
func (s *search) goesOn(ctx context.Context) bool {
	return !s.atFirst && s.bounds() > 0 && len(s.wanted) > 0 && ctx.Err() == nil && s.Run.Spent == ""
}

// inFlight is the actor that a further step would preempt if it is not its own, after a
// step; -1 for none. Time and the store are no actors: who was in flight before stays so.
func inFlight(world *engine.World, step engine.Choice, before int32) int32 {
	actor := before
	if id, ok := step.Actor(); ok {
		actor = int32(id)
	}
	if actor < 0 || !world.Flight(int(actor)).InFlight() {
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

// only is the only step that comes next. ok is false if there are others, or none.
func (p *priced) only() (choice engine.Choice, ok bool) {
	n := 0
	for _, steps := range p {
		for _, step := range steps {
			choice = step
			n++
		}
	}
	return choice, n == 1
}

// prices parts the steps that come next by how many preemptions they need, when an actor
// is in flight, or -1 for none. fused leaves out what would come between a command and its
// reply.
func prices(world *engine.World, actor int32, next []engine.Choice, fused bool) (out priced) {
	atRest := world.Look().AtRest
	answering := actor >= 0 && world.Flight(int(actor)) == engine.Answering
	for _, choice := range next {
		id, own := choice.Actor()
		own = own && id == int(actor)
		switch {
		case choice.Kind == engine.TickClock && choice.ID != engine.TickWaiter && !atRest:
			if !fused || !answering {
				out[pauseCost] = append(out[pauseCost], choice)
			}
		case actor < 0 || own:
			out[0] = append(out[0], choice)
		case !fused || !answering:
			out[1] = append(out[1], choice)
		}
	}
	return out
}

// repliesMatter reports whether a fault can happen to a call between the effect of its
// command and the reply. Otherwise what comes between the two might as well come before
// the command that follows.
func (s *search) repliesMatter() bool { return s.Setup.HasFaultAt(engine.Answering) }
