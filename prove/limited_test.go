package prove

import (
	"context"
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// TestLimited: only a budget that was asked for ends searches that a claim needs. What the suite takes off the budget does
// not.
func TestLimited(t *testing.T) {
	m := strategies.FromFunc("fails", []quota.Kind{quota.Fixed},
		func(context.Context, strategies.Env, *quota.Policy) (strategies.Allower, error) {
			return strategies.AllowFunc(func(context.Context, string) (bool, error) { return true, nil }), nil
		})
	for _, given := range []time.Duration{0, time.Second, -1} {
		_, options, err := Options{Budget: given}.complete(&m)
		if err != nil {
			t.Fatal(err)
		}
		if options.limited != (given != 0) {
			t.Errorf("a budget of %v: limited %t", given, options.limited)
		}
	}
}
