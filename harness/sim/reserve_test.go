package sim_test

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/results"
)

// nights are two nights and a half of ADR-RM-3's uploads: 20 tenants of 1,000 MB
// each, an upload of 100 or 150 MB every 50 s, and files that live six hours.
func nights(t *testing.T, list string, settle, life time.Duration, abandoned float64) map[string]*results.Run {
	t.Helper()
	cfg := config(t, list, "tenant-uploads", "uploads")
	cfg.Load = harness.OpenAt(0.02)
	cfg.Duration = 60 * time.Hour
	cfg.Life = life
	cfg.Every = time.Hour
	cfg.Stream.Set("settle", settle)
	cfg.Stream.Set("hold", 6*time.Hour)
	cfg.Stream.Set("fail-share", 0)
	cfg.Stream.Set("abandon-share", abandoned)
	return byLabel(t, cfg)
}

func byLabel(t *testing.T, cfg sim.Config) map[string]*results.Run {
	t.Helper()
	report := run(t, cfg)
	runs := map[string]*results.Run{}
	for i := range report.Runs {
		r := &report.Runs[i]
		valid(t, r)
		// What has expired may be in the store still, so a rejection for it is not certainly wrong.
		if last := report.Series[i].Samples[len(report.Series[i].Samples)-1]; last.FalseRejects > r.FalseRejects.Count {
			t.Errorf("%s: %d false rejects in the series, %d in the verdict", r.Params.Label, last.FalseRejects,
				r.FalseRejects.Count)
		}
		runs[r.Params.Label] = r
		t.Logf("%s: admitted %d, leak %d, drift %d, abandoned %d", r.Params.Label, r.Admitted, r.Leak.Units, r.Drift.Units,
			r.Settlement.Abandoned)
	}
	return runs
}

// TestSyncHeals: uploads that are abandoned stay reserved, until the job brings
// them back. They are over by then, so healing leaks nothing.
func TestSyncHeals(t *testing.T) {
	testenv.Sequential(t)
	runs := nights(t, "lua-reserve,lua-reserve:sync=0s,lua-reserve-hardened", time.Second, 15*time.Minute, 0.2)
	nightly := runs["lua-reserve"]
	never := runs["lua-reserve:sync=0s"]
	hardened := runs["lua-reserve-hardened"]
	for label, r := range runs {
		if r.Leak.Units != 0 || r.Settlement.Abandoned == 0 {
			t.Errorf("%s: %d MB leak, and %d uploads were abandoned", label, r.Leak.Units, r.Settlement.Abandoned)
		}
	}
	if never.Drift.Units < 500 || nightly.Drift.Units > never.Drift.Units/2 || hardened.Drift.Units != 0 {
		t.Errorf("drift is %d MB with a nightly sync, %d without one, %d in the hardened form; want less, much, none",
			nightly.Drift.Units, never.Drift.Units, hardened.Drift.Units)
	}
	if nightly.Admitted <= never.Admitted || hardened.Admitted <= nightly.Admitted {
		t.Errorf("admitted are %d with a nightly sync, %d without one, %d in the hardened form; want the more the sooner "+
			"it is healed",
			nightly.Admitted, never.Admitted, hardened.Admitted)
	}
}

// TestSyncErases: no upload is abandoned, so without the job nothing leaks.
// The job forgets what is under way when it runs, and others get its units.
func TestSyncErases(t *testing.T) {
	testenv.Sequential(t)
	list := testenv.Pick("lua-reserve,lua-reserve-hardened",
		"lua-reserve,lua-reserve:sync=0s,lua-reserve-hardened,lua-reserve-hardened:sync=10m")
	runs := nights(t, list, 20*time.Minute, 12*time.Hour, 0)
	for label, r := range runs {
		if leaks := label == "lua-reserve"; (r.Leak.Units > 0) != leaks || !leaks && r.Drift.Units != 0 {
			t.Errorf("%s: %d MB leak and %d MB drift, want a leak: %v", label, r.Leak.Units, r.Drift.Units, leaks)
		}
	}
}

// TestLateSettlements: a session that would be settled when its life is over is
// abandoned, as in a measured run. The strategy is not asked, and nothing of it is
// counted as in use.
func TestLateSettlements(t *testing.T) {
	testenv.Sequential(t)
	for label, r := range nights(t, "lua-reserve:sync=0s,lua-reserve-hardened", 20*time.Minute, 20*time.Minute, 0) {
		s := r.Settlement
		if share := float64(s.Abandoned) / float64(r.Admitted); share < 0.2 || share > 0.6 || s.Errors != 0 {
			t.Errorf("%s: %d of %d sessions were abandoned and %d settlements failed, want 1/e and none", label, s.Abandoned,
				r.Admitted, s.Errors)
		}
		if r.Leak.Units != 0 || r.Drift.Units < 0 {
			t.Errorf("%s: %d MB leak and %d MB drift", label, r.Leak.Units, r.Drift.Units)
		}
	}
}
