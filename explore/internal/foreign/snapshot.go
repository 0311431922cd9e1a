package foreign

import (
	"slices"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
)

// Snapshot implements [engine.Engine]. Each goroutine is an actor for itself: that of a
// caller, and each of the strategy's own that is at the store, since nothing tells which
// call one works for. One that waits for another goroutine or for time is preempted by
// nobody, although the call that it works for may not be over.
func (e *Engine) Snapshot() *engine.Snapshot {
	snapshot := &e.snapshot
	*snapshot = engine.Snapshot{Now: e.now, Actors: snapshot.Actors[:0], Signs: engine.Signs{Stuck: e.stuck}}
	for _, client := range e.clients {
		if client != e.last || client.started {
			snapshot.Actors = append(snapshot.Actors, e.caller(client))
		}
	}
	for _, parked := range e.helpers {
		actor := engine.Actor{ID: e.number(parked), Instance: parked.instance.index, At: engine.Waiting, Ready: true}
		if e.wentOn(parked) { // else another one has its number now
			actor.At = parked.place()
		}
		snapshot.Actors = append(snapshot.Actors, actor)
	}
	snapshot.Waits = e.waits() && len(e.stuck) == 0 || e.own && len(e.sel.RedisNeeds()) > 0
	return snapshot
}

func (e *Engine) caller(c *client) engine.Actor {
	actor := engine.Actor{ID: c.Index, Client: &c.Client, Instance: c.instance.index,
		Members: e.Setup.Members(c.instance.index), Lives: c.instance.lives}
	if c == e.last {
		actor.ID = e.lastNumber()
	}
	switch {
	case c.done.Load() || c.dead.Load():
		actor.At = engine.Done
	case !c.started:
		actor.At = engine.Unborn
		actor.Ready = true
	case c.at == nil:
		actor.At = engine.Waiting
		actor.Sleeps = true
	default:
		actor.At = c.at.place()
		actor.Ready = true
		actor.Fails = true
		actor.Repeats = true
	}
	return actor
}

// place is where a goroutine is that waits with an operation.
func (p *parked) place() engine.Place {
	switch {
	case !p.op.Store():
		return engine.Between
	case p.answered:
		return engine.Answering
	default:
		return engine.Asking
	}
}

// wentOn reports whether an operation is of the goroutine that took the last step.
func (e *Engine) wentOn(p *parked) bool { return e.went != nil && e.went.goroutine == p.goroutine }

// waits reports whether a caller waits for something other than its turn.
func (e *Engine) waits() bool { return len(e.waiting()) > 0 }

// anyMoves reports whether somebody could take a step, and so wake who waits.
func (e *Engine) anyMoves() bool {
	return len(e.helpers) > 0 || slices.ContainsFunc(e.clients, func(c *client) bool {
		return !c.done.Load() && !c.dead.Load() &&
			(c == e.last && !e.lastRests() || c != e.last && (!c.started || c.at != nil))
	})
}

// waiting names those callers.
func (e *Engine) waiting() (out []string) {
	for _, client := range e.clients {
		if client.started && !client.done.Load() && !client.dead.Load() && client.at == nil {
			out = append(out, client.Name+": waits in the strategy")
		}
	}
	return out
}

// Crashable implements [engine.Engine]: something has come to the instance in this life.
// What it has in memory is not known.
func (e *Engine) Crashable(i int) bool { return e.instances[i].history != engine.Digest{} }

// longest is how long is waited for something to happen: whoever waits for a window to
// end has been woken by then.
func (e *Engine) longest() time.Duration {
	const most = 24 * time.Hour
	return min(e.Setup.Renewed(e.now).Sub(e.now)+time.Minute, most)
}
