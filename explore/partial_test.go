package explore_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// leaky counts by two commands, and ends badly if it finds more than the limit of 1.
func leaky(bad func()) strategies.Selection {
	return plant(func(ctx context.Context, p *planted, _ quota.Request) (quota.Decision, error) {
		n, err := strategies.Redis(p.env).Get(ctx, p.env.Prefix+"k").Int64()
		if err != nil && !errors.Is(err, redis.Nil) {
			return verdict(false, err)
		}
		if n > 1 {
			bad()
		}
		if n == 1 {
			return verdict(false, nil)
		}
		err = strategies.Redis(p.env).Incr(ctx, p.env.Prefix+"k").Err()
		return verdict(err == nil, err)
	})
}

func leakySQL(bad func()) strategies.Selection {
	return plantSQL(sqlPlant{take: func(ctx context.Context, tx pgx.Tx, _ quota.Request) (bool, error) {
		n, err := read(ctx, tx, "")
		if n > 1 {
			bad()
		}
		if n == 1 || err != nil {
			return false, err
		}
		return true, add(ctx, tx, 1)
	}})
}

// patiently searches with a time-out of decisions that doubles until the strategy has come
// to where it hangs: on a busy machine anything may take longer than a short one.
func patiently(t *testing.T, hangs *atomic.Bool, search func(patience time.Duration)) {
	t.Helper()
	for patience := 200 * time.Millisecond; patience < 2*time.Minute; patience *= 2 {
		search(patience)
		if hangs.Load() {
			return
		}
	}
	t.Error("the strategy has never come to where it hangs")
}

// What a search found before the strategy ended it stays: what was counted, and the
// shortest schedules with their steps. Nothing is claimed.
func TestEndedByTheStrategy(t *testing.T) {
	over := make(chan struct{}) // what was given up ends with the test
	t.Cleanup(func() { close(over) })
	var ends atomic.Bool
	hang := func() {
		ends.Store(true)
		<-over
	}
	fall := func() {
		ends.Store(true)
		panic("counted twice")
	}
	cfg := explore.Config{Clients: 3, Limit: 1}
	sql := sqlConfig(t, 3)
	for _, c := range []struct {
		name, code string
		sel        strategies.Selection
		cfg        explore.Config
	}{
		{"panic", codes.Panicked, leaky(fall), cfg},
		{"hung", codes.Hung, leaky(hang), cfg},
		{"panic on PostgreSQL", codes.Panicked, leakySQL(fall), sql},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r *explore.Result
			var err error
			ends.Store(false)
			patiently(t, &ends, func(patience time.Duration) {
				c.cfg.DecisionTimeout = patience
				r, err = explore.Run(t.Context(), c.sel, c.cfg)
				if ends.Load() && r != nil && r.Found(explore.Leak) != nil && len(r.Found(explore.Leak).Steps) == 0 {
					ends.Store(false) // there was no time to run its schedule again
				}
			})
			if err == nil || r == nil {
				t.Fatalf("%+v, %v", r, err)
			}
			f := r.Found(explore.Leak)
			if f == nil || len(f.Steps) == 0 || f.Token == "" || f.Units != 1 || r.Runs == 0 || r.States == 0 {
				t.Errorf("%d schedules, %d states, leak %+v", r.Runs, r.States, f)
			}
			requireEnded(t, c.code, r.Withheld, err)
			if r.Claim != "" {
				t.Errorf("it claims %q", r.Claim)
			}
			var census *results.Census
			ends.Store(false)
			patiently(t, &ends, func(patience time.Duration) {
				c.cfg.DecisionTimeout = patience
				census, err = explore.Enumerate(t.Context(), c.sel, c.cfg)
			})
			if err == nil || census == nil {
				t.Fatalf("%+v, %v", census, err)
			}
			if census.Complete || census.Schedules == 0 || census.Leaking > 0 &&
				(census.Shortest == nil || len(census.Shortest.Steps) == 0) {
				t.Errorf("%+v", census)
			}
			requireEnded(t, c.code, census.Withheld, err)
		})
	}
}

func requireEnded(t *testing.T, code string, reasons []results.Withheld, err error) {
	t.Helper()
	if len(reasons) != 1 || reasons[0].Code != code || !strings.Contains(err.Error(), reasons[0].Detail) ||
		guard.Stack(err) == "" {
		t.Errorf("%v: withheld for %+v", err, reasons)
	}
}
