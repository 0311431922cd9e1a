package text

import (
	"bufio"
	"fmt"
	"io"
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
			row := []string{j.Record, j.Text()}
			for i := range figures.Table("faults") {
				text := ""
				if i < len(j.Figures) {
					text = j.Figures[i].Text
				}
				row = append(row, text)
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
	lines = append(lines, page.Wrap(faultsSummary(r))...)
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// faultsSummary counts the verdicts.
func faultsSummary(r *claims.Report) string {
	return "What strategies declare: " + counted(r, claims.CellVerdicts) + "." + caveats(r)
}

// FaultsMarkdown writes the same as a table of strategies and faults in Markdown, with what was refuted below it.
func FaultsMarkdown(w io.Writer, r *claims.Report) error {
	out := bufio.NewWriter(w)
	var faults []string
	for _, cells := range r.ByFault() {
		faults = append(faults, cells[0].Record)
	}
	fmt.Fprintf(out, "|strategy|%s|\n|%s\n", strings.Join(faults, "|"), strings.Repeat("---|", len(faults)+1))
	var refuted []string
	for _, cells := range r.ByStrategy() {
		verdicts := map[string]string{}
		for _, j := range cells {
			if verdicts[j.Record] = j.Text(); j.Verdict == claims.Refuted {
				refuted = append(refuted, fmt.Sprintf("- %s, %s: %s", markdown(j.ID), markdown(j.Record), markdown(j.Why)))
			}
		}
		fmt.Fprintf(out, "|%s", markdown(cells[0].ID))
		for _, f := range faults {
			fmt.Fprint(out, "|", verdicts[f])
		}
		fmt.Fprint(out, "|\n")
	}
	fmt.Fprintf(out, "\n%s\n\n%s\n", strings.Join(refuted, "\n"), markdown(faultsSummary(r)))
	return out.Flush()
}
