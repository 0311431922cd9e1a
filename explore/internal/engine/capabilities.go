package engine

import (
	"time"

	"github.com/quotabench/quotabench/internal/virtual/sched"
)

// Forker is an [Engine] that can be had several times, each for a goroutine of its own.
type Forker interface {
	// Fork makes another engine for the same strategy and setup, with stores of its own
	// and the same witness. It is called on the goroutine that is to use the new engine.
	// Its steps are counted in beat, if that is not nil.
	Fork(beat *sched.Beat) (Engine, error)
}

// Local is an [Engine] in this process, whose clock can be moved to any moment, and whose store has scripts loaded from
// one run to the next.
type Local interface {
	// Pass lets time pass at rest. Jobs that are due then have not run.
	Pass(duration time.Duration) error
	// Keep has every run from now on begin with the scripts that are loaded now.
	Keep()
}

// Brancher is an [Engine] that need not work out again what stands in a trail, that can take several steps from one
// state in one run, and that can tell footprints.
type Brancher interface {
	// Trail stands for what the actors remember.
	Trail() []Digest
	// Branch begins a run and takes all steps of a path. trail is what Trail was before
	// the last of them. Again may follow if several is set.
	Branch(path []Choice, trail []Digest, several bool) error
	// Again puts back what was before the last step, and takes another one from there. It
	// must come after [Engine.State] has told what the last step led to. ok is false if
	// it did nothing, since what the step needs cannot be put back.
	Again(choice Choice) (ok bool, err error)
	// Sound reports, after Again and State, whether that step led to what it would have
	// led to in a run of its own, as far as can be told. If it is false it may have.
	Sound() bool
	// Onward takes a further step after Branch, which may not be followed by Again then. It must come after
	// [Engine.State] has told what the last step led to. ok is false if it did nothing, since the search may have
	// changed something by looking.
	Onward(choice Choice) (ok bool, err error)
	// Trace has footprints kept from now on, or no longer.
	Trace(on bool)
	// Footprint is that of the last step, which was the last of Branch, Again or Onward. It must
	// come after [Engine.State] has told what that led to. Footprints may be compared if
	// both steps were taken from the same state.
	Footprint() Footprint
}

// Footprint is what a step has read and changed, as sets of whatever an engine tells apart.
// Sets may seem to hold more than they do.
type Footprint struct {
	Read, Written [3]uint64
	// Whole is set for a step that depends on every other one.
	Whole bool
}

// Apart reports whether neither step has changed what the other one has read or changed.
// From a state in which both were taken, they lead to the same state in either order, each
// with the footprint that it has in that state.
func (f *Footprint) Apart(footprint *Footprint) bool {
	if f.Whole || footprint.Whole {
		return false
	}
	for i := range f.Read {
		if f.Written[i]&(footprint.Read[i]|footprint.Written[i]) != 0 || f.Read[i]&footprint.Written[i] != 0 {
			return false
		}
	}
	return true
}
