package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/figures"
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
	if params.Loop == results.ClosedLoop {
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
	timed := rows[0].file.Kind == results.Measured
	columns := []string{"[run](" + Index + "#runs)", "leak", "trials that leaked", "false rejects", "drift"}
	declares := len(meta.Guarantee) > 0
	if declares {
		columns = append(columns, "guarantee")
	}
	if timed {
		columns = slices.Insert(columns, 1, "decisions/s", "p50", "p99")
	}
	heading(buffer, columns)
	for _, figure := range rows {
		summary := figure.summary
		cells := []string{figure.name}
		if _, given, _ := strings.Cut(summary.Label, ":"); given != "" {
			cells[0] += ", " + cell(given)
		}
		switch {
		case figure.file.Kind == results.Measured:
			cells = append(cells, timing("throughput", summary), timing("p50", summary), timing("p99", summary))
		case timed:
			cells = append(cells, "-", "-", "-")
		}
		if summary.Counts() {
			for _, key := range []string{"leak", "leaked-trials", "false-rejects", "drift"} {
				text := figures.Of(key).Text(summary, nil)
				switch key {
				case "leaked-trials":
					text, _, _ = strings.Cut(text, " (")
				case "false-rejects":
					text += neverGiven(summary)
				}
				cells = append(cells, cell(strings.ReplaceAll(text, "\n", "; ")))
			}
		} else {
			cells = append(cells, "invalid", "-", "-", "-")
		}
		switch {
		case declares && summary.Counts():
			cells = append(cells, verdict(summary))
		case declares:
			cells = append(cells, "-")
		}
		line(buffer, cells)
	}
	fmt.Fprintln(buffer)
}

// verdict on what the strategy declares.
func verdict(summary *results.Summary) string {
	if len(summary.Guarantee) == 0 && len(summary.NotPromised) == 0 {
		return "not judged"
	}
	return figures.Guarantee(summary)
}

// neverGiven is the room behind false rejects, which count one missing unit again for each
// attempt.
func neverGiven(summary *results.Summary) string {
	if n := summary.FalseRejects.NeverGiven; n != nil && *n > 0 {
		return "; " + format.Units(*n, summary.Params.Unit) + " never given"
	}
	return ""
}

func line(buffer *bytes.Buffer, cells []string) {
	fmt.Fprintf(buffer, "|%s|\n", strings.Join(cells, "|"))
}

func heading(buffer *bytes.Buffer, columns []string) {
	line(buffer, columns)
	fmt.Fprintln(buffer, strings.Repeat("|---", len(columns))+"|")
}

// timing is a timing over all rounds.
func timing(key string, summary *results.Summary) string {
	return figures.Of(key).Timing(summary).Value
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
