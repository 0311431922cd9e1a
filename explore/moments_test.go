package explore_test

import (
	"context"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// deadlineScripts are counters of a window that begins with a request.
var deadlineScripts = map[string]string{
	"renewed by each request": `local n = redis.call("INCR", KEYS[1])
redis.call("PEXPIRE", KEYS[1], ARGV[1])
return n`,
	"renewed in the last millisecond": `local n = redis.call("INCR", KEYS[1])
if redis.call("PTTL", KEYS[1]) <= 0 then redis.call("PEXPIRE", KEYS[1], ARGV[1]) end
return n`,
	"set by the first request": `local n = redis.call("INCR", KEYS[1])
if n == 1 then redis.call("PEXPIRE", KEYS[1], ARGV[1]) end
return n`,
	"set in the last millisecond": `if redis.call("PTTL", KEYS[1]) <= 0 then
	redis.call("SET", KEYS[1], 0, "PX", ARGV[1])
end
return redis.call("INCR", KEYS[1])`,
}

// deadlines is a limiter whose key has a deadline as the script has it.
func deadlines(script string) *strategies.Meta {
	text := redis.NewScript(script)
	m := strategies.FromFunc("deadlines", []quota.Kind{quota.FirstRequest},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			return strategies.AllowFunc(func(ctx context.Context, key string) (bool, error) {
				n, err := text.Run(ctx, strategies.Redis(env), []string{key}, p.Window.RealLength().Milliseconds()).Int64()
				return n <= p.Limit, err
			}), nil
		})
	return &m
}

// A deadline that moves with each request, or that is renewed with the old count in its last millisecond, is found
// where time passes between calls; what sets it once is not accused, in virtual time and in a bubble.
func TestSearchesFindWrongDeadlines(t *testing.T) {
	testenv.Sequential(t)
	for name, script := range deadlineScripts {
		for _, foreign := range []bool{false, true} {
			if foreign && !strings.HasSuffix(name, testenv.Pick("in the last millisecond", "")) {
				continue // a bubble is slow
			}
			m := deadlines(script)
			m.Foreign = foreign
			wrong := strings.HasPrefix(name, "renewed")
			if f := firstOf(t, m, explore.FalseReject, explore.Leak, explore.TTL); (f != nil) != wrong {
				t.Errorf("%s, foreign %v: found %+v", name, foreign, f)
			}
		}
	}
}

// firstOf is the first finding of the searches of a limiter that is one of some properties; nil for none.
func firstOf(t *testing.T, meta *strategies.Meta, properties ...explore.Property) *explore.Finding {
	t.Helper()
	sel, err := meta.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := explore.Config{Properties: properties, Bounds: explore.Bounds{MaxStates: 2_000, Preemptions: -1, First: true}}
	for _, cfg := range explore.Searches(sel, cfg) {
		res, err := explore.Run(t.Context(), sel, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Findings) == 0 {
			continue
		}
		f := &res.Findings[0]
		if r, err := explore.ReplayOf(t.Context(), sel, f.Token, explore.Target{}); err != nil || !r.Broken {
			t.Errorf("%s: its token: %+v, %v", meta.Name, r, err)
		}
		return f
	}
	return nil
}

// weighted counts the window before by the share of it that is left, in memory. Its defect: a window that ended long
// ago counts by a share below zero.
type weighted struct {
	policy *quota.Policy
	clock  quota.Clock
	fixed  bool

	mu         sync.Mutex
	hits, last int64
	end        time.Time
}

func (w *weighted) Allow(context.Context, string) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	length := w.policy.Window.RealLength()
	now := w.clock.Now()
	switch {
	case w.end.IsZero() || w.fixed && !now.Before(w.end.Add(length)):
		w.end = now.Add(length)
		w.hits = 0
		w.last = 0
	case now.After(w.end):
		w.end = w.end.Add(length)
		w.last = w.hits
		w.hits = 0
	}
	passed := float64(now.Sub(w.end)+length) / float64(length)
	if w.fixed {
		passed = min(passed, 1)
	}
	count := int64(math.Floor(float64(w.last)*(1-passed))) + w.hits
	if count >= w.policy.Limit {
		return false, nil
	}
	w.hits++
	return true, nil
}

// Windows of which nothing is left after a rest are found by one.
func TestSearchesFindStaleWindows(t *testing.T) {
	testenv.Sequential(t)
	for _, fixed := range []bool{false, true} {
		m := strategies.FromFunc("weighted", []quota.Kind{quota.Rolling},
			func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
				return &weighted{policy: p, clock: env.Clock, fixed: fixed}, nil
			})
		m.Needs = nil
		m.PerProcess = true
		twice := quota.Clause{Property: quota.PropertyLeak, Formula: "2 L",
			Bound: func(p quota.Params) int64 { return p.Limit }}
		m.Guarantee = []quota.Clause{twice, quota.MayReject()}
		f := firstOf(t, &m, explore.Guarantee)
		if (f != nil) == fixed {
			t.Errorf("fixed %v: found %+v", fixed, f)
		}
	}
}
