package explore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// ones are scripts of a take of one unit: the limiters here count requests.
var ones = []explore.Script{{{Kind: explore.Take, Units: 1}}}

// returning counts in Redis and gives units back. One that forgets gives back the units of
// everybody.
type returning struct {
	*planted
	forgets bool
}

func (r *returning) Refund(ctx context.Context, res quota.Reservation) error {
	key := r.env.Prefix + "k"
	if r.forgets {
		return strategies.Redis(r.env).Del(ctx, key).Err()
	}
	return strategies.Redis(r.env).DecrBy(ctx, key, res.Request.Units).Err()
}

func plantReturning(forgets bool) strategies.Selection {
	sel := plant(nil)
	sel.GivesBack = true
	sel.Open = func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		return &returning{&planted{env: env,
			take: func(ctx context.Context, p *planted, r quota.Request) (quota.Decision, error) {
				key := p.env.Prefix + "k"
				n, err := strategies.Redis(p.env).Incr(ctx, key).Result()
				if err == nil && n > r.Policy.Limit {
					err = strategies.Redis(p.env).Decr(ctx, key).Err()
				}
				return verdict(n <= r.Policy.Limit, err)
			}}, forgets}, nil
	}
	return sel
}

// A key that is lost with a refund shows only to those who come after the scripts.
func TestLastClientFindsALostKey(t *testing.T) {
	cfg := explore.Config{Policy: tenants, Limit: 2,
		Scripts:    []explore.Script{{{Kind: explore.Take, Units: 1}, {Kind: explore.Refund}}, ones[0]},
		Properties: []explore.Property{explore.Leak}}
	for _, c := range []struct {
		forgets, asks, leaks bool
	}{{true, true, true}, {true, false, false}, {false, true, false}} {
		cfg.Asks = -1
		if c.asks {
			cfg.Asks = 0
		}
		sel := plantReturning(c.forgets)
		r, err := explore.Run(t.Context(), sel, cfg)
		if err != nil {
			t.Fatal(err)
		}
		f := r.Found(explore.Leak)
		if (f != nil) != c.leaks || r.Capped != "" {
			t.Errorf("%+v: %+v, ended by %q", c, f, r.Capped)
		}
		if c.asks != (r.Asks > 0) || !c.leaks && c.asks != strings.Contains(r.Claim, "one more client") {
			t.Errorf("%+v: asks %d, claim %q", c, r.Asks, r.Claim)
		}
		if f == nil {
			continue
		}
		if got := words(f); !strings.HasSuffix(got, "last INCR, last INCR") || f.Units != 1 {
			t.Errorf("leaks %d by %s", f.Units, got)
		}
		again, err := explore.ReplayOf(t.Context(), sel, f.Token, explore.Target{})
		if err != nil || !again.Broken || !slices.EqualFunc(again.Finding.Steps, f.Steps, results.Step.Equal) {
			t.Errorf("the token gives %+v, %v", again, err)
		}
	}
}

// The last client ends with the first rejection, and asks nothing if more is left than
// it could use up.
func TestLastClientEnds(t *testing.T) {
	for _, c := range []struct {
		limit int64
		more  int // states that the last client adds
	}{
		{1, 1}, // one admitted, one rejected; the last is rejected
		{5, 7}, // two admitted; the last gets three from one instance or the other, and is rejected
		{6, 0}, // four are left, which it could get
	} {
		cfg := explore.Config{Policy: tenants, Limit: c.limit, Scripts: ones, Properties: []explore.Property{explore.Leak}}
		with, err := explore.Run(t.Context(), plant(counted), cfg)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Asks = -1
		without, err := explore.Run(t.Context(), plant(counted), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got := with.States - without.States; got != c.more {
			t.Errorf("limit %d: %d states with the last client, %d without", c.limit, with.States, without.States)
		}
	}
}

// halfGone is a limiter in memory that forgets everything when it has been asked thrice.
type halfGone struct {
	mu          sync.Mutex
	asked, used int64
	limit       int64
	forgets     bool
}

func (h *halfGone) Allow(context.Context, string) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	if h.forgets && h.asked == 3 {
		h.used = 0
	}
	if h.used >= h.limit {
		return false, nil
	}
	h.used++
	return true, nil
}

func TestLastClientAsksForeignCode(t *testing.T) {
	for _, forgets := range []bool{true, false} {
		sel := foreign(t, func(_ strategies.Env, p *quota.Policy) strategies.Allower {
			return &halfGone{limit: p.Limit, forgets: forgets}
		})
		r, err := explore.Run(t.Context(), sel, explore.Config{Policy: policy(t, "1 request per fixed 1m"), Instances: 1})
		if err != nil && !errors.Is(err, explore.ErrUnseen) { // it has no reset
			t.Fatal(err)
		}
		f := r.Found(explore.Leak)
		if (f != nil) != forgets {
			t.Fatalf("forgets %t: %+v", forgets, f)
		}
		if f == nil {
			continue
		}
		if got := words(f); !strings.HasSuffix(got, "last asks") {
			t.Errorf("leaks by %s", got)
		}
		again, err := explore.ReplayOf(t.Context(), sel, f.Token, explore.Target{})
		if err != nil || !again.Broken {
			t.Errorf("the token gives %+v, %v", again, err)
		}
	}
}

// spoiled rejects by its own memory: an instance that has seen another one's count admits
// everybody from then on.
type spoiled struct {
	*planted
	seen bool
}

func (s *spoiled) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	if s.seen {
		return quota.Decision{Admitted: true}, nil
	}
	n, err := strategies.Redis(s.env).Incr(ctx, s.env.Prefix+"k").Result()
	s.seen = n == 2
	return verdict(n <= r.Policy.Limit, err)
}

// Clients whose names make no difference are searched in one order. The last client then
// has to come to each instance.
func TestLastClientComesToEachInstance(t *testing.T) {
	sel := plant(nil)
	sel.Open = func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		return &spoiled{planted: &planted{env: env}}, nil
	}
	r, err := explore.Run(t.Context(), sel,
		explore.Config{Policy: tenants, Limit: 2, Properties: []explore.Property{explore.Leak}})
	if err != nil {
		t.Fatal(err)
	}
	f := r.Found(explore.Leak)
	if f == nil {
		t.Fatalf("no leak: %s", r.Claim)
	}
	if again, err := explore.ReplayOf(t.Context(), sel, f.Token, explore.Target{}); err != nil || !again.Broken {
		t.Errorf("the token gives %+v, %v", again, err)
	}
}

// What the last client does one after the other excuses what a schedule does, so a
// token has to say whether there is one.
func TestTokenHoldsAsks(t *testing.T) {
	sel := testkit.Strategy(t, "decr-expire")
	r, err := explore.Run(t.Context(), sel,
		explore.Config{Limit: 2, Scope: explore.Scope{Asks: -1}, Faults: []quota.Fault{quota.FaultRetry},
			Properties: []explore.Property{explore.Negative}})
	if err != nil {
		t.Fatal(err)
	}
	f := r.Found(explore.Negative)
	if f == nil {
		t.Fatal("no count below zero")
	}
	if again, err := explore.Replay(t.Context(), f.Token, explore.Target{}); err != nil || !again.Broken {
		t.Errorf("the token gives %+v, %v", again, err)
	}
}
