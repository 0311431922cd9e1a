package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/workloads"
)

// killing is a simulation that kills callers, whether a request was the first of its subject, and
// those whose callers were to be killed.
func killing(t *testing.T, cfg sim.Config, kills string) (r *results.Run, first map[int64]bool, dead []int64) {
	t.Helper()
	if kills != "" {
		cfg.Trouble = trouble.MustParse("callers:killed=" + kills)
	}
	r = &run(t, cfg).Runs[0]
	valid(t, r)
	stream, _, err := cfg.NewStream(1)
	if err != nil {
		t.Fatal(err)
	}
	first = map[int64]bool{}
	asked := map[uint32]bool{}
	var op workloads.Op
	for i := range r.Issued {
		stream.At(i, &op)
		first[i] = !asked[op.Subject]
		asked[op.Subject] = true
		if cfg.Kills(i) > 0 {
			dead = append(dead, i)
		}
	}
	for _, c := range r.Guarantee {
		if c.Verdict == results.Broken {
			t.Errorf("%s: %+v", r.Params.Label, c)
		}
	}
	return r, first, dead
}

// TestKilledCallersLeaveKeys: a caller that is killed after INCR leaves a key that never expires if
// it has created it, and a caller that is killed after EXPIRE, or after a command that does both, none.
func TestKilledCallersLeaveKeys(t *testing.T) {
	testenv.Sequential(t)
	for _, c := range []struct {
		list, kills string
		leaves      bool
	}{{"incr-expire", "0.2", true}, {"incr-expire", "", false}, {"incr-expire", "0.2,after=2", false},
		{"incr-expire-atomic", "0.2", false}} {
		cfg := asking(t, c.list, "user-links")
		cfg.Policy.Limit = 100_000
		cfg.Every = 0
		cfg.Tracked = 10
		cfg.Stream.Set("subjects", 1000)
		cfg.Stream.Set("popularity", "uniform")
		r, first, dead := killing(t, cfg, c.kills)
		var keys, killed int64
		for i := range r.Issued {
			created := first[i]
			if !slices.Contains(dead, i) {
				continue
			}
			if created {
				keys++
			}
			if created || c.kills == "0.2" { // else it has one command and no second
				killed++
			}
		}
		if !c.leaves {
			keys = 0
		}
		errors := results.ErrorKinds{}
		if r.ErrorKinds != nil {
			errors = *r.ErrorKinds
		}
		if errors != (results.ErrorKinds{Killed: killed}) || r.Errors != killed || r.Admitted+r.Rejected != r.Issued-killed {
			t.Errorf("%s, %s killed: %+v, %d answered of %d; want %d killed", c.list, c.kills, errors, r.Admitted+r.Rejected,
				r.Issued, killed)
		}
		if r.Cost.KeysWithoutTTL != keys || c.leaves && (keys < 100 || keys > 300) {
			t.Errorf("%s, %s killed: %d keys without an end, want %d", c.list, c.kills, r.Cost.KeysWithoutTTL, keys)
		}
		var over []int64
		for _, at := range r.Stored[0].OverTime {
			over = append(over, at.WithoutTTL)
		}
		if len(over) != bounds.Quarters-1 || !slices.IsSorted(over) || over[2] > keys || c.leaves &&
			(over[0] == 0 || over[0] == over[2]) {
			t.Errorf("%s, %s killed: keys without an end over time %d", c.list, c.kills, over)
		}
		if got := r.Params.Trouble.Strings(); c.kills != "" && !slices.Equal(got, []string{"callers:killed=" + c.kills}) {
			t.Errorf("%s killed: the record says %q", c.kills, got)
		}
	}
}

// TestKilledReservationsStrand: what killed callers have reserved stays charged, to the unit, until
// a sync counts anew.
func TestKilledReservationsStrand(t *testing.T) {
	testenv.Sequential(t)
	cfg := asking(t, "lua-reserve:sync=1h", "tenant-uploads")
	var err error
	cfg.Workload, err = workloads.Lookup("uploads")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Policy.Limit = 10_000_000
	cfg.Stream = workloads.Params{}
	for name, value := range map[string]any{"subjects": 20, "hold": 0, "settle": time.Second, "fail-share": 0,
		"abandon-share": 0} {
		cfg.Stream.Set(name, value)
	}
	r, _, dead := killing(t, cfg, "0.2")
	stream, _, err := cfg.NewStream(1)
	if err != nil {
		t.Fatal(err)
	}
	var op workloads.Op
	units := int64(0)
	for _, i := range dead {
		stream.At(i, &op)
		units += op.Units
	}
	stranded := map[string]int64{}
	for _, tier := range r.Drift.Tiers {
		stranded[tier.At] += tier.Stranded
	}
	if len(dead) < 900 || stranded[harness.AtRest] != units || stranded[harness.AfterJobs] != 0 {
		t.Errorf("%d killed callers had reserved %d, and %v are stranded, want as many, and 0 after a sync", len(dead), units,
			stranded)
	}
	if r.Settlement.Commits != r.Admitted || r.Settlement.Abandoned != 0 {
		t.Errorf("%+v of %d admitted", r.Settlement, r.Admitted)
	}
}
