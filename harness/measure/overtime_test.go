package measure

import (
	"slices"
	"testing"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
)

// TestOverTime plants amounts in known slices, and requires them back.
func TestOverTime(t *testing.T) {
	const slice = 1_000
	r := results.Run{ElapsedNS: slice*overTimeSlices - 1}
	o := overTimeOf(&r)
	var events []oracle.Event
	plant := func(n int, at int64, kind oracle.Kind, out oracle.Outcome) {
		for range n {
			events = append(events, oracle.Event{Call: at - 1, Reply: at, Kind: kind, Outcome: out})
		}
	}
	plant(3, 0, oracle.Take, oracle.Admitted)
	plant(5, slice-1, oracle.Take, oracle.Rejected)
	plant(7, slice, oracle.Take, oracle.RejectedDegraded)
	plant(11, 30*slice, oracle.Take, oracle.Failed)
	plant(13, 30*slice, oracle.Take, oracle.Admitted)
	plant(17, 30*slice, oracle.Take, oracle.Short) // no request of its own
	plant(19, 30*slice, oracle.Commit, oracle.Admitted)
	plant(23, 99*slice, oracle.Take, oracle.Admitted) // after the end
	eachTake(o.take)(events[:10])
	eachTake(o.take)(events[10:])
	want := func(name string, got []int64, planted map[int]int64) {
		all := make([]int64, overTimeSlices)
		for k, n := range planted {
			all[k] = n
		}
		if !slices.Equal(got, all) {
			t.Errorf("%s: %v, want %v", name, got, planted)
		}
	}
	if o.out.SliceNS != slice || !o.out.Sound() {
		t.Errorf("slices of %d", o.out.SliceNS)
	}
	want("admitted", o.out.Admitted, map[int]int64{0: 3, 30: 13, 59: 23})
	want("rejected", o.out.Rejected, map[int]int64{0: 5, 1: 7})
	want("errors", o.out.Errors, map[int]int64{30: 11})
	if got := o.out.DecisionsPerS(0); got != 8e6 {
		t.Errorf("%g decisions per second in a slice of a microsecond with 8", got)
	}
	short := overTimeOf(&results.Run{ElapsedNS: 5})
	eachTake(short.take)(events)
	if short.out.Sound() {
		t.Error("a run of 5 ns was cut into slices")
	}
}
