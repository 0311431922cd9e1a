package oracle

import "github.com/quotabench/quotabench/quota"

// Broken is by how many units one subject and window broke a property, at worst:
// certainly and possibly. exercised is false if the history could not have
// broken it.
func (v *Verdict) Broken(p quota.Property) (certain, possible int64, exercised bool) {
	switch p {
	case quota.PropertyLeak:
		return v.LeakWorst, v.LeakPossibleWorst, v.Crossings > 0
	case quota.PropertyFalseReject:
		certain, possible = v.FalseRejectWorst, v.FalseRejectPossibleWorst
		if v.Explained() {
			possible = certain
		}
		return certain, possible, v.Issued.Requests > v.Failed.Requests
	default:
		return 0, 0, false
	}
}

// Explained reports whether some order of the operations, in keeping with what
// every caller saw, has no rejection that was wrong. One by one, a rejection that
// overlaps with admissions can always be moved to before them, so false
// rejects stay possible however well a strategy works. Taken together, they are
// decided if every request is for one unit and none is given back: put every
// admission at its call and every rejection at its reply. If no rejection is
// certainly wrong, each then finds the limit used up.
func (v *Verdict) Explained() bool {
	return !v.unexplained && v.MaxCost <= 1 && v.FalseRejects == 0 && v.Failed.Requests == 0
}
