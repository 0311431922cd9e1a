package bubble

import "github.com/quotabench/quotabench/harness/explore/engine"

var (
	_ engine.Flights = (*Engine)(nil)
	_ engine.Keeper  = (*Engine)(nil)
)

// Flight implements [engine.Flights]. Each goroutine is an actor for itself: that of a
// caller, and each of the strategy's own that is at the store, since nothing tells which
// call one works for. One that waits for another goroutine or for time, or has ended, is
// preempted by nobody, although the call that it works for may not be over.
func (e *Engine) Flight(actor int) engine.Flight {
	p := e.parkedAt(actor)
	switch {
	case p == nil || !p.op.Store():
		return engine.Resting
	case p.client == nil && !e.wentOn(p): // another one has its number now
		return engine.Resting
	case p.answered:
		return engine.Answering
	default:
		return engine.Asking
	}
}

// wentOn reports whether an operation is of the goroutine that took the last step.
func (e *Engine) wentOn(p *parked) bool { return e.went != nil && e.went.goroutine == p.goroutine }
