package explore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// entwined is a strategy with two instances that have something in common.
type entwined struct {
	env  strategies.Env
	have *common
	own  int64
	lock quota.Mutex
}

type common struct {
	n     int64
	event quota.Event
	lock  quota.Mutex
}

func (e *entwined) Close(context.Context) error { return nil }

// entwine makes a strategy whose instances have take's second argument in common.
func entwine(take func(ctx context.Context, e *entwined) error) strategies.Selection {
	var have *common
	return strategies.Selection{Meta: &strategies.Meta{
		Name: "planted", Doc: "has memory in common", Form: strategies.Baseline, Counts: quota.CountsNothing,
		Kinds: []quota.Kind{quota.Standing}, Reset: strategies.ResetsMissing,
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			if env.Instance == 0 {
				have = &common{event: env.Clock.NewEvent(), lock: env.Clock.NewMutex()}
			}
			return taker{&entwined{env: env, have: have, lock: env.Clock.NewMutex()}, take}, nil
		},
	}}
}

type taker struct {
	*entwined
	take func(ctx context.Context, e *entwined) error
}

func (t taker) Take(ctx context.Context, _ quota.Request) (quota.Decision, error) {
	return quota.Decision{Tier: quota.TierRedis}, t.take(ctx, t.entwined)
}

// Used tells what an instance remembers for itself.
func (t taker) Used(context.Context, quota.Subject, *quota.Policy) ([]quota.Reading, error) {
	return []quota.Reading{{Tier: quota.TierProcess, Units: t.own, Known: true}}, nil
}

// A step that is one of several in a run leads to the same as in a run of its own: in
// strategies without memory and with some, with faults, and when instances have memory
// or an event in common that the search was not told of.
func TestBranchesAsAlone(t *testing.T) {
	testenv.Sequential(t)
	counts := entwine(func(ctx context.Context, e *entwined) error {
		for range 2 {
			if err := strategies.Redis(e.env).Incr(ctx, "n").Err(); err != nil {
				return err
			}
			e.have.n++
		}
		return nil
	})
	waits := entwine(func(ctx context.Context, e *entwined) error {
		if err := strategies.Redis(e.env).Incr(ctx, "n").Err(); err != nil {
			return err
		}
		if e.env.Instance == 0 {
			e.have.event.Set()
			return strategies.Redis(e.env).Incr(ctx, "n").Err()
		}
		if err := e.have.event.Wait(ctx); err != nil {
			return err
		}
		return strategies.Redis(e.env).Incr(ctx, "n").Err()
	})
	remembers := entwine(func(ctx context.Context, e *entwined) error {
		for range 2 {
			if err := strategies.Redis(e.env).Incr(ctx, "n").Err(); err != nil {
				return err
			}
			e.own++
		}
		return nil
	})
	all := []quota.Fault{quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry, quota.FaultClock, quota.FaultEviction,
		quota.FaultOutage}
	for i, c := range []struct {
		name   string
		sel    strategies.Selection
		cfg    Config
		shares bool // several steps are taken in one run now and then
	}{
		{name: "check-then-set", shares: true},
		{name: "lua-reserve", cfg: Config{Faults: all}, shares: true},
		{name: "lua-reserve", shares: true},
		{name: "redis-hash", shares: true},
		{name: "redis-hash", cfg: Config{Faults: all}, shares: true},
		{name: "three-tier", cfg: Config{Faults: all}, shares: true},
		{name: "three-tier", cfg: Config{Instances: 2}, shares: true},
		{name: "app-lock", cfg: Config{Faults: all}, shares: true},
		{name: "app-lock", cfg: Config{Instances: 1}},
		{name: "memory in common", sel: counts},
		{name: "an event in common", sel: waits},
		{name: "memory of its own", sel: remembers, shares: true},
	} {
		t.Run(fmt.Sprintf("%s %d", c.name, i), func(t *testing.T) {
			if c.sel.Meta == nil {
				chosen := testkit.Strategy(t, c.name)
				c.sel = chosen
			}
			c.cfg.Clients = 3
			cfg, err := c.cfg.Complete(c.sel)
			if err != nil {
				t.Fatal(err)
			}
			_, err = explored(t.Context(), c.sel, cfg, func(s *search) (any, error) {
				if err := s.serially(); err != nil {
					return nil, err
				}
				for _, p := range s.newResult().Properties {
					s.wanted[p] = true
				}
				r := rand.New(rand.NewPCG(3, uint64(i))) //nolint:gosec // has to repeat
				together := 0
				for range testenv.Pick(2, 12) {
					n, err := branchAtRandom(t, s, r)
					if err != nil {
						return nil, err
					}
					together += n
				}
				if c.shares && together == 0 {
					t.Error("each step had a run of its own")
				}
				return nil, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// branchAtRandom takes, from all states of a schedule, all steps in runs of their own and
// together, and returns how many of those were not the first of a run.
func branchAtRandom(t *testing.T, s *search, r *rand.Rand) (together int, err error) {
	t.Helper()
	b := s.Engine.(engine.Brancher)
	var path []engine.Choice
	for {
		if err := s.goTo(path); err != nil {
			return 0, err
		}
		next := s.Enabled(nil, false)
		trail := s.trail()
		if len(next) == 0 {
			return together, s.End()
		}
		alone := map[engine.Choice]string{}
		for _, c := range next {
			alone[c], err = seenOf(s, s.retrace(append(path[:len(path):len(path)], c), trail, false))
			if err != nil {
				return 0, err
			}
		}
		if err := compareOnward(t, s, path, next, trail, alone); err != nil {
			return 0, err
		}
		r.Shuffle(len(next), func(i, j int) { next[i], next[j] = next[j], next[i] })
		for i, c := range next {
			var got string
			if i == 0 {
				got, err = seenOf(s, b.Branch(append(path[:len(path):len(path)], c), trail, true))
			} else {
				ok, stepped := b.Again(c)
				if !ok && stepped == nil {
					continue
				}
				got, err = seenOf(s, stepped)
				together++
			}
			if err != nil {
				return 0, err
			}
			if want := alone[c]; i == 0 && got != want || i > 0 && b.Sound() && got != want {
				t.Fatalf("%v after %v, of %v:\n%s\nalone:\n%s", c, path, next, got, want)
			}
		}
		path = append(path, next[r.IntN(len(next))])
	}
}

// compareOnward takes each step of a state and one after it in the same run, and both in runs of their own.
func compareOnward(t *testing.T, s *search, path, next []engine.Choice, trail []engine.Digest,
	alone map[engine.Choice]string) error {
	t.Helper()
	for _, first := range next {
		once := append(path[:len(path):len(path)], first)
		got, err := seenOf(s, s.retrace(once, trail, false))
		if err != nil || got != alone[first] {
			return err
		}
		further := s.Enabled(nil, false)
		if len(further) == 0 {
			continue
		}
		later := s.trail()
		went, err := s.Engine.(engine.Brancher).Onward(further[0])
		if !went && err == nil {
			continue
		}
		got, err = seenOf(s, err)
		if err != nil {
			return err
		}
		want, err := seenOf(s, s.retrace(append(once, further[0]), later, false))
		if err != nil {
			return err
		}
		if got != want {
			t.Fatalf("%v after %v in one run:\n%s\nalone:\n%s", further[0], once, got, want)
		}
	}
	return nil
}

// seenOf is all that a search looks at after a step.
func seenOf(s *search, err error) (string, error) {
	if err != nil {
		return "", err
	}
	found, err := s.check(s.wanted)
	if err != nil {
		return "", err
	}
	hash, err := s.Engine.State()
	if err != nil {
		return "", err
	}
	readings, known := s.Used()
	var flights []engine.Place
	for i := range s.trail() {
		flights = append(flights, s.Flight(i))
	}
	return fmt.Sprintf("%v\n%x\n%x\n%v\n%v\n%v\n%+v\n%+v %t", found, hash, s.trail(), s.Enabled(nil, s.symmetric), flights,
		s.Run.Paused, s.Look(), readings, known), nil
}
