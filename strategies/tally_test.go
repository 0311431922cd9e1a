package strategies_test

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// set is a clock that shows one moment.
type set struct {
	quota.Clock
	at time.Time
}

func (c set) Now() time.Time { return c.at }

// TestTimesOfAClockThatIsSetBack: a wait counts as what the clock shows, and as nothing if the clock was set back
// meanwhile.
func TestTimesOfAClockThatIsSetBack(t *testing.T) {
	var waited strategies.Tally
	begun := clock.Wall{}.Now()
	for _, d := range []time.Duration{3 * time.Second, -2 * time.Second, time.Second} {
		waited.Since(begun, set{at: begun.Add(d)})
	}
	if got := time.Duration(waited.Load()); got != 4*time.Second {
		t.Errorf("it adds up to %v, want 4s", got)
	}
}
