package inproc

import (
	"errors"

	"github.com/quotabench/quotabench/harness/explore/engine"
	"github.com/quotabench/quotabench/internal/sched"
)

var (
	_ engine.Flights = (*Engine)(nil)
	_ engine.Forker  = (*Engine)(nil)
)

// Flight implements [engine.Flights].
func (w *Engine) Flight(actor int) engine.Flight {
	if actor < 0 || actor >= len(w.actors) {
		return engine.Resting
	}
	m := w.actors[actor]
	if m.Done() || !m.Ready() {
		return engine.Resting
	}
	switch kind := m.Kind(); {
	case kind == sched.Start, kind == sched.Idle, m.between():
		return engine.Resting
	case kind == sched.Reply:
		return engine.Answering
	default:
		return engine.Asking
	}
}

// between reports whether a client is between two of its actions.
func (m *member) between() bool {
	return m.client != nil && m.Kind() == sched.Wait && m.client.Pending < 0
}

// toCome reports whether a client's next request has not come yet, so that it asks whatever
// life of its instance there is then.
func (m *member) toCome() bool {
	return m.client != nil && (m.Kind() == sched.Start || m.between() && m.client.Survives())
}

// Keep implements [engine.Keeper].
func (w *Engine) Keep() { w.store.keep() }

// errOnce says that an engine cannot be had twice.
var errOnce = errors.New("there is one engine for each store")

// Fork implements [engine.Forker].
func (w *Engine) Fork(beat *sched.Beat) (engine.Engine, error) {
	if w.reopen == nil {
		return nil, errOnce
	}
	setup := w.setup
	setup.Beat = beat
	e, err := w.reopen(setup)
	if err != nil {
		return nil, err
	}
	e.witness = w.witness
	for _, c := range e.clients {
		c.Witness = w.witness
	}
	e.last.Witness = w.witness
	return e, nil
}
