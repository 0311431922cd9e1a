// Package bench measures strategies under go test -bench. A module that registers strategies of its own gets all of it
// in one line of a test:
//
//	func BenchmarkStrategies(b *testing.B) { bench.Run(b) }
//
// Beside the time per decision a benchmark reports:
//
//	decisions/INCR   throughput by that of a bare client's INCR loop right before and after: survives a noisy machine
//	p99-ns           99th percentile of the service time
//	leak-units/op    units admitted over the limit, per decision
//	cmds/op          Redis commands and SQL statements per decision
//	false-rejects-%  requests rejected although there was certainly room
//	drift-%          worst counter at rest against the limit
//
// The leak is always there. What a strategy promises to be 0 is left out as long as it is: false rejects if a clause
// allows none, and drift if no leak is allowed either. The units are those of quotabench report --format gobench, and
// benchstat compares the two.
package bench

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/export"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	_ "github.com/quotabench/quotabench/stores/postgres" // its driver
	_ "github.com/quotabench/quotabench/stores/redis"    // its driver
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// Run measures strategies, or every registered one if none are given, under every
// generated workload that they can serve: a sub-benchmark each, named
// strategy=NAME/workload=NAME. Stores are those that quotabench run uses: a server that is
// installed, or else an embedded one. QUOTABENCH_REDIS, QUOTABENCH_POSTGRES and the like choose
// others as --redis and --postgres do. A line before the results names each, and each strategy
// that is left out with the reason.
func Run(b *testing.B, metas ...*strategies.Meta) {
	b.Helper()
	if len(metas) == 0 {
		metas = strategies.All()
	}
	if len(metas) == 0 {
		b.Fatal("no strategy is registered: import strategies/all, or your own")
	}
	var selections []strategies.Selection
	needed := []string{string(strategies.NeedRedis)} // which has the reference loop
	for _, meta := range metas {
		sel, err := meta.Select(meta.BriskOptions)
		if err != nil {
			b.Fatal(err)
		}
		selections = append(selections, sel)
		for _, need := range sel.Needs {
			needed = append(needed, need.Store())
		}
	}
	set, said, err := opened(b.Context(), needed)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := set.Close(); err != nil {
			b.Error(err)
		}
	}()
	var list []*measured
	for _, sel := range selections {
		served, reason := under(sel, set)
		if len(served) == 0 {
			said += fmt.Sprintf("Left out: %s: %s\n", sel.Name, format.OneLine(reason.Error()))
		}
		list = append(list, served...)
	}
	// Of all the output only these lines are not results: the stores, by which benchstat tells records apart, strategies
	// that are left out, and what it takes for better.
	if _, err := os.Stdout.WriteString(said + export.Units); err != nil {
		b.Fatal(err)
	}
	for _, m := range list {
		b.Run(export.SubName(m.sel.String(), m.workload.Name), m.pass)
	}
}

// under are the measurements of a strategy under the generated workloads that it can serve, and why it cannot serve the
// others.
func under(sel strategies.Selection, set *stores.Set) (list []*measured, reason error) {
	for _, workload := range workloads.All() {
		if workload.NeedsTrace {
			continue
		}
		m := &measured{sel: sel, workload: workload, stores: set}
		cfg := m.config()
		if err := choosePolicy(&cfg, sel); err != nil {
			reason = cmp.Or(reason, err)
			continue
		}
		list = append(list, m)
	}
	return list, reason
}

// opened are the stores that are needed and can be had, and a line about each main one.
func opened(ctx context.Context, needed []string) (set *stores.Set, said string, err error) {
	var specs []stores.Spec
	for _, driver := range stores.Drivers() {
		chosen := os.Getenv("QUOTABENCH_" + strings.ToUpper(driver.Name))
		if from := cmp.Or(chosen, driver.Default); from != "" {
			specs = append(specs, stores.Spec{Name: driver.Name, From: from, Optional: chosen == ""})
		}
	}
	set, err = stores.OpenNeeded(ctx, specs, needed)
	if err != nil {
		return nil, "", err
	}
	for _, spec := range specs {
		info, known := set.Absent(spec.Name)
		if store, ok := set.Get(spec.Name); ok {
			info = store.Info()
			known = true
		}
		if known {
			said += spec.Name + ": " + info.Text() + "\n"
		}
	}
	return set, said, nil
}

// usualPolicy is that of strategies which serve it, so that they are compared under one.
const usualPolicy = "agent-api"

// maxSubjects keeps setting a benchmark up from taking longer than running it.
const maxSubjects = 1000

// measured is one strategy under one workload.
type measured struct {
	sel      strategies.Selection
	workload *workloads.Meta
	stores   *stores.Set
	// perRequest is how long a request took in the last pass that was carried out; 0 before
	// the first.
	perRequest time.Duration
}

// trial is how many requests tell how long one takes.
const trial = 250

// foretold is the share of the time asked for up to which a pass is not carried out.
const foretold = 0.25

// pass measures b.N requests. The testing package makes passes of more and more of them,
// a hundred times as many at most, until one takes as long as -benchtime asks for; that one
// counts. Those that are far too short only tell it how long a request takes. One trial
// says that as well, after which they take the time that they would, and leave stores and
// workers alone. What is carried out has its reference loops: it may be what counts.
func (m *measured) pass(b *testing.B) {
	b.StopTimer()
	target, known := benchTime()
	if known && m.perRequest == 0 {
		m.measure(b, trial, nil, 0)
	}
	expected := time.Duration(b.N) * m.perRequest
	if known && float64(expected) < foretold*float64(target) {
		b.StartTimer()
		for end := clock.Nano() + int64(expected); clock.Nano() < end; { // a sleep would be late
		}
		b.StopTimer()
		if b.Elapsed() < target {
			return
		}
		// The machine was busy elsewhere for so long that this pass counts.
		b.ResetTimer()
	}
	length := min(max(target/20, time.Millisecond), bounds.RoundDuration)
	run := m.measure(b, b.N, b, length)
	for _, metric := range export.Metrics(run) {
		b.ReportMetric(metric.Value, metric.Unit)
	}
}

// measure carries out that many requests, with a reference loop before and after that
// lasts as long as said, and none of 0.
func (m *measured) measure(b *testing.B, requests int, timer measure.Timer, reference time.Duration) *results.Run {
	cfg := m.config()
	cfg.Requests = int64(requests)
	cfg.NoReference = reference == 0
	cfg.ReferenceLength = reference
	cfg.Timer = timer
	if err := choosePolicy(&cfg, m.sel); err != nil {
		b.Fatal(err)
	}
	report, err := measure.Measure(context.WithoutCancel(b.Context()), cfg)
	if err != nil {
		b.Fatal(err)
	}
	if len(report.Runs) == 0 {
		b.Fatalf("no run: %+v", report.Skipped)
	}
	run := &report.Runs[0]
	for _, reason := range run.Audit.Reasons {
		// A benchmark's first passes are too short to cross a limit or a boundary.
		short := reason.Code == codes.NeverCrossed || reason.Code == "boundary-missed"
		if reason.Discards == codes.DiscardsCorrectness && !short {
			b.Fatalf("%s: %s", reason.Code, reason.Detail)
		}
	}
	m.perRequest = time.Duration(run.ElapsedNS / max(run.Issued, 1))
	return run
}

// config is that of a pass, without its length and its policy.
func (m *measured) config() measure.Config {
	cfg := measure.Config{
		Plan: harness.Plan{
			Strategies: []strategies.Selection{m.sel},
			Traffic:    harness.Traffic{Workload: m.workload, Load: harness.Closed()},
			Seed:       1, Surroundings: harness.Surroundings{Stores: m.stores},
		},
		Rounds: 1,
	}
	all, err := quota.Complete(m.workload.Options, nil)
	if err == nil && m.workload.Takes("subjects") && all.Int("subjects") > maxSubjects {
		cfg.Stream.Set("subjects", maxSubjects)
	}
	return cfg
}

// choosePolicy gives the measurement the first of the likely policies under which the strategy can serve the workload,
// with a limit that is crossed often if crossings are counted.
func choosePolicy(cfg *measure.Config, sel strategies.Selection) (reason error) {
	usual, err := quota.LookupPolicy(usualPolicy)
	if err != nil {
		return err
	}
	for _, cfg.Policy = range strategies.PoliciesToTry(usual, []strategies.Selection{sel}) {
		if cfg.Workload.Crosses {
			cfg.Policy = bounds.ForCrossings(cfg.Policy)
		}
		err := cmp.Or(cfg.CheckPolicy(), cfg.CannotRun(sel))
		if err == nil {
			return nil
		}
		reason = err
	}
	return reason
}

// benchTime is -benchtime; known is false if that is a number of requests.
func benchTime() (duration time.Duration, known bool) {
	if f := flag.Lookup("test.benchtime"); f != nil {
		if d, err := time.ParseDuration(f.Value.String()); err == nil {
			return d, true
		}
	}
	return time.Second, false
}
