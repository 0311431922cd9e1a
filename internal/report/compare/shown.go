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
	var reading Reading
	exact := 0
	samples := 0
	gates := 0
	resolved := 0.0
	for _, row := range c.Rows {
		switch {
		case row.Verdict != Same && (!row.Advisory || row.Verdict != Inconclusive):
			reading.Changed = append(reading.Changed, row)
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
	slices.SortStableFunc(reading.Changed, func(a, b Row) int { return c.rank(&a) - c.rank(&b) })
	reading.Changed = together(reading.Changed)
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
	reading.Same = format.Join("; ", parts...)
	reading.Headline = c.headline()
	return reading
}

// rank puts what fails first.
func (c *Comparison) rank(row *Row) int {
	switch {
	case row.Fails(c.Strict) && (row.Verdict == Worse || row.Verdict == Invalid):
		return 0
	case row.Verdict == Discarded:
		return 2
	case row.Verdict == Inconclusive:
		return 3
	case row.Verdict == Worse:
		return 4
	}
	return 5
}

// together makes one row of what the rounds of several strategies cannot tell.
func together(rows []Row) (out []Row) {
	const most = 2
	by := map[string][]Row{}
	alike := func(row *Row) string { return string(row.Verdict) + row.Figure }
	open := func(row *Row) bool {
		return row.Kind == Sample && (row.Verdict == Inconclusive || row.Verdict == Discarded)
	}
	for _, row := range rows {
		if open(&row) {
			by[alike(&row)] = append(by[alike(&row)], row)
		}
	}
	for _, row := range rows {
		group := by[alike(&row)]
		switch {
		case !open(&row) || len(group) <= most:
			out = append(out, row)
		case group[0] == row:
			out = append(out, merged(group))
		}
	}
	return out
}

func merged(group []Row) Row {
	row := group[0]
	var names []string
	smallest := 0.0
	most := 0.0
	details := 0
	for _, x := range group {
		names = append(names, x.Strategy)
		if x.Detail != row.Detail {
			details++
		}
		if x.Test != nil && x.Test.Smallest > 0 {
			most = max(most, x.Test.Smallest)
			if smallest == 0 || x.Test.Smallest < smallest {
				smallest = x.Test.Smallest
			}
		}
	}
	row.Strategy = someOf(names)
	row.Setting = ""
	if details > 0 && most > 0 {
		row.Detail = fmt.Sprintf("the rounds show worsenings of %s to %s at the least", format.Pct(100*smallest),
			format.Pct(100*most))
	} else if details > 0 {
		row.Detail += " (and the like)"
	}
	row.Base = nil
	row.Head = nil
	row.Test = nil
	return row
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
		if row := &c.Rows[i]; !row.Advisory && !row.Fails(c.Strict) &&
			(row.Verdict == Inconclusive || row.Verdict == Discarded) {
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
