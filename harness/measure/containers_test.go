package measure

import (
	"testing"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	_ "github.com/quotabench/quotabench/stores/container" // what the test compares with
	pgstore "github.com/quotabench/quotabench/stores/postgres"
	redisstore "github.com/quotabench/quotabench/stores/redis"
)

// verdicts of a run that must not depend on where a server runs.
type verdicts struct {
	valid, leaks, rejectsAll bool
	guarantee                string
}

// TestContainersGiveTheSameVerdicts runs the core strategies once on servers of this
// machine and once on servers in containers. Timings differ; what leaks and what
// is kept does not.
func TestContainersGiveTheSameVerdicts(t *testing.T) {
	testenv.Long(t)
	container := verdictsOn(t, storetest.ContainerRedis(t), storetest.ContainerPostgres(t))
	process := verdictsOn(t, storetest.Redis(t), storetest.Postgres(t))
	for name, want := range process {
		if got := container[name]; got != want {
			t.Errorf("%s: %+v in containers, %+v on processes", name, got, want)
		}
	}
	if len(process) < 8 || len(container) != len(process) {
		t.Errorf("%d strategies on processes, %d in containers", len(process), len(container))
	}
}

func verdictsOn(t *testing.T, redis *redisstore.Store, postgres *pgstore.Store) map[string]verdicts {
	t.Helper()
	// Races that nobody happened to lose say nothing.
	return longer(t, 1600, func(requests int64) map[string]verdicts { return verdictsOf(t, redis, postgres, requests) },
		func(v map[string]verdicts) bool { return v["pg-check"].leaks && v["check-then-set"].leaks })
}

func verdictsOf(t *testing.T, redis *redisstore.Store, postgres *pgstore.Store, requests int64) map[string]verdicts {
	t.Helper()
	plan, err := harness.NewPlan("core", "agent-api", "hot-key")
	if err != nil {
		t.Fatal(err)
	}
	plan.Policy.Limit = 20
	plan.Workers = 8
	plan.Seed = 5
	plan.Requests = requests // more workers would time out on a slow disk
	plan.Stores = setOf(t, redis, postgres)
	report, err := Measure(t.Context(), Config{Plan: plan, Rounds: 1, NoReference: true})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]verdicts{}
	for _, r := range report.Runs {
		v := verdicts{valid: r.Audit.Valid, leaks: r.Leak.Units > 0, rejectsAll: r.Admitted == 0}
		if !v.valid {
			t.Logf("%s: %+v", r.Params.Label, r.Audit.Reasons)
		}
		for _, c := range r.Guarantee {
			if c.Property == string(quota.PropertyLeak) && c.Verdict != results.Kept {
				v.guarantee = c.Verdict
			}
		}
		out[r.Params.Label] = v
	}
	return out
}
