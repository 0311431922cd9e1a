package inproc

import (
	"slices"
	"strconv"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/strategies"
)

// What a footprint tells apart in its first number: these, the instances and the actors.
// The other two hold keys and locks.
const (
	footTruth   = 1 << iota // what callers were told, and when
	footFaults              // how many have happened
	footScripts             // that the store has loaded
	footLocks               // mutexes and events of which it is not known which they are
	footTables              // of the model
	footSynced              // which job has run

	footInstance, footInstances = 8, 16
	footActor, footActors       = footInstance + footInstances, 64 - footInstance - footInstances
)

// memoryOf is what an instance remembers, with its random numbers.
func memoryOf(instance int) uint64 { return 1 << (footInstance + instance%footInstances) }

// actorOf is what an actor knows.
func actorOf(id int) uint64 { return 1 << (footActor + id%footActors) }

// footprint is what is noted of a step.
type footprint struct {
	on bool
	// due is set if the next step is one of which something is noted, and noted if
	// the last one was.
	due, noted bool
	of         engine.Footprint
	store      fakeredis.Trace
	// what was so before the step
	memory []engine.Digest
	rand   []uint64
	marks  sched.Marks
	truth  engine.Digest
	shared int
	// synced is set if it matters that a periodic job has run.
	synced bool
	// own is what the instances remembered before the step without the tables of a model,
	// if there are any, and tables is set if the step has looked at these.
	own    []engine.Digest
	tables bool
	// after is what the instances remember after it. If the first one was then asked what
	// is in use, which may change its memory and is no part of the step, asked is set and
	// unasked is what it remembered before that.
	after   []engine.Digest
	asked   bool
	unasked engine.Digest
	// actor is the instance of whoever took the step, -1 for none.
	actor int
}

// Trace implements [engine.Brancher].
func (w *Engine) Trace(on bool) { w.foot.on = on }

// footBefore notes what is so before a step.
func (w *Engine) footBefore() {
	f := &w.foot
	f.noted = f.due
	f.due = false
	f.synced = false
	f.asked = false
	if !f.noted {
		return
	}
	f.of = engine.Footprint{}
	f.store = fakeredis.Trace{}
	f.tables = false
	f.memory = f.memory[:0]
	f.rand = f.rand[:0]
	f.after = f.after[:0]
	f.own = f.own[:0]
	for i, in := range w.instances {
		if w.branch.on {
			f.memory = append(f.memory, w.branch.instance[i].memory)
		} else {
			f.memory = append(f.memory, w.remembers(in))
		}
		f.rand = append(f.rand, in.source.State())
		if w.hasTables() {
			own, _ := w.hash(in, w.shared)
			f.own = append(f.own, own)
		}
	}
	f.marks, f.truth, f.shared = w.s.Marks(), w.Run.Truth.Order(), w.shared.Len()
	f.of.Whole = !w.store.trace(&f.store)
}

// footAfter notes what a step has changed, except the memory of instances.
func (w *Engine) footAfter(c engine.Choice) {
	f := &w.foot
	if !f.noted {
		return
	}
	w.store.trace(nil)
	locks, woken, made := w.s.Between(f.marks)
	f.of.Whole = f.of.Whole || irrevocable(c) || made || w.shared.Len() != f.shared
	for _, in := range w.instances {
		f.of.Whole = f.of.Whole || in.forgot // which is said of the last step alone
	}
	read := &f.of.Read[0]
	written := &f.of.Written[0]
	f.actor = -1
	if id, ok := c.Actor(); ok {
		m := w.actors[id]
		f.actor = m.in.index
		*read |= memoryOf(m.in.index)
		*written |= actorOf(id)
	}
	for _, id := range woken { // of which it makes no difference how often
		*read |= actorOf(id)
	}
	anew := slices.ContainsFunc(w.instances, func(in *instance) bool { return in.lives > 0 })
	for _, n := range locks {
		if *read |= footLocks; n == 0 || anew { // numbers depend on which instance began anew first
			*written |= footLocks
		} else {
			f.store.Wrote("\x00lock " + strconv.Itoa(n))
		}
	}
	if c.Kind != engine.StepActor && c.Kind != engine.PromptJob {
		*written |= footFaults
	}
	for _, x := range [...]struct {
		so  bool
		in  *uint64
		bit uint64
	}{
		{w.Run.Truth.Order() != f.truth, written, footTruth},
		{f.tables, read, footTables},
		{f.synced, written, footSynced},
		{f.store.Scripts, read, footScripts},
		{f.store.Loaded, written, footScripts},
	} {
		if x.so {
			*x.in |= x.bit
		}
	}
	copy(f.of.Read[1:], f.store.Read[:])
	copy(f.of.Written[1:], f.store.Written[:])
}

// footAsks is called before the first instance is asked what is in use.
func (w *Engine) footAsks() {
	if f := &w.foot; f.noted && !f.asked {
		f.asked, f.unasked = true, w.remembers(w.instances[0])
	}
}

// Footprint implements [engine.Brancher].
func (w *Engine) Footprint() engine.Footprint {
	f := &w.foot
	if !f.noted || len(f.after) != len(f.memory) {
		return engine.Footprint{Whole: true}
	}
	of := f.of
	for i, in := range w.instances {
		changed := f.after[i] != f.memory[i]
		if changed && len(f.own) > 0 && (i > 0 || !f.asked) {
			// The tables were changed. If none of their instances shows that, all
			// of these have changed themselves.
			if own, _ := w.hash(in, w.shared); own == f.own[i] {
				of.Written[0] |= footTables
				changed = false
			}
		}
		if changed || in.source.State() != f.rand[i] || i == f.actor && len(in.hidden) > 0 {
			of.Written[0] |= memoryOf(i)
		}
	}
	of.Whole = of.Whole || w.sight.common && f.actor >= 0
	return of
}

// hasTables reports whether there is memory that statements of a model alone look at.
func (w *Engine) hasTables() bool {
	return w.shared.Len() > 0 && w.sel.NeedsStore(strategies.NeedSource)
}

// jobSynced notes that a periodic job has run. If all have one period, it makes no
// difference which.
func (w *Engine) jobSynced(every time.Duration) {
	w.synced = every
	for _, m := range w.actors {
		if j := m.Job(); j != nil && j.Every() > 0 && j.Every() != every {
			w.foot.synced = true
		}
	}
}
