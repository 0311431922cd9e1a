package engine

import "github.com/quotabench/quotabench/internal/sched"

// Forker is an [Engine] that can be had several times, each for a goroutine of its own.
type Forker interface {
	// Fork makes another engine for the same strategy and setup, with stores of its own
	// and the same witness. It is called on the goroutine that is to use the new engine.
	// Its steps are counted in beat, where that is not nil.
	Fork(beat *sched.Beat) (Engine, error)
}

// Brancher is an [Engine] that can take several steps from one state in one run.
type Brancher interface {
	// Branch is [Engine.Retrace]; Again may follow it.
	Branch(path []Choice, trail []Digest) error
	// Again puts back what was before the last step, and takes another one from there. It
	// must come after [Engine.State] has told what the last step led to. ok is false if
	// it did nothing, since what the step needs cannot be put back.
	Again(c Choice) (ok bool, err error)
	// Sound reports, after Again and State, whether that step led to what it would have
	// led to in a run of its own, as far as can be told. Where it is false it may have.
	Sound() bool
}

// Keeper is an [Engine] over a store that has scripts loaded from one run to the next.
type Keeper interface {
	// Keep has every run from now on begin with the scripts that are loaded now.
	Keep()
}
