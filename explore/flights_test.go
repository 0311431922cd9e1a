package explore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// wordy is a limiter of a library: it names its windows by the clock of package time and
// asks its store several times for nothing before it decides, by one command or, if it is
// racy, by two. If it learns, the first call starts a goroutine that asks for settings.
type wordy struct {
	rdb          redis.UniversalClient
	limit, wrong int64 // the number of a request that is admitted over the limit
	asks         int
	racy, learns bool
	first        sync.Once
}

func (w *wordy) Allow(_ context.Context, key string) (ok bool, err error) {
	w.first.Do(func() {
		if w.learns {
			go func() {
				_ = w.ask(2)
			}()
		}
	})
	return w.decide(key)
}

// ask reads what is not there.
func (w *wordy) ask(times int) error {
	for range times {
		if err := w.rdb.Get(context.Background(), "nothing").Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	return nil
}

func (w *wordy) decide(key string) (bool, error) {
	ctx := context.Background()
	if err := w.ask(w.asks); err != nil {
		return false, err
	}
	key = fmt.Sprint(key, time.Now().Unix()/60) //nolint:forbidigo // what is tested is code that does this
	if !w.racy {
		n, err := w.rdb.Incr(ctx, key).Result()
		return n <= w.limit || n == w.wrong, err
	}
	n, err := w.rdb.Get(ctx, key).Int64()
	if err != nil && !errors.Is(err, redis.Nil) || n >= w.limit {
		return false, err
	}
	return true, w.rdb.Set(ctx, key, n+1, 2*time.Minute).Err()
}

func wordyOne(t *testing.T, racy, learns bool) strategies.Selection {
	t.Helper()
	asks := map[bool]int{false: 12, true: 6}[learns]
	return foreign(t, func(env strategies.Env, p *quota.Policy) strategies.Allower {
		return &wordy{rdb: strategies.Redis(env), limit: p.Limit, asks: asks, racy: racy, learns: learns}
	}, strategies.NeedRedis)
}

// wordyMeta is one that admits the third caller, which is registered in the processes of searches.
func wordyMeta() strategies.Meta {
	m := strategies.FromFunc("wordy", []quota.Kind{quota.Fixed},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			return &wordy{rdb: strategies.Redis(env), limit: p.Limit, wrong: 3, asks: 6}, nil
		})
	m.Foreign = true
	return m
}

// A search in a process of its own has a second part as one in this process has.
func TestIsolatedFewPreemptions(t *testing.T) {
	testenv.Sequential(t)
	m := wordyMeta()
	sel, err := m.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := explore.Config{Policy: policy(t, "1 request per fixed 1m"), Clients: 3, Limit: 1,
		Properties: []explore.Property{explore.Leak}, Bounds: explore.Bounds{MaxStates: 150}}
	there, err := explore.Run(t.Context(), sel, isolated(cfg))
	if err != nil {
		t.Fatal(err)
	}
	here, err := explore.Run(t.Context(), sel, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if f := found(t, there, explore.Leak); f.Preemptions == nil || there.Bounded == nil {
		t.Errorf("found %+v by %+v", f, there.Bounded)
	}
	want, err := json.Marshal(here)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(there); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s\nin this process\n%s\n%v", got, want, err)
	}
}

// A bug of a library that lies deeper than a search of all schedules comes is found if
// it needs few preemptions, and a twin without it is claimed to have none with so few. A
// goroutine of the library's own is interrupted, and interrupts, as callers do.
func TestForeignFewPreemptions(t *testing.T) {
	testenv.Long(t)
	testenv.Sequential(t)
	for _, learns := range []bool{false, true} {
		cfg := explore.Config{Policy: policy(t, "1 request per fixed 1m"), Clients: 3, Limit: 1,
			Properties: []explore.Property{explore.Leak}, Bounds: explore.Bounds{MaxStates: 2300}}
		if learns {
			cfg.Clients = 2
			cfg.Instances = 1
			cfg.MaxStates = 2000
		}
		r, err := explore.Run(t.Context(), wordyOne(t, true, learns), cfg)
		if err != nil {
			t.Fatal(err)
		}
		f := found(t, r, explore.Leak)
		if f.Preemptions == nil || *f.Preemptions != 1 || len(f.Steps) < 15 || r.Depth >= len(f.Steps) {
			t.Errorf("learns %t: %d steps, %v preemptions; all schedules were searched to a depth of %d", learns, len(f.Steps),
				f.Preemptions, r.Depth)
		}
		if again, err := explore.ReplayOf(t.Context(), wordyOne(t, true, learns), f.Token, explore.Target{}); err != nil ||
			!again.Broken {
			t.Errorf("learns %t, again: %+v, %v", learns, again, err)
		}
		cfg.Preemptions = -1
		if r, err := explore.Run(t.Context(), wordyOne(t, true, learns), cfg); err != nil || r.Found(explore.Leak) != nil ||
			r.Bounded != nil {
			t.Errorf("learns %t, without preemptions: %+v, %v", learns, r, err)
		}
		cfg.Preemptions = 1
		claim := "all schedules with at most 1 preemption ("
		if learns { // callers share an instance, so a reply is a step, too
			claim = "all schedules with at most 1 preemption before a command ("
		}
		r, err = explore.Run(t.Context(), wordyOne(t, false, learns), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Findings) > 0 || r.Bounded == nil || r.Bounded.Preemptions == nil || *r.Bounded.Preemptions != 1 ||
			r.Bounded.Capped != "" ||
			!strings.Contains(r.Claim, claim) || strings.Contains(r.Claim, "each goroutine that the limiter starts") != learns {
			t.Errorf("learns %t, the clean one: %+v, %s", learns, r.Bounded, r.Claim)
		}
	}
}
