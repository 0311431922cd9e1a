// Package figures derives what a record holds from what the oracle found: the
// same for measured and for simulated runs.
package figures

import (
	"slices"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Correctness sets the run's leak and false rejects. limit is in units, per
// subject and window.
func Correctness(r *results.Run, v *oracle.Verdict, limit int64) {
	l := &r.Leak
	l.Units, l.Possible = v.LeakUnits, v.LeakPossible
	l.WorstUnits, l.Subjects, l.Violations = v.LeakWorst, v.LeakSubjects, v.Violations
	l.Crossings, l.OverUnits, l.Requests = v.Crossings, v.OverOffered, v.LeakedRequests
	if v.Crossings > 0 {
		l.Pct = 100 * float64(v.LeakUnits) / (float64(limit) * float64(v.Crossings))
		l.MedianUnits = median(v.CrossingLeaks)
	}
	if v.OverOffered > 0 {
		l.PctOfOver = 100 * float64(v.LeakUnits) / float64(v.OverOffered)
	}
	f := &r.FalseRejects
	f.Count, f.Possible, f.Units = v.FalseRejects, v.FalseRejectsPossible, v.FalseRejectUnits
	if n := v.FalseRejects + v.Admitted.Requests - v.LeakedRequests; n > 0 {
		f.Pct = 100 * float64(v.FalseRejects) / float64(n)
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

// Given records the options that the workload was given.
func Given(p *results.Params, o quota.Options) {
	p.Popularity, p.Cost = o["popularity"], o["cost"]
	if _, ok := o["fill"]; ok {
		p.Fill = o.Float("fill")
	}
	for name, to := range map[string]**float64{
		"over-quota": &p.OverQuota, "fail-share": &p.FailShare, "abandon-share": &p.AbandonShare, "misjudged-share": &p.MisjudgedShare,
	} {
		if _, ok := o[name]; ok {
			v := o.Float(name)
			*to = &v
		}
	}
	for name, to := range map[string]**int64{"settle": &p.SettleNS, "hold": &p.HoldNS} {
		if _, ok := o[name]; ok {
			v := int64(o.Duration(name))
			*to = &v
		}
	}
}
