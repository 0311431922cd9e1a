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
	d, hidden := w.hash(in, nil)
	in.hidden = append(in.hidden[:0], hidden...)
	b := &w.branch
	switch {
	case !b.on:
	case b.changed(in):
		was := &b.instance[in.index]
		b.tangled = b.tangled || d != was.after
		in.hidden = append(in.hidden[:0], was.hidden...)
		return was.memory
	default:
		b.instance[in.index].after = d
	}
	return d
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
	b := &w.branch
	w.s.Sync()
	ok := false
	b.store, ok = w.store.copy()
	if !ok {
		return
	}
	b.instance = b.instance[:0]
	for _, in := range w.instances {
		b.instance = append(b.instance, branchInstance{
			memory: w.remembers(in), hidden: slices.Clone(in.hidden), rand: in.source.State(), screens: in.screens, forgot: in.forgot,
		})
	}
	b.clients = b.clients[:0]
	for _, c := range w.clients {
		b.clients = append(b.clients, c.Pending)
	}
	w.Run.Truth.CopyTo(&b.truth)
	w.s.Save(&b.actors)
	b.trail, b.fresh, b.shared = trail, append(b.fresh[:0], w.store.fresh()...), w.shared.Len()
	b.used = w.Budget
	b.synced = w.synced
	b.paused = w.Run.Paused
	b.on = true
	b.open = true
	b.tangled = false
}

// leaves notes that a step is taken from the state.
func (w *Engine) leaves(c engine.Choice) {
	w.branch.last = c
	w.branch.open = w.branch.open && !irrevocable(c)
}

// irrevocable reports whether a step cannot be taken back: time does not run backwards, an
// instance that begins anew has other actors, and the last client is one that begins.
func irrevocable(c engine.Choice) bool {
	return c.Kind == engine.TickClock || c.Kind == engine.CrashHost || c.Kind == engine.Ask
}

// Sound implements [engine.Brancher].
func (w *Engine) Sound() bool {
	b := &w.branch
	return !b.tangled && !w.s.Moved(&b.actors) && slices.Equal(w.store.fresh(), b.fresh) && w.shared.Len() == b.shared
}

// Again implements [engine.Brancher].
func (w *Engine) Again(c engine.Choice) (ok bool, err error) {
	defer w.caught("a step", &err)
	if !w.goBack(c) {
		return false, nil
	}
	w.leaves(c)
	w.foot.due = w.foot.on
	return true, w.Step(c)
}

// goBack puts the state back for a step, if it can.
func (w *Engine) goBack(c engine.Choice) bool {
	b := &w.branch
	if !b.open {
		return false
	}
	if w.Err != nil || !w.Sound() || !w.stays() {
		b.open = false
		return false
	}
	if id, ok := c.Actor(); ok && b.instance[w.actors[id].in.index].gone || irrevocable(c) {
		return false
	}
	b.store()
	b.truth.CopyTo(&w.Run.Truth)
	w.Budget = b.used
	w.synced = b.synced
	w.Run.Paused = b.paused
	w.s.Restore(&b.actors, func(a *sched.Actor) bool { return b.changed(w.actors[a.ID].in) })
	w.recall(b.trail)
	for i, c := range w.clients {
		c.Pending = b.clients[i]
	}
	for i, in := range w.instances {
		in.screens = b.instance[i].screens
		in.forgot = b.instance[i].forgot
	}
	return true
}

// stays notes who has taken the last step, and reports whether that has left alone the
// memory of the other instances, and of its own if others may see that.
func (w *Engine) stays() bool {
	b := &w.branch
	own := -1
	if id, ok := b.last.Actor(); ok {
		own = w.actors[id].in.index
	}
	for i, in := range w.instances {
		was := &b.instance[i]
		if was.changed {
			continue
		}
		changed := was.after != was.memory || in.source.State() != was.rand || i == own && len(was.hidden)+len(in.hidden) > 0
		if changed && (i != own || w.shared.Len() > 0 || w.sight.common) {
			return false
		}
		if _, asked := in.strategy.(strategies.Viewer); changed && asked && i == 0 {
			return false // which says what is in use, from its memory
		}
		was.gone = was.gone || i == own
		was.changed = changed
	}
	return true
}
