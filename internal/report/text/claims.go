package text

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/claims"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/markdown"
	"github.com/quotabench/quotabench/internal/report/text/layout"
)

// Claims writes the verdicts as a table for each design record, and below it what stands behind each.
func Claims(w io.Writer, page layout.Page, report *claims.Report) error {
	return page.Write(w, ClaimsDocument(report))
}

// ClaimsMarkdown writes the same as a page in Markdown, with the commands that repeat each.
func ClaimsMarkdown(w io.Writer, report *claims.Report) error {
	return markdown.Write(w, ClaimsDocument(report))
}

// ClaimsDocument has a table for each design record, the reasons for its verdicts, and a summary.
func ClaimsDocument(report *claims.Report) (doc document.Document) {
	for _, group := range ofDesignRecord(report.Claims) {
		table := &document.Table{Columns: []document.Column{
			{Title: "claim", Left: true}, {Title: "verdict", Left: true, Tone: ToneOf},
			{Title: "what it says", Left: true, Flexible: true, Minimum: 24},
			{Title: "the record says", Left: true, Flexible: true, Minimum: 10},
			{Title: "measured here", Left: true, Flexible: true, Minimum: 16},
		}}
		var why document.Section
		for i := range group {
			j := &group[i]
			row := table.Add(j.ID, j.Text(), j.Says, j.Promised, format.Join("; ", j.Measured, j.Form))
			row.Cells[2].Aside = surrounded("(", j.Source, ")")
			row.ID = j.ID
			row.Why = format.Join("; ", j.Why, strings.TrimSpace(j.Note))
			row.Condition = j.Condition
			row.Commands = j.Commands
			if row.Why != "" {
				why = append(why, reason(layout.Pad(j.ID, 4)+" ", string(j.Verdict)+": "+row.Why))
			}
		}
		doc.Section(&document.Heading{Text: group[0].Record}, table)
		doc.Section(why...)
	}
	doc.Section(&document.Paragraph{Text: claimsSummary(report)})
	return doc
}

// reason stands below a table, unless its rows have the reasons.
func reason(head, text string) *document.Paragraph {
	return &document.Paragraph{Head: head, Text: format.Plain(text), Only: document.Brief}
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
	isMarked := func(j claims.Judgement) bool { return strings.Contains(j.Measured+j.Form, figures.Mark) }
	if slices.ContainsFunc(report.Claims, isMarked) {
		text += " " + figures.Mark + " " + claims.Disturbed + "."
	}
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
	return page.Write(w, FaultsDocument(report))
}

// FaultsDocument has a matrix of marks, a table for each strategy, the reasons for its verdicts, and a summary.
func FaultsDocument(report *claims.Report) (doc document.Document) {
	doc.Section(&document.Paragraph{Text: faultsLegend, Only: document.Full}, matrix(report))
	note := ""
	for _, cells := range report.ByStrategy() {
		section, disturbed := faultsOf(cells)
		doc.Section(section...)
		if disturbed {
			note = " " + marksLegend + "."
		}
	}
	declare := "What strategies declare: " + counted(report, claims.CellVerdicts) + "."
	doc.Section(&document.Paragraph{Text: declare + caveats(report) + note})
	return doc
}

const (
	marksLegend = figures.Mark + " something else than the strategy had a part in it, e.g. runs made at the same time " +
		"(--parallel)"
	faultsLegend = "✓ what is declared holds · ✗ it is refuted · ? undecided · – nothing is declared · " +
		"empty: the fault is of no store that it has · " + marksLegend
)

// matrix has a row for each strategy, a column for each fault, and marks for the verdicts.
func matrix(report *claims.Report) *document.Table {
	table := &document.Table{
		Columns: []document.Column{{Title: "strategy", Left: true}}, Marks: true, Only: document.Full,
	}
	column := map[string]int{}
	for i, cells := range report.ByFault() {
		fault := cells[0]
		column[fault.Record] = i + 1
		table.Columns = append(table.Columns, document.Column{Title: fault.Record, Left: true, Tip: fault.Says})
	}
	for _, cells := range report.ByStrategy() {
		row := table.Add(make([]string, len(table.Columns))...)
		row.Cells[0].Text = cells[0].ID
		row.Link = cells[0].ID
		for _, j := range cells {
			row.Cells[column[j.Record]] = document.Cell{
				Text: claims.Marks[j.Verdict], Tone: ToneOf(string(j.Verdict)), Tip: format.Join(": ", j.Text(), j.Why),
			}
		}
	}
	return table
}

// faultsOf is the table of one strategy, a row for each fault, and the reasons for its verdicts. disturbed says that
// something else had a part in a figure.
func faultsOf(cells []*claims.Judgement) (section document.Section, disturbed bool) {
	table := &document.Table{Title: format.Plain(cells[0].ID), ID: cells[0].ID, Columns: []document.Column{
		{Title: "fault", Left: true}, {Title: "what it declares", Left: true, Tone: ToneOf},
	}}
	table.Place(document.Figures(figures.Table("faults")...))
	section = document.Section{table}
	for _, j := range cells {
		row := table.Add(make([]string, len(table.Columns))...)
		row.Cells[0] = document.Cell{Text: j.Record, Tip: j.Says}
		row.Cells[1] = document.Cell{Text: j.Text(), Tip: j.Promised}
		for i, shown := range j.Figures {
			row.Cells[i+2].Text = shown.Text
			disturbed = disturbed || shown.Disturbed
		}
		row.Why = j.Why
		row.Commands = j.Commands
		if j.Why != "" {
			section = append(section, reason("  "+j.Record+": ", j.Why))
		}
	}
	return section, disturbed
}
