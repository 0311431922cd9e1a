package inproc

import (
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness/explore/engine"
	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/quota"
)

// Enabled implements [engine.Engine].
func (w *Engine) Enabled(out []engine.Choice, symmetric bool) []engine.Choice {
	runnable := false
	waits := false
	for id, m := range w.actors {
		if m.Done() {
			continue
		}
		kind := m.Kind()
		if m.client == w.last && m.between() {
			continue // it asks as one step
		}
		if m.client == nil && kind == sched.Idle {
			switch {
			case m.Ready():
				out = append(out, engine.Choice{Kind: engine.StepActor, ID: id})
			case w.last.m == nil && m.Job().Every() > 0 && m.Job().Rounds < w.setup.JobRounds:
				out = append(out, engine.Choice{Kind: engine.PromptJob, ID: id})
			}
			continue
		}
		if !m.Ready() {
			waits = waits || kind == sched.Sleep
			continue
		}
		runnable = true
		if kind == sched.Start && symmetric && w.hasTwin(m) {
			continue
		}
		out = append(out, engine.Choice{Kind: engine.StepActor, ID: id})
	}
	n := len(out)
	if w.last.m == nil {
		out = w.enabledFaults(out)
	}
	if w.setup.LastAsks(&w.run.Truth) && w.lastMayAsk() {
		for _, in := range w.instances {
			if w.last.m == nil || w.last.m.in == in {
				out = append(out, engine.Choice{Kind: engine.Ask, ID: in.index})
			}
		}
	}
	// Where all that is left is to wait, waiting is no fault.
	if !runnable && waits && !hasTick(out[n:]) {
		out = append(out, engine.Choice{Kind: engine.TickClock, ID: engine.TickWaiter})
	}
	return out
}

func hasTick(list []engine.Choice) bool {
	for _, c := range list {
		if c.Kind == engine.TickClock && c.ID == engine.TickWaiter {
			return true
		}
	}
	return false
}

// hasTwin reports whether an earlier client has not started either and could take
// the place of m: it runs the same script on an instance of which the same is
// true. Whose name is whose makes no difference, since strategies may compare
// names for equality only.
func (w *Engine) hasTwin(m *member) bool {
	for _, c := range w.clients[:m.client.Index] {
		if c.m.Done() || c.m.Kind() != sched.Start || !sameScript(c.Script, m.client.Script) {
			continue
		}
		if c.m.in == m.in || w.interchangeable(c.m.in, m.in) {
			return true
		}
	}
	return false
}

func sameScript(a, b engine.Script) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// interchangeable instances have done nothing so far and will do the same. Where
// one has several clients, or a job of its own, a swap would have to take them
// along; that is not attempted. Singleton jobs belong to the first.
func (w *Engine) interchangeable(a, b *instance) bool {
	return a.members == 1 && b.members == 1 && a.lives == b.lives && w.setup.SkewOf(a.index) == w.setup.SkewOf(b.index)
}

func (w *Engine) enabledFaults(out []engine.Choice) []engine.Choice {
	if len(w.setup.Faults) == 0 {
		return out
	}
	times := w.setup.Times
	for id, m := range w.actors {
		if m.Done() || m.client == nil {
			continue
		}
		kind := m.Kind()
		reply := kind == sched.Reply
		if reply && w.setup.Has(quota.FaultCrash) && w.used.crash < times {
			out = append(out, engine.Choice{Kind: engine.CrashCall, ID: id})
		}
		if reply && w.setup.Has(quota.FaultLostReply) && w.used.lost < times {
			out = append(out, engine.Choice{Kind: engine.LoseReply, ID: id})
		}
		if reply && w.setup.Has(quota.FaultRetry) && w.used.retry < times && m.Op().ReplyTo() != sched.SQL {
			out = append(out, engine.Choice{Kind: engine.RetryReply, ID: id})
		}
		if !reply && w.setup.Has(quota.FaultOutage) && w.used.outage < times && m.Op().Store() {
			out = append(out, engine.Choice{Kind: engine.FailBefore, ID: id})
		}
	}
	if w.setup.Has(quota.FaultCrash) && w.used.crash < times {
		for _, in := range w.instances {
			if w.worthCrashing(in) {
				out = append(out, engine.Choice{Kind: engine.CrashHost, ID: in.index})
			}
		}
	}
	if w.setup.Has(quota.FaultEviction) && w.used.evict < times {
		w.s.Sync()
		keys, err := w.store.keys(w.s.Now())
		w.fail(err)
		for _, k := range keys {
			out = append(out, engine.Choice{Kind: engine.EvictKey, Key: k.name})
		}
	}
	if w.setup.Has(quota.FaultClock) && w.used.tick <= times {
		kinds := engine.TickHalf
		if w.setup.Fractions() && w.Look().AtRest {
			kinds = engine.TickKinds
		}
		seen := map[time.Time]bool{}
		for kind := range kinds {
			if t, ok := w.deadline(kind); ok && !seen[t] {
				seen[t] = true
				out = append(out, engine.Choice{Kind: engine.TickClock, ID: kind})
			}
		}
	}
	return out
}

// worthCrashing reports whether the end of an instance is more than that of one
// call after an effect, which is tried anyway: it interrupts others, or what it has
// in memory is not what it begins with.
func (w *Engine) worthCrashing(in *instance) bool {
	if in.members > 1 && slices.ContainsFunc(w.actors, func(m *member) bool {
		return m.in == in && !m.Done() && !m.toCome() && m.Kind() != sched.Idle
	}) {
		return true
	}
	if w.branch.changed(in) { // which only instances do that share no memory
		return w.branch.instance[in.index].memory != in.fresh
	}
	return w.remembersOwn(in) != in.fresh
}

// deadline is the next one of a kind.
func (w *Engine) deadline(kind int) (next time.Time, found bool) {
	now := w.s.Now()
	earlier := func(t time.Time) {
		if t.After(now) && (!found || t.Before(next)) {
			next, found = t, true
		}
	}
	switch kind {
	case engine.TickExpiry:
		w.s.Sync()
		keys, err := w.store.keys(now)
		w.fail(err)
		for _, k := range keys {
			if k.left > 0 {
				earlier(now.Add(k.left))
			}
		}
	case engine.TickWindow:
		for i := range w.instances {
			earlier(w.setup.WindowEnd(now.Add(w.setup.SkewOf(i))).Add(-w.setup.SkewOf(i)))
		}
	case engine.TickWaiter:
		if t, ok := w.s.NextDeadline(); ok {
			earlier(t)
		}
	case engine.TickHalf, engine.TickBefore:
		for i := range w.instances {
			at, skew := now.Add(w.setup.SkewOf(i)), -w.setup.SkewOf(i)
			if half, ok := w.setup.WindowHalf(at); ok && kind == engine.TickHalf {
				earlier(half.Add(skew))
			} else if kind == engine.TickBefore {
				earlier(w.setup.WindowBefore(at).Add(skew))
			}
		}
	}
	return next, found
}

func (w *Engine) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}
