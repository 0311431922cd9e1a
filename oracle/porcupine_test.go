package oracle_test

import (
	"context"
	"fmt"

	"github.com/anishathalye/porcupine"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
)

// The oracle's verdicts are checked against porcupine. For every subject and window it searches for an order of the
// operations, each between its call and its reply, in which a bounded counter gives the answers that were given. A
// failed request may have taken effect, at any time from its call on, or not.

// answer says whether all subject-windows have such an order.
type answer string

// The answers. A search that did not end is undecided, and so is a window that is no counter.
const (
	holds     answer = "holds"
	fails     answer = "fails"
	undecided answer = "undecided"
)

// linearity is porcupine's verdict on one history.
type linearity struct {
	// safe lets the counter reject at any time, exact only if there is no room.
	safe, exact answer
	// parts are the subject-windows; those that one request touches are one part. failed have no order.
	parts, failed int64
	// why the first undecided part is undecided; empty if none is.
	why string
}

// searchOrder looks for an order in all subjects of a history until the context ends.
func searchOrder(ctx context.Context, f *oracle.File) (linearity, error) {
	v := linearity{safe: holds, exact: holds}
	cfg := f.Header.Config()
	if k := cfg.Window.Kind; !k.Tumbling() && k != quota.Standing {
		v.safe = undecided
		v.exact = undecided
		v.why = fmt.Sprintf("a %v window is no counter that begins at 0", k)
		return v, nil
	}
	for events, err := range f.Subjects() {
		if err != nil {
			return v, err
		}
		for _, p := range split(&cfg, events) {
			v.check(ctx, &p)
		}
	}
	return v, nil
}

func answerOf(ordered bool) answer {
	if ordered {
		return holds
	}
	return fails
}

// check searches in one part.
func (v *linearity) check(ctx context.Context, p *part) {
	v.parts++
	for _, exact := range []bool{false, true} {
		s := search{ctx: ctx, exact: exact}
		found := s.run(p)
		if found == undecided && v.why == "" {
			v.why = s.why
		}
		v.exact = worse(v.exact, found)
		if !exact {
			v.safe = worse(v.safe, found)
		}
		if found == fails {
			v.failed++
			return
		}
	}
}

func worse(a, b answer) answer {
	if a == fails || b == holds {
		return a
	}
	return b
}

// search is porcupine's search in one part for a counter that rejects at any time, or only if there is no room.
type search struct {
	ctx   context.Context
	exact bool
	left  int64 // states that it may still keep
	why   string
}

const (
	// mostBytes is what one search may take for the states that it has seen; stateBytes is what a state takes besides a
	// bit of each operation.
	mostBytes, stateBytes = 1 << 30, 200
)

func (s *search) run(p *part) answer {
	operations := p.operations(s.exact)
	s.left = mostBytes / (stateBytes + int64(len(operations))/8)
	s.why = p.why
	if s.why != "" {
		return undecided
	}
	ordered := porcupine.CheckOperations(s.model(), operations)
	if s.why != "" {
		return undecided
	}
	return answerOf(ordered)
}

// counter is the state of the model. Its done has, for every chain, how many of its operations took effect.
type counter struct {
	window, used, limit int64
	done                string
}

func (s *search) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return counter{window: before} },
		Step: func(state, input, _ any) (bool, any) {
			c := state.(counter)
			o := input.(*operation)
			switch {
			case s.why != "":
				return false, c
			case s.ctx.Err() != nil:
				s.why = "the time was up"
				return false, c
			case !o.isNext(c.done) || !s.step(&c, o):
				return false, c
			case s.left == 0:
				s.why = "too many orders are possible"
				return false, c
			}
			s.left--
			c.done = o.follow(c.done)
			return true, c
		},
	}
}

// step is the counter. It reports whether the operation can take effect now with the answer that was given.
func (s *search) step(c *counter, o *operation) bool {
	room := c.limit - c.used
	here := c.window <= o.last
	switch o.kind {
	case begin:
		c.window = o.last
		c.used = o.units
		if o.limit >= 0 {
			c.limit = o.limit
		}
		return true
	case change:
		c.limit = o.units
	case admit:
		c.used += o.units
		// What was granted in part took all the room.
		return c.window >= o.first && (o.units == 0 || o.units <= room) &&
			(o.short == 0 || !s.exact || o.units == max(0, room))
	case reject:
		return c.window >= o.first && (!s.exact || o.units > room)
	case perhaps:
		if here && o.units <= room {
			c.used += o.units
		}
	case give:
		if here {
			c.used -= o.units
		}
	}
	return c.window >= o.first
}
