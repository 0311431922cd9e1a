package explore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// longWinded asks its store twelve times for nothing before it decides: by one command,
// or by two between which another caller may come.
func longWinded(racy bool) strategies.Selection {
	return plant(func(ctx context.Context, p *planted, r quota.Request) (quota.Decision, error) {
		rdb := strategies.Redis(p.env)
		key := p.env.Prefix + "n"
		for range 12 {
			if err := rdb.Get(ctx, p.env.Prefix+"nothing").Err(); err != nil && !errors.Is(err, redis.Nil) {
				return verdict(false, err)
			}
		}
		if !racy {
			n, err := rdb.Incr(ctx, key).Result()
			return verdict(n <= r.Policy.Limit, err)
		}
		n, err := rdb.Get(ctx, key).Int64()
		if err != nil && !errors.Is(err, redis.Nil) {
			return verdict(false, err)
		}
		if n >= r.Policy.Limit {
			return verdict(false, nil)
		}
		return verdict(true, rdb.Set(ctx, key, n+1, 0).Err())
	})
}

var deep = explore.Config{Clients: 3, Limit: 1, Properties: []explore.Property{explore.Leak},
	Bounds: explore.Bounds{MaxStates: 2300}}

// A bug that lies deeper than a search of all schedules comes is found if it needs few
// preemptions, and a twin without it is claimed to have none with so few. Without the
// second part neither is.
func TestFewPreemptionsReachDeepBugs(t *testing.T) {
	testenv.Sequential(t)
	r, err := explore.Run(t.Context(), longWinded(true), deep)
	if err != nil {
		t.Fatal(err)
	}
	f := found(t, r, explore.Leak)
	if f.Preemptions == nil || *f.Preemptions != 1 || len(f.Steps) < 15 || r.Depth >= len(f.Steps) {
		t.Errorf("%d steps, %v preemptions; all schedules were searched to a depth of %d", len(f.Steps), f.Preemptions,
			r.Depth)
	}
	if again, err := explore.ReplayOf(t.Context(), longWinded(true), f.Token, explore.Target{}); err != nil ||
		!again.Broken {
		t.Errorf("again: %+v, %v", again, err)
	}
	short := deep
	short.Preemptions = -1
	if r, err := explore.Run(t.Context(), longWinded(true), short); err != nil || r.Found(explore.Leak) != nil ||
		r.Bounded != nil {
		t.Errorf("without preemptions: %+v, %v", r, err)
	}
	roomy := deep
	roomy.Preemptions = 1
	roomy.MaxStates = 3000
	r, err = explore.Run(t.Context(), longWinded(false), roomy)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) > 0 || r.Bounded == nil || r.Bounded.Preemptions == nil || *r.Bounded.Preemptions != 1 ||
		!strings.Contains(r.Claim, "all schedules with at most 1 preemption (") {
		t.Errorf("the clean one: %+v, %s", r.Bounded, r.Claim)
	}
}

// Any number of workers finds the same, in both parts of a search.
func TestWorkersFindTheSame(t *testing.T) {
	faults := []quota.Fault{quota.FaultClock, quota.FaultRetry}
	few := deep
	few.MaxStates = testenv.Pick(1000, deep.MaxStates)
	for name, c := range map[string]struct {
		sel strategies.Selection
		cfg explore.Config
	}{
		"long-winded": {longWinded(true), few},
		"lua-reserve": {testkit.Strategy(t, "lua-reserve"), explore.Config{Clients: 3, Faults: faults,
			Bounds: explore.Bounds{MaxStates: 350}}},
		"complete": {testkit.Strategy(t, "lua-reserve"), explore.Config{}},
	} {
		var first []byte
		for _, workers := range []int{1, 3} {
			c.cfg.Workers = workers
			r, err := explore.Run(t.Context(), c.sel, c.cfg)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = got
			}
			if !bytes.Equal(got, first) {
				t.Errorf("%s: %d workers found\n%s\none found\n%s", name, workers, got, first)
			}
		}
	}
}

// A panic on an engine of a worker ends the search as one on the first does.
func TestWorkerPanics(t *testing.T) {
	sel := plant(func(ctx context.Context, p *planted, r quota.Request) (quota.Decision, error) {
		d, err := longWinded(true).Open(ctx, p.env)
		if err != nil {
			return verdict(false, err)
		}
		v, err := d.Take(ctx, r)
		if !v.Admitted {
			return v, err
		}
		if n, _ := strategies.Redis(p.env).Incr(ctx, p.env.Prefix+"admitted").Result(); n == 2 {
			panic("admitted two")
		}
		return v, err
	})
	cfg := deep
	cfg.Workers = 3
	r, err := explore.Run(t.Context(), sel, cfg)
	var p *explore.PanicError
	if !errors.As(err, &p) || r == nil || r.Claim != "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// Among schedules of the same length, the one in which calls are held up least is shown.
func TestShortestPause(t *testing.T) {
	sel := plant(func(ctx context.Context, p *planted, r quota.Request) (quota.Decision, error) {
		began := p.env.Clock.Now()
		err := strategies.Redis(p.env).Set(ctx, p.env.Prefix+"k", 1, 5*time.Hour).Err()
		if p.env.Clock.Now().After(began) {
			p.seen++
			return verdict(false, err)
		}
		return verdict(p.seen > 0 && err == nil, err)
	})
	r, err := explore.Run(t.Context(), sel, explore.Config{
		Clients: 1, Limit: 1, Faults: []quota.Fault{quota.FaultClock}, Properties: []explore.Property{explore.Leak},
		Policy:  quota.Policy{Name: "hourly", Unit: "calls", Window: quota.Window{Kind: quota.CalendarHour}},
		Scripts: []explore.Script{{{Kind: explore.Take, Units: 1}, {Kind: explore.Take, Units: 2}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	// The key lives for five hours, and the window ends in half an hour.
	if f := found(t, r, explore.Leak); f.Paused != 30*time.Minute || f.HeldUp() != "30m" {
		t.Errorf("calls are held up for %v: %s", f.Paused, words(f))
	}
}

// After the first of two callers has read, it is even whether the second reads before the
// first writes: half of all schedules at random leak. A hundred of them are enough.
func TestOdds(t *testing.T) {
	odds := func(samples int) (met, sampled int) {
		f := found(t, run(t, "check-then-set",
			explore.Config{Properties: []explore.Property{explore.Leak},
				Bounds: explore.Bounds{Samples: samples}}), explore.Leak)
		return f.Met, f.Sampled
	}
	if met, sampled := odds(150); sampled != 150 || met < 50 || met > 99 {
		t.Errorf("%d of %d", met, sampled)
	}
	if met, sampled := odds(1000); met != 100 || sampled < 150 || sampled > 250 {
		t.Errorf("%d of %d", met, sampled)
	}
}

// What is held of states is bounded, too.
func TestMemoryIsBounded(t *testing.T) {
	cfg := deep
	cfg.MaxStates = 1_000_000
	cfg.MaxMemory = 1 << 15
	cfg.Preemptions = -1
	r, err := explore.Run(t.Context(), longWinded(false), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r.States < 100 || r.States > 1000 || !strings.Contains(r.Capped, "KiB of memory") {
		t.Errorf("%d states, ended by %s", r.States, r.Capped)
	}
}
