package sim_test

import (
	"slices"
	"testing"

	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/workloads"
)

// killing is a simulation that kills callers, and for each of its subjects which request was the
// first, and which were killed.
func killing(t *testing.T, cfg sim.Config, kills string) (r *results.Run, first map[uint32]int64, dead []int64) {
	t.Helper()
	if err := cfg.SetKills(kills); err != nil {
		t.Fatal(err)
	}
	r = &run(t, cfg).Runs[0]
	valid(t, r)
	stream, _, err := cfg.NewStream(1)
	if err != nil {
		t.Fatal(err)
	}
	first = map[uint32]int64{}
	var op workloads.Op
	for i := range r.Issued {
		stream.At(i, &op)
		if _, asked := first[op.Subject]; !asked {
			first[op.Subject] = i
		}
		if cfg.Kills(i) {
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
	for _, c := range []struct {
		list, kills string
		leaves      bool
	}{{"incr-expire", "0.2", true}, {"incr-expire", "0", false}, {"incr-expire", "0.2:2", false}, {"incr-expire-atomic", "0.2", false}} {
		cfg := asking(t, c.list, "user-links")
		cfg.Policy.Limit, cfg.Every = 100_000, 0
		cfg.Stream.Set("subjects", 1000)
		cfg.Stream.Set("popularity", "uniform")
		r, first, dead := killing(t, cfg, c.kills)
		var keys, killed int64
		for i := range r.Issued {
			created := slices.Contains(first2(first), i)
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
			t.Errorf("%s, %s killed: %+v, %d answered of %d; want %d killed", c.list, c.kills, errors, r.Admitted+r.Rejected, r.Issued, killed)
		}
		if r.Cost.KeysWithoutTTL != keys || c.leaves && (keys < 100 || keys > 300) {
			t.Errorf("%s, %s killed: %d keys without an end, want %d", c.list, c.kills, r.Cost.KeysWithoutTTL, keys)
		}
		var over []int64
		for _, at := range r.Stored[0].OverTime {
			over = append(over, at.WithoutTTL)
		}
		if len(over) != results.Quarters-1 || !slices.IsSorted(over) || over[2] > keys || c.leaves && (over[0] == 0 || over[0] == over[2]) {
			t.Errorf("%s, %s killed: keys without an end over time %d", c.list, c.kills, over)
		}
		if want := ""; c.kills == "0.2" && r.Params.KillCallers != "0.2:1" || c.kills == "0" && r.Params.KillCallers != want {
			t.Errorf("%s killed: the record says %q", c.kills, r.Params.KillCallers)
		}
	}
}

func first2(first map[uint32]int64) (all []int64) {
	for _, i := range first {
		all = append(all, i)
	}
	return all
}

// TestKilledReservationsStrand: what a killed caller has reserved stays charged, to the unit, until
// a sync counts it anew.
func TestKilledReservationsStrand(t *testing.T) {
	for list, healed := range map[string]bool{"lua-reserve": false, "lua-reserve:sync=10s": true} {
		cfg := asking(t, list, "tenant-uploads")
		cfg.Policy.Limit = quota.MaxLimit
		_, _, _ = killing(t, cfg, "0.2")
		_ = healed
	}
}
