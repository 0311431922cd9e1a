package sim_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// hoarder admits everything, and leaves three keys for each subject and window: forever,
// or until the window ends.
type hoarder struct {
	env   strategies.Env
	until bool
}

func (h *hoarder) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	now := h.env.Clock.Now()
	w := r.Policy.Window.At(now)
	ttl := time.Duration(0)
	if h.until {
		ttl = w.End.Sub(now).Truncate(time.Second) + time.Second
	}
	for i := range 3 {
		key := fmt.Sprintf("%s%s:%d:%d", h.env.Prefix, r.Subject, w.Index, i)
		if err := strategies.Redis(h.env).SetArgs(ctx, key, "1", redis.SetArgs{TTL: ttl}).Err(); err != nil {
			return quota.Decision{}, err
		}
	}
	return quota.Decision{Tier: quota.TierRedis, Admitted: true}, nil
}

func (h *hoarder) Close(context.Context) error { return nil }

func hoarding(until bool) strategies.Selection {
	return strategies.Selection{Meta: &strategies.Meta{
		Name: fmt.Sprintf("hoarder-%t", until), Doc: "leaves keys", Form: strategies.Baseline, Counts: quota.CountsNothing,
		Kinds: []quota.Kind{quota.CalendarMonth}, Needs: []strategies.Need{strategies.NeedRedis},
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			return &hoarder{env, until}, nil
		},
	}}
}

// TestKeysOverMonths: keys without a time to live grow by as many as subjects and windows
// make, and keys that end with their window level off.
func TestKeysOverMonths(t *testing.T) {
	testenv.Sequential(t)
	const subjects = 10
	cfg := config(t, "exact", "user-links", "steady")
	cfg.Strategies = []strategies.Selection{hoarding(false), hoarding(true)}
	// Quarters end on 29 January, 26 February, 26 March and 23 April.
	cfg.Load = harness.OpenAt(0.001)
	cfg.Duration = 112 * 24 * time.Hour
	cfg.Stream.Set("subjects", subjects)
	cfg.Stream.Set("popularity", "uniform")
	report := run(t, cfg)
	for i, windows := range [][]int64{{1, 2, 3, 4}, {1, 1, 1, 1}} {
		r := &report.Runs[i]
		if len(r.Stored) != 1 || len(r.Stored[0].OverTime) != bounds.Quarters-1 {
			t.Fatalf("%s kept %+v", r.Strategy, r.Stored)
		}
		k := r.Stored[0]
		if k.Store != "redis" || k.Subjects != subjects || k.Entries != 3*subjects*windows[3] {
			t.Errorf("%s kept %+v, want %d keys of %d subjects", r.Strategy, k, 3*subjects*windows[3], subjects)
		}
		for q, at := range k.OverTime {
			if at.Entries != 3*subjects*windows[q] {
				t.Errorf("%s has %d keys after %v, want %d", r.Strategy, at.Entries, time.Duration(at.AtNS), 3*subjects*windows[q])
			}
		}
		last := report.Series[i].Samples[len(report.Series[i].Samples)-1]
		if last.Keys != k.Entries {
			t.Errorf("%s: the series ends with %d keys, the run with %d", r.Strategy, last.Keys, k.Entries)
		}
	}
}
