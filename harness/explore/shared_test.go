package explore_test

import (
	"context"
	"testing"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// remembering counts in Redis and begins anew after a count above the limit, from when on its
// instance is to reject by what it remembers of the replies.
func remembering(keep func(seen, n int64) int64) strategies.Selection {
	return plant(func(ctx context.Context, p *planted, r quota.Request) (quota.Decision, error) {
		if p.seen > r.Policy.Limit {
			return verdict(false, nil)
		}
		key := p.env.Prefix + "k"
		n, err := strategies.Redis(p.env).Incr(ctx, key).Result()
		p.seen = keep(p.seen, n)
		if err == nil && n > r.Policy.Limit {
			return verdict(false, strategies.Redis(p.env).Set(ctx, key, 0, 0).Err())
		}
		return verdict(err == nil, err)
	})
}

// Callers of one instance go on after their replies in every order, not only in that in which
// their commands took effect: a count that is remembered too late hides a later one.
func TestRepliesToOneInstanceInEveryOrder(t *testing.T) {
	cfg := explore.Config{Policy: tenants, Clients: 3, Instances: 1, Limit: 2, Scripts: ones, Properties: []explore.Property{explore.Leak}}
	for name, c := range map[string]struct {
		keep  func(seen, n int64) int64
		steps int // of the leak; 0 for none
	}{
		"the last reply":    {func(_, n int64) int64 { return n }, 12},
		"the largest reply": {func(seen, n int64) int64 { return max(seen, n) }, 0},
	} {
		sel := remembering(c.keep)
		r, err := explore.Run(t.Context(), sel, cfg)
		if err != nil {
			t.Fatal(err)
		}
		f := r.Found(explore.Leak)
		if (f != nil) != (c.steps > 0) || f != nil && len(f.Steps) != c.steps || len(r.Withheld) > 0 {
			t.Errorf("%s: %+v; %s", name, f, r.Claim)
		}
		if f == nil {
			continue
		}
		if again, err := explore.ReplayOf(t.Context(), sel, f.Token, explore.Target{}); err != nil || !again.Broken {
			t.Errorf("%s, again: %+v, %v", name, again, err)
		}
	}
}
