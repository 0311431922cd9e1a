package measure

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/strategies"
)

// TestPlantedOverwrite: somebody else adds 10 to the counter in a real Redis in mid-run. The drift at rest is exactly
// that, and no clause is judged. A strategy without a Redis takes no part.
func TestPlantedOverwrite(t *testing.T) {
	server := storetest.Redis(t)
	all, err := strategies.Parse("incr-expire,pg-check")
	if err != nil {
		t.Fatal(err)
	}
	r := measureOne(t, &planted{}, "steady", func(c *Config) {
		c.Strategies, c.Stores, c.Workers = all[:1], setOf(t, server), 1
		c.Requests, c.Duration, c.base, c.Load = 0, time.Second, nil, harness.OpenAt(200)
		c.Policy.Limit = 100_000
		c.Stream.Set("subjects", 1)
		c.Trouble = trouble.MustParse("keys/*:add=10@0.5")
		if _, skipped := c.Split(); len(skipped) > 0 {
			t.Errorf("it takes no part: %v", skipped)
		}
		other := *c
		other.Strategies = all[1:]
		if taking, _ := other.Split(); len(taking) > 0 {
			t.Errorf("%v has counters in Redis", taking)
		}
	})
	if !r.Audit.Valid || !r.Audit.Has("overwritten") || r.Overwritten < 1 || r.Drift == nil || r.Drift.Units != 10 {
		t.Errorf("%d values changed, drift %+v; audit %+v", r.Overwritten, r.Drift, r.Audit)
	}
	for _, c := range r.Guarantee {
		if c.Verdict != "undecided" {
			t.Errorf("a clause is %s", c.Verdict)
		}
	}
}
