package explore

import (
	"context"
	"errors"
	"fmt"
	"github.com/quotabench/quotabench/quota"
	"time"

	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/strategies"
)

// errMisfit says that a choice is none that this run offers.
var errMisfit = errors.New("the schedule does not fit: strategy, options or version have changed since")

// apply takes one step. A choice that was not enabled is an error.
func (w *world) apply(c choice) error {
	w.truth.at(w.s.Now())
	if w.recording {
		w.line = &Step{Number: len(w.steps) + 1, Column: -1}
	}
	if err := w.do(c); err != nil {
		return err
	}
	if w.err == nil && w.lacking != nil {
		w.err = w.lacking()
	}
	if w.err != nil {
		return w.err
	}
	w.screen()
	if w.recording {
		w.line.At = w.s.Now().Sub(w.start)
		w.line.InUse = w.truth.inUse
		w.line.Limit = w.cfg.Policy.Limit
		w.steps = append(w.steps, *w.line)
		w.line = nil
	}
	return nil
}

func (w *world) do(c choice) error {
	switch c.kind {
	case tickClock:
		return w.tick(c.id)
	case evictKey:
		w.used.evict++
		w.mark("store", "", "evicts "+c.key)
		w.s.Sync()
		return w.store.evict(c.key)
	case crashHost:
		if c.id >= len(w.instances) {
			return errMisfit
		}
		return w.crashInstance(w.instances[c.id])
	}
	if c.id >= len(w.actors) || w.actors[c.id].Done() {
		return errMisfit
	}
	m := w.actors[c.id]
	w.column(m)
	op := m.Op()
	if op.Kind == sched.Idle {
		m.history = digest{}
	}
	w.remember(m)
	switch c.kind {
	case promptJob:
		if m.client != nil || op.Kind != sched.Idle {
			return errMisfit
		}
		m.Job().Prompt()
		w.s.Step(m.Actor)
	case stepActor:
		if !m.Ready() {
			return errMisfit
		}
		w.s.Step(m.Actor)
		if w.fused && op.Kind == sched.Start && !m.Done() && m.Op().Store() {
			w.s.Step(m.Actor)
		}
	case crashCall:
		w.used.crash++
		w.mark(m.Name, "crash", "")
		w.kill(m)
	case loseReply:
		if op.Kind != sched.Reply {
			return errMisfit
		}
		w.used.lost++
		w.mark(m.Name, "lost reply", "")
		w.s.Fail(m.Actor, errLost)
	case retryReply:
		if op.Kind != sched.Reply || op.ReplyTo() == sched.SQL {
			return errMisfit
		}
		w.used.retry++
		w.mark(m.Name, "retry", "")
		w.s.Repeat(m.Actor)
	case failBefore:
		if !op.Store() || op.Kind == sched.Reply {
			return errMisfit
		}
		w.used.outage++
		w.mark(m.Name, "store unreachable", "")
		w.s.Fail(m.Actor, errGone)
	default:
		return errMisfit
	}
	return nil
}

func (w *world) kill(m *member) {
	w.s.Kill(m.Actor)
	if c := m.client; c != nil && c.pending >= 0 {
		w.truth.lost(c.pending)
		c.pending = -1
	}
	m.history.num(1 << 40)
}

// crashInstance ends what an instance is doing, forgets its memory and opens it
// again, as a supervisor does. Requests that have not come yet will ask the new one.
func (w *world) crashInstance(in *instance) error {
	w.used.crash++
	w.mark(fmt.Sprintf("instance %d", in.index), "crash", "ends and starts anew")
	for _, m := range w.actors {
		if m.in != in || m.Done() || m.client != nil && m.Op().Kind == sched.Start {
			continue
		}
		w.kill(m)
	}
	in.lives++
	if err := w.open(context.Background(), in); err != nil {
		return err
	}
	w.startJobs(in, in.index == 0)
	return nil
}

func (w *world) tick(kind int) error {
	t, ok := w.deadline(kind)
	if !ok {
		return errMisfit
	}
	w.used.tick++
	what := [...]string{"a key expires", "a window ends", "a wait ends or a job is due"}[kind]
	d := t.Sub(w.s.Now())
	if a, ok := w.store.(ager); ok {
		if err := a.age(d); err != nil {
			return err
		}
	}
	w.s.Advance(d)
	w.s.Sync()
	w.truth.at(w.s.Now())
	w.mark("clock", "", fmt.Sprintf("%s later: %s", shortDuration(d), what))
	return nil
}

// ager is a store whose deadlines do not follow virtual time by themselves.
type ager interface{ age(d time.Duration) error }

// observe is told of every step of every actor.
func (w *world) observe(e sched.Event) {
	if e.Actor.ID >= len(w.actors) { // being killed, or not known yet
		return
	}
	m := w.actors[e.Actor.ID]
	w.describe(m, e)
	if j := m.Job(); j != nil && j.Every() > 0 && e.Op.Store() && (e.Outcome == sched.Happened || e.Outcome == sched.Repeated) {
		w.used.synced = j.Every()
	}
	if w.blind {
		return
	}
	reply := digest{}
	reply.num(uint64(e.Op.Kind)<<8 | uint64(e.Outcome))
	reply.moment(e.At)
	if e.Outcome == sched.Happened || e.Outcome == sched.Repeated {
		switch e.Op.Kind {
		case sched.Command:
			foldReply(&reply, e.Op.Cmd, e.Err)
		case sched.Transaction:
			for _, c := range e.Op.Cmds {
				foldReply(&reply, c, e.Err)
			}
		}
	}
	m.history.fold(reply)
}

// remember has an actor see what is in memory before it goes on: with the replies
// it was given, that is all that its own variables can depend on. What only
// statements of the model reach is seen by those alone.
func (w *world) remember(m *member) {
	if w.blind {
		return
	}
	var without *strategies.Shared
	if w.sel.NeedsStore(strategies.NeedSource) && m.Op().Kind != sched.SQL {
		without = w.shared
	}
	if m.in.members > 1 || without == nil && w.shared.Len() > 0 {
		w.memory.hash(&m.history, m.in.strategy, m.client != nil, without)
	}
}

// state is the hash of everything that the future depends on.
func (w *world) state() (digest, error) {
	var d digest
	now := w.s.Now()
	w.s.Sync()
	keys, err := w.store.keys(now)
	if err != nil {
		return d, err
	}
	d.moment(now)
	for _, k := range keys {
		d.text(k.name)
		d.num(uint64(k.left))
		for _, c := range k.content {
			d.text(c)
		}
	}
	for _, in := range w.instances {
		d.num(uint64(in.lives))
		w.memory.hash(&d, in.strategy, false, nil)
	}
	for _, m := range w.actors {
		// Who has returned has no variables any more, and a job has none between
		// two rounds.
		if !m.Done() && (m.client != nil || m.Op().Kind != sched.Idle) {
			d.fold(m.history)
		}
		d.truth(m.Done())
		if j := m.Job(); j != nil && j.Every() > 0 {
			d.num(uint64(max(0, w.cfg.JobRounds-j.Rounds))) // that may still begin
		}
	}
	u := w.used
	for _, n := range []int{u.crash, u.lost, u.retry, u.outage, u.evict, u.tick, int(u.synced)} {
		d.num(uint64(n))
	}
	w.truth.digest(&d, w.ordered())
	return d, nil
}

// ordered reports whether verdicts depend on the order of events, and not only on
// their sums.
func (w *world) ordered() bool {
	if w.cfg.has(quota.FaultClock) {
		return true
	}
	for _, p := range w.cfg.Properties {
		if p == FalseReject || p == Guarantee {
			return true
		}
	}
	return false
}
