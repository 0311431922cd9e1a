// Package figures derives what a record holds from what the oracle found: the
// same for measured and for simulated runs.
package figures

import (
	"slices"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
)

// Correctness sets the run's leak and false rejects. limit is in units, per
// subject and window.
func Correctness(r *results.Run, v *oracle.Verdict, limit int64) {
	l := &r.Leak
	l.Units, l.Possible = v.LeakUnits, v.LeakPossible
	l.WorstUnits, l.Subjects, l.LeakedTrials = v.LeakWorst, v.LeakSubjects, v.Violations
	l.Trials, l.OverQuotaUnits, l.Requests = v.Crossings, v.OverOffered, v.LeakedRequests
	if v.Crossings > 0 {
		l.PctOfLimit = 100 * float64(v.LeakUnits) / (float64(limit) * float64(v.Crossings))
		l.MedianUnits = median(v.CrossingLeaks)
	}
	if v.OverOffered > 0 {
		l.PctOfOverQuota = 100 * float64(v.LeakUnits) / float64(v.OverOffered)
	}
	f := &r.FalseRejects
	f.Count, f.Possible, f.Units = v.FalseRejects, v.FalseRejectsPossible, v.FalseRejectUnits
	if n := v.FalseRejects + v.Admitted.Requests - v.LeakedRequests; n > 0 {
		f.PctOfValid = 100 * float64(v.FalseRejects) / float64(n)
	}
	f.Explained = v.Explained()
}

func median(v []int64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return float64(s[(len(s)-1)/2]+s[len(s)/2]) / 2
}
