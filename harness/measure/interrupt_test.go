package measure

import (
	"context"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// TestInterruptedWhileSettingUp: setting up is cancelled, and a run that has not begun
// is not reported.
func TestInterruptedWhileSettingUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sel := strategies.Selection{Meta: &strategies.Meta{
		Name: "slow-to-open", Form: strategies.Baseline, Kinds: quota.Kinds(), Counts: quota.CountsAdmitted,
		Open: func(opening context.Context, _ strategies.Env) (strategies.Strategy, error) {
			cancel()
			<-opening.Done()
			return nil, opening.Err()
		},
	}}
	w, err := workloads.Lookup("hot-key")
	if err != nil {
		t.Fatal(err)
	}
	p := testkit.Policy(t, "user-links")
	report, err := Measure(ctx, Config{Plan: harness.Plan{Strategies: []strategies.Selection{sel}, Policy: p,
		Traffic: harness.Traffic{Workload: w, Duration: 20 * time.Millisecond},
		Workers: 2}, Rounds: 2})
	if err != nil || !report.Interrupted || len(report.Runs) != 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestPacerLooksUp: a pass that is to end does not wait for a request that is due much
// later.
func TestPacerLooksUp(t *testing.T) {
	at := int64(0)
	d := &drive{timebase: &timebase{nano: func() int64 { at += glance; return at }}}
	pacer := newPacer(d.timebase.nano, 1)
	defer pacer.close()
	if !d.waitFor(pacer, 20*glance) {
		t.Error("a pass that goes on did not wait")
	}
	d.stop.Store(true)
	if before := at; d.waitFor(pacer, at+1000*glance) || at > before+5*glance {
		t.Errorf("a pass that ends waited for %d glances", (at-before)/glance)
	}
}
