package text

import (
	"slices"
	"testing"

	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/results"
)

// TestDecisionHasItsFigures: the table to decide from has a column for each of its figures, and a terminal those of the
// answer. A simulation has no throughput, and a terminal no baseline next to strategies to choose from.
func TestDecisionHasItsFigures(t *testing.T) {
	for _, kind := range []string{results.Measured, results.Simulated} {
		file := fixture.New(3, fixture.Strategies...)
		file.Kind = kind
		settings := ranking.Of(file)
		table := Decide(&file, settings...).Table
		for name, extent := range map[string]document.Extent{"decision": document.Full, "answer": document.Brief} {
			want := slices.Clone(figures.Table(name))
			if kind == results.Simulated {
				want = slices.DeleteFunc(want, func(key string) bool { return key == "throughput" })
			}
			part := table.To(extent)
			var got []string
			for _, column := range part.Columns {
				if column.Key != "" {
					got = append(got, column.Key)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: the table %s has the figures %q, not %q", kind, name, got, want)
			}
			baseline := func(row document.Row) bool { return row.Strategy.Group == ranking.Baseline }
			if shown := slices.ContainsFunc(part.Rows, baseline); shown != (extent == document.Full) {
				t.Errorf("%s: baselines are in the table %s: %t", kind, name, shown)
			}
		}
	}
}
