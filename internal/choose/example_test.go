package choose_test

import (
	"context"
	"fmt"
	"time"

	"github.com/quotabench/quotabench/internal/choose"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// A choice between two strategies, on the Redis in this process. What rules a strategy
// out has the schedule or the figure with it; a budget that is too short for all stages
// leaves strategies not tested.
func Example() {
	ctx := context.Background()
	set, err := stores.OpenSet(ctx, []stores.Spec{{Name: "redis", From: "embedded"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close() //nolint:errcheck // nothing is kept there
	selected, err := strategies.Parse("check-then-set,incr-expire-atomic")
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, err := quota.ParsePolicy("10 requests per fixed 1h")
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := choose.Run(ctx, choose.Config{
		Strategies: selected, Policy: policy, Rate: 100, Subjects: 100, Stores: set, Budget: time.Second,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, out := range answer.RuledOut {
		fmt.Printf("%s: %s (%s)\n", out.Strategy, out.Reason.Text, out.Reason.Kind)
	}
	// Output:
	// check-then-set: has no windows: what is used up is not given again when a window ends (declared)
}
