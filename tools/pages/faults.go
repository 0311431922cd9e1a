package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/claims"
	"github.com/quotabench/quotabench/internal/report/markdown"
)

// faultsPage is what strategies make of faults, from the pages of strategies.
const faultsPage = "../faults.md"

// readFaults judges the records of a matrix as anyone may. It returns nil if there are none.
func readFaults(dir string) (*claims.Report, error) {
	if _, err := os.Stat(filepath.Join(dir, "faults.json")); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out, messages bytes.Buffer
	cmd := cli.Command(&out, &messages)
	cmd.SetArgs([]string{"faults", "--from", dir, "--format", "json"})
	failed := cmd.Execute() // also if a declaration is refuted
	report := new(claims.Report)
	if err := json.Unmarshal(out.Bytes(), report); err != nil {
		return nil, fmt.Errorf("judge %s: %w\n%s", dir, cmp.Or(failed, err), messages.String())
	}
	return report, nil
}

// parts are the tables of the page, by what the names of their faults begin with; the last has all others.
var parts = []struct{ title, prefix string }{{"Redis", "redis-"}, {"PostgreSQL", "postgres-"},
	{"Callers, clocks, networks and limits", ""}}

// matrix is the page of a report: in each table a row for each strategy, and a column for each fault. Below are the
// declarations that are refuted or undecided, with the reason.
func matrix(report *claims.Report) Page {
	var buffer, reasons bytes.Buffer
	fmt.Fprintf(&buffer, "# What strategies make of faults\n\nEach strategy was measured on real servers with each "+
		"[fault](../internal/app/faults/faults.yaml). What it declares under the fault: %s Empty: it has no such store.\n",
		legend(report))
	told := map[string]bool{}
	for _, part := range parts {
		columns := []string{"strategy"}
		at := map[string]int{}
		for _, cells := range report.ByFault() {
			if fault := cells[0].Record; !told[fault] && strings.HasPrefix(fault, part.prefix) {
				told[fault] = true
				at[fault] = len(columns)
				columns = append(columns, fault)
			}
		}
		if len(at) == 0 {
			continue
		}
		fmt.Fprintf(&buffer, "\n## %s\n\n", part.title)
		table := newTable(columns...)
		for _, cells := range report.ByStrategy() {
			if row := row(cells, at, &reasons); row != nil {
				table.Add(row...)
			}
		}
		buffer.WriteString(markdown.Table(table))
	}
	if reasons.Len() > 0 {
		fmt.Fprintf(&buffer, "\n## Refuted or undecided\n\n%s", &reasons)
	}
	fmt.Fprintf(&buffer, "\nAll figures: `quotabench faults --from results/baseline/faults`\n%s", mark)
	return Page{faultsPage, buffer.Bytes()}
}

// row has the cells of a strategy in the columns of one table; nil if there are none. It gives the reasons of what is
// refuted or undecided.
func row(cells []*claims.Judgement, at map[string]int, reasons *bytes.Buffer) (row []string) {
	name, _, _ := strings.Cut(cells[0].ID, ":")
	for _, j := range cells {
		column := at[j.Record]
		if column == 0 {
			continue
		}
		if row == nil {
			row = make([]string, 1+len(at))
			row[0] = fmt.Sprintf("[%s](strategies/%s.md)", j.ID, name)
		}
		row[column] = claims.Marks[j.Verdict] + leaked(j)
		if j.Close {
			row[column] += closeMark
		}
		if j.Verdict == claims.Refuted || j.Verdict == claims.Undecided {
			fmt.Fprintf(reasons, "- %s, `%s`: %s: %s\n", row[0], j.Record, j.Verdict, cell(j.Why))
		}
	}
	return row
}

// closeMark is that of a cell whose rounds differ.
const closeMark = "~"

// legend says what the marks mean that there are.
func legend(report *claims.Report) string {
	seen := map[claims.Verdict]bool{}
	unsure := false
	for i := range report.Claims {
		seen[report.Claims[i].Verdict] = true
		unsure = unsure || report.Claims[i].Close
	}
	var out []string
	for _, verdict := range claims.CellVerdicts {
		if seen[verdict] && claims.Marks[verdict] != "" {
			out = append(out, claims.Marks[verdict]+" "+string(verdict))
		}
	}
	if unsure {
		out = append(out, closeMark+" not in each round")
	}
	return strings.Join(append(out, "+N: N units were admitted over the limit."), ", ")
}

// leaked are the units over the limit; "" if there are none.
func leaked(j *claims.Judgement) string {
	for _, shown := range j.Figures {
		if shown.Key == "leak" && shown.Value != nil && *shown.Value > 0 {
			return "+" + format.Count(int64(*shown.Value))
		}
	}
	return ""
}
