package adapters_test

import (
	"strings"
	"testing"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/strategytest"

	_ "github.com/quotabench/quotabench/adapters"
)

// rows are what explorations find in each library: a property that a schedule breaks,
// or nothing and a claim about the leak.
var rows = []struct {
	strategy, policy, scripts string
	limit                     int64
	clients                   int
	faults                    []quota.Fault
	broken                    explore.Property
}{
	{"lib-throttled-redis", "1 call refilling 2 per 3s", "take,take", 1, 1, clock, explore.Leak},
	{"lib-redis-rate-at-most", "3 calls refilling 1 per 1s", "take=3,take=2,take=1", 3, 1, clock, explore.FalseReject},
	{"lib-gin-redis", "2 calls per first-request 10s", "take", 1, 2, nil, explore.Leak},
	{"lib-gin-memory", "2 calls per first-request 10s", "take,take,take", 2, 1, clock, explore.FalseReject},
	{"lib-redis-rate", "2 calls refilling 3 per 10s", "take,take", 2, 1, clock, ""},
	{"lib-ulule-redis", "2 calls per first-request 10s", "take,take", 1, 1, clock, ""},
	{"lib-ulule-memory", "2 calls per first-request 10s", "take,take,take", 2, 1, clock, ""},
	{"lib-throttled-memory", "2 calls refilling 3 per 10s", "take,take,take", 2, 1, clock, ""},
	{"lib-x-time-rate", "2 calls refilling 3 per 10s", "take,take,take", 2, 1, clock, ""},
	{"lib-juju-ratelimit", "2 calls refilling 3 per 10s", "take,take,take", 2, 1, clock, ""},
	{"lib-echo-memory", "2 calls refilling 3 per 10s", "take,take,take", 2, 1, clock, ""},
	{"lib-httprate", "2 calls per rolling 10s", "take,take,take", 2, 1, clock, ""},
}

var clock = []quota.Fault{quota.FaultClock}

func TestExplored(t *testing.T) {
	for _, r := range rows {
		t.Run(r.strategy, func(t *testing.T) {
			p, err := quota.ParsePolicy(r.policy)
			if err != nil {
				t.Fatal(err)
			}
			scripts, err := explore.ParseScripts(r.scripts)
			if err != nil {
				t.Fatal(err)
			}
			times := 1
			if r.strategy == "lib-redis-rate-at-most" { // one and a half units, and a half
				times = 2
			}
			properties := []explore.Property{explore.Guarantee}
			if r.broken != "" {
				properties = []explore.Property{r.broken}
			}
			res, err := explore.Run(t.Context(), selected(t, r.strategy), explore.Config{
				Policy: p, Limit: r.limit, Clients: r.clients, Scripts: scripts, Faults: r.faults, Times: times, Properties: properties,
			})
			if err != nil {
				t.Fatal(err)
			}
			if found := res.Found(r.broken); r.broken != "" && found == nil {
				t.Errorf("%s is not found; claim: %s", r.broken, res.Claim)
			}
			if r.broken == "" && !strings.HasPrefix(res.Claim, "guarantee: no violation found in any schedule") {
				t.Errorf("findings %+v, claim %q", res.Findings, res.Claim)
			}
		})
	}
}

// sethvargo/go-limiter takes the time from within package time, where no bubble
// reaches: that is named, and nothing is claimed and nothing found.
func TestClockOutOfReach(t *testing.T) {
	p, err := quota.ParsePolicy("2 calls per first-request 10s")
	if err != nil {
		t.Fatal(err)
	}
	res, err := explore.Run(t.Context(), selected(t, "lib-sethvargo-memory"), explore.Config{Policy: p, Faults: clock, Instances: 1})
	if err == nil || len(res.Withheld) == 0 || res.Withheld[0].Code != "never-admits-again" || res.Claim != "" || len(res.Findings) > 0 {
		t.Errorf("error %v beside %+v", err, res)
	}
}

// flawed are the libraries that the conformance suite has something against, and a part
// of what it says.
var flawed = map[string]string{
	"lib-gin-memory": "goroutines before an instance opened", // its store cannot be closed, and its cleaner goes on
	"lib-gin-redis":  "the worst subject has a leak",         // it reads, decides and writes
}

func TestConformance(t *testing.T) {
	for _, m := range strategies.All() {
		if !strings.HasPrefix(m.Name, "lib-") {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			part, ok := flawed[m.Name]
			if !ok {
				strategytest.Run(t, m)
				return
			}
			if failures := strategytest.Failures(t, m); !strings.Contains(strings.Join(failures, "\n"), part) {
				t.Errorf("failures %q", failures)
			}
		})
	}
}

func selected(t *testing.T, name string) strategies.Selection {
	t.Helper()
	m, err := strategies.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	sel, err := m.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	return sel
}
