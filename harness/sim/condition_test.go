package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
)

// TestNetwork: what is planted comes back: latency in every decision, requests without an answer, and counters that are
// too high by what callers were not told.
func TestNetwork(t *testing.T) {
	cfg := config(t, "incr-expire-atomic", "agent-api", "steady")
	cfg.Policy.Limit, cfg.Load, cfg.Duration, cfg.Instances = 1_000_000, harness.OpenAt(500), 4*time.Second, 2
	cfg.Stream.Set("subjects", 5)
	bare := run(t, cfg).Runs[0]

	cfg.Trouble = trouble.MustParse("redis:latency=20ms,jitter=5ms")
	r := run(t, cfg).Runs[0]
	valid(t, &r)
	if added := r.Service.P50 - bare.Service.P50; added < int64(19*time.Millisecond) ||
		added > int64(21*time.Millisecond) ||
		r.Service.Max-r.Service.P50 < int64(4*time.Millisecond) {
		t.Errorf("p50 is %v more, of %+v", time.Duration(added), r.Service)
	}
	if len(r.Outages) > 0 {
		t.Errorf("latency takes no store away: %+v", r.Outages)
	}

	cfg.Trouble = trouble.MustParse("redis/1:loss=0.2,reply-loss=0.2@0.25-0.75")
	report := run(t, cfg)
	r = report.Runs[0]
	valid(t, &r)
	lost := r.LostRequests + r.LostReplies
	if r.LostRequests < 50 || r.LostReplies < 30 || lost > 500 || r.Degraded != lost || r.Drift.Tiers[0].Total != 0 {
		t.Errorf("%d and %d lost, %d degraded, %+v", r.LostRequests, r.LostReplies, r.Degraded, r.Drift)
	}
	want := results.Span{Store: "redis", Network: cfg.Trouble[0].String(), FromNS: 1e9, ToNS: 3e9}
	if s := report.Series[0].Outages; len(s) != 1 || s[0] != want {
		t.Errorf("%+v", s)
	}
	if o := r.Outages; len(o) != 1 || o[0].Rejected < lost-5 {
		t.Errorf("%+v", o)
	}
	again := run(t, cfg).Runs[0]
	if again.LostRequests != r.LostRequests || again.LostReplies != r.LostReplies {
		t.Errorf("another run of the same seed lost %d and %d", again.LostRequests, again.LostReplies)
	}
}

// TestTroubleRefused: virtual time cannot have all that a measured run can.
func TestTroubleRefused(t *testing.T) {
	cfg := config(t, "incr-expire", "agent-api", "steady")
	cfg.Instances = 2
	for text, part := range map[string]string{
		"redis/2:loss=1": "instances are 0 to 1", "etcd:loss=1": "stores redis and postgres", "redis:cut": "loss=1",
		"redis:bandwidth=1kB": "no bytes",
		"etcd:away":           "stores redis and postgres", "redis:stopped@0.1-0.2": "no server that can be stopped",
		"postgres:empty@0.1-0.2": "give postgres:away@0.1-0.2", "postgres:failover@0.1-0.2": "give postgres:away@0.1-0.2",
		"instance/2:clock=1s": "instances are 0 to 1", "instances:paused=2h@0.5": "give instances:paused=30s@0.5",
	} {
		c := cfg
		c.Trouble = trouble.MustParse(text)
		if err := c.Complete(); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestLeakByLatency: the longer a racy limiter's round trip, the more requests decide by the same reading; an atomic
// one leaks nothing at any.
func TestLeakByLatency(t *testing.T) {
	testenv.Sequential(t)
	cfg := config(t, "check-then-set,incr-expire-atomic", "agent-api", "hot-key")
	cfg.Policy.Limit = 20
	cfg.Load = harness.OpenAt(400)
	cfg.Duration = 5 * time.Second
	before := 0.0
	// with which all of the twice as much that is asked for gets through
	for _, latency := range []string{"0s", "1ms", "5ms"} {
		cfg.Trouble = trouble.MustParse("redis:latency=" + latency)
		runs := run(t, cfg).Runs
		leak := runs[0].Leak.PctOfLimit
		if leak < before+1 || runs[1].Leak.Possible > 0 || runs[1].Leak.Trials == 0 {
			t.Errorf("at %s: %.1f %% of the limit after %.1f %%, and %+v", latency, leak, before, runs[1].Leak)
		}
		t.Logf("%s: %.1f %% of the limit, p99 %v", latency, leak, time.Duration(runs[0].Response.P99))
		before = leak
	}
}
