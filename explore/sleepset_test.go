package explore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// graphOf is what the first part of a search has met.
type graphOf struct {
	nodes   []node
	choices []engine.Choice
	seen    map[engine.Digest]struct{}
	broken  []breakage
	depth   int
	capped  string
}

// walked searches the states of a strategy, by the steps of [sleep] or by all.
func walked(t *testing.T, sel strategies.Selection, cfg Config) (out graphOf, runs, left int64) {
	t.Helper()
	cfg, err := cfg.Complete(sel)
	if err != nil {
		t.Fatal(err)
	}
	_, err = explored(t.Context(), sel, cfg, func(s *search) (any, error) {
		if err := s.serially(); err != nil {
			return nil, err
		}
		if err := s.orders(); err != nil {
			return nil, err
		}
		w := &stateSearch{search: s, res: s.newResult()}
		for _, p := range w.res.Properties {
			s.wanted[p] = true
		}
		if err := w.walk(t.Context(), 0); err != nil {
			return nil, err
		}
		runs = w.runs
		left = w.left
		out = graphOf{w.graph.nodes, w.graph.choices, w.graph.seen, w.broken, w.depth, w.capped}
		return nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", sel, err)
	}
	return out, runs, left
}

// sameWalk checks a search that leaves steps out against one that does not. With audited,
// each of these steps is checked against what is known of it, too.
func sameWalk(t *testing.T, sel strategies.Selection, cfg Config) (left int64) {
	t.Helper()
	cfg.everyOrder = true
	want, all, _ := walked(t, sel, cfg)
	cfg.everyOrder = false
	got, runs, left := walked(t, sel, cfg)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%d states, depth %d, %d findings, %q; with all orders %d, %d, %d, %q", len(got.nodes), got.depth,
			len(got.broken), got.capped,
			len(want.nodes), want.depth, len(want.broken), want.capped)
	}
	if runs+left != all {
		t.Errorf("%d steps were tried and %d left out, of %d", runs, left, all)
	}
	cfg.audit = (*stateSearch).audit
	if audited, _, _ := walked(t, sel, cfg); !reflect.DeepEqual(audited, want) {
		t.Error("an audit met other states")
	}
	return left
}

// For every strategy, a search that leaves orders out meets the same states, each first
// by the same step, and finds the same, with and without faults.
func TestSleepingStepsLeadNowhereNew(t *testing.T) {
	testenv.Sequential(t)
	bound := testenv.Pick(40, 300)
	tried := 0
	slept := 0
	for _, m := range strategies.All() {
		if m.NeedsStore(strategies.NeedPostgres) || m.Foreign {
			continue // whose engines take no part
		}
		chosen := testkit.Strategy(t, m.Name)
		if _, err := (Config{}).Complete(chosen); err != nil {
			continue
		}
		for _, cfg := range []Config{
			{Clients: 3, Bounds: Bounds{MaxStates: bound}},
			{Clients: 3, Instances: 2, Bounds: Bounds{MaxStates: bound}, Faults: Faults()},
			{Clients: 2, Bounds: Bounds{MaxStates: bound},
				Faults: []quota.Fault{quota.FaultClock, quota.FaultCrash, quota.FaultEviction},
				Scope:  Scope{Times: 2}},
			{Clients: 3, Bounds: Bounds{MaxStates: bound}, Properties: []Property{Leak, Drift, Stranded, TTL}},
		} {
			cfg.Workers = 1
			if m.Control == "" && tried%5 == 0 {
				cfg.Workers = 3
			}
			tried++
			t.Run(fmt.Sprintf("%s %d", m.Name, tried), func(t *testing.T) {
				if sameWalk(t, chosen, cfg) > 0 {
					slept++
				}
			})
		}
	}
	if tried < 80 || slept < tried/2 {
		t.Errorf("%d searches, of which %d left something out", tried, slept)
	}
}

// planted is an operation of a program at random.
type plantedOp struct{ what, key int }

// randomStrategy makes a strategy of which each client runs a program of its own: commands on
// three keys, some of which depend on what was read, and its instance's memory, mutex and
// random numbers. If shared is set, instances have some memory in common, of which the
// search was not told.
func randomStrategy(r *rand.Rand, length int, shared bool) strategies.Selection {
	kinds := 10
	if shared {
		kinds = 13
	}
	var of [3][]plantedOp
	for i := range of {
		for range 1 + r.IntN(length) {
			of[i] = append(of[i], plantedOp{r.IntN(kinds), r.IntN(3)})
		}
	}
	return entwine(func(ctx context.Context, e *entwined) error {
		client := e.env.Instance
		if client < 0 || client >= len(of) {
			client = 0
		}
		for _, op := range of[client] {
			if err := e.plantedDoes(ctx, op); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *entwined) plantedDoes(ctx context.Context, op plantedOp) error {
	rdb := strategies.Redis(e.env)
	key := fmt.Sprintf("k%d", op.key)
	get := func(key string) (int64, error) {
		n, err := rdb.Get(ctx, key).Int64()
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		return n, err
	}
	switch op.what {
	case 0:
		return rdb.Incr(ctx, key).Err()
	case 1:
		_, err := get(key)
		return err
	case 2: // which other key is written depends on what one holds
		n, err := get(key)
		if err != nil || n%2 == 0 {
			return err
		}
		return rdb.Incr(ctx, fmt.Sprintf("k%d", (op.key+1)%3)).Err()
	case 3:
		return rdb.SetNX(ctx, key, 1, time.Hour).Err()
	case 4:
		return rdb.Del(ctx, key).Err()
	case 5: // what is written depends on the memory
		e.own++
		return rdb.IncrBy(ctx, key, e.own).Err()
	case 6:
		n, err := get(key)
		e.own += n
		return err
	case 7:
		return rdb.DBSize(ctx).Err()
	case 8:
		return rdb.IncrBy(ctx, key, e.env.Rand.Int64N(2)).Err()
	case 9:
		return locked(ctx, e.lock, func() error { return rdb.Incr(ctx, key).Err() })
	case 10:
		e.have.n++
		_, err := get(key)
		return err
	case 11:
		return rdb.IncrBy(ctx, key, e.have.n).Err()
	default: // in the order in which instances get it, each counts on a key of its own
		own := fmt.Sprintf("of %d", e.env.Instance)
		return locked(ctx, e.have.lock, func() error { return rdb.Incr(ctx, own).Err() })
	}
}

func locked(ctx context.Context, m quota.Mutex, f func() error) error {
	if err := m.Lock(ctx); err != nil {
		return err
	}
	defer m.Unlock()
	return f()
}

// Programs at random, too, and on few keys most of what they do has something in common.
func TestSleepingStepsOfPrograms(t *testing.T) {
	testenv.Sequential(t)
	n := testenv.Pick[uint64](4, 8)
	slept := 0
	for seed := range n {
		r := rand.New(rand.NewPCG(seed, 9)) //nolint:gosec // has to repeat
		sel := randomStrategy(r, 4, seed%3 == 0)
		cfg := Config{Clients: 3, Resources: Resources{Workers: 1}, Bounds: Bounds{MaxStates: testenv.Pick(1500, 3000)},
			Scope: Scope{Asks: -1}}
		switch seed % 4 {
		case 1:
			cfg.Instances = 2
		case 2:
			cfg.Clients, cfg.Faults = 2, Faults()
		case 3:
			cfg.Faults = []quota.Fault{quota.FaultLostReply}
			cfg.MaxStates = 1000
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if sameWalk(t, sel, cfg) > 0 {
				slept++
			}
		})
	}
	if slept < int(n)/2 {
		t.Errorf("of %d programs %d left something out", n, slept)
	}
}

// All schedules of small programs, whatever states they lead to, come to the states that
// a search meets which leaves orders out, and to no others.
func TestSleepAgreesWithBruteForce(t *testing.T) {
	testenv.Sequential(t)
	n := testenv.Pick[uint64](2, 8)
	// A program of more schedules is left out, as five of twelve are: all five have more than 20,000, and one has a
	// million.
	const most = 5_000
	tooMany := errors.New("too many schedules")
	compared := 0
	for seed := range n {
		r := rand.New(rand.NewPCG(seed, 10)) //nolint:gosec // has to repeat
		sel := randomStrategy(r, 2, seed%2 == 0)
		cfg := Config{Clients: 2 + int(seed/2%2), Resources: Resources{Workers: 1}, Scope: Scope{Asks: -1}}
		got, _, left := walked(t, sel, cfg)
		cfg, err := cfg.Complete(sel)
		if err != nil {
			t.Fatal(err)
		}
		met := map[engine.Digest]struct{}{}
		schedules := 0
		_, err = explored(t.Context(), sel, cfg, func(s *search) (any, error) {
			if err := s.serially(); err != nil {
				return nil, err
			}
			var all func(path []engine.Choice) error
			all = func(path []engine.Choice) error {
				if err := s.goTo(path); err != nil {
					return err
				}
				hash, err := s.Engine.State()
				if err != nil {
					return err
				}
				met[hash] = struct{}{}
				next := s.Enabled(nil, s.symmetric)
				if len(next) == 0 {
					schedules++
				}
				if schedules > most {
					return tooMany
				}
				for _, c := range next {
					if err := all(append(path[:len(path):len(path)], c)); err != nil {
						return err
					}
				}
				return nil
			}
			return nil, errors.Join(all(nil), s.End())
		})
		if errors.Is(err, tooMany) {
			t.Logf("program %d has more than %d schedules", seed, most)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		compared++
		if !reflect.DeepEqual(got.seen, met) || schedules == 0 {
			t.Errorf("program %d: %d states, and by %d schedules %d", seed, len(got.seen), schedules, len(met))
		}
		t.Logf("%d schedules, %d states, %d steps left out", schedules, len(met), left)
	}
	if compared < int(n)/2 {
		t.Errorf("%d of %d programs have at most %d schedules", compared, n, most)
	}
}

// audit checks what a step that is asleep has led to against what is known of it.
func (w *stateSearch) audit(e *edge) error {
	s := w.sleep
	a := &e.open.asleep[e.number]
	step := w.graph.choices[e.open.next[e.number]]
	path := w.graph.pathTo(e.open.node, nil)
	if _, old := w.graph.seen[e.hash]; !old {
		return fmt.Errorf("step %v after %v is asleep and leads to a new state", step, path)
	}
	to, ok := s.met[e.hash]
	if want := s.rows[a.of][a.number].to; ok && want != to || !ok && want >= 0 {
		return fmt.Errorf("step %v after %v is asleep and leads to state %d, not %d", step, path, to, want)
	}
	if known := s.feet[a.foot]; e.foot != known {
		return fmt.Errorf("step %v after %v is asleep and has footprint %+v, not %+v", step, path, e.foot, known)
	}
	for _, b := range e.found {
		if at, again := w.milder[b.Property]; w.wanted[b.Property] || again && e.paused < w.broken[at].Paused {
			return fmt.Errorf("step %v after %v is asleep and breaks %s", step, path, b.Property)
		}
	}
	return nil
}
