package postgres_test

import (
	"errors"
	"testing"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// measured are a strategy's own figures by name.
func measured(s strategies.Strategy) map[string]int64 {
	out := map[string]int64{}
	for _, m := range s.(strategies.Meter).Measures() {
		out[m.Name] = m.Value
	}
	return out
}

// TestStatements: what each way of charging sends, from the first request of a
// window to the first that does not fit.
func TestStatements(t *testing.T) {
	for name, want := range map[string][]string{
		"pg-row-lock": {
			"begin SELECT INSERT SELECT UPDATE commit", "begin SELECT commit", "begin SELECT UPDATE commit",
			"begin SELECT commit",
		},
		"pg-optimistic": {"SELECT INSERT SELECT UPDATE", "SELECT", "SELECT UPDATE", "SELECT"},
	} {
		tr := &tracer{}
		s := open(t, newPool(t, tr), name)
		tr.take()
		p := policy(t, "agent-tokens", 10)
		other := policy(t, "user-links", 10)
		for i, step := range []struct {
			units, remaining int64
			admitted         bool
		}{{4, 6, true}, {7, 6, false}, {6, 0, true}, {1, 0, false}} {
			d := take(t.Context(), t, s, "a", p, step.units)
			if d.Admitted != step.admitted || d.Remaining != step.remaining || d.Tier != quota.TierPostgres ||
				d.Admitted == (d.RetryAfter > 0) {
				t.Errorf("%s, step %d: %+v, want %+v", name, i, d, step)
			}
			if got := tr.take(); got != want[i] && got != want[i]+";" {
				t.Errorf("%s, step %d sends %s, want %s", name, i, got, want[i])
			}
		}
		wantUsed(t, s, "a", p, quota.Reading{Units: 10, Known: true})
		for what, d := range map[string]quota.Decision{
			"subject": take(t.Context(), t, s, "b", p, 10),
			"policy":  take(t.Context(), t, s, "a", other, 10),
		} {
			if !d.Admitted {
				t.Errorf("%s: another %s shares the quota: %+v", name, what, d)
			}
		}
	}
}

// TestOptimisticBeginsAgain: callers that come between read and update cost a
// retry each, and what they took is seen.
func TestOptimisticBeginsAgain(t *testing.T) {
	for _, c := range []struct {
		others   int64
		admitted bool
	}{{10, false}, {4, true}} {
		s := open(t, newPool(t, &tracer{}), "pg-optimistic")
		p := policy(t, "agent-tokens", 10)
		take(t.Context(), t, s, "b", p, 1) // a row of its own
		ctx := at(t.Context(), "UPDATE", func() { take(t.Context(), t, s, "a", p, c.others) })
		if d := take(ctx, t, s, "a", p, 6); d.Admitted != c.admitted {
			t.Errorf("%d of 10 were taken before the UPDATE: %+v, want admitted %v", c.others, d, c.admitted)
		}
		want := map[bool]map[string]int64{true: {"retries": 1, "charges": 3}, false: {"retries": 1, "charges": 2}}[c.admitted]
		if got := measured(s); got["retries"] != want["retries"] || got["charges"] != want["charges"] {
			t.Errorf("measured %v, want %v", got, want)
		}
	}
}

// TestOptimisticGivesUp: with a last retry the conflict is the caller's, and it is
// one that the record speaks of.
func TestOptimisticGivesUp(t *testing.T) {
	s := open(t, newPool(t, &tracer{}), "pg-optimistic:retries=1")
	p := policy(t, "agent-tokens", 10)
	other := func() { take(t.Context(), t, s, "a", p, 1) }
	if d := take(atFirst(t.Context(), 1, "UPDATE", other), t, s, "a", p, 1); !d.Admitted {
		t.Errorf("%+v, want one retry to be made", d)
	}
	_, err := s.Take(atFirst(t.Context(), 2, "UPDATE", other), quota.Request{Subject: "a", Policy: p, Units: 1})
	if !errors.Is(err, strategies.ErrPrescribed) {
		t.Errorf("two conflicts: %v, want one that the source asks for", err)
	}
	wantUsed(t, s, "a", p, quota.Reading{Units: 4, Known: true})
}

// TestRefundBreaksVersions: units that come back between read and update are not
// lost.
func TestRefundBreaksVersions(t *testing.T) {
	s := open(t, newPool(t, &tracer{}), "pg-optimistic")
	p := policy(t, "agent-storage", 10)
	held := take(t.Context(), t, s, "a", p, 5).Reservation
	if d := take(at(t.Context(), "UPDATE", func() { refund(t, s, held) }), t, s, "a", p, 3); !d.Admitted {
		t.Errorf("%+v", d)
	}
	wantUsed(t, s, "a", p, quota.Reading{Units: 3, Known: true})
}

// TestRowLockMeasuresItsWait: a caller that finds the row locked waits, and says so.
func TestRowLockMeasuresItsWait(t *testing.T) {
	pool := newPool(t, nil)
	s := open(t, pool, "pg-row-lock")
	p := policy(t, "agent-storage", 10)
	take(t.Context(), t, s, "a", p, 1)
	before := measured(s)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM quota_windows FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	done := make(chan quota.Decision)
	go func() {
		d, _ := s.Take(t.Context(), quota.Request{Subject: "a", Policy: p, Units: 1})
		done <- d
	}()
	for waiting := false; !waiting; {
		if err := pool.QueryRow(t.Context(),
			"SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tx.Exec(t.Context(), "SELECT pg_sleep(0.05)"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := <-done; !d.Admitted {
		t.Errorf("%+v after the lock was free", d)
	}
	after := measured(s)
	if n, us := after["row locks"]-before["row locks"], after["lock wait"]-before["lock wait"]; n != 1 || us < 50_000 {
		t.Errorf("%d locks and %d µs, want 1 and at least 50,000", n, us)
	}
}
