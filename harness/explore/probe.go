package explore

import (
	"errors"
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/witness"
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
	p, ok := s.Engine.(engine.Local)
	if !ok {
		return nil
	}
	admitted, conclusive, err := s.askLater(p)
	if err != nil {
		return err
	}
	if conclusive && !admitted {
		s.Witness.Note(witness.NeverAgain, "three windows after a rejection, at rest, it still rejects one unit: its time "+
			"comes from elsewhere than its clock, or it has no reset")
	}
	return nil
}

// askLater runs the clients one after the other, lets several windows pass at rest, and has one more client ask. conclusive is
// false if no request was rejected before that, or the client was not answered.
func (s *search) askLater(p engine.Local) (admitted, conclusive bool, err error) {
	defer func() { err = errors.Join(err, s.End()) }()
	if err = s.Begin(); err == nil {
		err = s.settle()
	}
	t := &s.Run.Truth
	if err != nil || t.Rejections == 0 || !s.Look().AtRest {
		return false, false, err
	}
	for range probedWindows {
		if err = p.Pass(s.untilRenewed() + time.Second); err == nil {
			err = s.settle()
		}
		if err != nil {
			return false, false, err
		}
	}
	inUse, rejections := t.InUse, t.Rejections
	instance := (s.cfg.Clients - 1) % s.cfg.Instances
	if !s.MayAsk(instance) {
		return false, false, nil
	}
	if err = s.Step(engine.Choice{Kind: engine.Ask, ID: instance}); err == nil {
		err = s.settle()
	}
	admitted = t.InUse > inUse
	return admitted, admitted || t.Rejections > rejections, err
}

// untilRenewed is how long it takes until all that is used now is free again by the clocks of all instances.
func (s *search) untilRenewed() (d time.Duration) {
	now := s.Snapshot().Now
	for i := range s.cfg.Instances {
		own := now.Add(s.Setup.SkewOf(i))
		d = max(d, s.Setup.Renewed(own).Sub(own))
	}
	return d
}

// settle takes serial steps until nothing is left to do, and lets sleeps of clients end.
func (s *search) settle() error {
	for range maxSerialSteps {
		c, ok := s.Serial()
		if !ok {
			c, ok = engine.Choice{Kind: engine.TickClock, ID: engine.TickWaiter}, s.sleeps()
		}
		if !ok {
			return nil
		}
		if err := s.Step(c); err != nil {
			return err
		}
	}
	return nil
}

// sleeps reports whether a client sleeps, and something can wake it.
func (s *search) sleeps() bool {
	at := s.Snapshot()
	return len(at.Stuck) == 0 && slices.ContainsFunc(at.Actors, func(a engine.Actor) bool { return a.Client != nil && a.Sleeps })
}
