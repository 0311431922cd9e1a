package strategytest

import (
	"slices"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestEmbedded runs the suite for every strategy on what is always there:
// miniredis, and the model of PostgreSQL.
func TestEmbedded(t *testing.T) {
	testenv.Sequential(t)
	if testenv.Race { // the checks before have one caller
		all := checks
		defer func() { checks = all }()
		checks = all[slices.IndexFunc(all, func(c check) bool { return c.name == "jobs" }):]
	}
	set(t, &crossingsPart, testenv.Pick(10, 1)*crossingsPart)
	set(t, &others, testenv.Pick(1_100, others))
	server := storetest.EmbeddedRedis(t)
	RunAll(t, func(t *testing.T, meta *strategies.Meta) Stores {
		if meta.NeedsStore(strategies.NeedPostgres) {
			return Stores{Redis: clients(server)}
		}
		return embeddedStores(t, meta)
	})
}

// few run on servers in every build: one on each of the two main stores, and one on both.
// All others take minutes, and start servers of their own.
var few = []string{"incr-expire-atomic", "lua-reserve", "pg-check"}

// onServers makes the test a long one for a strategy that is not among the few.
func onServers(t *testing.T, m *strategies.Meta, few ...string) {
	t.Helper()
	for _, name := range few {
		if _, err := strategies.Lookup(name); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Contains(few, m.Name) {
		testenv.Long(t)
	}
}

// TestServers runs it on a redis-server and on PostgreSQL.
func TestServers(t *testing.T) {
	RunAll(t, func(t *testing.T, m *strategies.Meta) Stores {
		if len(m.Needs) == 0 {
			t.Skip("needs no store: TestEmbedded has tested it")
		}
		onServers(t, m, few...)
		s := Servers(t, m)
		s.Alone = true
		return s
	})
}
