package explore

import (
	"time"

	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/quota"
)

// enabled appends what can happen next. symmetric leaves out clients that could
// as well be another one that has not started either.
func (w *world) enabled(out []choice, symmetric bool) []choice {
	runnable := false
	waits := false
	for id, m := range w.actors {
		if m.Done() {
			continue
		}
		op := m.Op()
		if m.client == nil && op.Kind == sched.Idle {
			switch {
			case m.Ready():
				out = append(out, choice{kind: stepActor, id: id})
			case m.Job().Every() > 0 && m.Job().Rounds < w.cfg.JobRounds:
				out = append(out, choice{kind: promptJob, id: id})
			}
			continue
		}
		if !m.Ready() {
			waits = waits || op.Kind == sched.Sleep
			continue
		}
		runnable = true
		if op.Kind == sched.Start && symmetric && w.hasTwin(m) {
			continue
		}
		out = append(out, choice{kind: stepActor, id: id})
	}
	n := len(out)
	out = w.enabledFaults(out)
	// Where all that is left is to wait, waiting is no fault.
	if !runnable && waits && !hasTick(out[n:]) {
		out = append(out, choice{kind: tickClock, id: tickWaiter})
	}
	return out
}

func hasTick(list []choice) bool {
	for _, c := range list {
		if c.kind == tickClock && c.id == tickWaiter {
			return true
		}
	}
	return false
}

// hasTwin reports whether an earlier client has not started either and could take
// the place of m: it runs the same script on an instance of which the same is
// true. Whose name is whose makes no difference, since strategies may compare
// names for equality only.
func (w *world) hasTwin(m *member) bool {
	for _, c := range w.clients[:m.client.index] {
		if c.m.Done() || c.m.Op().Kind != sched.Start || !sameScript(c.script, m.client.script) {
			continue
		}
		if c.m.in == m.in || w.interchangeable(c.m.in, m.in) {
			return true
		}
	}
	return false
}

func sameScript(a, b Script) bool {
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
func (w *world) interchangeable(a, b *instance) bool {
	return a.members == 1 && b.members == 1 && a.lives == b.lives && w.skew(a.index) == w.skew(b.index)
}

func (w *world) enabledFaults(out []choice) []choice {
	if len(w.cfg.Faults) == 0 {
		return out
	}
	times := w.cfg.Times
	for id, m := range w.actors {
		if m.Done() || m.client == nil {
			continue
		}
		op := m.Op()
		reply := op.Kind == sched.Reply
		if reply && w.cfg.has(quota.FaultCrash) && w.used.crash < times {
			out = append(out, choice{kind: crashCall, id: id})
		}
		if reply && w.cfg.has(quota.FaultLostReply) && w.used.lost < times {
			out = append(out, choice{kind: loseReply, id: id})
		}
		if reply && op.ReplyTo() != sched.SQL && w.cfg.has(quota.FaultRetry) && w.used.retry < times {
			out = append(out, choice{kind: retryReply, id: id})
		}
		if op.Store() && !reply && w.cfg.has(quota.FaultOutage) && w.used.outage < times {
			out = append(out, choice{kind: failBefore, id: id})
		}
	}
	if w.cfg.has(quota.FaultCrash) && w.used.crash < times {
		for _, in := range w.instances {
			if w.worthCrashing(in) {
				out = append(out, choice{kind: crashHost, id: in.index})
			}
		}
	}
	if w.cfg.has(quota.FaultEviction) && w.used.evict < times {
		w.s.Sync()
		keys, err := w.store.keys(w.s.Now())
		w.fail(err)
		for _, k := range keys {
			out = append(out, choice{kind: evictKey, key: k.name})
		}
	}
	if w.cfg.has(quota.FaultClock) && w.used.tick <= times {
		seen := map[time.Time]bool{}
		for kind := range tickKinds {
			if t, ok := w.deadline(kind); ok && !seen[t] {
				seen[t] = true
				out = append(out, choice{kind: tickClock, id: kind})
			}
		}
	}
	return out
}

// worthCrashing reports whether the end of an instance is more than that of one
// call after an effect, which is tried anyway.
func (w *world) worthCrashing(in *instance) bool {
	busy := false
	for _, m := range w.actors {
		if m.in != in || m.Done() {
			continue
		}
		if k := m.Op().Kind; k != sched.Start && k != sched.Idle {
			busy = true
		}
	}
	return in.members > 1 && busy
}

// deadline is the next one of a kind.
func (w *world) deadline(kind int) (next time.Time, found bool) {
	now := w.s.Now()
	earlier := func(t time.Time) {
		if t.After(now) && (!found || t.Before(next)) {
			next, found = t, true
		}
	}
	switch kind {
	case tickExpiry:
		w.s.Sync()
		keys, err := w.store.keys(now)
		w.fail(err)
		for _, k := range keys {
			if k.left > 0 {
				earlier(now.Add(k.left))
			}
		}
	case tickWindow:
		for i := range w.instances {
			earlier(w.windowEnd(now.Add(w.skew(i))).Add(-w.skew(i)))
		}
	case tickWaiter:
		if t, ok := w.s.NextDeadline(); ok {
			earlier(t)
		}
	}
	return next, found
}

// windowEnd is when the window at t ends, or t itself where none ever does.
func (w *world) windowEnd(t time.Time) time.Time {
	win := w.cfg.Policy.Window
	switch {
	case win.Kind.Tumbling():
		return win.At(t).End
	case win.Kind == quota.Rolling:
		return t.Add(win.RealLength())
	default:
		return t
	}
}

func (w *world) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}
