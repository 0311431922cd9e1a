package sim_test

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/quotabench/quotabench/harness"

	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// naive is a limiter as a team might have it: read, compare, write.
type naive struct{ env strategies.Env }

func (n *naive) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	key := n.env.Prefix + string(r.Subject) + ":" + strconv.FormatInt(r.Policy.Window.At(n.env.Clock.Now()).Index, 10)
	used, _ := strategies.Redis(n.env).Get(ctx, key).Int64()
	if used+r.Units > r.Policy.Limit {
		return quota.Decision{Tier: quota.TierRedis}, nil
	}
	return quota.Decision{Admitted: true, Tier: quota.TierRedis},
		strategies.Redis(n.env).Set(ctx, key, used+r.Units, time.Hour).Err()
}

func (n *naive) Close(context.Context) error { return nil }

// A limiter of one's own need not be registered. The same seed gives the same
// figures in every run, so a test can ask for exact ones.
func Example() {
	mine := &strategies.Meta{
		Name: "naive", Doc: "GET, then SET", Form: strategies.Reference, Counts: quota.CountsAdmitted,
		Needs: []strategies.Need{strategies.NeedRedis}, Kinds: []quota.Kind{quota.CalendarHour},
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) { return &naive{env}, nil },
	}
	hotKey, err := workloads.Lookup("hot-key")
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := sim.Run(context.Background(), sim.Config{Plan: harness.Plan{
		Strategies: []strategies.Selection{{Meta: mine}},
		Policy:     quota.Policy{Name: "mine", Limit: 10, Unit: "requests", Window: quota.Window{Kind: quota.CalendarHour}},
		Traffic:    harness.Traffic{Workload: hotKey, Requests: 2_000}, Workers: 8, Seed: 1,
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := report.Runs[0]
	fmt.Printf("limit crossed %d times, leaked: %v\n", r.Leak.Trials, r.Leak.Units > 0)
	// Output: limit crossed 100 times, leaked: true
}
