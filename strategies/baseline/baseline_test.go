package baseline

import (
	"context"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// dial is a clock that stands where it is put.
type dial struct {
	clock.Wall
	now time.Time
}

func (d *dial) Now() time.Time { return d.now }

var noon = time.Date(2031, time.March, 15, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, env strategies.Env) *exact {
	t.Helper()
	s, err := exactMeta.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*exact)
}

func policy(kind quota.Kind, length time.Duration, limit int64) *quota.Policy {
	return &quota.Policy{Name: "p", Limit: limit, Unit: "requests", Window: quota.Window{Kind: kind, Length: length}}
}

func take(t *testing.T, s strategies.Strategy, p *quota.Policy, id uint64, units int64) quota.Decision {
	t.Helper()
	d, err := s.Take(t.Context(), quota.Request{ID: id, Subject: "s", Policy: p, Units: units})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestInstancesShareOneCount, and each run has a count of its own.
func TestInstancesShareOneCount(t *testing.T) {
	env := strategies.Env{Clock: &dial{now: noon}, Shared: new(strategies.Shared)}
	p := policy(quota.Standing, 0, 1)
	a := open(t, env)
	b := open(t, env)
	if d := take(t, a, p, 1, 1); !d.Admitted {
		t.Fatalf("%+v", d)
	}
	if d := take(t, b, p, 2, 1); d.Admitted {
		t.Errorf("the other instance admits %+v over the limit", d)
	}
	env.Shared = new(strategies.Shared)
	if d := take(t, open(t, env), p, 3, 1); !d.Admitted {
		t.Errorf("another run rejects: %+v", d)
	}
}

// TestRolling: what was admitted at t counts during [t, t+length), to the
// nanosecond.
func TestRolling(t *testing.T) {
	c := &dial{now: noon}
	s := open(t, strategies.Env{Clock: c, Shared: new(strategies.Shared)})
	p := policy(quota.Rolling, time.Minute, 3)
	steps := []struct {
		at       time.Duration
		units    int64
		admitted bool
		retry    time.Duration
	}{
		{0, 2, true, 0},
		{10 * time.Second, 1, true, 0},
		{20 * time.Second, 1, false, 40 * time.Second},
		{20 * time.Second, 3, false, 50 * time.Second},
		{time.Minute - 1, 1, false, 1},
		{time.Minute, 2, true, 0},
		{time.Minute, 1, false, 10 * time.Second},
		{70 * time.Second, 1, true, 0},
	}
	for i, x := range steps {
		c.now = noon.Add(x.at)
		d := take(t, s, p, uint64(i), x.units)
		if d.Admitted != x.admitted || d.RetryAfter != x.retry {
			t.Errorf("step %d: %+v, want admitted %v, retry after %s", i, d, x.admitted, x.retry)
		}
	}
}

// TestTumbling: a window ends at its end, and a refund goes to the window that
// was charged.
func TestTumbling(t *testing.T) {
	c := &dial{now: noon}
	s := open(t, strategies.Env{Clock: c, Shared: new(strategies.Shared)})
	p := policy(quota.Fixed, time.Minute, 2)
	first := take(t, s, p, 1, 2)
	c.now = noon.Add(time.Minute - 1)
	if d := take(t, s, p, 2, 1); d.Admitted || d.RetryAfter != 1 {
		t.Errorf("%+v, want rejected for one more nanosecond", d)
	}
	c.now = noon.Add(time.Minute)
	if d := take(t, s, p, 3, 2); !d.Admitted {
		t.Errorf("%+v in a new window", d)
	}
	if err := s.Refund(t.Context(), first.Reservation); err != nil {
		t.Fatal(err)
	}
	if d := take(t, s, p, 4, 1); d.Admitted {
		t.Errorf("%+v: a refund of the last window made room in this one", d)
	}
	for i := range 100 {
		c.now = c.now.Add(time.Minute)
		take(t, s, p, uint64(10+i), 1)
	}
	if n := len(s.accounts[family.Account{Policy: "p", Subject: "s"}].windows); n > 2 {
		t.Errorf("%d windows are kept", n)
	}
}

// TestSettling: each request holds its latest amount, however often it is said.
func TestSettling(t *testing.T) {
	s := open(t, strategies.Env{Clock: &dial{now: noon}, Shared: new(strategies.Shared)})
	p := policy(quota.Standing, 0, 10)
	grants := []strategies.Grant{{Subject: "s", Limit: 12, Used: 2}}
	if err := s.Provision(t.Context(), p, grants); err != nil {
		t.Fatal(err)
	}
	// The id of an operator's grant must not be that of a request.
	a := take(t, s, p, 0, 4).Reservation
	b := take(t, s, p, 1, 6).Reservation
	used := func(want int64) {
		t.Helper()
		r, err := s.Used(t.Context(), "s", p)
		if err != nil || len(r) != 1 || r[0].Units != want || !r[0].Known {
			t.Errorf("used %+v (%v), want %d", r, err, want)
		}
	}
	used(12)
	for _, step := range []struct {
		what string
		do   func() error
		want int64
	}{
		{"commit of less", func() error { return s.Commit(t.Context(), a, 1) }, 9},
		{"the same commit again", func() error { return s.Commit(t.Context(), a, 1) }, 9},
		{"refund", func() error { return s.Refund(t.Context(), a) }, 8},
		{"the same refund again", func() error { return s.Refund(t.Context(), a) }, 8},
		{"commit of what was refunded", func() error { return s.Commit(t.Context(), a, 4) }, 8},
		{"commit of more", func() error { return s.Commit(t.Context(), b, 11) }, 13},
		{"refund of all", func() error { return s.Refund(t.Context(), b) }, 2},
	} {
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.what, err)
		}
		used(step.want)
	}
	if err := s.Refund(t.Context(), quota.Reservation{}); err == nil {
		t.Error("the reservation of a rejected request can be refunded")
	}
}

func TestUnlimited(t *testing.T) {
	s, err := unlimitedMeta.Open(context.Background(), strategies.Env{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if d := take(t, s, policy(quota.Standing, 0, 1), uint64(i), 1_000); !d.Admitted {
			t.Fatalf("%+v", d)
		}
	}
}
