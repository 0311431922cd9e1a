package text

import (
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/claims"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
)

// column is a column of a table over strategies.
type column struct {
	layout.Column
	cell func(*results.Summary, *figures.Notes) string
	// tone marks a cell on a terminal; nil if the column's own does.
	tone func(*results.Summary) layout.Tone
}

// labelColumn is the first column of every table. Long option lists wrap in it.
var labelColumn = layout.Column{Title: "strategy", Left: true, Flexible: true, Minimum: 21}

// columns are those of figures. One that no strategy has is left out.
func columns(keys ...string) (out []column) {
	for _, k := range keys {
		figure := figures.Of(k)
		out = append(out, column{Column: layout.Column{Title: figure.Name, Over: figure.Over, Optional: true},
			cell: figure.Text})
	}
	return out
}

// grid has a row for each strategy, baselines apart.
func grid(group []results.Summary, columns []column, notes *figures.Notes) *layout.Grid {
	g := &layout.Grid{Columns: []layout.Column{labelColumn}}
	for _, column := range columns {
		g.Columns = append(g.Columns, column.Column)
	}
	for i := range group {
		summary := &group[i]
		if i > 0 && summary.Form == results.FormBaseline && group[i-1].Form != results.FormBaseline {
			g.AddRule()
		}
		g.AddCells(format.Plain(summary.Label), cellsOf(summary, columns, notes)...)
	}
	g.Compact()
	return g
}

func cellsOf(summary *results.Summary, columns []column, notes *figures.Notes) (out []layout.Cell) {
	for _, column := range columns {
		cell := layout.Cell{Text: column.cell(summary, notes)}
		if column.tone != nil {
			cell.Tone = column.tone(summary)
		}
		out = append(out, cell)
	}
	return out
}

// figureTable has a row for each strategy. What always holds stands below it, before what its marks
// mean.
func figureTable(page layout.Page, title string, group []results.Summary, columns []column, always string) []string {
	var notes figures.Notes
	g := grid(group, columns, &notes)
	return table(page, title, g, noted(always, &notes))
}

// table is empty if no column has anything to show.
func table(page layout.Page, title string, grid *layout.Grid, note string) []string {
	if len(grid.Columns) == 1 || len(grid.Rows) == 0 {
		return nil
	}
	return append(append(page.Title(title), page.Table(grid)...), noteLines(page, note)...)
}

// noted is what always holds, and what the marks mean.
func noted(always string, notes *figures.Notes) string {
	return format.Join("; ", append([]string{always}, notes.Lines()...)...)
}

// noteLines renders what is said below a table.
func noteLines(page layout.Page, text string) []string {
	if text == "" {
		return nil
	}
	return page.Paragraph("  ", text)
}

// tones are how words that judge are marked on a terminal.
var tones = map[string]layout.Tone{
	string(ranking.Enforces): layout.Good, string(ranking.Bounded): layout.Caution, string(ranking.Loose): layout.Caution,
	string(ranking.Fails):    layout.Bad,
	string(ranking.Unusable): layout.Bad, string(ranking.Baseline): layout.Faint,
	ranking.Enforces.Verdict(): layout.Good, ranking.Bounded.Verdict(): layout.Caution,
	ranking.Undecided.Verdict(): layout.Caution,
	ranking.Fails.Verdict():     layout.Bad, ranking.Unusable.Verdict(): layout.Bad,
	ranking.Baseline.Verdict():      layout.Faint,
	strings.ToUpper(results.Broken): layout.Bad, results.Undecided: layout.Caution, "invalid": layout.Bad,
	string(compare.Worse): layout.Bad, string(compare.Better): layout.Good,
	string(claims.Holds): layout.Good, string(claims.HoldsOnlyIf): layout.Caution, string(claims.Refuted): layout.Bad,
	string(compare.Inconclusive): layout.Caution, string(compare.Discarded): layout.Caution,
}

// guaranteeTone marks a broken guarantee.
func guaranteeTone(summary *results.Summary) layout.Tone {
	if summary.Verdict == results.Broken {
		return layout.Bad
	}
	return layout.Plain
}

// ToneOf is how a cell is marked that consists of a word that judges.
func ToneOf(cell string) layout.Tone { return tones[cell] }
