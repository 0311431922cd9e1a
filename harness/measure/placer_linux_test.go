package measure

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/host/cores"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// seen is where a strategy found its process and its store in mid-run.
type seen struct {
	once            sync.Once
	harness, stores cores.Set
	procs           int
}

// spy looks where it runs at its first measured request.
type spy struct {
	planted
	store stores.Placed
	found *seen
	after func() // what it does then; nil for nothing
}

func (s *spy) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	if r.ID < bounds.WarmUpID {
		s.found.once.Do(func() {
			s.found.harness, _ = cores.AllowedTo(os.Getpid())
			s.found.stores = coresOf(s.store)
			s.found.procs = runtime.GOMAXPROCS(0)
			if s.after != nil {
				s.after()
			}
		})
	}
	return s.planted.Take(ctx, r)
}

// coresOf are the cores that any process of a store may use.
func coresOf(s stores.Placed) (all cores.Set) {
	processes, err := s.Processes(context.Background())
	if err != nil {
		return nil
	}
	for _, pid := range processes {
		own, _ := cores.AllowedTo(pid)
		all = cores.Of(append(all, own...)...)
	}
	return all
}

// spied measures a spy on the given store and returns what it saw and its last run.
func spied(ctx context.Context, t *testing.T, store stores.Store, asked Cores, rate float64,
	after func()) (*seen, *results.Run) {
	t.Helper()
	s := &spy{found: &seen{}, after: after}
	s.store, _ = store.(stores.Placed)
	sel := s.selection()
	sel.Needs = []strategies.Need{strategies.NeedRedis}
	sel.Open = func(context.Context, strategies.Env) (strategies.Strategy, error) { return s, nil }
	plan, err := harness.NewPlan("exact", "agent-api", "hot-key")
	if err != nil {
		t.Fatal(err)
	}
	plan.Strategies = []strategies.Selection{sel}
	plan.Workers = 4
	plan.Duration = 30 * time.Millisecond
	plan.Load = harness.OpenAt(rate)
	plan.Stores = setOf(t, store)
	cfg := Config{
		Plan:   plan,
		Rounds: 1, Cores: asked, ReferenceLength: 10 * time.Millisecond,
	}
	report, err := Measure(ctx, cfg)
	if err != nil || len(report.Runs) != 1 || report.Runs[0].Placement == nil {
		t.Fatalf("%+v, %v", report, err)
	}
	return s.found, &report.Runs[0]
}

// TestPassesArePlaced looks at the cores of the harness and of a Redis while requests
// are measured, and afterwards.
func TestPassesArePlaced(t *testing.T) {
	all, known := cores.Allowed()
	if !known || len(all) < 2 || runtime.GOMAXPROCS(0) < 2 {
		t.Skip("needs two cores")
	}
	redis := storetest.Redis(t)
	procs := runtime.GOMAXPROCS(0)
	half := len(all) - len(all)/2
	order := cores.Adjacent(all)
	first := cores.Of(order[:half]...)
	last := cores.Of(order[half:]...)
	for _, tc := range []struct {
		name            string
		asked           Cores
		rate            float64
		harness, stores cores.Set
		procs           int
	}{
		{"apart", Cores{Mode: CoresApart}, 0, first, last, min(procs, half)},
		{"shared", Cores{Mode: CoresShared}, 0, all, all, procs},
		{"given", Cores{Mode: CoresGiven, Harness: all[1:2], Stores: all[:1]}, 0, all[1:2], all[:1], 1},
		{"overlapping", Cores{Mode: CoresGiven, Harness: all, Stores: all[:1]}, 0, all, all[:1], procs},
		{"open", Cores{Mode: CoresShared}, 2000, all, all, procs},
		{"open, releasing often", Cores{Mode: CoresShared}, 20_000, all, all, max(procs, 3)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found, run := spied(t.Context(), t, redis, tc.asked, tc.rate, nil)
			if !slices.Equal(found.harness, tc.harness) || !slices.Equal(found.stores, tc.stores) || found.procs != tc.procs {
				t.Errorf("harness on %s, Redis on %s, GOMAXPROCS %d; want %s, %s, %d", found.harness, found.stores, found.procs,
					tc.harness, tc.stores, tc.procs)
			}
			if p := run.Placement; p.Procs != tc.procs || p.Harness != "" && p.Harness != tc.harness.String() ||
				p.Stores != "" && p.Stores != tc.stores.String() {
				t.Errorf("recorded as %+v", p)
			}
			free(t, all, procs, redis)
		})
	}
}

// free demands that all is as before a measurement.
func free(t *testing.T, all cores.Set, procs int, store stores.Placed) {
	t.Helper()
	if got, _ := cores.AllowedTo(os.Getpid()); !slices.Equal(got, all) {
		t.Errorf("afterwards the harness may use %s, want %s", got, all)
	}
	if got := coresOf(store); !slices.Equal(got, all) {
		t.Errorf("afterwards the store may use %s, want %s", got, all)
	}
	if got := runtime.GOMAXPROCS(0); got != procs {
		t.Errorf("afterwards GOMAXPROCS is %d, want %d", got, procs)
	}
}

// TestPlacementEndsWithTheMeasurement interrupts a measurement, lets one panic, and
// runs two at the same time.
func TestPlacementEndsWithTheMeasurement(t *testing.T) {
	all, known := cores.Allowed()
	if !known || len(all) < 2 {
		t.Skip("needs two cores")
	}
	redis := storetest.Redis(t)
	procs := runtime.GOMAXPROCS(0)
	ctx, cancel := context.WithCancel(t.Context())
	apart := Cores{Mode: CoresApart}
	spied(ctx, t, redis, apart, 0, cancel)
	free(t, all, procs, redis)
	spied(t.Context(), t, redis, apart, 0, func() { panic("planted") })
	free(t, all, procs, redis)

	var inner *results.Run
	found, run := spied(t.Context(), t, redis, apart, 0, func() {
		_, inner = spied(t.Context(), t, redis, Cores{}, 0, nil)
	})
	if run.Placement.Mode != codes.PlacedApart || len(found.harness) == len(all) {
		t.Errorf("the outer one: %+v", run.Placement)
	}
	if p := inner.Placement; p.Mode != codes.PlacedShared || !strings.Contains(p.Reason, "another measurement") {
		t.Errorf("the inner one: %+v", p)
	}
	free(t, all, procs, redis)
}

// stubborn is a store that cannot be confined.
type stubborn struct{ stores.Store }

func (stubborn) Place() stores.Place                          { return stores.StartedHere }
func (stubborn) Processes(context.Context) ([]int, error)     { return nil, errors.New("unseen") }
func (stubborn) Confine(_ context.Context, cores []int) error { return errors.New("not permitted") }

// TestRefusedPlacement measures with a store that cannot be confined, and says why.
func TestRefusedPlacement(t *testing.T) {
	all, known := cores.Allowed()
	if !known || len(all) < 2 {
		t.Skip("needs two cores")
	}
	found, run := spied(t.Context(), t, stubborn{storetest.EmbeddedRedis(t)}, Cores{Mode: CoresApart}, 0, nil)
	if p := run.Placement; p.Mode != codes.PlacedShared ||
		!strings.Contains(p.Reason, "apart was refused: redis: not permitted") || run.Issued == 0 {
		t.Errorf("%+v, %+v", p, run.Audit)
	}
	if !slices.Equal(found.harness, all) {
		t.Errorf("the harness is on %s, want %s", found.harness, all)
	}
}
