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
	snapshot := &w.snapshot
	snapshot.Now = w.scheduler.Now()
	snapshot.Forgot = snapshot.Forgot[:0]
	snapshot.SyncPeriod = w.synced
	snapshot.PeriodicJobs = false
	snapshot.Wakes, _ = w.scheduler.NextDeadline()
	snapshot.Actors = slices.Grow(snapshot.Actors[:0], len(w.actors))[:len(w.actors)]
	for i, member := range w.actors {
		w.actor(member, &snapshot.Actors[i])
		snapshot.PeriodicJobs = snapshot.PeriodicJobs || member.client == nil && member.Job().Every() > 0
	}
	for _, instance := range w.instances {
		if instance.forgot {
			snapshot.Forgot = append(snapshot.Forgot, instance.index)
		}
	}
	return snapshot
}

// actor fills in what a snapshot says of an actor.
func (w *Engine) actor(m *member, actor *engine.Actor) {
	*actor = engine.Actor{ID: m.ID, Instance: m.instance.index, Members: m.instance.members, Lives: m.instance.lives,
		Text: m.Actor}
	if m.client != nil {
		actor.Client = &m.client.Client
	}
	if m.Done() {
		return
	}
	kind := m.Kind()
	actor.Ready = m.Ready()
	actor.Sleeps = kind == sched.Sleep && !actor.Ready
	actor.Idle = m.client == nil && kind == sched.Idle
	switch {
	case kind == sched.Start:
		actor.At = engine.Unborn
	case m.between():
		actor.At = engine.Between
	case actor.Idle && !actor.Ready:
		actor.At, actor.Prompts = engine.Between, m.Job().Every() > 0 && m.Job().Rounds < w.Setup.JobRounds
	case actor.Idle, !actor.Ready:
		actor.At = engine.Waiting
	case kind == sched.Reply:
		actor.At, actor.Repeats = engine.Answering, m.Op().ReplyTo() != sched.SQL
	default:
		actor.At, actor.Fails = engine.Asking, m.Op().Store()
	}
}

// Crashable implements [engine.Engine]. The end of an instance is more than that of one call
// if it interrupts others, or if what it has in memory is not what it begins with.
func (w *Engine) Crashable(i int) bool {
	instance := w.instances[i]
	if instance.members > 1 && slices.ContainsFunc(w.actors, func(m *member) bool {
		return m.instance == instance && !m.Done() && !m.toCome() && m.Kind() != sched.Idle
	}) {
		return true
	}
	if w.branch.changed(instance) { // which only instances do that share no memory
		was := &w.branch.instance[instance.index]
		return was.memory != instance.fresh || len(was.hidden) > 0
	}
	own, hidden := w.hash(instance, w.shared)
	return own != instance.fresh || len(hidden) > 0
}

// Holdings implements [engine.Engine].
func (w *Engine) Holdings() ([]engine.Holding, error) {
	w.scheduler.Sync()
	keys, err := w.store.keys()
	w.holdings = engine.Held(w.holdings[:0], keys)
	return w.holdings, err
}

// Used implements [engine.Engine].
func (w *Engine) Used() (readings []quota.Reading, ok bool) {
	viewer, ok := w.instances[0].strategy.(strategies.Viewer)
	if !ok {
		return nil, false
	}
	w.footAsks()
	readings, err := viewer.Used(setupContext, engine.Subject, w.Run.Truth.Policy)
	return readings, err == nil
}
