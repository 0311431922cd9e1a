package compare

import "slices"

// A comparison whose sides can be measured again has two stages. The first one tests each
// figure that varies by [Screening]. What it flags is measured anew, and only what fails
// again by [Confirmation] fails the comparison. Exact figures need no second stage.

// Measure makes rounds of a stage, 1 or 2, from one number to another, of some strategies on both sides. It returns
// all rounds of that stage.
type Measure func(stage, from, to int, strategies []string) ([2]Side, error)

// Staged measures and compares in two stages. It looks at the rounds of the first one up to so many times, and doubles
// those of strategies that are inconclusive in between. Chance may flag a figure at each look, so a figure counts as
// one for each look in the second stage, however many there were.
func Staged(options Options, rounds, looks int, strategies []string,
	measure Measure) (comparison *Comparison, err error) {
	options.Rule = Screening
	made := func(stage, from int, strategies []string) (*Comparison, error) {
		sides, err := measure(stage, from, rounds, strategies)
		if err != nil {
			return nil, err
		}
		return Compare(sides[0], sides[1], options)
	}
	for look, from := 1, 1; ; look, from, rounds = look+1, rounds+1, 2*rounds {
		comparison, err = made(1, from, strategies)
		if err != nil {
			return nil, err
		}
		strategies = comparison.Of(Inconclusive)
		if look == looks || len(strategies) == 0 {
			break
		}
	}
	flagged := comparison.Of(Worse)
	if len(flagged) == 0 {
		return comparison, nil
	}
	options.Rule = Confirmation(looks * comparison.Gated())
	options.Gates = nil
	again, err := made(2, 1, flagged)
	if err == nil {
		comparison.Confirm(again)
	}
	return comparison, err
}

// Screening is the rule of the first stage. Each figure has the error for itself.
var Screening = Rule{Alpha: 0.05, AtLeast: 0.03, Promised: 0.10, Each: true}

// Confirmation is the rule of the second stage, after a first one of so many gated figures:
// together they fail unchanged code no more often than [Standard] allows, since a figure
// has to be flagged by chance before it can be confirmed by chance.
func Confirmation(gated int) Rule {
	rule := Screening
	rule.Alpha = min(rule.Alpha, Standard.Alpha/(Screening.Alpha*float64(max(1, gated))))
	return rule
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

// Of are the strategies with a gated figure that varies and has this verdict.
func (c *Comparison) Of(verdict Verdict) (labels []string) {
	for i := range c.Rows {
		if row := &c.Rows[i]; row.Test != nil && !row.Advisory && row.Verdict == verdict &&
			!slices.Contains(labels, row.Strategy) {
			labels = append(labels, row.Strategy)
		}
	}
	return labels
}

// Confirm replaces what was flagged by what the second stage says of it. What that did not
// compare is inconclusive. Other figures of the second stage count if they fail: they
// are exact, or invalid.
func (c *Comparison) Confirm(second *Comparison) {
	for i := range c.Rows {
		row := &c.Rows[i]
		if row.Test == nil || row.Advisory || row.Verdict != Worse {
			continue
		}
		j := slices.IndexFunc(second.Rows, func(s Row) bool { return alike(&s, row) })
		switch {
		case j < 0:
			row.Verdict = Inconclusive
			row.Detail = "it was flagged, and could not be measured again"
		case second.Rows[j].Verdict == Worse:
			*row = second.Rows[j]
			row.Detail = "twice, in fresh rounds"
		case second.Rows[j].Verdict == Same || second.Rows[j].Verdict == Better:
			*row = second.Rows[j]
			row.Verdict = Same
			row.Detail = "it was flagged, and fresh rounds do not show it"
		default:
			*row = second.Rows[j]
		}
	}
	for _, row := range second.Rows {
		if row.Kind == Exact && row.Fails(false) && !slices.ContainsFunc(c.Rows, func(r Row) bool {
			return alike(&row, &r) && r.Fails(false)
		}) {
			c.Rows = append(c.Rows, row)
		}
	}
}

func alike(a, b *Row) bool {
	return a.Strategy == b.Strategy && a.Setting == b.Setting && a.Figure == b.Figure && a.Of == b.Of && a.Kind == b.Kind
}
