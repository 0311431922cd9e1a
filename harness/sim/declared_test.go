package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// TestDeclaredUnderOutages: every strategy keeps what it declares when Redis is away for
// a while and comes back with its data, without any, or as a replica that lags; and what
// declares nothing for that is held to nothing. Some that do not declare to survive a
// failover do not.
func TestDeclaredUnderOutages(t *testing.T) {
	testenv.Sequential(t)
	outages := map[string]string{
		"away":     "redis:away@0.25-0.3",
		"empty":    "redis:empty@0.25-0.26",
		"failover": "redis:failover=500ms@0.25-0.26",
	}
	rate := testenv.Pick(50, 100)
	held := map[string]int{}
	leaked := map[string]int64{}
	for _, m := range strategies.All() {
		if _, excluded := m.Excludes(strategies.ModeSimulate); excluded || m.NeedsStore(strategies.NeedPostgres) {
			continue
		}
		p := firstServed(t, m)
		for name, o := range outages {
			cfg := config(t, m.Name, p.Name, "steady")
			cfg.Policy, cfg.Trouble, cfg.Instances = p, trouble.MustParse(o), 2
			cfg.Policy.Limit = int64(2 * rate)
			cfg.Load = harness.OpenAt(float64(rate))
			cfg.Arrivals = "constant"
			cfg.Duration = 4 * time.Second
			cfg.Stream.Set("subjects", 1)
			cfg.Stream.Set("popularity", "uniform")
			cfg.Stream.Set("over-quota", 0)
			cfg.Stream.Set("cost", "1")
			report := run(t, cfg)
			r := &report.Runs[0]
			want := slices.ContainsFunc(m.Guarantee, func(c quota.Clause) bool {
				return c.Applies(p.Window.Kind) && !slices.ContainsFunc(cfg.Trouble[0].Faults(), func(f quota.Fault) bool {
					return !slices.Contains(c.Tolerates, f)
				})
			})
			if (len(r.Guarantee) > 0) != want {
				t.Errorf("%s, %s: it is held to %+v, want any: %t", m.Name, name, r.Guarantee, want)
			}
			for _, c := range r.Guarantee {
				if c.Verdict == results.Broken {
					t.Errorf("%s, %s: %+v", m.Name, name, c)
				}
				held[name]++
			}
			if name == "failover" {
				leaked[m.Name] = r.Leak.Units
			}
		}
	}
	if held["away"] < 15 || held["empty"] < 4 || held["failover"] < 3 {
		t.Errorf("clauses held under outages: %v", held)
	}
	for _, name := range []string{"incr-expire-atomic", "redis-durable", "lua-reserve-hardened"} {
		if leaked[name] == 0 {
			t.Errorf("%s has not leaked after a failover, of %v", name, leaked)
		}
	}
}

// firstServed is the first policy that a strategy serves.
func firstServed(t *testing.T, m *strategies.Meta) quota.Policy {
	t.Helper()
	for _, p := range quota.Policies() {
		if p.Window.Kind != quota.Bucket && m.ServesPolicy(&p) == nil {
			return p
		}
	}
	for _, p := range quota.Policies() {
		if m.ServesPolicy(&p) == nil {
			return p
		}
	}
	t.Fatalf("%s serves no policy", m.Name)
	return quota.Policy{}
}
