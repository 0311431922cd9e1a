package inproc

import (
	"context"
	"time"

	"github.com/quotabench/quotabench/harness/explore/internal/engine"
	"github.com/quotabench/quotabench/quota"
)

// Probe implements [engine.Engine]. When time passes, jobs run when they are due.
func (w *Engine) Probe() (admitted, conclusive bool, err error) {
	if err := w.Begin(); err != nil {
		return false, false, err
	}
	defer func() { _ = w.End() }()
	if err := w.settle(); err != nil {
		return false, false, err
	}
	kind := w.setup.Policy.Window.Kind
	if w.Run.Truth.Rejections == 0 || kind == quota.Standing {
		return false, false, nil
	}
	if l := w.Look(); !l.AtRest {
		return false, false, nil
	}
	for range engine.ProbedWindows {
		now := w.s.Now()
		next := now
		for i := range w.instances { // the last of the instances' clocks to get there
			skew := w.setup.SkewOf(i)
			if t := w.setup.Renewed(now.Add(skew)).Add(-skew); t.After(next) {
				next = t
			}
		}
		w.s.Advance(next.Sub(now) + time.Second)
		w.s.Sync()
		if err := w.settle(); err != nil {
			return false, false, err
		}
	}
	req := quota.Request{ID: 1 << 32, Subject: engine.Subject, Policy: w.Run.Truth.Policy, Units: 1}
	in := w.instances[(w.setup.Clients-1)%len(w.instances)]
	answered := false
	a := w.s.Go("probe", func(ctx context.Context) {
		d, err := in.strategy.Take(ctx, req)
		answered, admitted = err == nil, d.Admitted
	})
	m := w.join(a, in, nil)
	m.client = &client{m: m, Client: engine.Client{Pending: -1}}
	err = w.settle()
	return admitted, answered, err
}

// settle takes serial steps until nothing is left to do, and lets sleeps end.
func (w *Engine) settle() error {
	for range engine.MaxProbeSteps {
		c, ok := w.Serial()
		if !ok {
			sleeps := false
			for _, m := range w.actors {
				sleeps = sleeps || !m.Done() && m.client != nil && !m.Op().Until.IsZero()
			}
			if t, due := w.s.NextDeadline(); sleeps && due {
				w.s.Advance(t.Sub(w.s.Now()))
				w.s.Sync()
				continue
			}
			return nil
		}
		if err := w.Step(c); err != nil {
			return err
		}
	}
	return nil
}
