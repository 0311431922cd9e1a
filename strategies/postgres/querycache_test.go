package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
)

// caches are the ways to keep results.
var caches = []string{"pg-query-cache", "pg-query-cache:cache=instance", "pg-query-cache:cache=redis"}

// pair opens two instances of one run.
func pair(t *testing.T, pool *pgxpool.Pool, name string) (a, b strategies.Strategy) {
	t.Helper()
	sel := testkit.Strategy(t, name)
	shared := new(strategies.Shared)
	var client redis.UniversalClient
	if sel.NeedsStore(strategies.NeedRedis) {
		c := storetest.Redis(t).Client(redisstore.ClientOptions{Pool: 4})
		t.Cleanup(func() { _ = c.Close() })
		client = c
	}
	prefix := storetest.Prefix(t)
	var out [2]strategies.Strategy
	for i := range out {
		s, err := sel.Open(t.Context(), strategies.Env{
			Clock: clock.Wall{}, Clients: map[string]any{"postgres": pool, "redis": client}, Prefix: prefix, Instance: i,
			Instances: 2, Shared: shared, Options: sel.Options,
		})
		if err != nil {
			t.Fatal(err)
		}
		out[i] = s
	}
	return out[0], out[1]
}

const tierCache quota.Tier = "query-cache"

// TestAnyWriteEmptiesTheCache: a result is kept until any row of the table changes.
func TestAnyWriteEmptiesTheCache(t *testing.T) {
	for _, name := range caches {
		t.Run(name, func(t *testing.T) { anyWriteEmpties(t, name) })
	}
}

func anyWriteEmpties(t *testing.T, name string) {
	tr := &tracer{}
	s, _ := pair(t, newPool(t, tr), name)
	p := policy(t, "agent-tokens", 10)
	tr.take()
	var held quota.Reservation
	for i, step := range []struct {
		subject    quota.Subject
		units      int64
		admitted   bool
		tier       quota.Tier
		statements string
	}{
		{"a", 4, true, quota.TierPostgres, "SELECT INSERT UPDATE"},
		{"a", 7, false, quota.TierPostgres, "SELECT"},
		{"a", 7, false, tierCache, ""},
		{"b", 1, true, quota.TierPostgres, "SELECT INSERT UPDATE"},
		{"a", 7, false, quota.TierPostgres, "SELECT"},
		{"a", 6, true, tierCache, "UPDATE"},
		{"a", 1, false, quota.TierPostgres, "SELECT"},
		{"a", 1, false, tierCache, ""},
	} {
		d := take(t.Context(), t, s, step.subject, p, step.units)
		if got := tr.take(); d.Admitted != step.admitted || d.Tier != step.tier || got != step.statements {
			t.Errorf("step %d: %+v by %q, want %+v", i, d, got, step)
		}
		if d.Admitted {
			held = d.Reservation
		}
	}
	refund(t, s, held)
	if d := take(t.Context(), t, s, "a", p, 6); !d.Admitted {
		t.Errorf("%+v after 6 were given back", d)
	}
	if m := measured(s); m["cache hits"] != 3 || m["cache misses"] != 6 || m["cache emptied"] != 7 {
		t.Errorf("measured %v", m)
	}
}

// TestOldResultIsNotKept: a write that ends while a result is on its way keeps it
// out of the cache.
func TestOldResultIsNotKept(t *testing.T) {
	for _, name := range caches {
		s, _ := pair(t, newPool(t, &tracer{}), name)
		p := policy(t, "agent-tokens", 10)
		take(t.Context(), t, s, "a", p, 4)
		// The tracer comes before the SELECT is sent, when the generation is known already.
		late := at(t.Context(), "SELECT", func() { take(t.Context(), t, s, "a", p, 6) })
		if d := take(late, t, s, "a", p, 1); d.Admitted {
			t.Errorf("%s: %+v where nothing remains", name, d)
		}
		if d := take(t.Context(), t, s, "a", p, 1); d.Tier != quota.TierPostgres {
			t.Errorf("%s: %+v, want the result not to have been kept", name, d)
		}
	}
}

// TestCacheOfAnInstanceIsStale: it does not hear of the other instance's writes.
func TestCacheOfAnInstanceIsStale(t *testing.T) {
	p := policy(t, "agent-tokens", 10)
	for _, name := range caches {
		stale := name == "pg-query-cache:cache=instance"
		a, b := pair(t, newPool(t, nil), name)
		take(t.Context(), t, a, "a", p, 1)
		take(t.Context(), t, a, "a", p, 10) // rejected, and kept: 9 remain
		take(t.Context(), t, b, "a", p, 9)
		if d := take(t.Context(), t, a, "a", p, 9); d.Admitted != stale {
			t.Errorf("%s: %+v, want admitted %v", name, d, stale)
		}
		if d := take(t.Context(), t, a, "a", p, 1); d.Admitted {
			t.Errorf("%s: %+v after a write of its own", name, d)
		}
		if m := measured(a); m["cache hits"] == 0 && stale {
			t.Errorf("%s: measured %v", name, m)
		}
	}
}
