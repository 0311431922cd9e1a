package bench

import (
	"context"
	"testing"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// A strategy of whatever windows is measured: under the policy that others have where
// it can serve that, and under another one elsewhere.
func TestChoosePolicy(t *testing.T) {
	for kind, want := range map[quota.Kind]quota.Kind{quota.CalendarHour: quota.CalendarHour, quota.Rolling: quota.Rolling, quota.Standing: quota.Standing} {
		meta := &strategies.Meta{Name: "a", Kinds: []quota.Kind{kind}, Open: func(context.Context, strategies.Env) (strategies.Strategy, error) { return nil, nil }}
		w, err := workloads.Lookup("hot-key")
		if err != nil {
			t.Fatal(err)
		}
		cfg := &measure.Config{Plan: harness.Plan{Workload: w}}
		if err := choosePolicy(cfg, strategies.Selection{Meta: meta}); err != nil || cfg.Policy.Window.Kind != want || cfg.Policy.Limit > 50 {
			t.Errorf("%s: %+v, %v", kind, cfg.Policy, err)
		}
		if kind == quota.CalendarHour && cfg.Policy.Name != "agent-api" {
			t.Errorf("it has %s, and others have agent-api", cfg.Policy.Name)
		}
	}
	none := &strategies.Meta{Name: "a", Kinds: []quota.Kind{99}}
	w, err := workloads.Lookup("hot-key")
	if err != nil {
		t.Fatal(err)
	}
	if err := choosePolicy(&measure.Config{Plan: harness.Plan{Workload: w}}, strategies.Selection{Meta: none}); err == nil {
		t.Error("a strategy of no window got a policy")
	}
}
