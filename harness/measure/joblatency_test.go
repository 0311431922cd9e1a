package measure

import (
	"testing"

	"github.com/quotabench/quotabench/oracle"
)

// TestPlantedJobLatency: of a pass of 1 ms, requests of 70 ns overlap three rounds of a job, of which two ran at
// once, and requests of 5 ns do not. Rounds outside of the pass count nowhere.
func TestPlantedJobLatency(t *testing.T) {
	const epoch, length = 5_000_000, 1_000_000
	rounds := &roundTimes{}
	for _, r := range [][2]int64{{500_000, 500_100}, {1_000, 2_000}, {1_500, 3_000}, {-900, -800}, {length + 1, length + 9}} {
		rounds.add(epoch+r[0], epoch+r[1])
	}
	j := newJobLatency("rebuild", rounds, epoch, length)
	var events []oracle.Event
	add := func(call, took int64) { events = append(events, oracle.Event{Call: call, Reply: call + took}) }
	for _, call := range []int64{930, 2_500, 3_000, 499_930, 500_100} {
		add(call, 70) // the first and the fourth end as a round begins, the third and the fifth begin as it ends
	}
	add(400, 2_700) // around two of them
	for _, call := range []int64{0, 994, 3_001, 499_994, 500_101, 900_000} {
		add(call, 5)
	}
	refund := events[0]
	refund.Kind = oracle.Refund
	eachTake(j.take)(append(events, refund))
	got := j.finish()
	if got.Job != "rebuild" || got.Rounds != 3 || got.LongestNS != 1500 {
		t.Errorf("%d rounds of %s, the longest of %d ns", got.Rounds, got.Job, got.LongestNS)
	}
	if d := got.During; d.Samples != 6 || d.P50 != 70 || d.Max < 2699 || d.Max > 2702 {
		t.Errorf("during rounds: %+v", d)
	}
	if d := got.Others; d.Samples != 6 || d.Max != 5 {
		t.Errorf("others: %+v", d)
	}
	if newJobLatency("rebuild", &roundTimes{}, epoch, length) != nil {
		t.Error("a job that did not run has figures")
	}
}
