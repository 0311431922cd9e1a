package engine

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
func (f *Footprint) Apart(g *Footprint) bool {
	if f.Whole || g.Whole {
		return false
	}
	for i := range f.Read {
		if f.Written[i]&(g.Read[i]|g.Written[i]) != 0 || f.Read[i]&g.Written[i] != 0 {
			return false
		}
	}
	return true
}

// Tracer is an [Engine] that can tell footprints.
type Tracer interface {
	// Trace has footprints kept from now on, or no longer.
	Trace(on bool)
	// Footprint is that of the last step, which was the last of [Engine.Retrace], of
	// [Brancher.Branch] or of [Brancher.Again]. It must come after [Engine.State] has told
	// what that led to. Footprints may be compared if both steps were taken from the
	// same state.
	Footprint() Footprint
}
