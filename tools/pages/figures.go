package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/markdown"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// quoted has the strategy's rows of every record, measured ones first.
func quoted(buffer *bytes.Buffer, meta *strategies.Meta, evidence *Evidence) {
	rows := evidence.figures(meta.Name)
	if len(rows) == 0 {
		if why := evidence.skipped(meta.Name); why != "" {
			fmt.Fprintf(buffer, "## Measured\n\nNot part of the recorded runs: %s\n\n", sentence(why))
		}
		return
	}
	slices.SortStableFunc(rows, func(a, b figure) int { return strings.Compare(a.file.Kind, b.file.Kind) })
	title := "Measured and simulated"
	if first, last := rows[0].file.Kind, rows[len(rows)-1].file.Kind; first == last {
		title = map[string]string{results.Measured: "Measured", results.Simulated: "Simulated"}[first]
	}
	fmt.Fprintf(buffer, "## %s\n\n", title)
	table(buffer, meta, rows)
}

// setting says what was asked of the strategy, in cells.
func (f figure) setting() []string {
	summary := f.summary
	params := &f.summary.Params
	load := fmt.Sprintf("%s requests/s", format.Digits(params.RatePerS))
	if params.Loop == codes.ClosedLoop {
		load = format.Plural(int64(params.Workers), "worker", "workers")
		if summary.Paced != nil {
			load += fmt.Sprintf("; %s requests/s for latency", format.Count(int64(summary.Paced.Params.RatePerS)))
		}
	}
	load += fmt.Sprintf(", %s", format.Plural(int64(params.Instances), "instance", "instances"))
	if params.Cold {
		load += ", cold connections"
	}
	if len(params.Trouble) > 0 {
		load += ", trouble " + strings.Join(params.Trouble.Strings(), ", ")
	}
	return []string{summary.Workload,
		fmt.Sprintf("%s: %s, %s", summary.Policy, format.Units(params.Limit, params.Unit), params.WindowText()), load}
}

// table shows a strategy in each of the records.
func table(buffer *bytes.Buffer, meta *strategies.Meta, rows []figure) {
	out := newTable("[run](" + Index + "#runs)")
	timings := document.Figures("throughput", "p50", "p99")
	timings[0].Title = "decisions/s"
	decided := document.Figures("leak", "leaked-trials", "false-rejects", "drift")
	decided[1].Show(withoutShare)
	decided[2].Show(falseRejects)
	decided[3].Title = "drift"
	if rows[0].file.Kind != results.Measured {
		timings = nil
	}
	place(out, timings)
	place(out, decided)
	declares := len(meta.Guarantee) > 0
	if declares {
		out.Columns = append(out.Columns, document.Column{Title: "guarantee", Left: true})
	}
	for _, figure := range rows {
		summary := figure.summary
		row := out.Add(figure.name)
		if _, given, _ := strings.Cut(summary.Label, ":"); given != "" {
			row.Cells[0].Text += ", " + cell(given)
		}
		if figure.file.Kind == results.Measured {
			row.Cells = append(row.Cells, document.Cells(summary, timings, &figures.Notes{})...)
		} else {
			row.Cells = append(row.Cells, none(len(timings))...)
		}
		row.Cells = append(row.Cells, counted(summary, decided)...)
		switch {
		case declares && summary.Counts():
			row.Cells = append(row.Cells, document.Cell{Text: verdict(summary)})
		case declares:
			row.Cells = append(row.Cells, none(1)...)
		}
	}
	fmt.Fprintln(buffer, markdown.Table(out))
}

// newTable has columns of texts.
func newTable(titles ...string) *document.Table {
	out := &document.Table{}
	for _, title := range titles {
		out.Columns = append(out.Columns, document.Column{Title: title, Left: true})
	}
	return out
}

// place adds columns of figures, which are texts on these pages.
func place(table *document.Table, columns []document.FigureColumn) {
	for _, column := range columns {
		column.Left = true
		table.Columns = append(table.Columns, column.Column)
	}
}

// none are cells of figures that there are not.
func none(n int) []document.Cell { return document.Texts(slices.Repeat([]string{"-"}, n)...) }

// counted are the figures of decisions, if they count.
func counted(summary *results.Summary, columns []document.FigureColumn) []document.Cell {
	if !summary.Counts() {
		return append(document.Texts("invalid"), none(len(columns)-1)...)
	}
	cells := document.Cells(summary, columns, &figures.Notes{})
	for i := range cells {
		cells[i].Text = cell(strings.ReplaceAll(cells[i].Text, "\n", "; "))
	}
	return cells
}

// verdict on what the strategy declares.
func verdict(summary *results.Summary) string {
	if len(summary.Guarantee) == 0 && len(summary.NotPromised) == 0 {
		return "not judged"
	}
	return figures.Guarantee(summary)
}

// withoutShare is how many trials leaked, of all.
func withoutShare(summary *results.Summary, notes *figures.Notes) string {
	leak := &summary.Leak
	if leak.Trials == 0 {
		return figures.Of("leaked-trials").Text(summary, notes)
	}
	return format.Count(leak.LeakedTrials) + " of " + format.Count(leak.Trials)
}

// falseRejects are followed by the room behind them, since they count one missing unit again for each attempt.
func falseRejects(summary *results.Summary, notes *figures.Notes) string {
	text := figures.Of("false-rejects").Text(summary, notes)
	if n := summary.FalseRejects.NeverGiven; n != nil && *n > 0 {
		text += "; " + format.Units(*n, summary.Params.Unit) + " never given"
	}
	return text
}

// machine says on which machine and stores a record was measured.
func machine(file *results.File) string {
	host := file.Provenance.Host
	parts := []string{fmt.Sprintf("%s, %s of %s/%s", format.Plural(int64(host.CPUs), "core", "cores"),
		cmp.Or(host.Model, "a processor"), host.OS, host.Arch)}
	for _, name := range file.StoreNames() {
		if store := file.Stores[name]; !strings.Contains(name, ".") {
			version, _, _ := strings.Cut(store.Version, " (")
			parts = append(parts, strings.TrimSpace(name+" "+version)+" ("+store.Kind+")")
		}
	}
	return strings.Join(parts, "; ")
}
