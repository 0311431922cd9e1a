package postgres_test

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func conditional(t *testing.T, tr *tracer) strategies.Strategy {
	t.Helper()
	s := open(t, newPool(t, tr), "pg-conditional")
	tr.take()
	return s
}

func refund(t *testing.T, s strategies.Strategy, r quota.Reservation) {
	t.Helper()
	if err := s.(strategies.Refunder).Refund(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func TestConditionalSequential(t *testing.T) {
	tr := &tracer{}
	s := conditional(t, tr)
	sequential(t, s, tr, "UPDATE SELECT INSERT UPDATE", "UPDATE SELECT", "UPDATE", "UPDATE SELECT")
	p := policy(t, "agent-tokens", 10)
	if d := take(t.Context(), t, s, "a", p, 1); d.Admitted || d.RetryAfter <= 0 {
		t.Errorf("a rejection does not say when the window ends: %+v", d)
	}
	if d := take(t.Context(), t, s, "c", p, 11); d.Admitted || d.Remaining != 10 {
		t.Errorf("11 of 10 on first use: %+v", d)
	}
}

// TestConditionalBetweenStatements: callers that come between the statements of a
// first request, its answer is the one of a single moment.
func TestConditionalBetweenStatements(t *testing.T) {
	s := conditional(t, &tracer{})
	p := policy(t, "agent-tokens", 10)
	for _, c := range []struct {
		verb     string // before the first statement of which the others come
		others   int64
		admitted bool
	}{
		{"SELECT", 10, false}, {"INSERT", 10, false}, {"SELECT", 4, true}, {"INSERT", 4, true},
	} {
		subject := quota.Subject(c.verb + time.Duration(c.others).String())
		ctx := at(t.Context(), c.verb, func() { take(t.Context(), t, s, subject, p, c.others) })
		if d := take(ctx, t, s, subject, p, 6); d.Admitted != c.admitted {
			t.Errorf("%d of 10 are taken before %s: %+v, want admitted %v", c.others, c.verb, d, c.admitted)
		}
		want := c.others
		if c.admitted {
			want += 6
		}
		wantUsed(t, s, subject, p, quota.Reading{Units: want, Known: true})
	}
	// And what is given back after the UPDATE is still found.
	held := take(t.Context(), t, s, "a", p, 10).Reservation
	if d := take(at(t.Context(), "SELECT", func() { refund(t, s, held) }), t, s, "a", p, 10); !d.Admitted {
		t.Errorf("%+v after everything was given back", d)
	}
}

// TestConditionalWindows: each window has a row, and a refund goes to the one
// that was charged, as often as it is made.
func TestConditionalWindows(t *testing.T) {
	s := conditional(t, &tracer{})
	p := policy(t, "user-links", 2)
	next := *p
	now := clock.Wall{}.Now()
	next.Window.Timeline = quota.Timeline{Real: now, Policy: now.AddDate(0, 1, 0)}

	held := take(t.Context(), t, s, "a", p, 2).Reservation
	if d := take(t.Context(), t, s, "a", &next, 1); !d.Admitted {
		t.Errorf("a month later: %+v", d)
	}
	for _, left := range []int64{0, -2} {
		refund(t, s, held)
		wantUsed(t, s, "a", p, quota.Reading{Units: left, Known: true})
	}
	wantUsed(t, s, "a", &next, quota.Reading{Units: 1, Known: true})
	if err := s.(strategies.Refunder).Refund(t.Context(), quota.Reservation{}); err == nil {
		t.Error("the reservation of a rejected request can be refunded")
	}
}

func TestConditionalProvision(t *testing.T) {
	s := conditional(t, &tracer{})
	p := policy(t, "agent-storage", 100)
	grant := []strategies.Grant{{Subject: "a", Limit: 100, Used: 70}}
	for range 2 { // a grant replaces what is there
		if err := s.(strategies.Provisioner).Provision(t.Context(), p, grant); err != nil {
			t.Fatal(err)
		}
		if d := take(t.Context(), t, s, "a", p, 31); d.Admitted || d.RetryAfter != 0 {
			t.Errorf("31 of 30: %+v", d)
		}
		if d := take(t.Context(), t, s, "a", p, 30); !d.Admitted {
			t.Errorf("30 of 30: %+v", d)
		}
	}
	grant[0].Limit = 200
	if err := s.(strategies.Provisioner).Provision(t.Context(), p, grant); err == nil {
		t.Error("takes a limit of the subject's own, and has nowhere to keep it")
	}
}
