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
	var lines []string
	for _, cells := range r.ByStrategy() {
		g := layout.Grid{Columns: []layout.Column{{Title: "fault", Left: true}, {Title: "what it declares", Left: true, Tone: ToneOf}}}
		for _, c := range columns(figures.Table("faults")...) {
			g.Columns = append(g.Columns, c.Column)
		}
		for _, j := range cells {
			row := make([]string, len(g.Columns))
			row[0], row[1] = j.Record, j.Text()
			for i, f := range j.Figures {
				row[i+2] = f.Text
			}
			g.Add(row...)
		}
		g.Compact()
		lines = append(append(lines, page.Title(format.Plain(cells[0].ID))...), page.Table(&g)...)
		for _, j := range cells {
			if j.Why != "" {
				lines = append(lines, page.Paragraph("  "+j.Record+": ", format.Plain(j.Why))...)
			}
		}
		lines = append(lines, "")
	}
	note := ""
	if slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "n/m") }) {
		note = " n/m: not measurable, e.g. since runs were made at the same time (--parallel)."
	}
	lines = append(lines, page.Wrap("What strategies declare: "+counted(r, claims.CellVerdicts)+"."+caveats(r)+note)...)
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}
