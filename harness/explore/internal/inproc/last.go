package inproc

import "github.com/quotabench/quotabench/harness/explore/internal/engine"

// ask is one request of the last client, of that instance. If it has to wait within
// that, it goes on as everybody does.
func (w *Engine) ask(instance int) error {
	c := w.last
	if !w.MayAsk(instance) {
		return engine.ErrMisfit
	}
	if c.m == nil {
		c.m = w.join(w.s.Go(c.Name, c.body), w.instances[instance], c)
	}
	m := c.m
	w.column(m)
	return w.AskWhole(func() (goesOn bool, err error) {
		w.remember(m)
		w.s.Step(m.Actor)
		return !m.Done() && m.Ready() && !m.between(), nil
	})
}
