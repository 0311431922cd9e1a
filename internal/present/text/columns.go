package text

import (
	"strings"

	"github.com/quotabench/quotabench/internal/answer"
	"github.com/quotabench/quotabench/internal/claims"
	"github.com/quotabench/quotabench/internal/compare"
	"github.com/quotabench/quotabench/internal/figures"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/results"
)

// column is a column of a table over strategies.
type column struct {
	layout.Column
	cell func(*results.Summary, *figures.Notes) string
}

// labelColumn is the first column of every table. Long option lists wrap in it.
var labelColumn = layout.Column{Title: "strategy", Left: true, Flexible: true, Minimum: 21}

// columns are those of figures. One that no strategy has is left out.
func columns(keys ...string) (out []column) {
	for _, k := range keys {
		f := figures.Of(k)
		out = append(out, column{Column: layout.Column{Title: f.Name, Over: f.Over, Optional: true}, cell: f.Text})
	}
	return out
}

// grid has a row for each strategy, baselines apart.
func grid(group []results.Summary, columns []column, notes *figures.Notes) *layout.Grid {
	g := &layout.Grid{Columns: []layout.Column{labelColumn}}
	for _, c := range columns {
		g.Columns = append(g.Columns, c.Column)
	}
	for i := range group {
		s := &group[i]
		if i > 0 && s.Form == results.FormBaseline && group[i-1].Form != results.FormBaseline {
			g.AddRule()
		}
		g.Add(append([]string{format.Plain(s.Label)}, cellsOf(s, columns, notes)...)...)
	}
	g.Compact()
	return g
}

func cellsOf(s *results.Summary, columns []column, notes *figures.Notes) (out []string) {
	for _, c := range columns {
		out = append(out, c.cell(s, notes))
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
func table(page layout.Page, title string, g *layout.Grid, note string) []string {
	if len(g.Columns) == 1 || len(g.Rows) == 0 {
		return nil
	}
	return append(append(page.Title(title), page.Table(g)...), noteLines(page, note)...)
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
	string(answer.Enforces): layout.Good, string(answer.Bounded): layout.Caution, string(answer.Loose): layout.Caution,
	string(answer.Fails):    layout.Bad,
	string(answer.Unusable): layout.Bad, string(answer.Baseline): layout.Faint,
	answer.Enforces.Verdict(): layout.Good, answer.Bounded.Verdict(): layout.Caution, answer.Undecided.Verdict(): layout.Caution,
	answer.Fails.Verdict(): layout.Bad, answer.Unusable.Verdict(): layout.Bad, answer.Baseline.Verdict(): layout.Faint,
	strings.ToUpper(results.Broken): layout.Bad, results.Undecided: layout.Caution, "invalid": layout.Bad,
	string(compare.Worse): layout.Bad, string(compare.Better): layout.Good,
	string(claims.Holds): layout.Good, string(claims.HoldsOnlyIf): layout.Caution, string(claims.Refuted): layout.Bad,
	string(compare.Inconclusive): layout.Caution, string(compare.Discarded): layout.Caution,
}

// guaranteeTone marks a broken guarantee.
func guaranteeTone(cell string) layout.Tone {
	if strings.Contains(cell, Verdict(results.Broken)) {
		return layout.Bad
	}
	return layout.Plain
}

// ToneOf is how a cell is marked that consists of a word that judges.
func ToneOf(cell string) layout.Tone { return tones[cell] }
