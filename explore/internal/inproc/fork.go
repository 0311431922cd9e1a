package inproc

import (
	"errors"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/virtual/sched"
)

var _ engine.Forker = (*Engine)(nil)

// between reports whether a client is between two of its actions.
func (m *member) between() bool {
	return m.client != nil && m.Kind() == sched.Wait && m.client.Pending < 0
}

// toCome reports whether a client's next request has not come yet: then it asks
// whatever life of its instance there is then.
func (m *member) toCome() bool {
	return m.client != nil && (m.Kind() == sched.Start || m.between() && m.client.Survives())
}

// Keep implements [engine.Local].
func (w *Engine) Keep() { w.store.keep() }

// errOnce says that an engine cannot be had twice.
var errOnce = errors.New("there is one engine for each store")

// Fork implements [engine.Forker].
func (w *Engine) Fork(beat *sched.Beat) (engine.Engine, error) {
	if w.reopen == nil {
		return nil, errOnce
	}
	setup := *w.Setup
	setup.Beat = beat
	e, err := w.reopen(setup)
	if err != nil {
		return nil, err
	}
	e.Witness = w.Witness
	e.older = w.older
	for _, client := range e.clients {
		client.Witness = w.Witness
	}
	e.last.Witness = w.Witness
	return e, nil
}
