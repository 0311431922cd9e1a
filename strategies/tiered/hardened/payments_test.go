package hardened_test

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/results"
)

// TestPayments: ADR-005 caps payments at 120 dollars a day, and its tables have no column for
// them. The hardened form has accounts of policies: of an agent who asks for more on both sides of
// midnight, it admits the limit of each day.
func TestPayments(t *testing.T) {
	payments := testkit.Policy(t, "agent-payments")
	documented := testkit.Strategy(t, "three-tier").Meta
	if documented.ServesPolicy(&payments) == nil {
		t.Error("three-tier serves payments, which the record's tables have no column for")
	}
	plan, err := harness.NewPlan("three-tier-hardened", payments.Name, "steady")
	if err != nil {
		t.Fatal(err)
	}
	plan.Seed, plan.Load, plan.Duration, plan.Instances = 1, harness.OpenAt(1), 4*time.Minute, 2
	plan.Stream.Set("subjects", 1)
	report, err := sim.Run(t.Context(), sim.Config{Plan: plan, Start: time.Date(2026, 3, 31, 23, 58, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	r := report.Runs[0]
	if r.Leak.Trials != 2 || r.Leak.Possible != 0 || r.FalseRejects.Units != 0 {
		t.Errorf("leak %+v, false rejects %+v; want none in the two days", r.Leak, r.FalseRejects)
	}
	for _, c := range r.Guarantee {
		if c.Verdict != results.Kept {
			t.Errorf("%+v, want it kept", c)
		}
	}
}
