package window

import (
	"context"
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// TestDequeTrims: a moment counts for one length, to the nanosecond; rejected
// attempts leave none.
func TestDequeTrims(t *testing.T) {
	for _, kind := range []quota.Kind{quota.Fixed, quota.Rolling} {
		now := &dial{now: start}
		s := open(t, dequeMeta, strategies.Env{Clock: now})
		p := policy(kind, time.Minute, 3)
		for i, x := range []struct {
			at        time.Duration
			units     int64
			admitted  bool
			remaining int64
			retry     time.Duration
		}{
			{0, 2, true, 1, 0},
			{10 * time.Second, 1, true, 0, 0},
			{20 * time.Second, 1, false, 0, 40 * time.Second},
			{20 * time.Second, 3, false, 0, 50 * time.Second},
			{20 * time.Second, 4, false, 0, 0}, // never
			{time.Minute - 1, 1, false, 0, 1},
			{time.Minute, 2, true, 0, 0}, // although a fixed window has just begun
			{time.Minute, 1, false, 0, 10 * time.Second},
			{70 * time.Second, 1, true, 0, 0},
			{10 * time.Minute, 3, true, 0, 0},
		} {
			now.now = start.Add(x.at)
			d := take(t, s, p, x.units)
			want := quota.Decision{Admitted: x.admitted, Tier: quota.TierProcess, Remaining: x.remaining, RetryAfter: x.retry}
			if d != want {
				t.Errorf("%s window, step %d: %+v, want %+v", kind, i, d, want)
			}
		}
		used(t, s, p, quota.TierProcess, 3, true)
		now.now = now.now.Add(time.Minute)
		used(t, s, p, quota.TierProcess, 0, true)
	}
}

// TestDequesStay: a deque that has become empty is kept, and weighs at least its name and
// the moments that it has room for.
func TestDequesStay(t *testing.T) {
	now := &dial{now: start}
	s := open(t, dequeMeta, strategies.Env{Clock: now})
	p := policy(quota.Rolling, time.Minute, 3)
	take(t, s, p, 1)
	take(t, s, p, 1)
	const moments = 2 * 32 // bytes of a moment: a time.Time of 24 and its units
	name := int64(len("203.0.113.10"))
	if m := s.(strategies.Meter).Measures(); m[0].Value != 1 || m[1].Value < name+moments ||
		m[1].Value > 10*(name+moments) {
		t.Errorf("measures %+v, want one deque of a name and two moments", m)
	}
	now.now = start.Add(time.Hour)
	used(t, s, p, quota.TierProcess, 0, true)
	if m := s.(strategies.Meter).Measures(); m[0].Value != 1 || m[1].Value < name {
		t.Errorf("measures %+v an hour later, want the empty deque", m)
	}
}

// TestDequePerProcess: each instance has its own, so the limit comes once
// per instance. That is the bound of the declared clause, too.
func TestDequePerProcess(t *testing.T) {
	env := strategies.Env{Clock: &dial{now: start}, Shared: new(strategies.Shared), Instances: 3}
	p := policy(quota.Rolling, 15*time.Minute, 5)
	total := 0
	for i := range 3 {
		env.Instance = i
		total += admitted(t, open(t, dequeMeta, env), p, 10)
	}
	if total != 15 {
		t.Errorf("3 instances admitted %d of a limit of 5", total)
	}
	if over := dequeMeta.Guarantee[0].Bound(quota.Params{Limit: 5, Instances: 3}); over != 10 {
		t.Errorf("declares %d units over the limit for 3 instances, want 10", over)
	}
}

// TestDequeSpeed: a policy whose time passes faster has shorter windows.
func TestDequeSpeed(t *testing.T) {
	now := &dial{now: start}
	s := open(t, dequeMeta, strategies.Env{Clock: now})
	p := policy(quota.Rolling, 15*time.Minute, 1)
	p.Window.Timeline = quota.Timeline{Real: start, Policy: start, Speed: 900}
	take(t, s, p, 1)
	now.now = start.Add(time.Second - 1)
	if take(t, s, p, 1).Admitted {
		t.Error("15 minutes pass in less than a second at 900 x")
	}
	now.now = start.Add(time.Second)
	if !take(t, s, p, 1).Admitted {
		t.Error("15 minutes take longer than a second at 900 x")
	}
}

func TestDequeProvision(t *testing.T) {
	now := &dial{now: start}
	s := open(t, dequeMeta, strategies.Env{Clock: now})
	p := policy(quota.Rolling, time.Minute, 5)
	used(t, s, p, quota.TierProcess, 0, false)
	take(t, s, p, 5)
	if err := grant(t, s, p, 5, 3); err != nil {
		t.Fatal(err)
	}
	used(t, s, p, quota.TierProcess, 3, true)
	if n := admitted(t, s, p, 5); n != 2 {
		t.Errorf("admits %d of the 2 units that are left", n)
	}
	if err := grant(t, s, p, 6, 0); err == nil {
		t.Error("takes a limit of the subject's own, and has nowhere to keep it")
	}
}

func TestDequeCancelled(t *testing.T) {
	s := open(t, dequeMeta, strategies.Env{Clock: &dial{now: start}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := s.Take(ctx, quota.Request{Subject: "a", Policy: policy(quota.Rolling, time.Minute, 1),
		Units: 1}); err == nil {
		t.Errorf("%+v for a caller that gave up", d)
	}
}

// TestDequeIsSmall: units of one request are one moment, and trimmed moments are
// let go of.
func TestDequeIsSmall(t *testing.T) {
	now := &dial{now: start}
	s := open(t, dequeMeta, strategies.Env{Clock: now}).(*memoryDeque)
	p := policy(quota.Rolling, time.Minute, 1<<40)
	for range 10_000 {
		now.now = now.now.Add(10 * time.Second)
		take(t, s, p, 1<<30)
	}
	q := s.deques.m[family.AccountOf(p, "203.0.113.10")]
	if len(q.moments) != 6 || cap(q.moments) > 64 || q.units != 6<<30 {
		t.Errorf("%d moments in a slice for %d, of %d units; want 6 of %d", len(q.moments), cap(q.moments), q.units,
			int64(6<<30))
	}
}
