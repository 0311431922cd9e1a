package text

import (
	"slices"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/results"
)

// Stored is what a strategy keeps in stores, and how that grew.
var Stored = Rows{
	Columns: []layout.Column{
		{Title: "store", Left: true}, {Title: "subjects"},
		{Title: "at 1/4", Over: "entries", Optional: true}, {Title: "at 2/4", Over: "entries", Optional: true},
		{Title: "at 3/4", Over: "entries", Optional: true},
		{Title: "at the end", Over: "entries"}, {Title: "bytes", Optional: true}, {Title: "bytes per\nsubject", Optional: true},
	},
	Of: func(s *results.Summary) (out [][]string) {
		for _, k := range s.Stored {
			cells := []string{format.Plain(k.Store), format.Count(k.Subjects), "", "", "", format.Count(k.Entries), "", ""}
			for q, at := range k.OverTime[:min(len(k.OverTime), results.Quarters-1)] {
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

// storedLines renders what strategies keep in stores.
func storedLines(page layout.Page, group []results.Summary) []string {
	note := "subjects: those asked about or set up"
	if slices.ContainsFunc(group, func(s results.Summary) bool { return s.Placement != nil }) {
		note += ", the warm-up's among them"
	}
	return table(page, "KEPT IN STORES  keys, rows, nodes or messages, in the round that kept most; bytes as the store counts them",
		Stored.grid(group), note)
}
