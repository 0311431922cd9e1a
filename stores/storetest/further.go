package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/quotabench/quotabench/stores"
)

// furtherStores are the stores of [Further].
var furtherStores struct {
	mu    sync.Mutex
	m     map[string]*shared[stores.Store]
	order []*shared[stores.Store]
}

// Further returns a store of this test binary beside [Redis] or [Postgres], by the
// name by which a run knows it, e.g. "redis.2", "redis.durable" or
// "postgres.replica". It is started as a process, once, and shared.
func Further(t testing.TB, name string) stores.Store {
	t.Helper()
	d, err := stores.DriverOf(name)
	if err != nil {
		t.Fatal(err)
	}
	var main stores.Store
	switch d.Name {
	case "redis":
		main = Redis(t)
	case "postgres":
		main = Postgres(t)
	default:
		t.Fatalf("no store beside %s is started here", d.Name)
	}
	if name == d.Name {
		return main
	}
	furtherStores.mu.Lock()
	s := furtherStores.m[name]
	if s == nil {
		s = &shared[stores.Store]{open: func(ctx context.Context) (stores.Store, error) {
			st, err := d.Further(ctx, stores.Further{Name: name, Main: main, MainSpec: "process"})
			if err != nil {
				return nil, fmt.Errorf("start %s: %w", name, err)
			}
			return st, nil
		}}
		if furtherStores.m == nil {
			furtherStores.m = map[string]*shared[stores.Store]{}
		}
		furtherStores.m[name] = s
		furtherStores.order = append(furtherStores.order, s)
	}
	furtherStores.mu.Unlock()
	return s.get(t, d.Name)
}

func closeFurther() error {
	furtherStores.mu.Lock()
	defer furtherStores.mu.Unlock()
	var errs []error
	for _, s := range slices.Backward(furtherStores.order) {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}
