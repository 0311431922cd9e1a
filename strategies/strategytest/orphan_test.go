package strategytest

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// closed asks its store, never admits, and cannot be set up.
type closed struct{ redis redis.UniversalClient }

func (c closed) Take(ctx context.Context, _ quota.Request) (quota.Decision, error) {
	return quota.Decision{Tier: quota.TierRedis}, c.redis.Ping(ctx).Err()
}
func (closed) Close(context.Context) error { return nil }

// TestOrphans: only a record's algorithm may reject what fits without a word, and
// only if it cannot be set up.
func TestOrphans(t *testing.T) {
	s := Stores{Redis: clients(storetest.EmbeddedRedis(t))}
	leak := []quota.Clause{quota.Exactly()}
	never := quota.Clause{
		Property: quota.PropertyFalseReject, Formula: "0", Bound: func(quota.Params) int64 { return 0 },
	}
	for _, c := range []struct {
		name      string
		form      strategies.Form
		guarantee []quota.Clause
		fails     bool
	}{
		{"documented", strategies.Documented, leak, false},
		{"documented, against its word", strategies.Documented, append(leak, never), true},
		{"hardened", strategies.Hardened, leak, true},
	} {
		m := sample(nil)
		m.Form = c.form
		m.Guarantee = c.guarantee
		m.GivesBack = false
		m.Open = func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			return closed{strategies.Redis(env)}, nil
		}
		for _, name := range []string{"sequential", "concurrent"} {
			if r := observe(t, func(tb testing.TB) { named(t, name).run(tb, m, s) }); r.failed != c.fails {
				t.Errorf("%s, %s: failed %v, want %v:\n%s", c.name, name, r.failed, c.fails, r.log.String())
			}
		}
	}
}

func named(t *testing.T, name string) check {
	t.Helper()
	for _, c := range checks {
		if c.name == name {
			return c
		}
	}
	t.Fatalf("there is no check %q", name)
	return check{}
}
