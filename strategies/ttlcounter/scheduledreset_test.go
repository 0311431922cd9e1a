package ttlcounter

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// hand is a clock that a test moves.
type hand struct {
	clock.Wall
	now time.Time
}

func (h *hand) Now() time.Time { return h.now }

// lastHour is an hour before the end of March 2031.
var lastHour = time.Date(2031, time.March, 31, 23, 0, 0, 0, time.UTC)

var links = quota.Policy{Name: "user-links", Limit: 2, Unit: "links", Window: quota.Window{Kind: quota.CalendarMonth}}

// scheduled opens scheduled-reset on a clock of the test's own. woken counts calls
// of Wake.
func scheduled(t *testing.T, env strategies.Env, options quota.Options) (s *scheduledReset, h *hand, woken *int) {
	t.Helper()
	m := testkit.Strategy(t, "scheduled-reset").Meta
	sel, err := m.Select(options)
	if err != nil {
		t.Fatal(err)
	}
	h = &hand{now: lastHour}
	woken = new(int)
	env.Clock = h
	env.Shared = new(strategies.Shared)
	env.Options = sel.Options
	env.Wake = func(string) { *woken++ }
	return open(t, *m, env).(*scheduledReset), h, woken
}

func runReset(t *testing.T, s *scheduledReset) (changed bool) {
	t.Helper()
	changed, err := s.Jobs()[0].Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

func TestCounterOutlivesItsWindow(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		s, h, woken := scheduled(t, env, nil)
		for i, want := range []bool{true, true, false} {
			if d := take(t, s, &links, 1); d.Admitted != want {
				t.Errorf("request %d: %+v", i, d)
			}
		}
		key := env.Prefix + "users:u1:quota"
		if ttl, err := strategies.Redis(env).TTL(t.Context(), key).Result(); err != nil || ttl != -1 {
			t.Errorf("%s lives for %v (%v), want for ever", key, ttl, err)
		}
		if s.Jobs()[0].Pending() || runReset(t, s) || *woken > 0 {
			t.Error("a reset is due within the window")
		}
		h.now = h.now.Add(time.Hour)
		if d := take(t, s, &links, 1); d.Admitted || *woken != 1 {
			t.Errorf("in April, before the job: %+v, woken %d times", d, *woken)
		}
		if !s.Jobs()[0].Pending() || !runReset(t, s) || s.Jobs()[0].Pending() {
			t.Error("the reset was not due, or is still")
		}
		if d := take(t, s, &links, 1); !d.Admitted || d.Remaining != 1 {
			t.Errorf("after the reset: %+v", d)
		}
		if m := s.Measures(); m[0].Value != 1 || m[1].Value != 0 {
			t.Errorf("measured %+v", m)
		}
	})
}

// TestLateReset forgets what the new window has admitted by then.
func TestLateReset(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		s, h, _ := scheduled(t, env, quota.Options{"late": "1h"})
		take(t, s, &links, 1)
		h.now = lastHour.Add(2*time.Hour - 1)
		if d := take(t, s, &links, 1); !d.Admitted || runReset(t, s) {
			t.Errorf("%+v, or the reset took place before it was due", d)
		}
		h.now = h.now.Add(1)
		if !runReset(t, s) {
			t.Error("the reset was not due an hour after the window began")
		}
		for i, want := range []bool{true, true, false} { // April's second and third
			if d := take(t, s, &links, 1); d.Admitted != want {
				t.Errorf("request %d after the reset: %+v", i, d)
			}
		}
	})
}

func TestMissedReset(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		// Months are numbered from year 0: 24375 is April 2031, a multiple of 3.
		s, h, _ := scheduled(t, env, quota.Options{"missed": "3"})
		take(t, s, &links, 2)
		for i, want := range []bool{false, true, true, false} { // April to July
			h.now = lastHour.AddDate(0, 0, 10).AddDate(0, i, 0)
			runReset(t, s)
			if d := take(t, s, &links, 2); d.Admitted != want {
				t.Errorf("month %d: %+v, want admitted %v", i, d, want)
			}
		}
		if m := s.Measures(); m[0].Value != 2 || m[1].Value != 2 {
			t.Errorf("measured %+v, want 2 resets and 2 missed", m)
		}
	})
}

// TestResetIsTriedAgain: one that failed is still due.
func TestResetIsTriedAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		s, h, _ := scheduled(t, env, nil)
		take(t, s, &links, 2)
		h.now = h.now.Add(time.Hour)
		out := errors.New("out of order")
		strategies.Redis(env).(*redis.Client).AddHook(failing{out})
		if _, err := s.Jobs()[0].Run(t.Context()); !errors.Is(err, out) || !s.Jobs()[0].Pending() {
			t.Errorf("%v, want an error and another try", err)
		}
	})
}

type failing struct{ err error }

func (f failing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f failing) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { return f.err }
}

func (f failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestScheduledResetLeaks: a round that is still under way forgets a request of the
// new window, and a counter that is not reset yet rejects one. Both are declared; only
// a leak is reported even so.
func TestScheduledResetLeaks(t *testing.T) {
	testenv.Long(t)
	sel := testkit.Strategy(t, "scheduled-reset")
	r, err := explore.Run(t.Context(), sel,
		explore.Config{Policy: links, Instances: 1, Faults: []quota.Fault{quota.FaultClock}})
	if err != nil || r.Capped != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	for property, want := range map[explore.Property]bool{explore.Leak: true, explore.FalseReject: false,
		explore.Guarantee: false, explore.TTL: false} {
		if f := r.Found(property); (f != nil) != want {
			t.Errorf("%s: %+v, want one %v", property, f, want)
		}
	}
	if r.AllowedBy == "" {
		t.Error("no false reject was met")
	}
}
