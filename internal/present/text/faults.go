package text

import (
	"io"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/claims"
	"github.com/quotabench/quotabench/internal/figures"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text/layout"
)

// Faults writes a matrix: a table for each strategy, a row for each fault, and below it what stands behind the verdicts.
func Faults(w io.Writer, page layout.Page, r *claims.Report) error {
	return write(w, func(section func([]string)) {
		note := ""
		for _, cells := range r.ByStrategy() {
			g := layout.Grid{Columns: []layout.Column{{Title: "fault", Left: true}, {Title: "what it declares", Left: true, Tone: ToneOf}}}
			for _, c := range columns(figures.Table("faults")...) {
				g.Columns = append(g.Columns, c.Column)
			}
			var why []string
			for _, j := range cells {
				row := make([]string, len(g.Columns))
				row[0], row[1] = j.Record, j.Text()
				for i, f := range j.Figures {
					row[i+2] = f.Text
				}
				g.Add(row...)
				if j.Why != "" {
					why = append(why, page.Paragraph("  "+j.Record+": ", format.Plain(j.Why))...)
				}
				if slices.ContainsFunc(row, func(cell string) bool { return strings.Contains(cell, "n/m") }) {
					note = " n/m: not measurable, e.g. since runs were made at the same time (--parallel)."
				}
			}
			section(slices.Concat(page.Title(format.Plain(cells[0].ID)), page.Table(&g), why))
		}
		section(page.Wrap("What strategies declare: " + counted(r, claims.CellVerdicts) + "." + caveats(r) + note))
	})
}
