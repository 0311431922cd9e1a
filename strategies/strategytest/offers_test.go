package strategytest

import (
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/strategies"
)

// optional are the optional interfaces of a strategy.
var optional = []struct {
	name string
	of   func(strategies.Strategy) bool
}{
	{"Refunder", is[strategies.Refunder]},
	{"Committer", is[strategies.Committer]},
	{"Viewer", is[strategies.Viewer]},
	{"Provisioner", is[strategies.Provisioner]},
	{"LimitSetter", is[strategies.LimitSetter]},
	{"Jobber", is[strategies.Jobber]},
	{"Meter", is[strategies.Meter]},
	{"Screener", is[strategies.Screener]},
}

func is[T any](s strategies.Strategy) bool {
	_, ok := s.(T)
	return ok
}

// offers is which of them each strategy implements.
var offers = map[string]string{
	"unlimited": "Refunder Committer",
	"exact":     "Refunder Committer Viewer Provisioner LimitSetter",

	"pg-check":              "Refunder Viewer Provisioner LimitSetter Meter",
	"pg-query-cache":        "Refunder Viewer Provisioner LimitSetter Meter",
	"pg-conditional":        "Refunder Viewer Provisioner",
	"pg-optimistic":         "Refunder Viewer Provisioner Meter",
	"pg-row-lock":           "Refunder Viewer Provisioner Meter",
	"pg-two-phase":          "Refunder Viewer Provisioner Jobber Meter",
	"sql-window-log":        "Viewer Provisioner",
	"sql-window-log-atomic": "Viewer Provisioner Meter",

	"incr-expire":        "Viewer Provisioner",
	"incr-expire-atomic": "Viewer Provisioner",
	"decr-expire":        "Viewer Provisioner",
	"decr-literal":       "Viewer",
	"scheduled-reset":    "Viewer Provisioner Jobber Meter",
	"fixed-window":       "Viewer Provisioner",
	"memory-deque":       "Viewer Provisioner Meter",
	"sliding-log":        "Refunder Viewer Provisioner",
	"sliding-counter":    "Refunder Viewer Provisioner",
	"token-bucket":       "Viewer Provisioner",
	"gcra":               "Viewer Provisioner",

	"app-lock":             "Refunder Viewer Provisioner",
	"check-then-set":       "Refunder Viewer Provisioner",
	"check-after":          "Refunder Viewer Provisioner Meter",
	"lua-reserve":          "Refunder Committer Viewer Provisioner LimitSetter Jobber",
	"lua-reserve-hardened": "Refunder Committer Viewer Provisioner LimitSetter Jobber Meter",
	"redis-hash":           "Refunder Committer Viewer Provisioner LimitSetter Jobber Meter Screener",
	"three-tier":           "Refunder Committer Viewer Provisioner LimitSetter Jobber Meter Screener",
	"three-tier-hardened":  "Refunder Committer Viewer Provisioner LimitSetter Jobber Meter",

	"lease":         "Viewer Provisioner Jobber Meter",
	"local-sync":    "Viewer Provisioner Jobber Meter",
	"combine":       "Viewer Provisioner Meter",
	"edge-kv":       "Refunder Viewer Provisioner Meter",
	"redis-wait":    "Refunder Viewer Provisioner Meter",
	"redis-durable": "Refunder Viewer Provisioner",
	"redlock":       "Refunder Viewer Provisioner Meter",
}

// TestOffers: nothing but an assertion at run time tells which optional interfaces a
// strategy implements. A method that no longer fits its own is missed here.
func TestOffers(t *testing.T) {
	opened := map[string]bool{}
	for _, m := range strategies.All() {
		t.Run(m.Name, func(t *testing.T) {
			opened[m.Name] = true
			s := open(t, m, unused(t, m), 1).instances[0]
			var got []string
			for _, o := range optional {
				if o.of(s) {
					got = append(got, o.name)
				}
			}
			if got := strings.Join(got, " "); got != offers[m.Name] {
				t.Errorf("it implements %q, want %q", got, offers[m.Name])
			}
		})
	}
	for name := range offers {
		if !opened[name] {
			t.Errorf("%s is not registered", name)
		}
	}
}

// unused are stores for a strategy that is opened and no more: the servers of Redis are
// all the same one.
func unused(t *testing.T, m *strategies.Meta) Stores {
	t.Helper()
	s := Stores{Redis: clients(storetest.EmbeddedRedis(t)), Clients: map[string]func(testing.TB) any{}}
	if m.NeedsStore(strategies.NeedPostgres) {
		s.Postgres = pools(storetest.Postgres(t))
	}
	for _, need := range allNeeds(m) {
		switch kind, of, _ := strings.Cut(string(need), "."); {
		case of == "":
		case kind == string(strategies.NeedRedis):
			s.Clients[string(need)] = func(tb testing.TB) any { return s.Redis(tb) }
		case kind == string(strategies.NeedPostgres) && s.Postgres != nil:
			s.Clients[string(need)] = func(tb testing.TB) any { return s.Postgres(tb) }
		}
	}
	return s
}
