package explore

import (
	"errors"
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness/explore/internal/engine"
)

// mostOrders bounds the sequential orders that are tried.
const mostOrders = 100

// comparable reports whether times to live may be checked against those of sequential orders:
// the scripts have ended, no further client has asked, and neither a fault, such as time
// that passes, nor a round of a periodic job has happened, which sequential orders do not have.
func (s *search) comparable(look *engine.Look) bool {
	return s.normal.left != nil && look.AtRest && len(look.Faults) == 0 && !look.Ticked && look.SyncPeriod == 0 && look.Ended
}

// orders runs the clients in every order of their actions, one at a time, and notes the
// times to live that this leaves at its ends.
func (s *search) orders() error {
	if !s.Traits.Preempts || s.sel.Foreign || !slices.Contains(s.cfg.Properties, TTL) || s.normal.periodic {
		return nil
	}
	left := map[leftKey]time.Duration{}
	open := [][]engine.Choice{nil}
	for n := 0; len(open) > 0; n++ {
		if n == mostOrders {
			return nil
		}
		path := open[len(open)-1]
		open = open[:len(open)-1]
		next, err := s.alone(path, left)
		if err != nil {
			return err
		}
		open = append(open, next...)
	}
	s.normal.left = left
	return nil
}

// alone runs a path and returns those that are longer by an action of one client, which
// nobody interrupts.
func (s *search) alone(path []engine.Choice, left map[leftKey]time.Duration) (longer [][]engine.Choice, err error) {
	if err := s.goTo(path); err != nil {
		return nil, errors.Join(err, s.End())
	}
	var first []engine.Choice
	for _, c := range s.Enabled(nil, s.symmetric) {
		if c.Kind == engine.StepActor {
			first = append(first, c)
		}
	}
	if len(first) == 0 {
		err := s.noteLeft(left)
		return nil, errors.Join(err, s.End())
	}
	if err := s.End(); err != nil {
		return nil, err
	}
	for _, c := range first {
		if err := s.goTo(path); err != nil {
			return nil, errors.Join(err, s.End())
		}
		one := append([]engine.Choice(nil), path...)
		for range maxSerialSteps {
			if err := s.Step(c); err != nil {
				return nil, errors.Join(err, s.End())
			}
			if one = append(one, c); !s.Flight(c.ID).InFlight() {
				break
			}
		}
		if err := s.End(); err != nil {
			return nil, err
		}
		longer = append(longer, one)
	}
	return longer, nil
}

func (s *search) noteLeft(left map[leftKey]time.Duration) error {
	held, err := s.Holdings()
	if err != nil {
		return err
	}
	for _, h := range held {
		k := leftKey{h.Name, s.Run.Truth.InUse}
		if old, ok := left[k]; h.Left > 0 && (!ok || h.Left < old) {
			left[k] = h.Left
		}
	}
	return nil
}
