package strategytest

import (
	"context"
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// bucket admits so many requests of a key and no more.
type bucket struct {
	holds int64
	left  map[string]int64
}

func (b *bucket) Allow(ctx context.Context, key string) (bool, error) {
	if _, ok := b.left[key]; !ok {
		b.left[key] = b.holds
	}
	b.left[key]--
	return b.left[key] >= 0, ctx.Err()
}

// TestClauses: a limiter that rejects what fits needs a clause that says so, which
// may say that nothing bounds it. A leak may be bounded by the policy and by the
// strategy's options.
func TestClauses(t *testing.T) {
	bounded := func(property quota.Property, bound func(quota.Params) int64) []quota.Clause {
		return []quota.Clause{{Property: property, Formula: "as declared", Bound: bound}}
	}
	one := func(quota.Params) int64 { return 1 }
	for name, c := range map[string]struct {
		more   int64 // than the limit
		clause []quota.Clause
		fails  bool
	}{
		"less, and no clause":       {-3, nil, true},
		"less, bounded by nothing":  {-3, []quota.Clause{quota.MayReject()}, false},
		"less, bounded too tightly": {-3, bounded(quota.PropertyFalseReject, one), true},
		"more, bounded too tightly": {3, bounded(quota.PropertyLeak, one), true},
		"more, bounded by an option": {3, bounded(quota.PropertyLeak, func(p quota.Params) int64 {
			return p.Options.Int("burst")
		}), false},
		"more, bounded by the policy": {3, bounded(quota.PropertyLeak, func(p quota.Params) int64 {
			return int64(p.Policy.Window.Length / (20 * time.Minute))
		}), false},
		"more, bounded by nothing": {3, bounded(quota.PropertyLeak, func(quota.Params) int64 {
			return quota.Unbounded
		}), true},
	} {
		m := strategies.FromFunc("bucket", []quota.Kind{quota.Fixed},
			func(_ context.Context, _ strategies.Env, p *quota.Policy) (strategies.Allower, error) {
				return &bucket{p.Limit + c.more, map[string]int64{}}, nil
			})
		m.Needs = nil
		m.Guarantee = c.clause
		m.Options = []quota.Option{{Name: "burst", Doc: "most requests beyond the limit", Type: "int", Default: "3"}}
		failed := false
		log := ""
		for _, check := range []string{"meta", "sequential"} {
			r := observe(t, func(tb testing.TB) { named(t, check).run(tb, &m, Stores{}) })
			failed = failed || r.failed
			log += r.log.String()
		}
		if failed != c.fails {
			t.Errorf("%s: failed %v\n%s", name, failed, log)
		}
	}
}
