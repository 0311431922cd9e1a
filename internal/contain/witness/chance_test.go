package witness_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/contain/witness"
)

// One of many random numbers looks like the present, and it may be one of the first. Code that sends the clock's time does so all the time.
func TestRandomNumbersAreNoClock(t *testing.T) {
	now := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	for _, clock := range []bool{false, true} {
		w := witness.New(witness.Config{Real: now, Virtual: now.AddDate(-5, 0, 0)})
		r := rand.New(rand.NewPCG(1, 2))
		for i := range 50_000 {
			n := r.Uint64()
			if i == 3 || i == 100 || clock && i%4 == 0 {
				n = uint64(now.UnixNano())
			}
			w.Command(t.Context(), "zadd", []any{"zadd", "k", 1, n})
		}
		if w.Noted(witness.WallClock) != clock {
			t.Errorf("the clock is sent: %t, noted: %t", clock, !clock)
		}
	}
}
