package measure_test

import (
	"context"
	"fmt"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/stores"
)

// Two strategies are measured on the Redis in this process, which the driver in
// stores/redis opens as "embedded"; a URL or "process" is a server. Timings on it say
// nothing, and counts do.
func Example() {
	ctx := context.Background()
	set, err := stores.OpenSet(ctx, []stores.Spec{{Name: "redis", From: "embedded"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close() //nolint:errcheck // nothing is kept there
	plan, err := harness.NewPlan("incr-expire,unlimited", "agent-api", "hot-key")
	if err != nil {
		fmt.Println(err)
		return
	}
	plan.Policy.Limit = 10
	plan.Stores = set
	plan.Workers = 4
	plan.Requests = 400
	plan.Seed = 1
	report, err := measure.Measure(ctx, measure.Config{Plan: plan, Rounds: 1, NoReference: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	leaks := map[string]bool{}
	for _, r := range report.Runs {
		leaks[r.Strategy] = r.Leak.Units > 0
	}
	fmt.Println("incr-expire leaks:", leaks["incr-expire"])
	fmt.Println("unlimited leaks:", leaks["unlimited"])
	// Output:
	// incr-expire leaks: false
	// unlimited leaks: true
}
