package explore

import (
	"github.com/quotabench/quotabench/quota"
	"math/rand/v2"
	"testing"

	"github.com/quotabench/quotabench/internal/memredis"

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
			st := newInProcess(memredis.New(), start)
			defer st.close() //nolint:errcheck // nothing was written that matters
			w := newWorld(chosen[0], cfg, st, start)
			defer w.close()
			res, err := w.search(t.Context())
			if err != nil || res.Capped != "" {
				t.Fatalf("searched %d states, ended by %q, %v", res.States, res.Capped, err)
			}
			r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // has to repeat
			for range walks {
				if err := w.begin(); err != nil {
					t.Fatal(err)
				}
				for n := 1; ; n++ {
					next := w.enabled(nil, true)
					if len(next) == 0 {
						break
					}
					if err := w.apply(next[r.IntN(len(next))]); err != nil {
						t.Fatal(err)
					}
					hash, err := w.state()
					if err != nil {
						t.Fatal(err)
					}
					if _, met := w.seen[hash]; !met {
						t.Fatalf("a walk came to a state after %d steps that was not among %d", n, res.States)
					}
				}
			}
			t.Logf("%d states, %d walks", res.States, walks)
		})
	}
}
