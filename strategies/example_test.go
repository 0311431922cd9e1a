package strategies_test

import (
	"context"
	"fmt"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// A limiter that says whether a request of a key may pass becomes a strategy. One in
// memory needs no store.
func ExampleFromFunc() {
	meta := strategies.FromFunc("mine", []quota.Kind{quota.Fixed},
		func(_ context.Context, _ strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			left := p.Limit
			return strategies.AllowFunc(func(context.Context, string) (bool, error) {
				left--
				return left >= 0, nil
			}), nil
		})
	meta.Needs = nil
	ctx := context.Background()
	mine, err := meta.Open(ctx, strategies.Env{})
	if err != nil {
		fmt.Println(err)
		return
	}
	policy := quota.Policy{Name: "two an hour", Limit: 2, Unit: "calls",
		Window: quota.Window{Kind: quota.Fixed, Length: time.Hour}}
	for range 3 {
		d, err := mine.Take(ctx, quota.Request{Subject: "alice", Policy: &policy, Units: 1})
		fmt.Println(d.Admitted, err)
	}
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
}
