package explore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// A limiter that asks whether anything is left, and not whether enough is, is right for
// requests of one unit. If a policy's requests differ in cost, the second client takes two.
func TestScriptsOfSeveralUnits(t *testing.T) {
	sel := plant(func(ctx context.Context, p *planted, r quota.Request) (quota.Decision, error) {
		left, err := strategies.Redis(p.env).DecrBy(ctx, p.env.Prefix+"k", r.Units).Result()
		return verdict(left+r.Units > -r.Policy.Limit, err)
	})
	for _, c := range []struct {
		policy string
		limit  int64
		leaks  bool
	}{
		{"9 units at a time", 0, false},
		{"9 units at a time costing 5", 0, false},
		{"9 units at a time costing 1 or 5", 1, false},
		{"9 units at a time costing 1 or 5", 0, true},
	} {
		r, err := explore.Run(t.Context(), sel, explore.Config{
			Policy: policy(t, c.policy), Limit: c.limit, Scope: explore.Scope{Asks: -1},
			Properties: []explore.Property{explore.Leak},
		})
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Found(explore.Leak); (f != nil) != c.leaks {
			t.Errorf("%s, limit %d: %+v; %s", c.policy, c.limit, f, r.Claim)
		}
	}
}

// A limiter that serves policies of some figures only is refused by its own words, and by a policy of its own kind.
func TestNoUsualPolicy(t *testing.T) {
	m := strategies.FromFunc("seven", []quota.Kind{quota.Bucket}, nil)
	why := errors.New("it takes seven at a time")
	m.Serves = func(*quota.Policy) error { return why }
	sel, err := m.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = explore.Run(t.Context(), sel, explore.Config{})
	if !errors.Is(err, why) || !strings.Contains(err.Error(), `--policy "10 requests refilling 10 per 1m"`) {
		t.Errorf("error %v", err)
	}
}
