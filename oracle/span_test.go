package oracle

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// TestMaxSpan: the most units within a length of time are those that somebody counts who tries all of them.
func TestMaxSpan(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	for range 200 {
		cfg := Config{Window: quota.Window{Kind: quota.Fixed, Length: time.Minute}, Limit: 5, Epoch: time.Unix(0, 0), Span: time.Duration(1 + rng.IntN(40))}
		var events []Event
		for range 1 + rng.IntN(30) {
			call := rng.Int64N(200)
			events = append(events, Event{
				Subject: uint32(rng.IntN(2)), Call: call, Reply: call + rng.Int64N(20), Units: 1 + rng.Int64N(3), Outcome: Outcome(rng.IntN(3)),
			})
		}
		longest, want := map[uint32]int64{}, int64(0)
		for _, e := range events {
			longest[e.Subject] = max(longest[e.Subject], e.Reply-e.Call)
		}
		for subject := range uint32(2) {
			for from := int64(-60); from < 220; from++ {
				units := int64(0)
				for _, e := range events {
					if e.Subject == subject && e.Outcome == Admitted && e.Reply >= from && e.Call <= from+int64(cfg.Span)+longest[subject] {
						units += e.Units
					}
				}
				want = max(want, units)
			}
		}
		if got := Judge(cfg, events).MaxSpan; got != want {
			t.Fatalf("%+v: %d units within %d ns, want %d", events, got, cfg.Span, want)
		}
		cfg.Span = 0
		if got := Judge(cfg, events).MaxSpan; got != 0 {
			t.Fatalf("%d units within no length of time", got)
		}
	}
}
