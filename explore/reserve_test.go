package explore_test

import (
	"testing"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

// TestLeaksOfLuaReserve: each leak of the documented form has a schedule, and the
// hardened form has none for it.
func TestLeaksOfLuaReserve(t *testing.T) {
	testenv.Sequential(t)
	for _, c := range []struct {
		name     string
		scripts  string
		limit    int64
		faults   []quota.Fault
		rounds   int
		property explore.Property
	}{
		{"the sync erases what is under way", "take,commit;take", 1, nil, 1, explore.Leak},
		{"a refund is repeated", "take,refund;take,take,take", 2, []quota.Fault{quota.FaultLostReply}, -1, explore.Leak},
		{"a reserve is repeated", "take,commit,refund;take", 2, []quota.Fault{quota.FaultRetry}, -1, explore.FalseReject},
		{"a caller dies", "take,commit;take,commit", 1, []quota.Fault{quota.FaultCrash}, -1, explore.Stranded},
		{"more is stored than was reserved", "take=2,commit=8;take=8", 10, nil, -1, explore.Drift},
		{"the limit key is lost", "take,refund;take,refund", 1, []quota.Fault{quota.FaultEviction}, -1, explore.FalseReject},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "the limit key is lost" { // many schedules
				testenv.Long(t)
			}
			scripts, err := explore.ParseScripts(c.scripts)
			if err != nil {
				t.Fatal(err)
			}
			cfg := explore.Config{
				Scripts: scripts, Limit: c.limit, Faults: c.faults, Scope: explore.Scope{JobRounds: c.rounds},
				Properties: []explore.Property{c.property},
			}
			f := found(t, run(t, "lua-reserve", cfg), c.property)
			t.Logf("lua-reserve: %s in %d steps", f.Detail, len(f.Steps))
			if r := run(t, "lua-reserve-hardened", cfg); r.Claim == "" || r.Capped != "" {
				t.Errorf("of the hardened form nothing may be claimed: %+v", r.Findings)
			}
		})
	}
}

// TestHardenedReserve: no fault that it declares to tolerate makes it leak, drift or
// strand anything.
func TestHardenedReserve(t *testing.T) {
	testenv.Sequential(t)
	scripts, err := explore.ParseScripts("take,refund;take,commit")
	if err != nil {
		t.Fatal(err)
	}
	some := []quota.Fault{quota.FaultCrash, quota.FaultRetry}
	for _, fault := range testenv.Pick(some, append(some, quota.FaultLostReply, quota.FaultOutage)) {
		cfg := explore.Config{
			Scripts: scripts, Faults: []quota.Fault{fault}, Scope: explore.Scope{JobRounds: -1},
			Properties: []explore.Property{explore.Leak, explore.Guarantee, explore.Drift, explore.Stranded},
		}
		if r := run(t, "lua-reserve-hardened", cfg); len(r.Findings) > 0 || r.Claim == "" || r.Capped != "" {
			t.Errorf("%s: %q, %q, %+v", fault, r.Claim, r.Capped, r.Findings)
		}
	}
}
