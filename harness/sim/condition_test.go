package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/results"
)

// TestNetwork: what is planted comes back: latency in every decision, requests without an answer, and counters that are too
// high by what callers were not told.
func TestNetwork(t *testing.T) {
	cfg := config(t, "incr-expire-atomic", "agent-api", "steady")
	cfg.Policy.Limit, cfg.Load, cfg.Duration, cfg.Instances = 1_000_000, harness.OpenAt(500), 4*time.Second, 2
	cfg.Stream.Set("subjects", 5)
	bare := run(t, cfg).Runs[0]

	cfg.Network = []string{"redis:latency=20ms,jitter=5ms"}
	r := run(t, cfg).Runs[0]
	valid(t, &r)
	if added := r.Service.P50 - bare.Service.P50; added < int64(19*time.Millisecond) || added > int64(21*time.Millisecond) ||
		r.Service.Max-r.Service.P50 < int64(4*time.Millisecond) {
		t.Errorf("p50 is %v more, of %+v", time.Duration(added), r.Service)
	}
	if len(r.Outages) > 0 {
		t.Errorf("latency takes no store away: %+v", r.Outages)
	}

	cfg.Network = []string{"redis/1:0.25-0.75:loss=0.2,reply-loss=0.2"}
	report := run(t, cfg)
	r = report.Runs[0]
	valid(t, &r)
	lost := r.LostRequests + r.LostReplies
	if r.LostRequests < 50 || r.LostReplies < 30 || lost > 500 || r.Degraded != lost || r.Drift.Tiers[0].Total != 0 {
		t.Errorf("%d and %d lost, %d degraded, %+v", r.LostRequests, r.LostReplies, r.Degraded, r.Drift)
	}
	want := results.Span{Store: "redis", Network: cfg.Network[0], FromNS: 1e9, ToNS: 3e9}
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

func TestNetworkRefused(t *testing.T) {
	cfg := config(t, "incr-expire", "agent-api", "steady")
	cfg.Instances = 2
	for text, part := range map[string]string{
		"redis/2:loss=1": "instances are 0 to 1", "etcd:loss=1": "stores redis and postgres", "redis:cut": "loss=1", "redis:bandwidth=1kB": "no bytes",
	} {
		c := cfg
		c.Network = []string{text}
		if err := c.Complete(); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
