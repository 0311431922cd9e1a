package oracle

import (
	"testing"

	"github.com/quotabench/quotabench/quota"
)

// expected is what [Expect] says of the only subject of a standing policy.
func expected(events []Event, at Reading, counts quota.Counting, initial int64) (units, surplus Interval, err error) {
	want, _, err := Expect(Config{Initial: func(uint32) int64 { return initial }}, 0, events, at, counts)
	return want.Units, want.Surplus, err
}

func TestPlantedDrift(t *testing.T) {
	var history []Event
	for i := range int64(50) {
		e := Event{Call: 10 * i, Reply: 10*i + 5, Units: 2}
		if i%10 == 0 {
			e.Outcome = Rejected
		}
		history = append(history, e)
	}
	rest := Reading{Call: 1000, Reply: 1005}
	got, _, err := expected(history, rest, quota.CountsAdmitted, 4)
	if err != nil || got != (Interval{94, 94}) {
		t.Fatalf("at rest %+v, %v", got, err)
	}
	for value, want := range map[int64]int64{94: 0, 91: -3, 99: 5} {
		if d := got.Distance(value); d != want {
			t.Errorf("a reading of %d drifts by %d, not %d", value, d, want)
		}
	}
	got, surplus, _ := expected(history, rest, quota.CountsAttempts, 4)
	if got != (Interval{104, 104}) || surplus != (Interval{10, 10}) {
		t.Errorf("attempts: %+v with a surplus of %+v", got, surplus)
	}
	history[10].Outcome = RejectedDegraded
	if got, surplus, _ = expected(history, rest, quota.CountsAttempts, 4); got != (Interval{102, 104}) || surplus != (Interval{8, 10}) {
		t.Errorf("attempts, one not seen: %+v with a surplus of %+v", got, surplus)
	}
	if got, _, _ = expected(history, rest, quota.CountsAdmitted, 4); got != (Interval{94, 96}) {
		t.Errorf("a degraded rejection may be counted: %+v", got)
	}
	if got, _, err = expected(history, rest, quota.CountsNothing, 4); err != nil || got.Distance(-1e15) != 0 || got.Width() <= 0 {
		t.Errorf("a counter of nothing: %+v, %v", got, err)
	}
	if _, _, err = expected(history, rest, "leases", 4); err == nil {
		t.Error("an unknown way of counting is judged")
	}
}
