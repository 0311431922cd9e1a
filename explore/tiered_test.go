package explore_test

import (
	"strings"
	"testing"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// ADR-005's check and charge are apart, with a filter as without one, whatever
// is written where.
func TestThreeTierLeaksInEachWriteMode(t *testing.T) {
	testenv.Sequential(t)
	for mode, steps := range map[string]int{"back": 20, "through": 18, "literal": 22} {
		t.Run(mode, func(t *testing.T) {
			if mode == "literal" { // 23,000 schedules
				testenv.Long(t)
				testenv.Sequential(t)
			}
			f := found(t, run(t, "three-tier:write="+mode, explore.Config{Properties: []explore.Property{explore.Leak}}),
				explore.Leak)
			if len(f.Steps) != steps || f.Units != 1 {
				t.Errorf("leaks %d in %d steps, want 1 in %d: %s", f.Units, len(f.Steps), steps, words(f))
			}
		})
	}
}

// A rebuild that read the shared set before it swaps the filter loses what was
// added to the filter meanwhile; one that only reads it afterwards loses it, too,
// as these modes never add to the shared set. With write=back they do.
func TestThreeTierFilterForgets(t *testing.T) {
	cfg := explore.Config{Clients: 1, Limit: 1, Properties: []explore.Property{explore.Forgotten}}
	for _, mode := range []string{"through", "literal"} {
		f := found(t, run(t, "three-tier:write="+mode, cfg), explore.Forgotten)
		got := words(f)
		if !strings.HasPrefix(got, "rebuild round, A starts, A HGET") || !strings.HasSuffix(got, "rebuild SMEMBERS") {
			t.Errorf("write=%s forgets by %s", mode, got)
		}
	}
	if r := run(t, "three-tier:write=back", cfg); r.Found(explore.Forgotten) != nil || r.Capped != "" {
		t.Errorf("write=back: %+v, ended by %q", r.Findings, r.Capped)
	}
}

// Nothing takes a name out of the filter or of the shared set when units come
// back: a subject with room is rejected by the filter.
func TestThreeTierFilterHoldsOn(t *testing.T) {
	scripts, err := explore.ParseScripts("take,refund,take")
	if err != nil {
		t.Fatal(err)
	}
	cfg := explore.Config{Clients: 1, Limit: 1, Scripts: scripts, Properties: []explore.Property{explore.FalseReject}}
	f := found(t, run(t, "three-tier:write=through,charge=before", cfg), explore.FalseReject)
	if last := f.Steps[len(f.Steps)-1]; last.Outcome != "rejected" || last.InUse != 0 ||
		strings.Count(words(f), "HGET") != 1 {
		t.Errorf("rejects by %s", words(f))
	}
	// Without the filter the same requests are admitted.
	if r := run(t, "redis-hash:write=through,charge=before", cfg); r.Found(explore.FalseReject) != nil || r.Capped != "" {
		t.Errorf("redis-hash: %+v, ended by %q", r.Findings, r.Capped)
	}
}
