package text

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
)

// correctness is what was decided wrongly, a heading above each group of strategies.
func correctness(file results.File, group []results.Summary) document.Section {
	failed := slices.ContainsFunc(group, func(summary results.Summary) bool {
		return summary.Counts() && summary.Errors > 0
	})
	table := &document.Table{Columns: []document.Column{labelColumn}}
	all := correctnessColumns(failed)
	table.Place(all)
	if failed { // there is less room
		table.Columns[0].Minimum = 12
	}
	in := ranking.Group("")
	for i := range group {
		strategy := ranking.Classify(&group[i])
		if strategy.Group != in {
			in = strategy.Group
			table.AddHeading(string(in), ToneOf(string(in)))
		}
		cells := document.Texts(slices.Repeat([]string{"-"}, len(all))...)
		cells[0].Text = "invalid"
		if strategy.Summary.Counts() {
			cells = document.Cells(strategy.Summary, all, &figures.Notes{})
		}
		row := table.Add(format.Plain(named(&strategy, strategy.Label)))
		row.Cells = append(row.Cells, cells...)
	}
	return titled("CORRECTNESS  leak, worst window and drift in "+format.Plain(group[0].Params.Unit), table,
		neverGiven(group), longestWrong(group), leakTiers(group),
		strings.Join(correctnessNotes(group, failed, ranking.ByTime(&file)), "; "))
}

func correctnessColumns(narrow bool) []document.FigureColumn {
	shapes := map[string]document.Column{
		"errors": {Left: true, Flexible: true, Minimum: 11, Optional: true}, "leaked-trials": {Flexible: true, Minimum: 24},
		"drift": {Left: true, Flexible: true, Minimum: 12},
	}
	if narrow {
		shapes["leaked-trials"] = document.Column{Flexible: true, Minimum: 14}
	}
	all := document.Figures(figures.Table("correctness")...)
	for i := range all {
		column := &all[i]
		shape := shapes[column.Key]
		shape.Key = column.Key
		shape.Title = column.Title
		column.Column = shape
		switch column.Key {
		case "errors":
			column.Show(func(summary *results.Summary, _ *figures.Notes) string { return errorsCell(summary) })
		case "leak":
			column.Show(func(summary *results.Summary, _ *figures.Notes) string { return leakCell(&summary.Leak) })
		case "leak-pct":
			column.Show(func(summary *results.Summary, _ *figures.Notes) string {
				return format.PctNumber(summary.Leak.PctOfLimit)
			})
		}
	}
	guarantee := document.FigureColumn{Column: document.Column{
		Title: "guarantee", Left: true, Flexible: true, Minimum: 9,
	}}
	guarantee.Cell = func(summary *results.Summary, _ *figures.Notes) document.Cell {
		return document.Cell{Text: figures.Guarantee(summary), Tone: guaranteeTone(summary)}
	}
	return append(all, guarantee)
}

// neverGiven is what wrong rejections kept from callers for good: the percentage counts a unit
// again for each attempt.
func neverGiven(group []results.Summary) string {
	var parts []string
	for i := range group {
		if n := group[i].FalseRejects.NeverGiven; n != nil && *n > 0 {
			parts = append(parts, group[i].Label+" "+format.Count(*n))
		}
	}
	return surrounded("room never given, in "+format.Plain(group[0].Params.Unit)+": ", strings.Join(parts, ", "), "")
}

// longestWrong is for how long a tier went on rejecting wrongly.
func longestWrong(group []results.Summary) string {
	var parts []string
	for i := range group {
		if rejects := &group[i].FalseRejects; rejects.LongestNS > 0 {
			tier := surrounded("(", format.Plain(rejects.LongestTier), ")")
			parts = append(parts, format.Join(" ", group[i].Label, format.NS(float64(rejects.LongestNS)), tier))
		}
	}
	return surrounded("longest wrong verdict: ", strings.Join(parts, ", "), "")
}

// leakTiers are the tiers that admitted what leaked, where these are several.
func leakTiers(group []results.Summary) string {
	var parts []string
	for i := range group {
		var tiers []string
		for _, tier := range slices.Sorted(maps.Keys(group[i].LeakTiers)) {
			if n := group[i].LeakTiers[tier]; n > 0 {
				tiers = append(tiers, format.Plain(tier)+" "+format.Count(n))
			}
		}
		if len(tiers) > 1 {
			parts = append(parts, group[i].Label+" "+strings.Join(tiers, " and "))
		}
	}
	return surrounded("leak by the tier that admitted it: ", strings.Join(parts, ", "), "")
}

// correctnessNotes explain the columns.
func correctnessNotes(group []results.Summary, failed, byTime bool) []string {
	falseRejects := "false rejects: of valid requests, for which there was room when they were made"
	if slices.ContainsFunc(group, func(summary results.Summary) bool {
		return summary.FalseRejects.Possible > summary.FalseRejects.Count
	}) {
		falseRejects += ", certain..possible, or certain alone where one order of events explains all others"
	}
	limit := "the limit"
	if len(group[0].Params.Trouble.Of(trouble.Change)) > 0 {
		limit = "the first limit"
	}
	order := "rows: in each group the fastest first; of those that are not shown to be slower by 25 %, first who " +
		"survives more faults, then who sends fewer commands"
	if !byTime {
		order = "rows: in each group first who survives more faults, then who sends fewer commands"
	}
	order += "; those that do not enforce by their leak"
	parts := []string{order, "leak: certain..possible, all rounds together, in percent of " + limit + " times the trials",
		"worst window: leak of one subject and window",
		"0 of n trials: in brackets the largest share that is compatible with it (95 %)",
		falseRejects}
	if failed {
		parts = append(parts, "errors: requests without a decision, of all; "+
			"time-outs and contention are what a strategy does, those of the store and others make a run invalid")
	}
	if slices.ContainsFunc(group, func(summary results.Summary) bool { return !summary.Counts() }) {
		parts = append(parts, "invalid: the audit discarded every round, see MEASUREMENT VALIDITY")
	}
	return parts
}

// rolling is what tumbling windows let through around their ends, if
// one ended in mid-run.
func rolling(group []results.Summary) document.Section {
	const note = "leak: certain..possible, of disjoint spans, all rounds together; " +
		"a policy of tumbling windows allows 2.00 x limit around their ends"
	return figureTable("ROLLING  the same decisions, judged by every span as long as a window instead of the "+
		"policy's own windows",
		group, document.Figures(figures.Table("rolling")...), note)
}

// errorsCell is the share of requests that ended in an error of each kind; empty if
// none did.
func errorsCell(summary *results.Summary) string {
	if summary.Errors == 0 {
		return ""
	}
	if summary.ErrorKinds == nil { // of a record that does not tell them apart
		return format.Pct(stat.Percent(summary.Errors, summary.Issued))
	}
	cell := strings.Join(figures.Errors(summary), ",\n")
	if ranking.FailsAlways(summary) {
		cell += ":\n" + cmp.Or(summary.FirstErrorCode, beginning(summary.FirstError))
	}
	return cell
}

// beginning of a text that may be too long for a cell.
func beginning(text string) string {
	const most = 24
	if r := []rune(text); len(r) > most {
		return strings.TrimSpace(string(r[:most-1])) + "…"
	}
	return text
}

// leakCell is the leak, certain..possible, on two lines if that is wide.
func leakCell(leak *results.LeakSummary) string {
	const wide = 12
	text := format.Range(leak.Units, leak.Possible)
	if leak.Possible > leak.Units && len(text) > wide {
		return format.Count(leak.Units) + "..\n" + format.Count(leak.Possible)
	}
	return text
}

// Verdict says whether what was declared was kept; "none" if nothing was.
func Verdict(verdict string) string {
	switch verdict {
	case "":
		return "none"
	case results.Broken:
		return "BROKEN"
	default:
		return verdict
	}
}
