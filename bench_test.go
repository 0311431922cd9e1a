package quotabench_test

import (
	"context"
	"fmt"
	"github.com/quotabench/quotabench/harness"
	"os"
	"slices"
	"testing"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	_ "github.com/quotabench/quotabench/stores/all"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
	"github.com/quotabench/quotabench/workloads"
)

// BenchmarkStrategies runs every registered strategy under every generated
// workload, and reports beside the time per decision:
//
//	p99-ns           99th percentile of the service time
//	leak-units/op    units admitted over the limit, per decision
//	false-rejects-%  requests rejected although there was certainly room
//	drift-%          worst counter at rest against the limit
//	cmds/op          Redis commands and SQL statements per decision
//
// It runs embedded; QUOTABENCH_REDIS and QUOTABENCH_POSTGRES choose other
// stores as --redis and --postgres do. benchstat reads the output:
//
//	go test -bench . -count 10 | tee new.txt && benchstat old.txt new.txt
func BenchmarkStrategies(b *testing.B) {
	ctx := context.Background()
	set, err := stores.OpenSet(ctx, []stores.Spec{
		{Name: "redis", From: env("QUOTABENCH_REDIS", "embedded")},
		{Name: "postgres", From: env("QUOTABENCH_POSTGRES", "embedded")},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer closing(b, set.Close)
	for _, meta := range strategies.All() {
		sel, err := meta.Select(meta.BriskOptions)
		if err != nil {
			b.Fatal(err)
		}
		for _, w := range workloads.All() {
			if w.NeedsTrace {
				continue
			}
			b.Run(fmt.Sprintf("strategy=%s/workload=%s", sel, w.Name), func(b *testing.B) {
				cfg := measure.Config{
					Plan: harness.Plan{
						Strategies: []strategies.Selection{sel}, Workload: w, Policy: policyFor(b, w), Seed: 1, Closed: true, Stores: set,
					},
					Rounds: 1, NoReference: true,
				}
				if all, err := quota.Complete(w.Options, nil); err == nil && w.Takes("subjects") && all.Int("subjects") > maxSubjects {
					cfg.Stream.Set("subjects", maxSubjects)
				}
				benchmark(b, cfg)
			})
		}
	}
}

// maxSubjects keeps setting a benchmark up from taking longer than running it.
const maxSubjects = 1000

// policyFor is the policy that a workload is measured with: the first that has a
// window it makes sense with, and, where crossings are counted, a limit small
// enough to be crossed often.
func policyFor(b *testing.B, w *workloads.Meta) quota.Policy {
	b.Helper()
	for _, name := range []string{"agent-api", "agent-sandboxes"} {
		p, err := quota.LookupPolicy(name)
		if err != nil {
			b.Fatal(err)
		}
		if w.Kinds != nil && !slices.Contains(w.Kinds, p.Window.Kind) {
			continue
		}
		if w.Crosses {
			p.Limit = min(p.Limit, 50)
		}
		return p
	}
	b.Fatalf("no policy for workload %s", w.Name)
	return quota.Policy{}
}

func benchmark(b *testing.B, cfg measure.Config) {
	b.StopTimer()
	cfg.Requests, cfg.Timer = int64(b.N), b
	if err := cfg.CannotRun(cfg.Strategies[0]); err != nil {
		b.Skip(err)
	}
	report, err := measure.Measure(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	r := report.Runs[0]
	for _, x := range r.Audit.Reasons {
		// A benchmark's first passes are too short to cross a limit or a boundary.
		short := x.Code == "limit-never-crossed" || x.Code == "boundary-missed"
		if x.Strikes == results.StrikesCorrectness && !short {
			b.Fatalf("%s: %s", x.Code, x.Detail)
		}
	}
	n := float64(r.Issued)
	b.ReportMetric(float64(r.ElapsedNS)/n, "ns/op")
	b.ReportMetric(float64(r.Service.P99), "p99-ns")
	b.ReportMetric(float64(r.Leak.Units)/n, "leak-units/op")
	b.ReportMetric(r.FalseRejects.PctOfValid, "false-rejects-%")
	b.ReportMetric(r.Cost.Commands+r.Cost.SQL+r.Cost.ModelSQL, "cmds/op")
	if r.Drift != nil {
		b.ReportMetric(r.Drift.PctOfLimit, "drift-%")
	}
}

func env(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

func closing(b *testing.B, f func() error) {
	if err := f(); err != nil {
		b.Error(err)
	}
}
