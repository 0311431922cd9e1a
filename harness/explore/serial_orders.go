package explore

import (
	"errors"
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/sched"
)

// mostOrders bounds the beginnings of sequential orders that are tried.
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
	var tree sched.Tree
	var before []engine.Choice
	for n, more := 1, true; more; more = tree.Next() {
		order, err := s.alone(&tree, left)
		if err != nil {
			return err
		}
		same := 0
		for same < min(len(before), len(order)) && before[same] == order[same] {
			same++
		}
		if n += len(order) - same; n > mostOrders {
			return nil
		}
		before = order
	}
	if tree.Err() == nil {
		s.normal.left = left
	}
	return nil
}

// alone runs the order that a tree is at, in which nobody interrupts an action of a client, and notes the times to live at its end.
func (s *search) alone(tree *sched.Tree, left map[leftKey]time.Duration) (order []engine.Choice, err error) {
	defer func() { err = errors.Join(err, s.End()) }()
	if err := s.Begin(); err != nil {
		return nil, err
	}
	for len(order) < mostOrders {
		first := slices.DeleteFunc(s.Enabled(nil, s.symmetric), func(c engine.Choice) bool { return c.Kind != engine.StepActor })
		if len(first) == 0 {
			return order, s.noteLeft(left)
		}
		c := first[tree.Choose(len(first))]
		order = append(order, c)
		for range maxSerialSteps {
			if err := s.Step(c); err != nil {
				return nil, err
			}
			if !s.Flight(c.ID).InFlight() {
				break
			}
		}
	}
	return order, nil
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
