// Package bench measures strategies under go test -bench. A module that registers
// strategies of its own gets all of it in one line of a test:
//
//	func BenchmarkStrategies(b *testing.B) { bench.Run(b) }
//
// Beside the time per decision a benchmark reports:
//
//	decisions/INCR   throughput by that of a bare client's INCR loop right before and after: the figure that survives a noisy machine
//	p99-ns           99th percentile of the service time
//	leak-units/op    units admitted over the limit, per decision
//	cmds/op          Redis commands and SQL statements per decision
//	false-rejects-%  requests rejected although there was certainly room
//	drift-%          worst counter at rest against the limit
//
// The leak is always there. What a strategy promises to be 0 is left out as long as it
// is: false rejects where a clause allows none, and drift where no leak is allowed
// either. The units are those of quotabench export --format gobench, and benchstat
// compares the two.
package bench

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/present/export"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	_ "github.com/quotabench/quotabench/stores/postgres" // its driver
	_ "github.com/quotabench/quotabench/stores/redis"    // its driver
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// Run measures strategies, or where none are given every registered one, under every
// generated workload that they can serve: a sub-benchmark each, named
// strategy=NAME/workload=NAME. Stores are embedded; QUOTABENCH_REDIS and
// QUOTABENCH_POSTGRES choose others as --redis and --postgres do.
func Run(b *testing.B, metas ...*strategies.Meta) {
	b.Helper()
	set, err := stores.OpenSet(b.Context(), []stores.Spec{
		{Name: "redis", From: env("QUOTABENCH_REDIS", "embedded")},
		{Name: "postgres", From: env("QUOTABENCH_POSTGRES", "embedded")},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := set.Close(); err != nil {
			b.Error(err)
		}
	}()
	if len(metas) == 0 {
		metas = strategies.All()
	}
	if len(metas) == 0 {
		b.Fatal("no strategy is registered: import strategies/all, or your own")
	}
	// Of all the output only these lines are not results: what benchstat takes for better.
	if _, err := os.Stdout.WriteString(export.Units); err != nil {
		b.Fatal(err)
	}
	for _, meta := range metas {
		sel, err := meta.Select(meta.BriskOptions)
		if err != nil {
			b.Fatal(err)
		}
		for _, w := range workloads.All() {
			if w.NeedsTrace {
				continue
			}
			m := &measured{sel: sel, workload: w, stores: set}
			b.Run(export.SubName(sel.String(), w.Name), m.pass)
		}
	}
}

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
	length := min(max(target/20, time.Millisecond), measure.DefaultReferenceLength)
	r := m.measure(b, b.N, b, length)
	for _, m := range export.Metrics(r) {
		b.ReportMetric(m.Value, m.Unit)
	}
}

// measure carries out that many requests, with a reference loop before and after that
// lasts as long as said, and none of 0.
func (m *measured) measure(b *testing.B, requests int, timer measure.Timer, reference time.Duration) *results.Run {
	sel, w := m.sel, m.workload
	cfg := measure.Config{
		Plan: harness.Plan{
			Strategies: []strategies.Selection{sel}, Workload: w, Seed: 1, Load: harness.Closed(), Stores: m.stores, Requests: int64(requests),
		},
		Rounds: 1, NoReference: reference == 0, ReferenceLength: reference, Timer: timer,
	}
	if all, err := quota.Complete(w.Options, nil); err == nil && w.Takes("subjects") && all.Int("subjects") > maxSubjects {
		cfg.Stream.Set("subjects", maxSubjects)
	}
	if err := choosePolicy(&cfg, sel); err != nil {
		b.Skip(err)
	}
	report, err := measure.Measure(context.WithoutCancel(b.Context()), cfg)
	if err != nil {
		b.Fatal(err)
	}
	if len(report.Runs) == 0 {
		b.Fatalf("no run: %+v", report.Skipped)
	}
	r := &report.Runs[0]
	for _, x := range r.Audit.Reasons {
		// A benchmark's first passes are too short to cross a limit or a boundary.
		short := x.Code == "limit-never-crossed" || x.Code == "boundary-missed"
		if x.Strikes == results.StrikesCorrectness && !short {
			b.Fatalf("%s: %s", x.Code, x.Detail)
		}
	}
	m.perRequest = time.Duration(r.ElapsedNS / max(r.Issued, 1))
	return r
}

// choosePolicy gives the measurement the first policy under which the strategy can
// serve the workload: the best known ones before the others. Where crossings are
// counted, the limit is small enough to be crossed often.
func choosePolicy(cfg *measure.Config, sel strategies.Selection) (reason error) {
	all := quota.Policies()
	known := []string{"agent-api", "agent-sandboxes"}
	slices.SortStableFunc(all, func(a, b quota.Policy) int {
		return cmp.Compare(rank(known, a.Name), rank(known, b.Name))
	})
	for _, p := range all {
		if w := cfg.Workload; w.Kinds != nil && !slices.Contains(w.Kinds, p.Window.Kind) {
			continue
		}
		if cfg.Workload.Crosses {
			p.Limit = min(p.Limit, 50)
		}
		cfg.Policy = p
		err := cfg.CannotRun(sel)
		if err == nil {
			return nil
		}
		reason = cmp.Or(reason, err)
	}
	return cmp.Or(reason, errors.New("no policy has a window that the workload makes sense with"))
}

func rank(known []string, name string) int {
	if i := slices.Index(known, name); i >= 0 {
		return i
	}
	return len(known)
}

// benchTime is -benchtime; known is false where that is a number of requests.
func benchTime() (d time.Duration, known bool) {
	if f := flag.Lookup("test.benchtime"); f != nil {
		if d, err := time.ParseDuration(f.Value.String()); err == nil {
			return d, true
		}
	}
	return time.Second, false
}

func env(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}
