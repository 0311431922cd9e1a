package compare

import "slices"

// A comparison whose sides can be measured again has two stages. The first one tests each
// figure that varies by [Screening]. What it flags is measured anew, and only what fails
// again by [Confirmation] fails the comparison. Exact figures need no second stage.

// Screening is the rule of the first stage. Each figure has the error for itself.
var Screening = Rule{Alpha: 0.05, AtLeast: 0.03, Promised: 0.10, Each: true}

// Confirmation is the rule of the second stage, after a first one of so many gated figures:
// together they fail unchanged code no more often than [Standard] allows, since a figure
// has to be flagged by chance before it can be confirmed by chance.
func Confirmation(gated int) Rule {
	r := Screening
	r.Alpha = min(r.Alpha, Standard.Alpha/(Screening.Alpha*float64(max(1, gated))))
	return r
}

// Gated counts the figures that vary and can fail the comparison.
func (c *Comparison) Gated() (n int) {
	for i := range c.Rows {
		if c.Rows[i].Test != nil && !c.Rows[i].Advisory {
			n++
		}
	}
	return n
}

// Flagged are the strategies that have to be measured again.
func (c *Comparison) Flagged() (labels []string) {
	for i := range c.Rows {
		if r := &c.Rows[i]; r.Test != nil && !r.Advisory && r.Verdict == Worse && !slices.Contains(labels, r.Strategy) {
			labels = append(labels, r.Strategy)
		}
	}
	return labels
}

// Confirm replaces what was flagged by what the second stage says of it. What that did not
// compare is inconclusive. Other figures of the second stage count if they fail: they
// are exact, or invalid.
func (c *Comparison) Confirm(second *Comparison) {
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Test == nil || r.Advisory || r.Verdict != Worse {
			continue
		}
		j := slices.IndexFunc(second.Rows, func(s Row) bool { return alike(&s, r) })
		switch {
		case j < 0:
			r.Verdict, r.Detail = Inconclusive, "it was flagged, and could not be measured again"
		case second.Rows[j].Verdict == Worse:
			*r = second.Rows[j]
			r.Detail = "twice, in fresh rounds"
		case second.Rows[j].Verdict == Same || second.Rows[j].Verdict == Better:
			*r = second.Rows[j]
			r.Verdict, r.Detail = Same, "it was flagged, and fresh rounds do not show it"
		default:
			*r = second.Rows[j]
		}
	}
	for _, s := range second.Rows {
		if s.Kind == Exact && s.Fails(false) && !slices.ContainsFunc(c.Rows, func(r Row) bool { return alike(&s, &r) && r.Fails(false) }) {
			c.Rows = append(c.Rows, s)
		}
	}
}

func alike(a, b *Row) bool {
	return a.Strategy == b.Strategy && a.Setting == b.Setting && a.Figure == b.Figure && a.Of == b.Of && a.Kind == b.Kind
}
