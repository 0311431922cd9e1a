package sim_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/strategies"
)

// shortened is the part of a preset in which something happens that the others lack.
var shortened = map[string]func(*sim.Config){
	"adr-005-day": func(c *sim.Config) {
		c.Stream.Set("subjects", 2_000)
		c.Requests = 5_000
	},
	"adr-008-month": func(c *sim.Config) {
		c.Start = time.Date(2026, time.February, 28, 23, 30, 0, 0, time.UTC)
		c.Duration = time.Hour
	},
	"adr-008-month-end": func(c *sim.Config) {
		c.Start = time.Date(2026, time.February, 28, 23, 59, 45, 0, time.UTC)
		c.Duration = 30 * time.Second
	},
}

// TestTracesStay: a change that is to make a simulation faster, and nothing else, leaves the hash of all that happens
// as it was, for every preset and every strategy that can be simulated; and for further workloads, policies and an
// outage. If a strategy, a model or the trace itself is meant to change, the file is written anew:
//
//	go test ./harness/sim -run TestTracesStay -update
func TestTracesStay(t *testing.T) {
	testenv.Long(t)
	const file = "testdata/traces.txt"
	var b strings.Builder
	b.WriteString("# preset or workload, strategy, hash of the trace, requests admitted, units leaked, keys at the end\n")
	simulate := func(name string, limit int64, cfg sim.Config) { // which is low, so that some are rejected in that time
		cfg.Policy.Limit = limit
		report := run(t, cfg)
		for i := range report.Runs {
			r := &report.Runs[i]
			fmt.Fprintf(&b, "%s %s %s %d %d %d\n", name, r.Params.Label, r.Trace, r.Admitted, r.Leak.Units, r.Cost.KeysAtEnd)
		}
	}
	for _, preset := range sim.Presets() {
		cfg := sim.Config{}
		if err := preset.Set(&cfg); err != nil {
			t.Fatal(err)
		}
		var err error
		cfg.Strategies, err = strategies.Parse("all")
		if err != nil {
			t.Fatal(err)
		}
		shorten := shortened[preset.Name]
		if shorten == nil {
			t.Fatalf("the preset %s has no part here that is simulated", preset.Name)
		}
		shorten(&cfg)
		simulate(preset.Name, 5, cfg)
	}
	for _, c := range []struct {
		name, policy, workload string
		limit                  int64
		set                    func(*sim.Config)
	}{
		{"callers", "agent-api", "hot-key", 5, func(c *sim.Config) {
			c.Requests = 2_000
			c.Every = time.Millisecond
		}},
		{"uploads", "tenant-uploads", "uploads", 500, func(c *sim.Config) { c.Requests = 2_000 }},
		{"rolling", "50 requests per rolling 1s", "steady", 5, func(c *sim.Config) {
			c.Load = harness.OpenAt(500)
			c.Duration = 5 * time.Second
			c.Stream.Set("subjects", 50)
		}},
		{"bucket", "50 requests refilling 10 per 1s", "steady", 5, func(c *sim.Config) {
			c.Load = harness.OpenAt(500)
			c.Duration = 5 * time.Second
			c.Stream.Set("subjects", 50)
		}},
		{"outage", "agent-api", "steady", 5, func(c *sim.Config) {
			c.Load = harness.OpenAt(500)
			c.Duration = 5 * time.Second
			c.Cold = true
			c.Stream.Set("subjects", 50)
			c.Trouble = trouble.MustParse("redis:away@0.3-0.5")
		}},
	} {
		cfg := config(t, "all", c.policy, c.workload)
		c.set(&cfg)
		simulate(c.name, c.limit, cfg)
	}
	if testenv.Update() {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(string(kept), "\n")
	got := strings.Split(b.String(), "\n")
	for i := range max(len(want), len(got)) {
		line := func(list []string) string {
			if i < len(list) {
				return list[i]
			}
			return "nothing"
		}
		if line(want) != line(got) {
			t.Errorf("line %d of %s:\n got  %s\n want %s", i+1, file, line(got), line(want))
		}
	}
}
