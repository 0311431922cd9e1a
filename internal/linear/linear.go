// Package linear searches for an order of the operations of every subject-window in which a bounded counter gives the
// answers that were given.
package linear

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"github.com/anishathalye/porcupine"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
)

// Answer says whether all subject-windows have such an order.
type Answer string

// The answers. Undecided are searches that did not end, and windows that are no counter.
const (
	Holds     Answer = "holds"
	Fails     Answer = "fails"
	Undecided Answer = "undecided"
)

// Verdict is what was found in one history.
type Verdict struct {
	// Safe lets the counter reject at any time, Exact only if there is no room.
	Safe  Answer `json:"safe"`
	Exact Answer `json:"exact"`
	// By is what answered: porcupine, or counting, which decides requests for one unit that nobody gives back.
	By string `json:"by"`
	// Parts are the subject-windows; those that one request touches are one part. Failed have no order.
	Parts  int64 `json:"parts"`
	Failed int64 `json:"failed"`
	// Why the first part that is undecided is so; empty if none is.
	Why string `json:"why,omitempty"`
	// File has porcupine's drawing of the first part without an order. The caller writes Page there.
	File string `json:"file,omitempty"`
	Page []byte `json:"-"`
}

// Check searches in all subjects of a history until the context ends. An error means that the history cannot be read.
func Check(ctx context.Context, f *oracle.File) (Verdict, error) {
	v := Verdict{Safe: Holds, Exact: Holds, By: "porcupine"}
	cfg := f.Header.Config()
	if k := cfg.Window.Kind; !k.Tumbling() && k != quota.Standing {
		v.Safe, v.Exact, v.Why = Undecided, Undecided, fmt.Sprintf("a %v window is no counter that begins at 0", k)
		return v, nil
	}
	for events, err := range f.Subjects() {
		if err != nil {
			return v, err
		}
		for _, p := range split(&cfg, events) {
			if err := v.check(ctx, &p); err != nil {
				return v, err
			}
		}
	}
	if v.Safe != Undecided && v.Exact != Undecided {
		return v, nil
	}
	judged, err := f.Judge()
	if l := judged.Linear; err == nil && l.Decided {
		v.Safe, v.Exact = answer(l.Safe), answer(l.Exact)
		v.By, v.Why = "counting", ""
	}
	return v, err
}

func answer(holds bool) Answer {
	if holds {
		return Holds
	}
	return Fails
}

// check searches in one part.
func (v *Verdict) check(ctx context.Context, p *part) error {
	v.Parts++
	for _, exact := range []bool{false, true} {
		s := search{ctx: ctx, exact: exact}
		found := s.run(p)
		if found == Undecided && v.Why == "" {
			v.Why = s.why
		}
		v.Exact = worse(v.Exact, found)
		if !exact {
			v.Safe = worse(v.Safe, found)
		}
		if found != Fails {
			continue
		}
		v.Failed++
		if v.Page != nil {
			return nil
		}
		// The search ends as it did before, and the drawing repeats its steps.
		var page bytes.Buffer
		model := (&search{ctx: context.WithoutCancel(ctx), exact: exact, left: math.MaxInt64}).model()
		_, info := porcupine.CheckOperationsVerbose(model, p.operations(exact), 0)
		err := porcupine.Visualize(model, info, &page)
		v.Page = page.Bytes()
		return err
	}
	return nil
}

func worse(a, b Answer) Answer {
	if a == Fails || b == Holds {
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

func (s *search) run(p *part) Answer {
	operations := p.operations(s.exact)
	s.left, s.why = mostBytes/(stateBytes+int64(len(operations))/8), p.why
	if s.why != "" {
		return Undecided
	}
	if ok := porcupine.CheckOperations(s.model(), operations); s.why == "" {
		return answer(ok)
	}
	return Undecided
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
			c, o := state.(counter), input.(*operation)
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
		DescribeOperation:         func(input, _ any) string { return input.(*operation).String() },
		DescribeOperationMetadata: func(m any) string { return m.(string) },
		DescribeState:             func(state any) string { c := state.(counter); return fmt.Sprintf("%d of %d in use", c.used, c.limit) },
	}
}

// step is the counter. It reports whether the operation can take effect now with the answer that was given.
func (s *search) step(c *counter, o *operation) bool {
	room := c.limit - c.used
	here := c.window <= o.last
	switch o.kind {
	case begin:
		c.window, c.used = o.last, o.units
		if o.limit >= 0 {
			c.limit = o.limit
		}
		return true
	case change:
		c.limit = o.units
	case admit:
		c.used += o.units
		// What was granted in part took all the room.
		return c.window >= o.first && (o.units == 0 || o.units <= room) && (o.short == 0 || !s.exact || o.units == max(0, room))
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
