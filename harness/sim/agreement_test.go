package sim_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/stores"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/results"
	redisstore "github.com/quotabench/quotabench/stores/redis"
)

// measure runs on a real server what a simulation is configured for.
func measured(t *testing.T, server *redisstore.Store, cfg sim.Config, rounds int) []results.Run {
	t.Helper()
	real := cfg.Plan
	real.Stores = setOf(t, server)
	report, err := measure.Measure(t.Context(), measure.Config{Plan: real, Rounds: rounds, NoReference: true})
	if err != nil {
		t.Fatal(err)
	}
	return report.Runs
}

// fitted is a network that serves one command as fast as the real one does alone,
// and many as fast as the real one does under the load of one round.
func fitted(alone, loaded *results.Run) *sim.Network {
	perCommand := float64(loaded.ElapsedNS) / float64(loaded.Issued)
	service := time.Duration(perCommand)
	leg := func(ns int64) time.Duration { return max(0, (time.Duration(ns)-service)/2) }
	l := &alone.Service
	legs := sim.Table{{PPM: 0, At: leg(l.P50) / 2}, {PPM: 500_000, At: leg(l.P50)}, {PPM: 900_000, At: leg(l.P90)},
		{PPM: 990_000, At: leg(l.P99)}, {PPM: 1_000_000, At: leg(l.Max)}}
	// Queueing theory's usual server: the shape matters less than the mean.
	return &sim.Network{Servers: 1, Request: legs, Reply: legs, Service: sim.Table{
		{PPM: 0, At: 0}, {PPM: 393_469, At: service / 2}, {PPM: 632_121, At: service}, {PPM: 864_665, At: 2 * service},
		{PPM: 981_684, At: 4 * service}, {PPM: 1_000_000, At: 6 * service},
	}}
}

// exact lists strategies whose counts do not depend on the order of calls. The
// drift of decr-literal is a fault of its source, and equal all the same.
var exact = []string{"incr-expire", "incr-expire-atomic", "decr-literal"}

// racy lists the strategies of the agreement test from the one that leaks most
// to the one that leaks least.
var racy = []string{"check-then-set", "app-lock"}

// TestAgreement checks simulations against the same runs in real time on a real
// redis-server: what exact strategies count must be equal. With
// QUOTABENCH_AGREEMENT=full it does so with 4, 16 and 64 callers, requires racy
// strategies to stand in the same order when many callers meet, and prints by how
// much they leak; that depends on how a machine schedules, and is not judged.
func TestAgreement(t *testing.T) {
	testenv.Sequential(t)
	concurrencies := []int{16}
	rounds := 1
	requests := int64(600)
	list := exact
	if os.Getenv("QUOTABENCH_AGREEMENT") == "full" {
		concurrencies = []int{4, 16, 64}
		rounds = 3
		requests = 15_000
		list = slices.Concat(exact, racy)
	}
	server := storetest.Redis(t)
	var table strings.Builder
	// Admitted requests and drift of exact strategies, leaked units of racy ones.
	row := func(cells ...any) { fmt.Fprintf(&table, "%4v  %-16v %10v %10v %8v\n", cells...) }
	row("N", "strategy", "measured", "simulated", "ratio")
	base := func(list string, workers int) sim.Config {
		// Subjects enough for callers to meet now and then: if all of them meet
		// all the time, everything leaks.
		cfg := config(t, list, "agent-api", "steady")
		cfg.Policy.Limit, cfg.Requests, cfg.Workers, cfg.Load, cfg.Every = 50, requests, workers, harness.Closed(), -1
		cfg.Stream.Set("subjects", int(requests/100))
		cfg.Stream.Set("popularity", "uniform")
		cfg.Stream.Set("over-quota", 0)
		cfg.Instances = 4
		return cfg
	}
	alone := &measured(t, server, base("incr-expire", 1), rounds)[rounds-1]
	for _, workers := range concurrencies {
		cfg := base(strings.Join(list, ","), workers)
		real := map[string][]results.Run{}
		for _, r := range measured(t, server, cfg, rounds) {
			real[r.Strategy] = append(real[r.Strategy], r)
		}
		cfg.RedisNet = fitted(alone, &real["incr-expire"][rounds-1])
		t.Logf("%d callers: service %v", workers, cfg.RedisNet.Service[2].At)
		simulated := map[string]*results.Run{}
		report := run(t, cfg)
		for i := range report.Runs {
			simulated[report.Runs[i].Strategy] = &report.Runs[i]
		}
		for _, name := range exact {
			sameCounts(t, &real[name][0], simulated[name]) // later rounds have other requests
			row(workers, name, admitted(&real[name][0]), admitted(simulated[name]), "equal")
		}
		var before [2]int64
		for i, name := range list[len(exact):] {
			leak := [2]int64{simulated[name].Leak.Units}
			for _, r := range real[name] {
				leak[1] += r.Leak.Units / int64(len(real[name]))
			}
			row(workers, name, leak[1], leak[0], fmt.Sprintf("%.2f", float64(leak[0])/float64(max(1, leak[1]))))
			if i > 0 && workers == 64 && (leak[0] > before[0] || leak[1] > before[1]) {
				t.Errorf("%d callers: %s leaks %d simulated and %d measured, more than %s: %d and %d", workers, name, leak[0],
					leak[1], racy[i-1], before[0], before[1])
			}
			before = leak
		}
	}
	t.Log("\n" + table.String())
}

func admitted(r *results.Run) string { return fmt.Sprintf("%d%+d", r.Admitted, r.Drift.Units) }

// sameCounts requires of an exact strategy that a simulation counts what a
// measurement does.
func sameCounts(t *testing.T, real, simulated *results.Run) {
	t.Helper()
	type counts struct{ issued, admitted, rejected, errors, leak, falseRejects, crossings, drift, surplus int64 }
	of := func(r *results.Run) (c counts) {
		c = counts{r.Issued, r.Admitted, r.Rejected, r.Errors, r.Leak.Units, r.FalseRejects.Count, r.Leak.Trials, 0, 0}
		if r.Drift != nil {
			c.drift = r.Drift.Units
			c.surplus = r.Drift.Tiers[0].Surplus
		}
		return c
	}
	if a, b := of(real), of(simulated); a != b {
		t.Errorf("%s, %d callers: measured %+v, simulated %+v", real.Params.Label, real.Params.Workers, a, b)
	}
}

// Units that are given back leave the same behind in both kinds of time.
func TestSettlementAgrees(t *testing.T) {
	testenv.Sequential(t)
	server := storetest.Redis(t)
	for _, workers := range testenv.Pick([]int{64}, []int{4, 64}) {
		cfg := uploads(t, 0.3, 0)
		cfg.Workers = workers
		real := &measured(t, server, cfg, 1)[0]
		simulated := &run(t, cfg).Runs[0]
		sameCounts(t, real, simulated)
		if a, b := real.Settlement, simulated.Settlement; b.Refunds == 0 || a.Refunds < b.Refunds*7/10 {
			t.Errorf("%d callers: measured %+v, simulated %+v", workers, a, b)
		}
	}
}

// uploads is a run of lua-reserve in which nothing is rejected, so that the order
// of requests makes no difference.
func uploads(t *testing.T, fail, abandon float64) sim.Config {
	cfg := config(t, "lua-reserve", "tenant-uploads", "uploads")
	cfg.Policy.Limit = 1 << 40
	cfg.Requests, cfg.Workers, cfg.Load, cfg.Every = 1_000, 4, harness.Closed(), -1
	cfg.Stream.Set("fail-share", fail)
	cfg.Stream.Set("abandon-share", abandon)
	cfg.Stream.Set("settle", time.Nanosecond)
	cfg.Stream.Set("hold", time.Duration(0))
	return cfg
}

// An abandoned upload holds nothing from the end of its URL's life on, so what
// the counter still holds of it is drift, and the job that sums up stored files
// heals it. Held forever by the truth, healing would show as leak.
func TestAbandonedUploadsAreStrandedUntilTheSync(t *testing.T) {
	cfg := uploads(t, 0, 0.2)
	r := run(t, cfg).Runs[0]
	valid(t, &r)
	if r.Settlement.Abandoned == 0 || r.Drift == nil || len(r.Drift.Tiers) != 2 {
		t.Fatalf("settlement %+v, drift %+v", r.Settlement, r.Drift)
	}
	rest := r.Drift.Tiers[0]
	after := r.Drift.Tiers[1]
	// The policy's costs are 100 and 150.
	if n := r.Settlement.Abandoned; rest.Total < 100*n || rest.Total > 150*n || rest.Units <= 0 {
		t.Errorf("%d abandoned uploads leave a drift of %d units", n, rest.Total)
	}
	if after.At != "after-jobs" || after.Total != 0 {
		t.Errorf("after the sync: %+v", after)
	}
	if r.Leak.Units != 0 {
		t.Errorf("healing shows as a leak of %d units", r.Leak.Units)
	}
}

// TestFailedWorkIsChargedForNothing: with no refund, all units of failed work stay charged.
func TestFailedWorkIsChargedForNothing(t *testing.T) {
	for strategy, want := range map[string]int64{"incr-expire": 1_000, "exact": 0} {
		cfg := config(t, strategy, "user-links", "uploads")
		cfg.Policy.Limit = 1 << 40
		cfg.Requests, cfg.Load, cfg.Every = 1_000, harness.Closed(), -1
		for option, value := range map[string]any{"fail-share": 1, "abandon-share": 0, "hold": time.Duration(0)} {
			cfg.Stream.Set(option, value)
		}
		r := run(t, cfg).Runs[0]
		valid(t, &r)
		if s := r.Settlement; s.ChargedForNothing != want || s.Refunds != 1_000-want || s.Commits != 0 {
			t.Errorf("%s: %+v, want %d units", strategy, s, want)
		}
	}
}

// setOf names a store after its driver.
func setOf(t testing.TB, s stores.Store) *stores.Set {
	t.Helper()
	set := stores.NewSet()
	if err := set.Add(s.Driver(), s); err != nil {
		t.Fatal(err)
	}
	return set
}
