//go:build linux

package all_test

import (
	"context"
	"slices"
	"testing"

	"github.com/quotabench/quotabench/internal/host/cores"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/postgres"
	"github.com/quotabench/quotabench/stores/redis"
)

// TestConfineServers confines servers that were started here, with connections of
// before and of later: PostgreSQL has a process for each.
func TestConfineServers(t *testing.T) {
	all, ok := cores.Allowed()
	if !ok || len(all) < 2 {
		t.Skip("needs two cores")
	}
	for name, open := range map[string]func(*testing.T) stores.Store{
		"redis process":      func(t *testing.T) stores.Store { return storetest.Redis(t) },
		"redis container":    func(t *testing.T) stores.Store { return storetest.ContainerRedis(t) },
		"postgres process":   func(t *testing.T) stores.Store { return storetest.Postgres(t) },
		"postgres container": func(t *testing.T) stores.Store { return storetest.ContainerPostgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			p, ok := s.(stores.Placed)
			if !ok || p.Place() != stores.StartedHere {
				t.Fatalf("it is %s, want one that was started here", stores.PlaceOf(s))
			}
			confinedTo := func(want cores.Set) {
				t.Helper()
				processes, err := p.Processes(t.Context())
				if err != nil || len(processes) == 0 {
					t.Fatalf("processes %v: %v", processes, err)
				}
				for _, pid := range processes {
					if got, ok := cores.AllowedTo(pid); ok && !slices.Equal(got, want) {
						t.Errorf("process %d may use the cores %s, want %s", pid, got, want)
					}
				}
			}
			connect(t, s)
			last := all[len(all)-1:]
			t.Cleanup(func() {
				if err := p.Confine(context.Background(), all); err != nil { // also after a failure
					t.Error(err)
				}
			})
			if err := p.Confine(t.Context(), last); err != nil {
				t.Fatal(err)
			}
			connect(t, s)
			confinedTo(last)
			if err := p.Confine(t.Context(), all); err != nil {
				t.Fatal(err)
			}
			confinedTo(all)
			if err := p.Confine(t.Context(), nil); err == nil {
				t.Error("no core at all is taken")
			}
		})
	}
}

func connect(t *testing.T, s stores.Store) {
	t.Helper()
	c, err := s.Connect(t.Context(), storetest.Scope(t), stores.ConnOptions{Pool: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
}

// TestPlaces tells servers apart that are ours, next to us, and in this process.
func TestPlaces(t *testing.T) {
	embedded := storetest.EmbeddedRedis(t)
	if got := stores.PlaceOf(embedded); got != stores.InProcess {
		t.Errorf("an embedded Redis is %q", got)
	}
	ours := storetest.Redis(t)
	lent, err := redis.FromClient(t.Context(), ours.Admin())
	if err != nil {
		t.Fatal(err)
	}
	pool, err := postgres.FromPool(t.Context(), storetest.PostgresPool(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []stores.Store{lent, pool} {
		if got := stores.PlaceOf(s); got != stores.OnThisHost {
			t.Errorf("a server at %s is %q, want one on this host", s.Info().Addr, got)
		}
		if err := s.(stores.Placed).Confine(t.Context(), []int{0}); err == nil {
			t.Error("a server that is not ours is confined")
		}
		if n, err := s.(stores.Placed).Processes(t.Context()); err == nil {
			t.Errorf("a server that is not ours has the processes %v", n)
		}
	}
}
