package bubble

import (
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness/explore/engine"
	"github.com/quotabench/quotabench/quota"
)

// Enabled implements [engine.Engine].
func (e *Engine) Enabled(out []engine.Choice, symmetric bool) []engine.Choice {
	runnable := false
	for _, c := range e.clients {
		switch {
		case c.done.Load() || c.dead.Load() || c == e.last && e.lastRests():
		case !c.started:
			runnable = true
			if !symmetric || !e.hasTwin(c) {
				out = append(out, engine.Choice{Kind: engine.StepActor, ID: c.Index})
			}
		case c.at != nil:
			runnable = true
			out = append(out, engine.Choice{Kind: engine.StepActor, ID: c.Index})
		}
	}
	for _, p := range e.helpers {
		runnable = true
		out = append(out, engine.Choice{Kind: engine.StepActor, ID: e.number(p)})
	}
	n := len(out)
	if !e.last.started {
		out = e.enabledFaults(out)
	}
	if e.setup.LastAsks(&e.run.Truth) && e.lastMayAsk() {
		for _, in := range e.instances {
			if !e.last.started || e.last.in == in {
				out = append(out, engine.Choice{Kind: engine.Ask, ID: in.index})
			}
		}
	}
	wait := engine.Choice{Kind: engine.TickClock, ID: engine.TickWaiter}
	// Where all that is left is to wait, waiting is no fault.
	if !runnable && e.waits() && len(e.stuck) == 0 && !slices.Contains(out[n:], wait) {
		out = append(out, wait)
	}
	return out
}

// waits reports whether a caller waits for something other than its turn.
func (e *Engine) waits() bool { return len(e.waiting()) > 0 }

// anyMoves reports whether somebody could take a step, and so wake who waits.
func (e *Engine) anyMoves() bool {
	return len(e.helpers) > 0 || slices.ContainsFunc(e.clients, func(c *client) bool {
		return !c.done.Load() && !c.dead.Load() && (c == e.last && !e.lastRests() || c != e.last && (!c.started || c.at != nil))
	})
}

// waiting names those callers.
func (e *Engine) waiting() (out []string) {
	for _, c := range e.clients {
		if c.started && !c.done.Load() && !c.dead.Load() && c.at == nil {
			out = append(out, c.Name+": waits in the strategy")
		}
	}
	return out
}

// hasTwin reports whether an earlier client has not started either and could take the
// place of c.
func (e *Engine) hasTwin(c *client) bool {
	for _, o := range e.clients[:c.Index] {
		if o.started || o.dead.Load() || !slices.Equal(o.Script, c.Script) {
			continue
		}
		if o.in == c.in || o.in.members == 1 && c.in.members == 1 && o.in.lives == c.in.lives {
			return true
		}
	}
	return false
}

func (e *Engine) enabledFaults(out []engine.Choice) []engine.Choice {
	if len(e.setup.Faults) == 0 {
		return out
	}
	times := e.setup.Times
	for _, c := range e.clients {
		if c.dead.Load() || c.at == nil || !c.at.op.Store() {
			continue
		}
		add := func(f quota.Fault, used int, kind engine.ChoiceKind) {
			if e.setup.Has(f) && used < times {
				out = append(out, engine.Choice{Kind: kind, ID: c.Index})
			}
		}
		if c.at.answered {
			add(quota.FaultCrash, e.used.crash, engine.CrashCall)
			add(quota.FaultLostReply, e.used.lost, engine.LoseReply)
			add(quota.FaultRetry, e.used.retry, engine.RetryReply)
		} else {
			add(quota.FaultOutage, e.used.outage, engine.FailBefore)
		}
	}
	if e.setup.Has(quota.FaultCrash) && e.used.crash < times {
		for _, in := range e.instances {
			if e.worthCrashing(in) {
				out = append(out, engine.Choice{Kind: engine.CrashHost, ID: in.index})
			}
		}
	}
	if e.setup.Has(quota.FaultEviction) && e.used.evict < times {
		for _, k := range e.keys() {
			out = append(out, engine.Choice{Kind: engine.EvictKey, Key: k.Name})
		}
	}
	if e.setup.Has(quota.FaultClock) && e.used.tick <= times {
		kinds := []int{engine.TickExpiry, engine.TickWindow, engine.TickHalf}
		if e.setup.Fractions() && e.Look().AtRest {
			kinds = append(kinds, engine.TickBefore)
		}
		seen := map[time.Time]bool{}
		for _, kind := range kinds {
			if t, ok := e.deadline(kind); ok && !seen[t] {
				seen[t] = true
				out = append(out, engine.Choice{Kind: engine.TickClock, ID: kind})
			}
		}
		if e.waits() && len(e.stuck) == 0 || e.own && len(e.sel.RedisNeeds()) > 0 {
			out = append(out, engine.Choice{Kind: engine.TickClock, ID: engine.TickWaiter})
		}
	}
	return out
}

// worthCrashing reports whether the end of an instance may make a difference: something
// has come to it in this life. What it has in memory is not known.
func (e *Engine) worthCrashing(in *instance) bool { return in.history != engine.Digest{} }

// deadline is the next one of a kind.
func (e *Engine) deadline(kind int) (next time.Time, found bool) {
	earlier := func(t time.Time) {
		if t.After(e.now) && (!found || t.Before(next)) {
			next, found = t, true
		}
	}
	switch kind {
	case engine.TickExpiry:
		for _, k := range e.keys() {
			if k.Left > 0 {
				earlier(e.now.Add(k.Left))
			}
		}
	case engine.TickWindow:
		earlier(after(e.setup.WindowEnd(e.now)))
	case engine.TickHalf:
		if half, ok := e.setup.WindowHalf(e.now); ok {
			earlier(after(half))
		}
	case engine.TickBefore:
		earlier(e.setup.WindowBefore(e.now))
	}
	return next, found
}

// after is the first whole millisecond after t. Clocks tell nanoseconds, so that the very
// moment at which a window ends is met by no request; and Redis tells the deadlines of
// keys in milliseconds, so that parts of one would be the store's error and no limiter's.
func after(t time.Time) time.Time { return t.Truncate(time.Millisecond).Add(time.Millisecond) }

// longest is how long is waited for something to happen: whoever waits for a window to
// end has been woken by then.
func (e *Engine) longest() time.Duration {
	const most = 24 * time.Hour
	return min(e.setup.Renewed(e.now).Sub(e.now)+time.Minute, most)
}

// Serial implements [engine.Engine].
func (e *Engine) Serial() (engine.Choice, bool) {
	for _, c := range e.clients {
		if c.started && c.at != nil && !c.dead.Load() && (c != e.last || !e.lastRests()) {
			return engine.Choice{Kind: engine.StepActor, ID: c.Index}, true
		}
	}
	if len(e.helpers) > 0 {
		return engine.Choice{Kind: engine.StepActor, ID: e.number(e.helpers[0])}, true
	}
	if e.waits() && len(e.stuck) == 0 {
		return engine.Choice{Kind: engine.TickClock, ID: engine.TickWaiter}, true
	}
	for _, c := range e.clients[:e.last.Index] {
		if !c.started && !c.dead.Load() {
			return engine.Choice{Kind: engine.StepActor, ID: c.Index}, true
		}
	}
	return engine.Choice{}, false
}

// Look implements [engine.Engine].
func (e *Engine) Look() engine.Look {
	l := engine.Look{AtRest: len(e.helpers) == 0, Ended: !e.last.started, Faults: e.faults(), Stuck: e.stuck}
	for _, c := range e.clients {
		l.Ended = l.Ended && (c == e.last || c.done.Load() || c.dead.Load())
		switch {
		case c.done.Load() || c.dead.Load() || !c.started:
		case c.between():
		default:
			l.AtRest = false
		}
	}
	return l
}

// faults lists those of this schedule so far.
func (e *Engine) faults() (out []quota.Fault) {
	u := e.used
	for _, x := range [...]struct {
		n int
		f quota.Fault
	}{
		{u.crash, quota.FaultCrash}, {u.lost, quota.FaultLostReply}, {u.retry, quota.FaultRetry},
		{u.tick, quota.FaultClock}, {u.evict, quota.FaultEviction}, {u.outage, quota.FaultOutage},
	} {
		if x.n > 0 {
			out = append(out, x.f)
		}
	}
	return out
}
