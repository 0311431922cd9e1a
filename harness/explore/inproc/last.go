package inproc

import (
	"github.com/quotabench/quotabench/harness/explore/engine"
	"github.com/quotabench/quotabench/internal/sched"
)

// lastMayAsk reports whether all scripts have ended, everything is at rest, and the last
// client has not been rejected.
func (w *Engine) lastMayAsk() bool {
	for _, c := range w.clients {
		if !c.m.Done() {
			return false
		}
	}
	if m := w.last.m; m != nil && (m.Done() || !m.between()) {
		return false
	}
	for _, m := range w.actors {
		if m.client == nil && !m.Done() && (m.Kind() != sched.Idle || m.Ready()) {
			return false
		}
	}
	return true
}

// mostOfAnAsk bounds the operations of one request of the last client.
const mostOfAnAsk = 1_000

// ask is one request of the last client, of that instance. Where it has to wait within
// that, it goes on as everybody does.
func (w *Engine) ask(instance int) error {
	c := w.last
	if !w.lastMayAsk() || instance < 0 || instance >= len(w.instances) || c.m != nil && c.m.in != w.instances[instance] {
		return engine.ErrMisfit
	}
	if c.m == nil {
		c.m = w.join(w.s.Go(c.Name, c.body), w.instances[instance], c)
	}
	m := c.m
	w.column(m)
	w.whole = true
	defer func() { w.whole = false }()
	for n := range mostOfAnAsk {
		if n > 0 && (m.Done() || !m.Ready() || m.between()) {
			break
		}
		w.remember(m)
		w.s.Step(m.Actor)
	}
	if l := w.run.Timeline.Line; l != nil && l.Command == "" {
		l.Command = "asks"
	}
	return nil
}
