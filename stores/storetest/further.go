package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/quotabench/quotabench/stores"
)

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
	return share(t, name, d.Name, func(ctx context.Context) (stores.Store, error) {
		st, err := d.Further(ctx, stores.Further{Name: name, Main: main, MainSpec: "process"})
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", name, err)
		}
		return st, nil
	})
}
