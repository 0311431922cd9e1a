package measure

import (
	"testing"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
)

// TestCounterOfABusySubject: a counter that somebody else overwrites is noticed although a
// decision about its subject is in flight all the time, and nothing else is.
func TestCounterOfABusySubject(t *testing.T) {
	const n = 100
	var events []oracle.Event
	for i := range int64(n) { // each begins before the last one ends
		events = append(events, oracle.Event{Call: 10 * i, Reply: 10*i + 15, Units: 1, Kind: oracle.Take,
			Outcome: oracle.Admitted})
	}
	d := &drive{policy: &quota.Policy{Window: quota.Window{Kind: quota.Standing}}}
	read := func(at, units int64) harness.Reading { return harness.Reading{Call: at, Reply: at + 1, Units: units} }
	for name, c := range map[string]struct {
		readings []harness.Reading
		jumps    int
	}{
		"as decided":   {[]harness.Reading{read(102, 11), read(302, 31), read(502, 51)}, 0},
		"for a moment": {[]harness.Reading{read(102, 11), read(302, 31), read(502, 50)}, 0},
		"overwritten":  {[]harness.Reading{read(102, 11), read(302, -99_999), read(502, -99_979)}, 1},
		"set to much":  {[]harness.Reading{read(102, 11), read(302, 2_000_000_000)}, 1},
	} {
		if got := unexplained(d, events, c.readings, n); len(got) != c.jumps {
			t.Errorf("%s: %v, want %d", name, got, c.jumps)
		}
	}
}
