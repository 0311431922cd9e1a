package explore_test

import (
	"testing"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
)

// The exact control breaks nothing, whatever kind of window it counts in and
// whatever moment its units are given back at.
func TestTheExactControlBreaksNothing(t *testing.T) {
	testenv.Sequential(t)
	for name, c := range map[string]struct{ policy, script string }{
		"rolling":                {"login", ""},
		"late refund":            {"contact-form", "take,refund;take"},
		"late refund, month":     {"user-links", "take,refund;take"},
		"late refund, rolling":   {"receipt-email", "take,refund;take"},
		"late commit":            {"contact-form", "take=3,commit=1;take"},
		"late commit, rolling":   {"login", "take=2,commit=1;take"},
		"standing":               {"tenant-uploads", "take=2,refund;take=2,commit=1"},
		"refund, then once more": {"contact-form", "take,refund,take,refund;take"},
	} {
		t.Run(name, func(t *testing.T) {
			p := testkit.Policy(t, c.policy)
			scripts, err := explore.ParseScripts(c.script)
			if err != nil {
				t.Fatal(err)
			}
			r := run(t, "exact", explore.Config{Policy: p, Scripts: scripts, Faults: []quota.Fault{quota.FaultClock},
				Bounds: explore.Bounds{MaxStates: 20_000}})
			for _, f := range r.Findings {
				t.Errorf("%s: %s in %d steps: %s", f.Property, f.Detail, len(f.Steps), words(&f))
			}
			if r.Claim == "" || r.Runs < 10 {
				t.Errorf("%d runs, claim %q", r.Runs, r.Claim)
			}
		})
	}
}
