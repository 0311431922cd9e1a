package text

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/claims"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/text/layout"
)

// Claims writes the verdicts as a table for each design record, and below it what stands behind each.
func Claims(w io.Writer, page layout.Page, report *claims.Report) error {
	return write(w, func(section func([]string)) {
		for _, group := range ofDesignRecord(report.Claims) {
			grid := layout.Grid{Columns: []layout.Column{
				{Title: "claim", Left: true}, {Title: "verdict", Left: true, Tone: ToneOf},
				{Title: "what it says", Left: true, Flexible: true, Minimum: 24},
				{Title: "the record says", Left: true, Flexible: true, Minimum: 10},
				{Title: "measured here", Left: true, Flexible: true, Minimum: 16},
			}}
			var why []string
			for i := range group {
				j := &group[i]
				grid.Add(j.ID, j.Text(), j.Says, j.Promised, format.Join("; ", j.Measured, j.Form))
				if j.Why != "" {
					why = append(why, page.Paragraph(layout.Pad(j.ID, 4)+" ", format.Plain(string(j.Verdict)+": "+j.Why))...)
				}
			}
			section(append(page.Title(strings.ToUpper(group[0].Record)), page.Table(&grid)...))
			section(why)
		}
		section(page.Wrap(claimsSummary(report)))
	})
}

// ofDesignRecord are the claims of one design record after the other.
func ofDesignRecord(all []claims.Judgement) (out [][]claims.Judgement) {
	for i, j := range all {
		if i == 0 || j.Record != all[i-1].Record {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], j)
	}
	return out
}

// claimsSummary counts the verdicts, and the runs behind them.
func claimsSummary(report *claims.Report) string {
	text := fmt.Sprintf("%s: %s. %s; claims asked for one %s.",
		format.Plural(int64(len(report.Claims)), "claim", "claims"),
		counted(report, claims.Verdicts), format.Plural(int64(report.Runs), "run", "runs"),
		format.Plural(int64(report.Asked), "time", "times"))
	return text + caveats(report)
}

// counted says how often each verdict was reached.
func counted(report *claims.Report, verdicts []claims.Verdict) string {
	n := map[claims.Verdict]int{}
	for i := range report.Claims {
		n[report.Claims[i].Verdict]++
	}
	var counts []string
	for _, verdict := range verdicts {
		if n[verdict] > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n[verdict], verdict))
		}
	}
	return strings.Join(counts, ", ")
}

// caveats say what another pass may find.
func caveats(report *claims.Report) (text string) {
	unsure := 0
	for i := range report.Claims {
		if report.Claims[i].Close {
			unsure++
		}
	}
	if unsure > 0 {
		text = fmt.Sprintf(" %d close: another pass may decide otherwise.", unsure)
	}
	if report.Interrupted {
		text += " The pass was interrupted."
	}
	return text
}

// ClaimsMarkdown writes the same as a page in Markdown, with the commands that repeat each.
func ClaimsMarkdown(w io.Writer, report *claims.Report) error {
	out := bufio.NewWriter(w)
	for _, group := range ofDesignRecord(report.Claims) {
		fmt.Fprintf(out, "## %s\n\n| claim | verdict | what it says | the record says | measured here "+
			"|\n|---|---|---|---|---|\n",
			markdown(group[0].Record))
		for i := range group {
			j := &group[i]
			fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n", markdown(j.ID), markdown(j.Text()), markdown(j.Says),
				markdown(j.Promised),
				markdown(format.Join("; ", j.Measured, j.Form, j.Why)))
		}
		fmt.Fprintln(out)
		for i := range group {
			if j := &group[i]; j.Condition != "" {
				fmt.Fprintf(out, "- %s: `%s`, from `%s`\n", markdown(j.ID), j.Condition, strings.Join(j.Commands, "`, `"))
			}
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out, markdown(claimsSummary(report)))
	return out.Flush()
}

// ClaimsAnnotations writes the workflow commands of GitHub Actions: an error for each gate that fails, and a warning
// for each that another pass may fail.
func ClaimsAnnotations(w io.Writer, report *claims.Report) error {
	out := bufio.NewWriter(w)
	for i := range report.Claims {
		level := "error"
		if j := &report.Claims[i]; j.Fails() || j.Gate && j.Close {
			if !j.Fails() {
				level = "warning"
			}
			fmt.Fprintf(out, "::%s title=quotabench::%s\n", level,
				annotation(format.Join("; ", fmt.Sprintf("%s %s: %s", j.Record, j.ID, j.Text()), j.Measured, j.Why)))
		}
	}
	fmt.Fprintf(out, "::notice title=quotabench::%s\n", annotation(claimsSummary(report)))
	return out.Flush()
}

// Faults writes a matrix: a table for each strategy, a row for each fault, and below it what stands behind the
// verdicts.
func Faults(w io.Writer, page layout.Page, report *claims.Report) error {
	return write(w, func(section func([]string)) {
		disturbed := false
		for _, cells := range report.ByStrategy() {
			grid := layout.Grid{Columns: []layout.Column{{Title: "fault", Left: true},
				{Title: "what it declares", Left: true, Tone: ToneOf}}}
			for _, column := range columns(figures.Table("faults")...) {
				grid.Columns = append(grid.Columns, column.Column)
			}
			var why []string
			for _, j := range cells {
				row := make([]string, len(grid.Columns))
				row[0], row[1] = j.Record, j.Text()
				for i, shown := range j.Figures {
					row[i+2] = shown.Text
					disturbed = disturbed || shown.Disturbed
				}
				grid.Add(row...)
				if j.Why != "" {
					why = append(why, page.Paragraph("  "+j.Record+": ", format.Plain(j.Why))...)
				}
			}
			section(slices.Concat(page.Title(format.Plain(cells[0].ID)), page.Table(&grid), why))
		}
		text := "What strategies declare: " + counted(report, claims.CellVerdicts) + "." + caveats(report)
		if disturbed {
			text += " " + figures.Mark + " something else than the strategy had a part in it, e.g. runs made at the same " +
				"time (--parallel)."
		}
		section(page.Wrap(text))
	})
}
