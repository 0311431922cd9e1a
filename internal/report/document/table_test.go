package document

import (
	"slices"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

// decision is a table with a column and a row for each extent.
func decision() *Table {
	number := 1.5
	table := &Table{Title: "t", Notes: []string{"brief"}, FullNotes: []string{"full"}, Columns: []Column{
		{Title: "strategy"}, {Title: "verdict", Only: Brief}, {Title: "p50", Narrow: "p50, ms"}, {Title: "leak", Only: Full},
		{Title: "empty", Optional: true}, {Title: "some", Optional: true},
	}}
	table.AddHeading("all", Good)
	row := table.Add("a", "PASS", "1.50 ms", "7", "", "")
	row.Cells[2] = Cell{Text: "1.50 ms", Narrow: "1.50 [1–2]", Aside: "[1–2]", Number: &number}
	table.Add("exact", "BASELINE", "1 ms", "0", "", "x").Only = Full
	table.Add("b", "FAIL", "2 ms", "9", "", "y")
	return table
}

func texts(table *Table) (out [][]string) {
	for _, row := range table.Rows {
		var cells []string
		for _, cell := range row.Cells {
			cells = append(cells, cell.Text)
		}
		out = append(out, cells)
	}
	return out
}

func titles(table *Table) (out []string) {
	for _, column := range table.Columns {
		out = append(out, column.Title)
	}
	return out
}

func TestExtents(t *testing.T) {
	table := decision()
	for extent, want := range map[Extent]struct {
		titles []string
		rows   [][]string
		note   string
	}{
		Brief: {[]string{"strategy", "verdict", "p50, ms", "some"},
			[][]string{nil, {"a", "PASS", "1.50 [1–2]", "-"}, {"b", "FAIL", "2 ms", "y"}}, "brief"},
		Full: {[]string{"strategy", "p50", "leak", "some"},
			[][]string{nil, {"a", "1.50 ms", "7", "-"}, {"exact", "1 ms", "0", "x"}, {"b", "2 ms", "9", "y"}}, "full"},
	} {
		got := table.To(extent)
		got.Compact()
		if !slices.Equal(got.Notes, []string{want.note}) {
			t.Errorf("extent %d has the notes %q", extent, got.Notes)
		}
		if !slices.Equal(titles(got), want.titles) {
			t.Errorf("extent %d has the columns %q", extent, titles(got))
		}
		if rows := texts(got); !slices.EqualFunc(rows, want.rows, slices.Equal[[]string]) {
			t.Errorf("extent %d has the rows %q", extent, rows)
		}
	}
	if len(table.Columns) != 6 || table.Rows[1].Cells[2].Text != "1.50 ms" || table.Rows[1].Cells[5].Text != "" {
		t.Error("a part of a table changed the table")
	}
}

func TestTones(t *testing.T) {
	column := Column{Tone: func(text string) Tone {
		if text == "FAIL" {
			return Bad
		}
		return Neutral
	}}
	for want, cell := range map[Tone]Cell{Neutral: {Text: "1"}, Bad: {Text: "FAIL"}, Good: {Text: "FAIL", Tone: Good}} {
		if got := column.ToneOf(cell); got != want {
			t.Errorf("%+v has the tone %d, not %d", cell, got, want)
		}
	}
}
