package measure

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// TestPoolFor: what the run was given goes before what the strategy asks for, which
// goes before the driver's; and connections that no caller can use are not opened.
func TestPoolFor(t *testing.T) {
	asking := strategies.Selection{Options: quota.Options{"pool": "100"}, Meta: &strategies.Meta{
		Setup: strategies.Setup{Connections: func(store string, o quota.Options) strategies.Connections {
			if store != "postgres.2" {
				return strategies.Connections{}
			}
			return strategies.Connections{Pool: int(o.Int("pool"))}
		}},
	}}
	for _, c := range []struct {
		pool, workers, instances int
		store                    string
		want                     int
	}{
		{0, 200, 1, "postgres.2", 100},
		{0, 50, 1, "postgres.2", 50},
		{0, 51, 2, "postgres.2", 26},
		{8, 200, 1, "postgres.2", 8},
		{0, 200, 1, "postgres", maxPool},
	} {
		cfg := Config{Plan: harness.Plan{Workers: c.workers, Instances: c.instances}, Pool: c.pool}
		if got := cfg.poolFor(asking, c.store, "postgres"); got != c.want {
			t.Errorf("%+v: %d connections", c, got)
		}
	}
}

// holding keeps a connection for a planted time in each decision.
type holding struct {
	planted
	redis redis.UniversalClient
	hold  time.Duration
}

func (h *holding) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	c := h.redis.(*redis.Client).Conn()
	defer func() { _ = c.Close() }()
	if err := c.Ping(ctx).Err(); err != nil {
		return quota.Decision{}, err
	}
	if err := (clock.Wall{}).Sleep(ctx, h.hold); err != nil {
		return quota.Decision{}, err
	}
	return h.planted.Take(ctx, r)
}

func (h *holding) selection() strategies.Selection {
	sel := h.planted.selection()
	sel.Needs = []strategies.Need{strategies.NeedRedis}
	sel.Open = func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		h.redis = strategies.Redis(env)
		return h, nil
	}
	return sel
}

// TestPlantedPoolWait: 8 callers share one connection that each holds for 2 ms, so
// all but the first few wait for up to 7 others. With 8 connections there is no wait.
func TestPlantedPoolWait(t *testing.T) {
	server := storetest.EmbeddedRedis(t)
	for _, pool := range []int{1, 8} {
		h := &holding{hold: 2 * time.Millisecond}
		h.delay = func(context.Context) {}
		sel := h.selection()
		r := measureOne(t, &h.planted, "hot-key", func(cfg *Config) {
			cfg.Strategies, cfg.base, cfg.Workers, cfg.Pool, cfg.Requests, cfg.Stores = []strategies.Selection{sel}, nil, 8,
				pool, 64, setOf(t, server)
			cfg.NoReference = true
		})
		s := results.Summarise([]results.Run{r})[0].PoolWait
		if s == nil || len(r.PoolWait) != 1 || r.PoolWait[0].Store != "redis" || r.PoolWait[0].Taken != 64 {
			t.Fatalf("pool of %d: %+v, %+v", pool, r.PoolWait, s)
		}
		if pool == 8 && (r.PoolWait[0].Waited != 0 || s.MeanNS.Value != 0) {
			t.Errorf("%d waited for one of 8 connections, %v on average", r.PoolWait[0].Waited, s.MeanNS.Value)
		}
		if least := float64(5 * h.hold); pool == 1 && (s.MeanNS.Value < least || s.WaitedPct < 80) {
			t.Errorf("the mean wait is %v ns of at least %v, and %v %% waited", s.MeanNS.Value, least, s.WaitedPct)
		}
	}
}
