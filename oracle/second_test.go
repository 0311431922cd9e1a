package oracle

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// A rejection by another quota holds nothing, is no trial, and belongs in no counter. A second quota is judged apart.
func TestElsewhere(t *testing.T) {
	events := []Event{
		one(0, 1, 2, Admitted), one(0, 3, 3, Elsewhere), one(0, 5, 2, Elsewhere), one(0, 7, 1, Rejected),
		{Call: 0, Reply: 1, Units: 2, Subject: 5}, {Call: 2, Reply: 3, Units: 3, Subject: 5, Outcome: Rejected},
	}
	for kind, w := range map[string]quota.Window{
		"fixed": {Kind: quota.Fixed, Length: time.Hour}, "rolling": {Kind: quota.Rolling, Length: time.Hour},
		"bucket": {Kind: quota.Bucket, Length: time.Hour, Refill: 1}, "standing": {Kind: quota.Standing},
		"first request": {Kind: quota.FirstRequest, Length: time.Hour},
	} {
		refilled := w.Refill // part of a unit, so at most one is gone
		cfg := Config{Window: w, Limit: 3, Below: 5, Epoch: time.Unix(1_000_800, 0)}
		v := Judge(cfg, events)
		if v.Issued.Requests != 4 || v.Rejected.Requests != 3 || v.Failed.Requests != 0 || v.FalseRejects != 1 || v.LeakPossible != 0 || v.Crossings != 0 {
			t.Errorf("%s: %+v", kind, v)
		}
		for counts, want := range map[quota.Counting]int64{quota.CountsAdmitted: 2, quota.CountsAttempts: 3} {
			got, ok, err := Expect(cfg, 0, events[:4], Reading{Call: 10, Reply: 10}, counts)
			if err != nil || !ok || got.Units.Hi != want || got.Units.Lo < want-refilled {
				t.Errorf("%s, %s: %+v, %v, %v, want %d", kind, counts, got, ok, err, want)
			}
		}
		cfg.Limit, cfg.From, cfg.Below = 1, 5, 0
		if v := Judge(cfg, events); v.Issued.Requests != 2 || v.LeakUnits != 1 || v.FalseRejects != 0 {
			t.Errorf("%s, second: %+v", kind, v)
		}
	}
}
