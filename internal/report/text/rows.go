package text

import (
	"slices"

	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/results"
)

// Rows is a table with any number of rows for a strategy, which a terminal and a page have alike.
type Rows struct {
	Columns []document.Column
	Of      func(*results.Summary) [][]string
}

// grid has the rows of all strategies, each with its label before the first of them.
func (r *Rows) grid(group []results.Summary) *document.Table {
	table := &document.Table{Columns: append([]document.Column{labelColumn}, r.Columns...)}
	for i := range group {
		label := format.Plain(group[i].Label)
		for _, cells := range r.Of(&group[i]) {
			table.Add(append([]string{label}, cells...)...)
			label = ""
		}
	}
	return table
}

// Own are the figures that a strategy counts itself, medians over rounds, without those of 0.
var Own = Rows{
	Columns: []document.Column{
		{Title: "figure", Left: true, Flexible: true, Minimum: 16}, {Title: "value"},
		{Title: "unit", Left: true}, {Title: "per\ndecision"}, {Title: "per\nadmitted"},
	},
	Of: func(summary *results.Summary) (out [][]string) {
		for _, measureSummary := range summary.Meter {
			if measureSummary.Value.Hi == 0 && measureSummary.Value.Lo == 0 {
				continue
			}
			unit := format.Plain(measureSummary.Unit)
			per := format.Per
			show := func(value float64) string { return format.Count(int64(value)) }
			if ns, ok := nanoseconds[measureSummary.Unit]; ok {
				show = func(value float64) string { return format.NS(value * ns) }
				unit = "time"
				per = show
			}
			cells := []string{format.Plain(measureSummary.Name), show(measureSummary.Value.Value), unit, "", ""}
			if measureSummary.Kind == "" { // levels and largest values are of no decision
				cells[3], cells[4] = per(measureSummary.PerDecision), per(measureSummary.PerAdmitted)
			}
			out = append(out, cells)
		}
		return out
	},
}

// meters are the figures that strategies count themselves.
func meters(group []results.Summary) document.Section {
	return titled("FIGURES OF THEIR OWN  what strategies count themselves, medians over rounds; figures of 0 are "+
		"left out",
		Own.grid(group))
}

// nanoseconds in units of time, which are shown as other times are.
var nanoseconds = map[string]float64{"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6}

// Stored is what a strategy keeps in stores, and how that grew.
var Stored = Rows{
	Columns: []document.Column{
		{Title: "store", Left: true}, {Title: "subjects"},
		{Title: "at 1/4", Over: "entries", Optional: true}, {Title: "at 2/4", Over: "entries", Optional: true},
		{Title: "at 3/4", Over: "entries", Optional: true},
		{Title: "at the end", Over: "entries"}, {Title: "bytes", Optional: true},
		{Title: "bytes per\nsubject", Optional: true},
	},
	Of: func(summary *results.Summary) (out [][]string) {
		for _, k := range summary.Stored {
			cells := []string{format.Plain(k.Store), format.Count(k.Subjects), "", "", "", format.Count(k.Entries), "", ""}
			for q, at := range k.OverTime[:min(len(k.OverTime), bounds.Quarters-1)] {
				cells[2+q] = format.Count(at.Entries)
			}
			if k.Bytes > 0 {
				cells[6], cells[7] = format.Count(k.Bytes), format.Count(int64(k.BytesPerSubject+0.5))
			}
			out = append(out, cells)
		}
		return out
	},
}

// stored is what strategies keep in stores.
func stored(group []results.Summary) document.Section {
	note := "subjects: those asked about or set up"
	if slices.ContainsFunc(group, func(summary results.Summary) bool { return summary.Placement != nil }) {
		note += ", the warm-up's among them"
	}
	return titled("KEPT IN STORES  keys, rows, nodes or messages, in the round that kept most; bytes as the store "+
		"counts them",
		Stored.grid(group), note)
}
