package explore

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"

	"github.com/quotabench/quotabench/strategies"
)

// If a search that ran to its end took two states for one that have different
// futures, one of the futures was never met. So no walk at random, which prunes
// nothing, may come to a state that the search has not seen.
func TestWalksMeetNothingNew(t *testing.T) {
	testenv.Sequential(t)
	walks := testenv.Pick(12, 25)
	foreign := func(make func(redis.UniversalClient) strategies.Allower) *strategies.Meta {
		m := strategies.FromFunc("foreign", []quota.Kind{quota.Fixed},
			func(_ context.Context, env strategies.Env, _ *quota.Policy) (strategies.Allower, error) {
				return make(strategies.Redis(env)), nil
			})
		m.Foreign = true
		return &m
	}
	calls := foreign(func(rdb redis.UniversalClient) strategies.Allower { return &chatting{rdb: rdb} })
	aside := foreign(func(rdb redis.UniversalClient) strategies.Allower { return &chatting{rdb: rdb, aside: true} })
	brief := foreign(func(rdb redis.UniversalClient) strategies.Allower { return brief{rdb} })
	minute := quota.Policy{Name: "calls", Unit: "calls", Window: quota.Window{Kind: quota.Fixed, Length: time.Minute}}
	one := []Script{{{Kind: Take, Units: 1}}}
	for _, c := range []struct {
		name    string
		cfg     Config
		foreign *strategies.Meta
	}{
		{"redis-hash:write=through", Config{}, nil},
		{"redis-hash", Config{}, nil},
		{"redis-hash:write=literal", Config{Instances: 1}, nil},
		{"three-tier:write=through", Config{}, nil},
		{"lua-reserve", Config{Scripts: one}, nil},
		{"decr-expire", Config{Faults: []quota.Fault{quota.FaultClock, quota.FaultCrash}}, nil},
		{"app-lock", Config{Instances: 1, Faults: []quota.Fault{quota.FaultLostReply}}, nil},
		{"foreign", Config{Clients: 3}, calls},
		{"foreign, one instance", Config{Instances: 1, Scripts: one}, calls},
		{"foreign, aside", Config{}, aside},
		{"foreign, aside, one instance", Config{Instances: 1, Limit: 2}, aside},
		{"foreign, time", Config{Faults: []quota.Fault{quota.FaultClock}, Scope: Scope{Asks: -1},
			Bounds: Bounds{MaxStates: 5000}}, brief},
		{"foreign, faults", Config{Faults: []quota.Fault{quota.FaultCrash, quota.FaultLostReply}}, calls},
	} {
		t.Run(c.name, func(t *testing.T) {
			switch c.name {
			// many states
			case "three-tier:write=through", "foreign", "foreign, one instance", "foreign, aside, one instance", "foreign, time",
				"foreign, faults":
				testenv.Long(t)
			}
			c.cfg.Properties = []Property{Stuck}
			var chosen []strategies.Selection
			var err error
			if c.foreign == nil {
				chosen, err = strategies.Parse(c.name)
			} else {
				c.cfg.Policy = minute
				chosen = make([]strategies.Selection, 1)
				chosen[0], err = c.foreign.Select(nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := c.cfg.Complete(chosen[0])
			if err != nil {
				t.Fatal(err)
			}
			_, err = explored(t.Context(), chosen[0], cfg, func(s *search) (any, error) {
				if err := s.serially(); err != nil {
					return nil, err
				}
				w := &stateSearch{search: s, res: s.newResult()}
				for _, p := range w.res.Properties {
					s.wanted[p] = true
				}
				if !slices.Contains(cfg.Faults, quota.FaultClock) || c.foreign == nil { // all moments of a bubble would be too many
					if err := w.walk(t.Context(), 0); err != nil || w.capped != "" {
						t.Fatalf("searched %d states, ended by %q, %v", len(w.graph.nodes), w.capped, err)
					}
					walkAtRandom(t, w, walks, math.MaxInt)
				}
				w.wanted = map[Property]bool{Stuck: true}
				if err := w.withFewPreemptions(t.Context(), 2); err != nil || w.capped != "" {
					t.Fatalf("searched %d states with few preemptions, ended by %q, %v", len(w.graph.nodes), w.capped, err)
				}
				walkAtRandom(t, w, walks/3, 2)
				return nil, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// walkAtRandom checks states against those that were met. Preemptions are counted from what
// is seen of a walk alone: which actors have begun something and could go on with it.
func walkAtRandom(t *testing.T, s *stateSearch, walks, most int) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // has to repeat
	for range walks {
		if err := s.Begin(); err != nil {
			t.Fatal(err)
		}
		last := -1
		preemptions := 0
		for n := 1; ; n++ {
			next := s.Enabled(nil, s.symmetric)
			if len(next) == 0 {
				break
			}
			c := next[r.IntN(len(next))]
			preempts := false
			if s.counts && last >= 0 {
				id, ok := c.Actor()
				preempts = !ok || id != last
				if preempts && s.fused && s.Flight(last) == engine.Answering {
					break // left out, as the claim says
				}
			}
			switch {
			case c.Kind == engine.TickClock && c.ID != engine.TickWaiter && !s.Look().AtRest:
				preemptions += 2
			case preempts:
				preemptions++
			}
			if preemptions > most {
				break
			}
			if err := s.Step(c); err != nil {
				t.Fatal(err)
			}
			if id, ok := c.Actor(); ok {
				last = id
			}
			if s.counts && last >= 0 {
				rests := !s.Flight(last).InFlight()
				// In a bubble, an actor that can take a step is at the store, where no
				// script has a second action.
				if goesOn := slices.Contains(s.Enabled(nil, false),
					engine.Choice{Kind: engine.StepActor, ID: last}); s.sel.Foreign && goesOn == rests {
					t.Fatalf("after %s actor %d rests: %t, and could take a step: %t", c, last, rests, goesOn)
				}
				if rests {
					last = -1
				}
			}
			hash, err := s.Engine.State()
			if err != nil {
				t.Fatal(err)
			}
			if s.counts {
				hash.Num(uint64(last + 1))
			}
			if _, met := s.graph.seen[hash]; !met {
				t.Fatalf("a walk came to a state after %d steps and %d preemptions that was not among %d", n, preemptions,
					len(s.graph.nodes))
			}
		}
		if err := s.End(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d states, %d walks", len(s.graph.nodes), walks)
}

// chatting is a library's limiter that reads a counter and raises it, on goroutines of its
// own if it works aside.
type chatting struct {
	rdb   redis.UniversalClient
	aside bool
	seen  atomic.Int64 // of the counter, by all callers of the instance
}

// Allow implements [strategies.Allower].
func (c *chatting) Allow(_ context.Context, key string) (ok bool, err error) {
	if !c.aside {
		return c.decide(key)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		ok, err = c.decide(key)
	}()
	<-done
	return ok, err
}

func (c *chatting) decide(key string) (bool, error) {
	ctx := context.Background()
	n, err := c.rdb.Get(ctx, key).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, err
	}
	if n < c.seen.Load() { // it has expired
		key += ":again"
	}
	after, err := c.rdb.Incr(ctx, key).Result()
	if err != nil {
		return false, err
	}
	c.seen.Store(after)
	return n == 0, c.rdb.Expire(ctx, key, time.Minute).Err()
}

// brief is a library's limiter that raises a counter and then has it expire.
type brief struct{ rdb redis.UniversalClient }

// Allow implements [strategies.Allower].
func (b brief) Allow(ctx context.Context, key string) (bool, error) {
	n, err := b.rdb.Incr(ctx, key).Result()
	return n == 1, errors.Join(err, b.rdb.Expire(ctx, key, time.Minute).Err())
}
