package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/markdown"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// A page that was written by hand compares strategies between these two lines, e.g. those
// of "incr-expire gcra in first". Tables are written again with the other pages.
const (
	besideFrom = "<!-- make pages: figures of "
	besideTo   = "<!-- /figures -->"
)

// fill makes the figures of a page that was written by hand anew. It returns nil if it
// has none.
func (e *Evidence) fill(page *Page) ([]byte, error) {
	var out bytes.Buffer
	rest := string(page.Bytes)
	for {
		before, from, ok := strings.Cut(rest, besideFrom)
		if !ok {
			break
		}
		list, from, named := strings.Cut(from, " -->\n")
		_, after, ended := strings.Cut(from, besideTo)
		names := strings.Fields(list)
		if !named || !ended || len(names) == 0 {
			return nil, fmt.Errorf("%s: figures begin with %qNAMES -->, and end with %q, on lines of their own", page.Name,
				besideFrom, besideTo)
		}
		fmt.Fprintf(&out, "%s%s%s -->\n\n", before, besideFrom, list)
		if err := e.beside(&out, names); err != nil {
			return nil, fmt.Errorf("%s: %w", page.Name, err)
		}
		fmt.Fprint(&out, besideTo)
		rest = after
	}
	if out.Len() == 0 {
		return nil, nil
	}
	out.WriteString(rest)
	return out.Bytes(), nil
}

// beside shows what strategies cost with their default options, in the measured records
// named behind "in", or in the one that has most of them.
func (e *Evidence) beside(buffer *bytes.Buffer, words []string) error {
	names := words
	texts := []string(nil)
	if i := slices.Index(words, "in"); i >= 0 {
		names = words[:i]
		texts = words[i+1:]
	}
	var shown [][]figure
	for i := range e.Runs {
		file := &e.Runs[i]
		if file.Kind != results.Measured || len(texts) > 0 && !slices.Contains(texts, e.name(i)) {
			continue
		}
		switch rows := e.rows(file, names); {
		case len(rows) < 2:
		case len(texts) > 0 || len(shown) == 0:
			shown = append(shown, rows)
		case len(rows) > len(shown[0]):
			shown[0] = rows
		}
	}
	if len(e.Runs) > 0 && len(shown) != max(1, len(texts)) {
		return fmt.Errorf("no measured record has several of %s", strings.Join(words, ", "))
	}
	for _, rows := range shown {
		compare(buffer, rows)
	}
	return nil
}

func (e *Evidence) rows(file *results.File, names []string) (rows []figure) {
	for _, name := range names {
		of := e.figures(name)
		if i := slices.IndexFunc(of, func(x figure) bool { return x.file == file }); i >= 0 {
			rows = append(rows, of[i])
		}
	}
	return rows
}

// compare is a table of what strategies cost in one record.
func compare(buffer *bytes.Buffer, rows []figure) {
	fmt.Fprintf(buffer, "From [%s](%s#runs):\n\n", rows[0].name, Index)
	out := newTable("strategy")
	decided := document.Figures("leak", "leak-worst", "false-rejects")
	decided[1].Title = "worst window, bound"
	decided[1].Show(func(summary *results.Summary, _ *figures.Notes) string { return worst(summary) })
	costs := document.Figures("throughput", "p50", "p99", "commands")
	costs[0].Title = "decisions/s"
	costs[3].Title = "commands, SQL, trips"
	costs[3].Show(func(summary *results.Summary, _ *figures.Notes) string { return work(&summary.Cost) })
	place(out, decided)
	place(out, costs)
	for _, figure := range rows {
		row := out.Add(cell(figure.summary.Label))
		row.Cells = append(row.Cells, counted(figure.summary, decided)...)
		row.Cells = append(row.Cells, document.Cells(figure.summary, costs, &figures.Notes{})...)
	}
	fmt.Fprintln(buffer, markdown.Table(out))
}

// worst is the leak of the worst window, and the strictest declared bound on it.
func worst(summary *results.Summary) string {
	bound := int64(quota.Unbounded)
	for _, clause := range summary.Guarantee {
		if clause.Property == string(quota.PropertyLeak) {
			bound = min(bound, clause.Bound)
		}
	}
	if bound == quota.Unbounded {
		return format.Count(summary.Leak.WorstUnits) + ", none"
	}
	return format.Count(summary.Leak.WorstUnits) + ", " + format.Count(bound)
}

func work(cost *results.Cost) string {
	return fmt.Sprintf("%s, %s, %s", format.Per(cost.Commands), format.Per(cost.SQL), format.Per(cost.RoundTrips))
}
