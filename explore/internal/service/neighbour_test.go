package service_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/stores"
)

// TestNeighbours: subjects whose counters meet are found by default, with one caller, and told from a race.
func TestNeighbours(t *testing.T) {
	for kind, want := range map[string]explore.Property{"clears": explore.Leak, "shares": explore.FalseReject, "lua": ""} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			neighbours := func(script explore.Script) bool { return script.Others() && !script.Crowds() }
			cfg := withScript(t, nil, neighbours)
			search, _, err := counted(t, kind, cfg)
			if err != nil {
				t.Fatal(err)
			}
			found := explore.Property("")
			if len(search.Findings) > 0 {
				found = search.Findings[0].Property
			}
			if found != want {
				t.Errorf("found %q, want %q", found, want)
			}
		})
	}
}

// withScript is the one search of a service by default whose script is such a one. Without a server the service uses
// Redis alone.
func withScript(t *testing.T, server stores.Store, is func(explore.Script) bool) explore.Config {
	t.Helper()
	asked := explore.Config{Process: explore.Process{Service: os.Args[0]}}
	asked.Postgres = server
	all := slices.DeleteFunc(explore.Searches(testkit.Strategy(t, "http"), asked), func(cfg explore.Config) bool {
		return cfg.Clients != 1 || len(cfg.Scripts) == 0 || !is(cfg.Scripts[0])
	})
	if len(all) != 1 {
		t.Fatalf("%d searches have such a script, want 1", len(all))
	}
	return all[0]
}

// TestCrowd: a counter that the requests of other subjects remove is found by default, and one that time alone renews is
// not taken for that.
func TestCrowd(t *testing.T) {
	for kind, want := range map[string]struct {
		findings int
		why      string
	}{
		"forgets": {1, ""}, "lua": {0, ""}, "swaps": {0, ""}, "short-window": {0, "by its own clock"},
		"sql-forgets": {1, ""}, "sql-update": {0, ""},
	} {
		t.Run(kind, func(t *testing.T) {
			var server stores.Store
			if onSQL[kind] != nil {
				testenv.Sequential(t)
				server = storetest.Postgres(t)
			} else {
				t.Parallel()
			}
			search, err := searched(t, kind, withScript(t, server, explore.Script.Crowds))
			if want.why != "" {
				if err == nil || !strings.Contains(err.Error(), want.why) {
					t.Errorf("error %v, want one with %q", err, want.why)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(search.Findings) != want.findings || search.OtherSubjects <= mostRemembered {
				t.Errorf("%d findings around %d other subjects, want %d around more than %d: %s", len(search.Findings),
					search.OtherSubjects, want.findings, mostRemembered, search.Claim)
			}
		})
	}
}
