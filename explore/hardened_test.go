package explore_test

import (
	"testing"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

// TestThreeTierHardened: three-tier leaks without any fault, and its repair does not
// with one of each. The searches are complete. draws=1 leaves credit in Redis, so that
// there is something to lose and to deposit twice.
func TestThreeTierHardened(t *testing.T) {
	testenv.Sequential(t)
	properties := []explore.Property{explore.Leak, explore.Guarantee}
	scripts, err := explore.ParseScripts("take;take,take")
	if err != nil {
		t.Fatal(err)
	}
	some := []quota.Fault{"", quota.FaultRetry}
	for _, fault := range testenv.Pick(some,
		append(some, quota.FaultEviction, quota.FaultCrash, quota.FaultLostReply, quota.FaultOutage)) {
		t.Run("fault "+string(fault), func(t *testing.T) {
			cfg := explore.Config{Limit: 2, Scripts: scripts, Scope: explore.Scope{JobRounds: -1}, Properties: properties}
			if fault != "" {
				cfg.Faults = []quota.Fault{fault}
			}
			if r := run(t, "three-tier-hardened:draws=1", cfg); len(r.Findings) > 0 || r.Capped != "" {
				t.Errorf("%+v, ended by %q", r.Findings, r.Capped)
			}
		})
	}
}

// TestThreeTierHardenedRejectsNobodyWrongly if nothing fails, whether units come
// back or not.
func TestThreeTierHardenedRejectsNobodyWrongly(t *testing.T) {
	testenv.Sequential(t)
	properties := []explore.Property{explore.FalseReject, explore.Drift, explore.Stranded, explore.Leak}
	for _, text := range []string{"take", "take,refund;take"} {
		scripts, err := explore.ParseScripts(text)
		if err != nil {
			t.Fatal(err)
		}
		r := run(t, "three-tier-hardened", explore.Config{Scripts: scripts, Scope: explore.Scope{JobRounds: -1},
			Properties: properties})
		if len(r.Findings) > 0 || r.Capped != "" {
			t.Errorf("%s: %+v, ended by %q", text, r.Findings, r.Capped)
		}
	}
}
