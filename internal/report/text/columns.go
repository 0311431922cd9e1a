package text

import (
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/claims"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// labelColumn is the first column of every table. Long option lists wrap in it.
var labelColumn = document.Column{Title: "strategy", Left: true, Flexible: true, Minimum: 21}

// grid has a row for each strategy, baselines apart.
func grid(group []results.Summary, columns []document.FigureColumn, notes *figures.Notes) *document.Table {
	table := &document.Table{Columns: []document.Column{labelColumn}}
	table.Place(columns)
	for i := range group {
		summary := &group[i]
		if i > 0 && summary.Form == string(strategies.Baseline) && group[i-1].Form != string(strategies.Baseline) {
			table.AddRule()
		}
		row := table.Add(format.Plain(summary.Label))
		row.Cells = append(row.Cells, document.Cells(summary, columns, notes)...)
	}
	table.Compact()
	return table
}

// figureTable has a row for each strategy. What always holds stands below it, before what its marks
// mean.
func figureTable(title string, group []results.Summary, columns []document.FigureColumn,
	always string) document.Section {
	var notes figures.Notes
	table := grid(group, columns, &notes)
	return titled(title, table, noted(always, &notes))
}

// titled is empty if no column has anything to show.
func titled(title string, table *document.Table, notes ...string) document.Section {
	if len(table.Columns) == 1 || len(table.Rows) == 0 {
		return nil
	}
	table.Title = title
	table.Notes = slices.DeleteFunc(notes, func(note string) bool { return note == "" })
	return document.Section{table}
}

// noted is what always holds, and what the marks mean.
func noted(always string, notes *figures.Notes) string {
	return format.Join("; ", append([]string{always}, notes.Lines()...)...)
}

// tones are how words that judge are marked on a terminal.
var tones = map[string]document.Tone{
	string(ranking.Enforces): document.Good, string(ranking.Bounded): document.Caution,
	string(ranking.Loose): document.Caution, string(ranking.Fails): document.Bad,
	string(ranking.Unusable): document.Bad, string(ranking.Baseline): document.Minor,
	ranking.Enforces.Verdict(): document.Good, ranking.Bounded.Verdict(): document.Caution,
	ranking.Undecided.Verdict(): document.Caution,
	ranking.Fails.Verdict():     document.Bad, ranking.Unusable.Verdict(): document.Bad,
	ranking.Baseline.Verdict():      document.Minor,
	strings.ToUpper(results.Broken): document.Bad, results.Undecided: document.Caution, "invalid": document.Bad,
	string(compare.Worse): document.Bad, string(compare.Better): document.Good,
	string(claims.Holds): document.Good, string(claims.HoldsOnlyIf): document.Caution,
	string(claims.Refuted):       document.Bad,
	string(compare.Inconclusive): document.Caution, string(compare.Discarded): document.Caution,
}

// guaranteeTone marks a broken guarantee.
func guaranteeTone(summary *results.Summary) document.Tone {
	if summary.Verdict == results.Broken {
		return document.Bad
	}
	return document.Neutral
}

// ToneOf is how a cell is marked that consists of a word that judges.
func ToneOf(cell string) document.Tone { return tones[cell] }
