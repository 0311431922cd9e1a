package adapters_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/strategytest"

	_ "github.com/quotabench/quotabench/adapters"
	_ "github.com/quotabench/quotabench/strategies/sliding" // and its policies
)

// rows are searches in which no guarantee breaks. Package track holds those that find
// something.
var rows = []struct {
	strategy, policy, scripts string
	limit                     int64
}{
	{"lib-redis-rate", "2 calls refilling 3 per 10s", "take,take", 2},
	{"lib-ulule-redis", "2 calls per first-request 10s", "take,take", 1},
	{"lib-ulule-memory", "2 calls per first-request 10s", "take,take,take", 2},
	{"lib-throttled-memory", "2 calls refilling 3 per 10s", "take,take,take", 2},
	{"lib-x-time-rate", "2 calls refilling 3 per 10s", "take,take,take", 2},
	{"lib-juju-ratelimit", "2 calls refilling 3 per 10s", "take,take,take", 2},
	{"lib-echo-memory", "2 calls refilling 3 per 10s", "take,take,take", 2},
	{"lib-httprate", "2 calls per rolling 10s", "take,take,take", 2},
	{"lib-go-zero-period", "2 calls per first-request 10s", "take,take,take", 2},
	{"lib-tollbooth", "2 calls refilling 3 per 10s", "take,take,take", 2},
	{"lib-failsafe-bursty", "2 calls per rolling 10s", "take,take,take", 2},
	{"lib-beefsack", "2 calls per rolling 10s", "take,take,take", 2},
	{"lib-slidingwindow", "2 calls per rolling 10s", "take,take,take", 2},
	{"lib-kevinms", "2 calls refilling 3 per 10s", "take,take=2,take", 2},
	{"lib-cockroach", "2 calls refilling 3 per 10s", "take,take,take", 2},
	{"lib-clever-memory", "2 calls per first-request 10s", "take,take=2,take", 2},
	{"lib-sethvargo-redis", "2 calls per rolling 10s", "take,take,take", 2},
	{"lib-mennanov-token-memory", "2 calls refilling 3 per 10s", "take,take=2,take", 2},
	{"lib-mennanov-token-checked", "2 calls refilling 3 per 10s", "take,take", 2},
	{"lib-mennanov-leaky-memory", "2 calls refilling 3 per 10s", "take,take,take", 2},
	{"lib-mennanov-fixed-redis", "2 calls per fixed 10s", "take,take", 1},
	{"lib-mennanov-fixed-memory", "2 calls per fixed 10s", "take,take,take", 2},
	{"lib-mennanov-sliding-memory", "2 calls per rolling 10s", "take,take,take", 2},
}

var clock = []quota.Fault{quota.FaultClock}

// slow are tried with QUOTABENCH_LONG alone. The suite waits a minute for the goroutine that gin leaves, and a
// search and the suite take 20 s each for mennanov's check for races.
var slow = map[string]bool{"lib-gin-memory": true, "lib-mennanov-token-checked": true}

// skipSlow skips the test of a slow limiter.
func skipSlow(t *testing.T, strategy string) {
	t.Helper()
	if slow[strategy] {
		testenv.Long(t)
	}
}

func TestExplored(t *testing.T) {
	for _, r := range rows {
		t.Run(r.strategy, func(t *testing.T) {
			skipSlow(t, r.strategy)
			p := testkit.Policy(t, r.policy)
			scripts, err := explore.ParseScripts(r.scripts)
			if err != nil {
				t.Fatal(err)
			}
			res, err := explore.Run(t.Context(), testkit.Strategy(t, r.strategy), explore.Config{
				Policy: p, Limit: r.limit, Clients: 1, Scripts: scripts, Faults: clock,
				Properties: []explore.Property{explore.Guarantee},
			})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(res.Claim, "guarantee: no violation found in any schedule") {
				t.Errorf("findings %+v, claim %q", res.Findings, res.Claim)
			}
		})
	}
}

// sethvargo/go-limiter and gofiber/fiber take the time from where no bubble reaches: no
// search lets time pass for them, and if that is not declared it is noticed of a
// limiter in memory.
func TestClockOutOfReach(t *testing.T) {
	p := testkit.Policy(t, "2 calls per first-request 10s")
	for _, name := range []string{"lib-sethvargo-memory", "lib-fiber-redis"} {
		sel := testkit.Strategy(t, name)
		var unfit *explore.UnfitError
		if res, err := explore.Run(t.Context(), sel, explore.Config{Policy: p, Faults: clock, Instances: 1}); !errors.As(err,
			&unfit) || !strings.Contains(err.Error(), "leave the fault clock, and time that passes, out") {
			t.Errorf("%s: error %v beside %+v", name, err, res)
		}
		if slices.ContainsFunc(explore.Searches(sel, explore.Config{}), func(c explore.Config) bool { return c.Passes }) {
			t.Errorf("%s: time passes in a search", name)
		}
		undeclared := *sel.Meta
		undeclared.ClockFixed = false
		sel.Meta = &undeclared
		res, err := explore.Run(t.Context(), sel, explore.Config{Policy: p, Faults: clock, Instances: 1})
		if name == "lib-sethvargo-memory" &&
			(err == nil || len(res.Withheld) == 0 || res.Withheld[0].Code != "never-admits-again" || res.Claim != "" ||
				len(res.Findings) > 0) {
			t.Errorf("error %v beside %+v", err, res)
		}
	}
}

// flawed are the libraries that the conformance suite has something against, and a part
// of what it says.
var flawed = map[string]string{
	"lib-gin-memory":  "goroutines before an instance opened", // its store cannot be closed, and its cleaner goes on
	"lib-gin-redis":   "the worst subject has a leak",         // it reads, decides and writes
	"lib-fiber-redis": "the worst subject has a leak",         // it locks within its process alone
	// No flaws: its client has a circuit breaker, and its rates are whole numbers per second, which the suite's are not.
	"lib-go-zero-period": "circuit breaker is open",
	"lib-go-zero-token":  "no policy of any of them is served",
	"gw-spring":          "no policy of any of them is served",
	"gw-kong-sync":       "is not marked as degraded", // it counts in memory, and knows of no outage
	"gw-stripe":          "no policy of any of them is served",
}

func TestConformance(t *testing.T) {
	for _, m := range strategies.All() {
		if !strings.HasPrefix(m.Name, "lib-") && !strings.HasPrefix(m.Name, "gw-") {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			skipSlow(t, m.Name)
			part, ok := flawed[m.Name]
			if !ok {
				strategytest.Run(t, m)
				return
			}
			// If goroutines of an earlier test end meanwhile, one that is left is not noticed.
			var failures []string
			for range 3 {
				failures = strategytest.Failures(t, m)
				if strings.Contains(strings.Join(failures, "\n"), part) {
					return
				}
			}
			t.Errorf("failures %q", failures)
		})
	}
}

// slowly is the policy under which those limiters keep their promise whose keys get no time to live if a bucket
// fills in less than half a second, as the track record says of both.
var slowly = map[string]string{"gw-spring": "1 calls refilling 1 per 1s", "gw-stripe": "1 calls refilling 1 per 1s"}

// Every limiter keeps what it declares if its only instance crashes and its store is gone, twice each.
func TestDeclaredGuaranteesOfOneInstance(t *testing.T) {
	for _, m := range strategies.All() {
		if !strings.HasPrefix(m.Name, "lib-") && !strings.HasPrefix(m.Name, "gw-") || m.ClockFixed { // TestClockOutOfReach
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			cfg := explore.Config{
				Clients: 3, Instances: 1, Limit: 1, Scope: explore.Scope{Times: 2},
				Faults:     []quota.Fault{quota.FaultCrash, quota.FaultOutage},
				Properties: []explore.Property{explore.Guarantee},
				Bounds:     explore.Bounds{MaxStates: testenv.Pick(300, 1000), Preemptions: -1},
			}
			search := func() *explore.Finding {
				res, err := explore.Run(t.Context(), testkit.Strategy(t, m.Name), cfg)
				if hung := new(explore.HungError); errors.As(err, &hung) {
					cfg.Clients = 1 // it holds a lock of its process while it asks its store
					res, err = explore.Run(t.Context(), testkit.Strategy(t, m.Name), cfg)
				}
				if err != nil {
					t.Fatal(err)
				}
				return res.Found(explore.Guarantee)
			}
			if text, ok := slowly[m.Name]; ok {
				cfg.MaxStates = 3000
				if search() == nil {
					t.Error("a bucket that fills in a tenth of a second is kept")
				}
				p := testkit.Policy(t, text)
				cfg.Policy = p
			}
			if f := search(); f != nil {
				t.Errorf("%s: %+v", f.Detail, f.Steps)
			}
		})
	}
}
