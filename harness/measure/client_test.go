package measure

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
)

// TestClientsBeside: the same strategies with both kinds of clients in one measurement.
// With pipelines callers share round trips, a single caller has its own, as many commands
// are sent, and what is enforced or leaks stays so.
func TestClientsBeside(t *testing.T) {
	runs := measureReal(t, "incr-expire,incr-expire@autopipeline,check-then-set@autopipeline", "agent-api", "hot-key",
		func(c *Config) {
			c.Workers = 32
			c.Instances = 1
			c.Policy.Limit = 50
			c.Requests = 2000
			c.Duration = 0
		})
	plain := runs["incr-expire"]
	auto := runs["incr-expire@autopipeline"]
	racy := runs["check-then-set@autopipeline"]
	for _, r := range runs {
		if !r.Audit.Valid {
			t.Fatalf("%s: %+v", r.Params.Label, r.Audit)
		}
	}
	if plain.Params.Client != "" || auto.Params.Client != "autopipeline" || plain.Key() == auto.Key() ||
		auto.Strategy != "incr-expire" {
		t.Errorf("the records have the clients %q and %q, the keys %s and %s", plain.Params.Client, auto.Params.Client,
			plain.Key(), auto.Key())
	}
	if plain.Cost.RoundTrips < plain.Cost.Commands || auto.Cost.RoundTrips > auto.Cost.Commands/2 {
		t.Errorf("round trips per decision: %v of %v commands, and with pipelines %v of %v", plain.Cost.RoundTrips,
			plain.Cost.Commands, auto.Cost.RoundTrips, auto.Cost.Commands)
	}
	if d := auto.Cost.Commands / plain.Cost.Commands; d < 0.9 || d > 1.1 {
		t.Errorf("%v commands per decision with pipelines and %v without", auto.Cost.Commands, plain.Cost.Commands)
	}
	if p := auto.Cost.Probe; p == nil || p.Admitted == nil || p.Admitted.RoundTrips != 1 || p.Admitted.Commands != 1 {
		t.Errorf("the probe of one caller is %+v, want one command in one round trip", p)
	}
	if auto.Leak.Trials == 0 || auto.Leak.Units != 0 || racy.Leak.Units == 0 {
		t.Errorf("leaks: %+v of an exact strategy, %+v of a racy one", auto.Leak, racy.Leak)
	}
}

// TestOutageOfPipelines: a server that does not answer for a while is an outage, and no
// call that hangs, although pipelines keep no deadline of a caller.
func TestOutageOfPipelines(t *testing.T) {
	r := measureLonger(t, "incr-expire@autopipeline", "link-hits", "steady", func(c *Config) {
		c.Load = harness.Closed()
		c.DecisionTimeout = 8 * time.Second
		c.Stream.Set("subjects", 3)
		c.Trouble = trouble.MustParse("redis:away@0.4-0.7")
	}, func(r results.Run) bool { return r.Degraded > 0 })["incr-expire@autopipeline"]
	if !r.Audit.Valid || r.Audit.Has(codes.Hung) {
		t.Fatalf("audit %+v", r.Audit)
	}
	if r.Degraded == 0 || r.Leak.Units != 0 {
		t.Errorf("%d decisions without the store, leak %+v: it fails closed", r.Degraded, r.Leak)
	}
}

// TestPipelineTimeout: two timeouts of the client fit into a decision.
func TestPipelineTimeout(t *testing.T) {
	for decision, want := range map[time.Duration]time.Duration{
		time.Second: 500 * time.Millisecond, bounds.DecisionTimeout: 0, time.Hour: 0,
		9 * time.Second: 4500 * time.Millisecond,
	} {
		c := Config{Plan: harness.Plan{Callers: harness.Callers{DecisionTimeout: decision}}}
		if got := c.pipelineTimeout(); got != want {
			t.Errorf("of a decision of %v it is %v, want %v", decision, got, want)
		}
	}
}

// TestReferenceIsPlain: a bare client's loop is that of the plain client, whatever the
// strategies have, so that it is one measure for all of them.
func TestReferenceIsPlain(t *testing.T) {
	r := measureReal(t, "incr-expire@autopipeline", "agent-api", "hot-key", func(c *Config) {
		c.NoReference = false
		c.Requests = 1000
		c.Duration = 0
	})["incr-expire@autopipeline"]
	if r.ReferencePerS <= 0 || bareClient.Client != "" {
		t.Errorf("the loop is %v per second, of the client %q", r.ReferencePerS, bareClient.Client)
	}
	if s := results.Summarise([]results.Run{r}); s[0].Label != "incr-expire@autopipeline" {
		t.Errorf("the label is %s", s[0].Label)
	}
}
