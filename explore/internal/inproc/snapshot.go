package inproc

import (
	"slices"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Snapshot implements [engine.Engine].
func (w *Engine) Snapshot() *engine.Snapshot {
	s := &w.snapshot
	s.Now = w.s.Now()
	s.Forgot = s.Forgot[:0]
	s.SyncPeriod = w.synced
	s.PeriodicJobs = false
	s.Wakes, _ = w.s.NextDeadline()
	s.Actors = slices.Grow(s.Actors[:0], len(w.actors))[:len(w.actors)]
	for i, m := range w.actors {
		w.actor(m, &s.Actors[i])
		s.PeriodicJobs = s.PeriodicJobs || m.client == nil && m.Job().Every() > 0
	}
	for _, in := range w.instances {
		if in.forgot {
			s.Forgot = append(s.Forgot, in.index)
		}
	}
	return s
}

// actor fills in what a snapshot says of an actor.
func (w *Engine) actor(m *member, a *engine.Actor) {
	*a = engine.Actor{ID: m.ID, Instance: m.in.index, Members: m.in.members, Lives: m.in.lives, Text: m.Actor}
	if m.client != nil {
		a.Client = &m.client.Client
	}
	if m.Done() {
		return
	}
	kind := m.Kind()
	a.Ready = m.Ready()
	a.Sleeps = kind == sched.Sleep && !a.Ready
	a.Idle = m.client == nil && kind == sched.Idle
	switch {
	case kind == sched.Start:
		a.At = engine.Unborn
	case m.between():
		a.At = engine.Between
	case a.Idle && !a.Ready:
		a.At, a.Prompts = engine.Between, m.Job().Every() > 0 && m.Job().Rounds < w.Setup.JobRounds
	case a.Idle, !a.Ready:
		a.At = engine.Waiting
	case kind == sched.Reply:
		a.At, a.Repeats = engine.Answering, m.Op().ReplyTo() != sched.SQL
	default:
		a.At, a.Fails = engine.Asking, m.Op().Store()
	}
}

// Crashable implements [engine.Engine]. The end of an instance is more than that of one call
// if it interrupts others, or if what it has in memory is not what it begins with.
func (w *Engine) Crashable(i int) bool {
	in := w.instances[i]
	if in.members > 1 && slices.ContainsFunc(w.actors, func(m *member) bool {
		return m.in == in && !m.Done() && !m.toCome() && m.Kind() != sched.Idle
	}) {
		return true
	}
	if w.branch.changed(in) { // which only instances do that share no memory
		was := &w.branch.instance[in.index]
		return was.memory != in.fresh || len(was.hidden) > 0
	}
	own, hidden := w.hash(in, w.shared)
	return own != in.fresh || len(hidden) > 0
}

// Holdings implements [engine.Engine].
func (w *Engine) Holdings() ([]engine.Holding, error) {
	w.s.Sync()
	keys, err := w.store.keys()
	w.holdings = engine.Held(w.holdings[:0], keys)
	return w.holdings, err
}

// Used implements [engine.Engine].
func (w *Engine) Used() (readings []quota.Reading, ok bool) {
	v, ok := w.instances[0].strategy.(strategies.Viewer)
	if !ok {
		return nil, false
	}
	w.footAsks()
	readings, err := v.Used(setupContext, engine.Subject, w.Run.Truth.Policy)
	return readings, err == nil
}
