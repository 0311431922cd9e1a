package explore_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// A limiter whose count outlives its instances is refused, and nothing is found or claimed of it.
func TestStateOfThePackage(t *testing.T) {
	var mu sync.Mutex
	used := map[string]int64{}
	m := strategies.FromFunc("everywhere", []quota.Kind{quota.Standing}, func(_ context.Context, _ strategies.Env, p *quota.Policy) (strategies.Allower, error) {
		return strategies.AllowFunc(func(_ context.Context, key string) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			used[key]++
			return used[key] <= p.Limit, nil
		}), nil
	})
	m.Needs = nil
	sel, err := m.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := explore.Run(t.Context(), sel, explore.Config{Policy: policy(t, "10 requests at a time"), Limit: 2})
	if !errors.Is(err, explore.ErrNotDeterministic) || res != nil {
		t.Errorf("error %v beside %+v", err, res)
	}
}
