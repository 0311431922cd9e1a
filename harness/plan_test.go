package harness

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/workloads"
)

func TestParseOutage(t *testing.T) {
	o, err := ParseOutage("redis:0.25-0.5")
	if err != nil || o.Store != "redis" || o.From != 0.25 || o.To != 0.5 || o.String() != "redis:0.25-0.5" {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range []string{"", "redis", "redis:1", "redis:0.5-0.2", "redis:-1-1", "redis:0.2-1.2", "redis:a-b", "redis:NaN-1"} {
		if _, err := ParseOutage(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// A run whose rate is not known in advance must not set up as many subjects as the
// fastest strategy could use: in a simulation that takes longer than the run.
func TestSizeWithoutRate(t *testing.T) {
	meta, err := workloads.Lookup("hot-key")
	if err != nil {
		t.Fatal(err)
	}
	p := Plan{Workload: meta, Policy: quota.Policy{Name: "size", Limit: 10, Unit: "units"}, Duration: 10 * time.Second}
	stream, _, err := p.NewStream(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		perSecond float64
		least     int
		most      int
	}{{0, 1, 200_000}, {1000, 500, 2_000}, {1e9, 2_000_000, 2_000_000}} {
		requests, subjects := p.Size(stream, c.perSecond)
		if subjects < c.least || subjects > c.most || requests < int64(subjects) {
			t.Errorf("at %g requests per second: %d requests of %d subjects, want %d to %d", c.perSecond, requests, subjects, c.least, c.most)
		}
	}
}
