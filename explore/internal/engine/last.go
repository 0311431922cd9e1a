package engine

import (
	"slices"
	"time"

	"github.com/quotabench/quotabench/oracle"
)

// mostOfAnAsk bounds the operations of one request of the last client.
const mostOfAnAsk = 1_000

// AskWhole has a request of the last client be one step, of whatever take does again and again until it reports that
// the client has to wait or to be asked for the next one.
func (w *World) AskWhole(take func() (goesOn bool, err error)) error {
	timeline := &w.Run.Timeline
	timeline.Whole = true
	defer func() { timeline.Whole = false }()
	for range mostOfAnAsk {
		goesOn, err := take()
		if err != nil {
			return err
		}
		if !goesOn {
			break
		}
	}
	if step := timeline.Line; step != nil && step.Command == "" {
		step.Command = "asks"
	}
	return nil
}

// LastClient is the client that asks once the scripts of all others have ended and everything is
// at rest, without a break in any of its requests, until it does not get what it asks for.
// It belongs to the instance with which it begins, which may be any: a claim holds for all.
func (w *World) LastClient() Client {
	client := w.Client(w.Setup.Clients)
	client.Name = "last"
	client.Script = slices.Repeat(Script{{Kind: Take, Units: 1}}, MaxActions)
	client.Ends = true
	return client
}

// LastAsks reports whether so few units are left, as callers were told, that the last
// client can be rejected: of more there is nothing to learn but that they can be had. It
// asks nothing if time has passed within a request, which may then count in one window
// or in another: who comes after a caller that was held up for so long needs a script.
func (s *Setup) LastAsks(truth *Truth) bool {
	return s.Asks > 0 && truth.Policy.Limit-truth.InUse < int64(s.Asks) && !truth.heldUp()
}

// heldUp reports whether time has passed within a request.
func (t *Truth) heldUp() bool {
	return slices.ContainsFunc(t.events, func(event oracle.Event) bool {
		return event.Reply-event.Call > int64(time.Millisecond)
	})
}
