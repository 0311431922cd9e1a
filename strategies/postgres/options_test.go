package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// later is the policy as it is so many months after the present.
func later(p *quota.Policy, months int) *quota.Policy {
	q := *p
	now := clock.Wall{}.Now()
	q.Window.Timeline = quota.Timeline{Real: now, Policy: now.AddDate(0, months, 0)}
	return &q
}

// TestResetByMonth: a row per window keeps what was used in the last one, and a
// refund finds it.
func TestResetByMonth(t *testing.T) {
	s := open(t, newPool(t, nil), "pg-check:reset=month")
	p := policy(t, "user-links", 2)
	next := later(p, 1)
	held := take(t.Context(), t, s, "a", p, 2).Reservation
	if d := take(t.Context(), t, s, "a", p, 1); d.Admitted {
		t.Errorf("%+v of 2 that are used", d)
	}
	if d := take(t.Context(), t, s, "a", next, 1); !d.Admitted {
		t.Errorf("a month later: %+v", d)
	}
	refund(t, s, held)
	wantUsed(t, s, "a", p, quota.Reading{Units: 0, Known: true})
	wantUsed(t, s, "a", next, quota.Reading{Units: 1, Known: true})
}

// TestLiteralCheckIgnoresTheAmount, and its bound is that of one request more.
func TestLiteralCheckIgnoresTheAmount(t *testing.T) {
	s := open(t, newPool(t, nil), "pg-check:check=literal")
	p := policy(t, "agent-tokens", 10)
	take(t.Context(), t, s, "a", p, 9)
	if d := take(t.Context(), t, s, "a", p, 1_000); !d.Admitted || d.Remaining != 0 {
		t.Errorf("%+v, want 1,000 to be admitted where 1 remains", d)
	}
	if d := take(t.Context(), t, s, "a", p, 1); d.Admitted {
		t.Errorf("%+v where nothing remains", d)
	}
	for name, want := range map[string]int64{"pg-check": 2_000, "pg-check:check=literal": 2_999} {
		sel := testkit.Strategy(t, name)
		if got := sel.Guarantee[0].Bound(quota.Params{Limit: 10, MaxCost: 1_000, Deciding: 3,
			Options: sel.Options}); got != want {
			t.Errorf("%s may leak %d, want %d", name, got, want)
		}
	}
}

func TestPoolIsAskedFor(t *testing.T) {
	for name, want := range map[string]int{"pg-check": 100, "pg-check:pool=8": 8, "pg-conditional": 0} {
		if got := testkit.Strategy(t, name).Connections("postgres").Pool; got != want {
			t.Errorf("%s asks for %d connections, want %d", name, got, want)
		}
	}
}

// TestTimeout: a check that waits for a row is given up and counted, as the record
// says that checks were; a caller that gives up by itself is not.
func TestTimeout(t *testing.T) {
	pool := newPool(t, nil)
	c := &patient{Clock: clock.Wall{}}
	s, err := openOn(t.Context(), pool, "pg-check:timeout=20ms", c)
	if err != nil {
		t.Fatal(err)
	}
	p := policy(t, "agent-storage", 10)
	take(t.Context(), t, s, "a", p, 1)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM quota_usage FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	c.hurry.Store(true)
	d, err := s.Take(t.Context(), quota.Request{Subject: "a", Policy: p, Units: 1})
	if !errors.Is(err, strategies.ErrPrescribed) || !errors.Is(err, context.DeadlineExceeded) || d.Admitted {
		t.Errorf("%+v, %v; want an error that the source asks for", d, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Take(ctx, quota.Request{Subject: "a", Policy: p, Units: 1}); err == nil ||
		errors.Is(err, strategies.ErrPrescribed) {
		t.Errorf("%v, want the caller's own error", err)
	}
	if n := measured(s)["timeouts"]; n != 1 {
		t.Errorf("%d time-outs, want 1", n)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.hurry.Store(false)
	if d := take(t.Context(), t, s, "a", p, 1); !d.Admitted {
		t.Errorf("%+v after the row was free", d)
	}
}
