package prove

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
)

// TestMoment: the first wrong request of a subject is shown with its subject, its moment and what came before it.
func TestMoment(t *testing.T) {
	policy, err := quota.ParsePolicy("2 requests per fixed 1m")
	if err != nil {
		t.Fatal(err)
	}
	epoch := time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)
	take := func(at time.Duration, outcome oracle.Outcome) oracle.Event {
		return oracle.Event{Call: int64(at), Reply: int64(at + time.Millisecond), Units: 1, Subject: 7, Outcome: outcome}
	}
	events := []oracle.Event{
		take(time.Second, oracle.Admitted),
		take(2*time.Second, oracle.Admitted),
		take(3*time.Second, oracle.Rejected),
		take(4*time.Second, oracle.Admitted), // the third of two
		take(5*time.Second, oracle.Admitted),
	}
	config := oracle.Config{Window: policy.Window, Limit: policy.Limit, Epoch: epoch}
	leaks := func(verdict *oracle.Verdict) bool { return verdict.LeakUnits > 0 }
	found := wrongOf(config, events, leaks)
	if found == nil {
		t.Fatal("nothing is wrong")
	}
	const want = `The first is of subject 7 at 2026-03-01 00:00:04.000, after:
           -3s  asks for 1 request: admitted, and so on: 2 times, the last at -2s
           -1s  asks for 1 request: rejected
            0s  asks for 1 request: admitted
`
	if got := found.text(epoch, &policy); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if within := wrongOf(config, events[:3], leaks); within != nil {
		t.Errorf("wrong in a history that is right: %+v", within)
	}
}
