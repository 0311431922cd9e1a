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
	footprint  engine.Footprint
	store      fakeredis.Touched
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
	footprint := &w.foot
	footprint.noted = footprint.due
	footprint.due = false
	footprint.synced = false
	footprint.asked = false
	if !footprint.noted {
		return
	}
	footprint.footprint = engine.Footprint{}
	footprint.store = fakeredis.Touched{}
	footprint.tables = false
	footprint.memory = footprint.memory[:0]
	footprint.rand = footprint.rand[:0]
	footprint.after = footprint.after[:0]
	footprint.own = footprint.own[:0]
	for i, instance := range w.instances {
		if w.branch.on {
			footprint.memory = append(footprint.memory, w.branch.instance[i].memory)
		} else {
			footprint.memory = append(footprint.memory, w.remembers(instance))
		}
		footprint.rand = append(footprint.rand, instance.source.State())
		if w.hasTables() {
			own, _ := w.hash(instance, w.shared)
			footprint.own = append(footprint.own, own)
		}
	}
	footprint.marks, footprint.truth, footprint.shared = w.scheduler.Marks(), w.Run.Truth.Order(), w.shared.Len()
	footprint.footprint.Whole = !w.store.trace(&footprint.store)
}

// footAfter notes what a step has changed, except the memory of instances.
func (w *Engine) footAfter(choice engine.Choice) {
	footprint := &w.foot
	if !footprint.noted {
		return
	}
	w.store.trace(nil)
	locks, woken, made := w.scheduler.Between(footprint.marks)
	footprint.footprint.Whole = footprint.footprint.Whole || irrevocable(choice) || made ||
		w.shared.Len() != footprint.shared
	for _, instance := range w.instances {
		footprint.footprint.Whole = footprint.footprint.Whole || instance.forgot // which is said of the last step alone
	}
	read := &footprint.footprint.Read[0]
	written := &footprint.footprint.Written[0]
	footprint.actor = -1
	if id, ok := choice.Actor(); ok {
		member := w.actors[id]
		footprint.actor = member.instance.index
		*read |= memoryOf(member.instance.index)
		*written |= actorOf(id)
	}
	for _, id := range woken { // of which it makes no difference how often
		*read |= actorOf(id)
	}
	w.footLocked(locks)
	if choice.Kind != engine.StepActor && choice.Kind != engine.PromptJob {
		*written |= footFaults
	}
	if w.Run.Truth.Order() != footprint.truth {
		*written |= footTruth
	}
	footprint.common()
	copy(footprint.footprint.Read[1:], footprint.store.Read[:])
	copy(footprint.footprint.Written[1:], footprint.store.Written[:])
}

// footLocked notes the locks and events that a step has used.
func (w *Engine) footLocked(locks []int) {
	footprint := &w.foot
	renewed := slices.ContainsFunc(w.instances, func(in *instance) bool { return in.lives > 0 })
	for _, number := range locks {
		footprint.footprint.Read[0] |= footLocks
		if number == 0 || renewed { // numbers depend on which instance began anew first
			footprint.footprint.Written[0] |= footLocks
		} else {
			footprint.store.Wrote("\x00lock " + strconv.Itoa(number))
		}
	}
}

// common notes the tables, jobs and scripts that all instances have in common.
func (f *footprint) common() {
	read := &f.footprint.Read[0]
	written := &f.footprint.Written[0]
	if f.tables {
		*read |= footTables
	}
	if f.synced {
		*written |= footSynced
	}
	if f.store.Scripts {
		*read |= footScripts
	}
	if f.store.Loaded {
		*written |= footScripts
	}
}

// footAsks is called before the first instance is asked what is in use.
func (w *Engine) footAsks() {
	if footprint := &w.foot; footprint.noted && !footprint.asked {
		footprint.asked, footprint.unasked = true, w.remembers(w.instances[0])
	}
}

// Footprint implements [engine.Brancher].
func (w *Engine) Footprint() engine.Footprint {
	footprint := &w.foot
	if !footprint.noted || len(footprint.after) != len(footprint.memory) {
		return engine.Footprint{Whole: true}
	}
	of := footprint.footprint
	for i, instance := range w.instances {
		changed := footprint.after[i] != footprint.memory[i]
		if changed && len(footprint.own) > 0 && (i > 0 || !footprint.asked) {
			// The tables were changed. If none of their instances shows that, all
			// of these have changed themselves.
			if own, _ := w.hash(instance, w.shared); own == footprint.own[i] {
				of.Written[0] |= footTables
				changed = false
			}
		}
		if changed || instance.source.State() != footprint.rand[i] || i == footprint.actor && len(instance.hidden) > 0 {
			of.Written[0] |= memoryOf(i)
		}
	}
	of.Whole = of.Whole || w.sight.common && footprint.actor >= 0
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
	for _, member := range w.actors {
		if j := member.Job(); j != nil && j.Every() > 0 && j.Every() != every {
			w.foot.synced = true
		}
	}
}
