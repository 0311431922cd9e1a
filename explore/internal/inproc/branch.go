package inproc

import (
	"slices"
	"time"
	"unsafe"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/strategies"
)

// branch is a state from which several steps are taken in one run. An instance of which
// an actor has taken a step cannot be put back, since its code has gone on. But those
// that have done nothing since are still in the state, and their actors can be stepped
// from it once everything around them is put back: the store, the truth, what the faults
// have used up, and what is known of the actors and instances that have gone on.
type branch struct {
	// on is set if there is such a state in this run, and open if it can still be
	// put back.
	on, open bool
	// tangled is set if a step of one instance has changed the memory of another that
	// has gone on.
	tangled bool
	last    engine.Choice // the step that was taken from it
	// what was so in the state
	trail    []engine.Digest
	store    func()
	fresh    []string // scripts that were loaded
	truth    engine.Truth
	used     engine.Budget
	synced   time.Duration
	paused   time.Duration
	actors   sched.Saved
	shared   int
	clients  []int // their operations in flight
	instance []branchInstance
}

// branchInstance is what was so of an instance.
type branchInstance struct {
	memory engine.Digest
	hidden []unsafe.Pointer
	rand   uint64
	// after is its memory after the last step.
	after           engine.Digest
	screens, forgot bool
	// gone is set once an actor of it has taken a step, and changed if that has changed
	// its memory.
	gone, changed bool
}

// changed reports whether what an instance remembers now is not what it did in the state.
func (b *branch) changed(in *instance) bool { return b.on && b.instance[in.index].changed }

// remembers is the hash of an instance's memory, as it was in the state where it is no
// more.
func (w *Engine) remembers(in *instance) engine.Digest {
	digest, hidden := w.hash(in, nil)
	in.hidden = append(in.hidden[:0], hidden...)
	branch := &w.branch
	switch {
	case !branch.on:
	case branch.changed(in):
		was := &branch.instance[in.index]
		branch.tangled = branch.tangled || digest != was.after
		in.hidden = append(in.hidden[:0], was.hidden...)
		return was.memory
	default:
		branch.instance[in.index].after = digest
	}
	return digest
}

var _ engine.Brancher = (*Engine)(nil)

// Branch implements [engine.Brancher].
func (w *Engine) Branch(path []engine.Choice, trail []engine.Digest, several bool) error {
	if err := w.before(path, trail); err != nil {
		return err
	}
	last := path[len(path)-1]
	if several {
		w.save(trail)
		w.leaves(last)
	}
	w.foot.due = w.foot.on
	return w.Step(last)
}

// save notes the present state.
func (w *Engine) save(trail []engine.Digest) {
	branch := &w.branch
	w.scheduler.Sync()
	ok := false
	branch.store, ok = w.store.copy()
	if !ok {
		return
	}
	branch.instance = branch.instance[:0]
	for _, instance := range w.instances {
		branch.instance = append(branch.instance, branchInstance{
			memory: w.remembers(instance), hidden: slices.Clone(instance.hidden), rand: instance.source.State(),
			screens: instance.screens, forgot: instance.forgot,
		})
	}
	branch.clients = branch.clients[:0]
	for _, client := range w.clients {
		branch.clients = append(branch.clients, client.Pending)
	}
	w.Run.Truth.CopyTo(&branch.truth)
	w.scheduler.Save(&branch.actors)
	branch.trail, branch.fresh, branch.shared = trail, append(branch.fresh[:0], w.store.fresh()...), w.shared.Len()
	branch.used = w.Budget
	branch.synced = w.synced
	branch.paused = w.Run.Paused
	branch.on = true
	branch.open = true
	branch.tangled = false
}

// leaves notes that a step is taken from the state.
func (w *Engine) leaves(choice engine.Choice) {
	w.branch.last = choice
	w.branch.open = w.branch.open && !irrevocable(choice)
}

// irrevocable reports whether a step cannot be taken back: time does not run backwards, an
// instance that begins anew has other actors, and the last client is one that begins.
func irrevocable(choice engine.Choice) bool {
	return choice.Kind == engine.TickClock || choice.Kind == engine.CrashHost || choice.Kind == engine.Ask
}

// Sound implements [engine.Brancher].
func (w *Engine) Sound() bool {
	branch := &w.branch
	return !branch.tangled && !w.scheduler.Moved(&branch.actors) && slices.Equal(w.store.fresh(), branch.fresh) &&
		w.shared.Len() == branch.shared
}

// Again implements [engine.Brancher].
func (w *Engine) Again(choice engine.Choice) (ok bool, err error) {
	defer w.caught("a step", &err)
	if !w.goBack(choice) {
		return false, nil
	}
	w.leaves(choice)
	w.foot.due = w.foot.on
	return true, w.Step(choice)
}

// Onward implements [engine.Brancher].
func (w *Engine) Onward(choice engine.Choice) (ok bool, err error) {
	defer w.caught("a step", &err)
	if _, asked := w.instances[0].strategy.(strategies.Viewer); asked || w.branch.on {
		return false, nil
	}
	w.foot.due = w.foot.on
	return true, w.Step(choice)
}

// goBack puts the state back for a step, if it can.
func (w *Engine) goBack(choice engine.Choice) bool {
	branch := &w.branch
	if !branch.open {
		return false
	}
	if w.Err != nil || !w.Sound() || !w.stays() {
		branch.open = false
		return false
	}
	if id, ok := choice.Actor(); ok && branch.instance[w.actors[id].instance.index].gone || irrevocable(choice) {
		return false
	}
	branch.store()
	branch.truth.CopyTo(&w.Run.Truth)
	w.Budget = branch.used
	w.synced = branch.synced
	w.Run.Paused = branch.paused
	w.scheduler.Restore(&branch.actors, func(actor *sched.Actor) bool {
		return branch.changed(w.actors[actor.ID].instance)
	})
	w.recall(branch.trail)
	for i, client := range w.clients {
		client.Pending = branch.clients[i]
	}
	for i, instance := range w.instances {
		instance.screens = branch.instance[i].screens
		instance.forgot = branch.instance[i].forgot
	}
	return true
}

// stays notes who has taken the last step, and reports whether that has left alone the
// memory of the other instances, and of its own if others may see that.
func (w *Engine) stays() bool {
	branch := &w.branch
	own := -1
	if id, ok := branch.last.Actor(); ok {
		own = w.actors[id].instance.index
	}
	for i, instance := range w.instances {
		was := &branch.instance[i]
		if was.changed {
			continue
		}
		changed := was.after != was.memory || instance.source.State() != was.rand || i == own &&
			len(was.hidden)+len(instance.hidden) > 0
		if changed && (i != own || w.shared.Len() > 0 || w.sight.common) {
			return false
		}
		if _, asked := instance.strategy.(strategies.Viewer); changed && asked && i == 0 {
			return false // which says what is in use, from its memory
		}
		was.gone = was.gone || i == own
		was.changed = changed
	}
	return true
}
