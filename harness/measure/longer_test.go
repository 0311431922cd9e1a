package measure

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/results"
)

// longer measures for a time or a number of requests, and then for twice as long each time
// until met holds: on a busy machine a short run can end before what the test is about has
// happened. The caller judges the last result, whether met holds or not.
func longer[N ~int64, T any](t *testing.T, d N, measure func(N) T, met func(T) bool) (got T) {
	t.Helper()
	const tries = 8
	for try := 1; ; try++ {
		got = measure(d)
		if try == tries || t.Failed() || met(got) {
			return got
		}
		t.Logf("a run of %v was too short, and is repeated with %v", d, 2*d)
		d *= 2
	}
}

// measureLonger is [measureReal] in runs that become longer until met holds for each.
func measureLonger(t *testing.T, list, policy, workload string, change func(*Config),
	met func(results.Run) bool) map[string]results.Run {
	t.Helper()
	return longer(t, 300*time.Millisecond, func(d time.Duration) map[string]results.Run {
		return measureReal(t, list, policy, workload, func(c *Config) {
			change(c)
			c.Duration = d
		})
	}, func(runs map[string]results.Run) bool {
		for _, r := range runs {
			if !met(r) {
				return false
			}
		}
		return true
	})
}

// decided counts the requests that were decided between two shares of a run's time.
func decided(r results.Run, from, to float64) (n int64) {
	if !r.OverTime.Sound() {
		return 0
	}
	slices := float64(len(r.OverTime.Admitted))
	for i := int(from * slices); i < int(to*slices); i++ {
		n += r.OverTime.Admitted[i] + r.OverTime.Rejected[i]
	}
	return n
}
