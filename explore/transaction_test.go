package explore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// watching counts by WATCH, GET and MULTI, and tries again if somebody else came between.
// Its defect: it takes a transaction that did not happen for one that did.
type watching struct {
	rdb    redis.UniversalClient
	policy *quota.Policy
	wrong  bool
	holds  bool // a connection, which it gives back if it gets so far
}

func (w *watching) Allow(ctx context.Context, key string) (ok bool, err error) {
	if w.holds {
		conn := w.rdb.(*redis.Client).Conn()
		p := conn.TxPipeline()
		n := p.Incr(ctx, key)
		_, err := p.Exec(ctx)
		return n.Val() <= w.policy.Limit, errors.Join(err, conn.Ping(ctx).Err(), conn.Close())
	}
	for range 20 {
		err = w.rdb.Watch(ctx, func(tx *redis.Tx) error {
			n, err := tx.Get(ctx, key).Int64()
			ok = n < w.policy.Limit
			if err != nil && !errors.Is(err, redis.Nil) || !ok {
				ok = ok && err == nil
				return ignoreNil(err)
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Set(ctx, key, n+1, time.Hour)
				return nil
			})
			return err
		}, key)
		if !errors.Is(err, redis.TxFailedErr) {
			return ok && err == nil, err
		}
		if w.wrong {
			return true, nil
		}
	}
	return false, err
}

func ignoreNil(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// Connections that WATCH holds are given back when a schedule is left, however many there are.
func TestWatch(t *testing.T) {
	testenv.Sequential(t)
	for _, how := range []string{"wrong", "right", "holds"} {
		wrong := how == "wrong"
		m := strategies.FromFunc("watching", []quota.Kind{quota.Standing},
			func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
				return &watching{strategies.Redis(env), p, wrong, how == "holds"}, nil
			})
		sel, err := m.Select(nil)
		if err != nil {
			t.Fatal(err)
		}
		cfg := explore.Config{Policy: policy(t, "10 requests at a time"), Bounds: explore.Bounds{Preemptions: -1},
			Properties: []explore.Property{explore.Leak, explore.Stuck}}
		if !wrong { // more schedules than the client has connections
			cfg.Clients = 3
			cfg.Limit = 1
			cfg.Faults = []quota.Fault{quota.FaultClock, quota.FaultCrash}
			cfg.MaxStates = 2_000
		}
		res, err := explore.Run(t.Context(), sel, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if f := res.Found(explore.Leak); (f != nil) != wrong {
			t.Errorf("%s: %+v", how, f)
		}
		if !wrong && res.Runs < 1_500 {
			t.Errorf("%s: only %d schedules", how, res.Runs)
		}
	}
}
