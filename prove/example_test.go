package prove_test

import (
	"context"
	"testing"
	"time"

	"github.com/quotabench/quotabench/prove"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// A limiter that has Allow(ctx, key) is wrapped and proved. This is the whole of a test.
func ExampleLimiter() {
	_ = func(t *testing.T) { // func TestLimiter(t *testing.T) {
		m := strategies.FromFunc("mine", []quota.Kind{quota.Fixed},
			func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
				return counter{rdb: strategies.Redis(env), now: env.Clock.Now, policy: p}, nil
			})
		prove.Limiter(t, &m, prove.Options{Budget: 30 * time.Second})
	}
}
