package compare

import (
	"fmt"
	"slices"

	"github.com/quotabench/quotabench/internal/kit/format"
)

// Reading is a comparison as reports show it: what changed, and what did not in one line.
type Reading struct {
	// Headline says how it came out, in one line.
	Headline string
	// Changed are the rows to show: what fails first, improvements last. Rows of several
	// strategies that the rounds cannot tell anything about are one.
	Changed []Row
	// Same says what is the same on both sides; empty if nothing is.
	Same string
}

// Read condenses the comparison for a reader.
func (c *Comparison) Read() Reading {
	var r Reading
	exact := 0
	samples := 0
	gates := 0
	resolved := 0.0
	for _, row := range c.Rows {
		switch {
		case row.Verdict != Same && (!row.Advisory || row.Verdict != Inconclusive):
			r.Changed = append(r.Changed, row)
		case row.Advisory:
		case row.Kind == Exact:
			exact++
		case row.Kind == Condition:
			gates++
		default:
			samples++
			resolved = max(resolved, row.Test.Smallest)
		}
	}
	slices.SortStableFunc(r.Changed, func(a, b Row) int { return c.rank(&a) - c.rank(&b) })
	r.Changed = together(r.Changed)
	var parts []string
	if exact > 0 {
		parts = append(parts, format.Plural(int64(exact), "exact figure", "exact figures"))
	}
	if samples > 0 {
		parts = append(parts, fmt.Sprintf("%s, of which these rounds would have shown a worsening of %s",
			format.Plural(int64(samples), "figure that varies", "figures that vary"), format.Pct(100*resolved)))
	}
	if gates > 0 {
		parts = append(parts, format.Plural(int64(gates), "requirement that holds", "requirements that hold"))
	}
	r.Same = format.Join("; ", parts...)
	r.Headline = c.headline()
	return r
}

// rank puts what fails first.
func (c *Comparison) rank(r *Row) int {
	switch {
	case r.Fails(c.Strict) && (r.Verdict == Worse || r.Verdict == Invalid):
		return 0
	case r.Verdict == Discarded:
		return 2
	case r.Verdict == Inconclusive:
		return 3
	case r.Verdict == Worse:
		return 4
	}
	return 5
}

// together makes one row of what the rounds of several strategies cannot tell.
func together(rows []Row) (out []Row) {
	const most = 2
	by := map[string][]Row{}
	alike := func(r *Row) string { return string(r.Verdict) + r.Figure }
	open := func(r *Row) bool { return r.Kind == Sample && (r.Verdict == Inconclusive || r.Verdict == Discarded) }
	for _, r := range rows {
		if open(&r) {
			by[alike(&r)] = append(by[alike(&r)], r)
		}
	}
	for _, r := range rows {
		group := by[alike(&r)]
		switch {
		case !open(&r) || len(group) <= most:
			out = append(out, r)
		case group[0] == r:
			out = append(out, merged(group))
		}
	}
	return out
}

func merged(group []Row) Row {
	r := group[0]
	var names []string
	smallest := 0.0
	most := 0.0
	details := 0
	for _, x := range group {
		names = append(names, x.Strategy)
		if x.Detail != r.Detail {
			details++
		}
		if x.Test != nil && x.Test.Smallest > 0 {
			most = max(most, x.Test.Smallest)
			if smallest == 0 || x.Test.Smallest < smallest {
				smallest = x.Test.Smallest
			}
		}
	}
	r.Strategy = someOf(names)
	r.Setting = ""
	if details > 0 && most > 0 {
		r.Detail = fmt.Sprintf("the rounds show worsenings of %s to %s at the least", format.Pct(100*smallest), format.Pct(100*most))
	} else if details > 0 {
		r.Detail += " (and the like)"
	}
	r.Base = nil
	r.Head = nil
	r.Test = nil
	return r
}

// headline says how many figures fail, and what could not be told.
func (c *Comparison) headline() string {
	pairs := format.Plural(int64(c.Pairs), "strategy", "strategies") + " compared"
	if c.Kind == "exploration" {
		pairs = format.Plural(int64(c.Pairs), "search", "searches") + " compared"
	}
	failed := len(c.Failed())
	open := 0
	for i := range c.Rows {
		if r := &c.Rows[i]; !r.Advisory && !r.Fails(c.Strict) && (r.Verdict == Inconclusive || r.Verdict == Discarded) {
			open++
		}
	}
	rest := ""
	if open > 0 {
		rest = format.Plural(int64(open), "figure is", "figures are") + " inconclusive"
	}
	switch {
	case failed > 0:
		return format.Join(", ", "FAIL: "+format.Plural(int64(failed), "figure fails", "figures fail"), rest, pairs)
	case !c.Passes():
		return format.Join(", ", "FAIL: not all could be compared", rest, pairs)
	case open > 0:
		return format.Join(", ", "INCONCLUSIVE: nothing fails", rest, pairs)
	}
	return format.Join(", ", "PASS: nothing became worse", pairs)
}
