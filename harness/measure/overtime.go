package measure

import (
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
)

// overTimeSlices is into how many slices of one length a run is cut.
const overTimeSlices = 60

// overTime counts decisions by when they were made.
type overTime struct{ out *results.OverTime }

// overTimeOf is empty for a run that is too short to be cut into slices.
func overTimeOf(r *results.Run) *overTime {
	if r.ElapsedNS < overTimeSlices {
		return &overTime{}
	}
	counts := func() []int64 { return make([]int64, overTimeSlices) }
	// Rounded up, so that the last answer lies in the last slice.
	length := (r.ElapsedNS + overTimeSlices - 1) / overTimeSlices
	return &overTime{&results.OverTime{SliceNS: length, Admitted: counts(), Rejected: counts(), Errors: counts()}}
}

func (o *overTime) take(e *oracle.Event) {
	if o.out == nil {
		return
	}
	// An answer may come after the pass is over.
	k := min(max(e.Reply/o.out.SliceNS, 0), overTimeSlices-1)
	switch e.Outcome {
	case oracle.Admitted:
		o.out.Admitted[k]++
	case oracle.Rejected, oracle.RejectedDegraded, oracle.Elsewhere:
		o.out.Rejected[k]++
	case oracle.Failed:
		o.out.Errors[k]++
	}
}
