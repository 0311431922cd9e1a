package explore

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/quotabench/quotabench/harness/explore/engine"
	"github.com/quotabench/quotabench/quota"

	"github.com/quotabench/quotabench/strategies"
)

// Where a search that ran to its end took two states for one that have different
// futures, one of the futures was never met. So no walk at random, which prunes
// nothing, may come to a state that the search has not seen.
func TestWalksMeetNothingNew(t *testing.T) {
	walks := 300
	if testing.Short() {
		walks = 30
	}
	for _, c := range []struct {
		name string
		cfg  Config
	}{
		{"redis-hash:write=through", Config{}},
		{"redis-hash", Config{}},
		{"redis-hash:write=literal", Config{Instances: 1}},
		{"three-tier:write=through", Config{}},
		{"lua-reserve", Config{Scripts: []Script{{{Kind: Take, Units: 1}}}}},
		{"decr-expire", Config{Faults: []quota.Fault{quota.FaultClock, quota.FaultCrash}}},
		{"app-lock", Config{Instances: 1, Faults: []quota.Fault{quota.FaultLostReply}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Properties = []Property{Stuck}
			chosen, err := strategies.Parse(c.name)
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := c.cfg.complete(chosen[0])
			if err != nil {
				t.Fatal(err)
			}
			_, err = explored(t.Context(), chosen[0], cfg, func(s *search) (any, error) {
				if err := s.serially(); err != nil {
					return nil, err
				}
				w := &pass{search: s, so: new(progress), res: s.newResult()}
				for _, p := range w.res.Properties {
					s.wanted[p] = true
				}
				if err := w.walk(t.Context(), 0); err != nil || w.capped != "" {
					t.Fatalf("searched %d states, ended by %q, %v", len(w.graph.nodes), w.capped, err)
				}
				walkAtRandom(t, w, walks, math.MaxInt)
				w.wanted = map[Property]bool{Stuck: true}
				if err := w.few(t.Context(), 2); err != nil || w.capped != "" {
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

// walkAtRandom holds states against those that were met. Preemptions are counted from what
// is seen of a walk alone: which actors have begun something and could go on with it.
func walkAtRandom(t *testing.T, s *pass, walks, most int) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // has to repeat
	for range walks {
		if err := s.Begin(); err != nil {
			t.Fatal(err)
		}
		last, preemptions := -1, 0
		for n := 1; ; n++ {
			next := s.Enabled(nil, true)
			if len(next) == 0 {
				break
			}
			c := next[r.IntN(len(next))]
			preempts := false
			if s.flights != nil && last >= 0 {
				id, ok := c.Actor()
				preempts = !ok || id != last
				if preempts && s.fused && s.flights.Flight(last) == engine.Answering {
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
			if s.flights != nil && last >= 0 && s.flights.Flight(last) == engine.Resting {
				last = -1
			}
			hash, err := s.State()
			if err != nil {
				t.Fatal(err)
			}
			if s.flights != nil {
				hash.Num(uint64(last + 1))
			}
			if _, met := s.graph.seen[hash]; !met {
				t.Fatalf("a walk came to a state after %d steps and %d preemptions that was not among %d", n, preemptions, len(s.graph.nodes))
			}
		}
		if err := s.End(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d states, %d walks", len(s.graph.nodes), walks)
}
