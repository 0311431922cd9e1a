package explore

import (
	"errors"
	"slices"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// probedWindows are passed at rest before a limiter is asked again.
const probedWindows = 3

// probe notes a limiter that never admits again: its time then does not come from
// its clock. It says nothing of limiters that declare no reset, and of those that
// leave a key behind that never expires, as they do even if clients come one after
// the other: that explains it. If the clock is declared to be out of reach, no time
// has passed in any schedule.
func (s *search) probe() error {
	if s.sel.Reset != strategies.ResetsWindow || s.sel.ClockFixed || s.cfg.Policy.Window.Kind == quota.Standing {
		return nil
	}
	for _, forever := range s.normal.immortal {
		if forever {
			return nil
		}
	}
	local, ok := s.Engine.(engine.Local)
	if !ok {
		return nil
	}
	admitted, conclusive, err := s.askLater(local)
	if err != nil {
		return err
	}
	if conclusive && !admitted {
		s.Witness.Note(witness.NeverAgain, "three windows after a rejection, at rest, it still rejects one unit: its time "+
			"comes from elsewhere than its clock, or it has no reset")
	}
	return nil
}

// askLater runs the clients one after the other, lets several windows pass at rest, and has one more client ask.
// conclusive is false if no request was rejected before that, or the client was not answered.
func (s *search) askLater(local engine.Local) (admitted, conclusive bool, err error) {
	defer func() { err = errors.Join(err, s.End()) }()
	err = s.Begin()
	if err == nil {
		err = s.settle()
	}
	truth := &s.Run.Truth
	if err != nil || truth.Rejections == 0 || !s.Look().AtRest {
		return false, false, err
	}
	for range probedWindows {
		err = local.Pass(s.untilRenewed() + time.Second)
		if err == nil {
			err = s.settle()
		}
		if err != nil {
			return false, false, err
		}
	}
	inUse := truth.InUse
	rejections := truth.Rejections
	instance := (s.cfg.Clients - 1) % s.cfg.Instances
	if !s.MayAsk(instance) {
		return false, false, nil
	}
	err = s.Step(engine.Choice{Kind: engine.Ask, ID: instance})
	if err == nil {
		err = s.settle()
	}
	admitted = truth.InUse > inUse
	return admitted, admitted || truth.Rejections > rejections, err
}

// untilRenewed is how long it takes until all that is used now is free again by the clocks of all instances.
func (s *search) untilRenewed() (duration time.Duration) {
	now := s.Snapshot().Now
	for i := range s.cfg.Instances {
		own := now.Add(s.Setup.SkewOf(i))
		duration = max(duration, s.Setup.Renewed(own).Sub(own))
	}
	return duration
}

// settle takes serial steps until nothing is left to do, and lets sleeps of clients end.
func (s *search) settle() error {
	for range maxSerialSteps {
		choice, ok := s.Serial()
		if !ok {
			choice = engine.Choice{Kind: engine.TickClock, ID: engine.TickWaiter}
			ok = s.sleeps()
		}
		if !ok {
			return nil
		}
		if err := s.Step(choice); err != nil {
			return err
		}
	}
	return nil
}

// sleeps reports whether a client sleeps, and something can wake it.
func (s *search) sleeps() bool {
	at := s.Snapshot()
	return len(at.Stuck) == 0 && slices.ContainsFunc(at.Actors, func(actor engine.Actor) bool {
		return actor.Client != nil && actor.Sleeps
	})
}

// mostOrders bounds the beginnings of sequential orders that are tried.
const mostOrders = 100

// comparable reports whether times to live may be checked against those of sequential orders:
// the scripts have ended, no further client has asked, and neither a fault, such as time
// that passes, nor a round of a periodic job has happened, which sequential orders do not have.
func (s *search) comparable(look *engine.Look) bool {
	return s.normal.left != nil && look.AtRest && len(look.Faults) == 0 && !look.Ticked && look.SyncPeriod == 0 &&
		look.Ended
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
		n += len(order) - same
		if n > mostOrders {
			return nil
		}
		before = order
	}
	if tree.Err() == nil {
		s.normal.left = left
	}
	return nil
}

// alone runs the order that a tree is at, in which nobody interrupts an action of a client, and notes the times to live
// at its end.
func (s *search) alone(tree *sched.Tree, left map[leftKey]time.Duration) (order []engine.Choice, err error) {
	defer func() { err = errors.Join(err, s.End()) }()
	if err := s.Begin(); err != nil {
		return nil, err
	}
	for len(order) < mostOrders {
		first := slices.DeleteFunc(s.Enabled(nil, s.symmetric), func(choice engine.Choice) bool {
			return choice.Kind != engine.StepActor
		})
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
	for _, holding := range held {
		k := leftKey{holding.Name, s.Run.Truth.InUse}
		if old, ok := left[k]; holding.Left > 0 && (!ok || holding.Left < old) {
			left[k] = holding.Left
		}
	}
	return nil
}
