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
func quoted(b *bytes.Buffer, m *strategies.Meta, e *Evidence) {
	rows := e.figures(m.Name)
	if len(rows) == 0 {
		if why := e.skipped(m.Name); why != "" {
			fmt.Fprintf(b, "## Measured\n\nNot part of the recorded runs: %s\n\n", sentence(why))
		}
		return
	}
	slices.SortStableFunc(rows, func(a, b figure) int { return strings.Compare(a.file.Kind, b.file.Kind) })
	title := "Measured and simulated"
	if first, last := rows[0].file.Kind, rows[len(rows)-1].file.Kind; first == last {
		title = map[string]string{results.Measured: "Measured", results.Simulated: "Simulated"}[first]
	}
	fmt.Fprintf(b, "## %s\n\n", title)
	table(b, m, rows)
}

// setting says what was asked of the strategy, in cells.
func (f figure) setting() []string {
	s := f.summary
	p := &f.summary.Params
	load := fmt.Sprintf("%s requests/s", format.Digits(p.RatePerS))
	if p.Loop == results.ClosedLoop {
		load = format.Plural(int64(p.Workers), "worker", "workers")
		if s.Paced != nil {
			load += fmt.Sprintf("; %s requests/s for latency", format.Count(int64(s.Paced.Params.RatePerS)))
		}
	}
	load += fmt.Sprintf(", %s", format.Plural(int64(p.Instances), "instance", "instances"))
	if p.Cold {
		load += ", cold connections"
	}
	if len(p.Trouble) > 0 {
		load += ", trouble " + strings.Join(p.Trouble.Strings(), ", ")
	}
	return []string{s.Workload, fmt.Sprintf("%s: %s, %s", s.Policy, format.Units(p.Limit, p.Unit), p.WindowText()), load}
}

// table shows a strategy in each of the records.
func table(b *bytes.Buffer, m *strategies.Meta, rows []figure) {
	timed := rows[0].file.Kind == results.Measured
	columns := []string{"[run](" + Index + "#runs)", "leak", "trials that leaked", "false rejects", "drift"}
	declares := len(m.Guarantee) > 0
	if declares {
		columns = append(columns, "guarantee")
	}
	if timed {
		columns = slices.Insert(columns, 1, "decisions/s", "p50", "p99")
	}
	heading(b, columns)
	for _, r := range rows {
		s := r.summary
		cells := []string{r.name}
		if _, given, _ := strings.Cut(s.Label, ":"); given != "" {
			cells[0] += ", " + cell(given)
		}
		switch {
		case r.file.Kind == results.Measured:
			cells = append(cells, timing("throughput", s), timing("p50", s), timing("p99", s))
		case timed:
			cells = append(cells, "-", "-", "-")
		}
		if s.Counts() {
			for _, key := range []string{"leak", "leaked-trials", "false-rejects", "drift"} {
				text := figures.Of(key).Text(s, nil)
				switch key {
				case "leaked-trials":
					text, _, _ = strings.Cut(text, " (")
				case "false-rejects":
					text += neverGiven(s)
				}
				cells = append(cells, cell(strings.ReplaceAll(text, "\n", "; ")))
			}
		} else {
			cells = append(cells, "invalid", "-", "-", "-")
		}
		switch {
		case declares && s.Counts():
			cells = append(cells, verdict(s))
		case declares:
			cells = append(cells, "-")
		}
		line(b, cells)
	}
	fmt.Fprintln(b)
}

// verdict on what the strategy declares.
func verdict(s *results.Summary) string {
	if len(s.Guarantee) == 0 && len(s.NotPromised) == 0 {
		return "not judged"
	}
	return figures.Guarantee(s)
}

// neverGiven is the room behind false rejects, which count one missing unit again for each
// attempt.
func neverGiven(s *results.Summary) string {
	if n := s.FalseRejects.NeverGiven; n != nil && *n > 0 {
		return "; " + format.Units(*n, s.Params.Unit) + " never given"
	}
	return ""
}

func line(b *bytes.Buffer, cells []string) { fmt.Fprintf(b, "|%s|\n", strings.Join(cells, "|")) }

func heading(b *bytes.Buffer, columns []string) {
	line(b, columns)
	fmt.Fprintln(b, strings.Repeat("|---", len(columns))+"|")
}

// timing is a timing over all rounds.
func timing(key string, s *results.Summary) string { return figures.Of(key).Timing(s).Value }

// machine says on which machine and stores a record was measured.
func machine(f *results.File) string {
	host := f.Provenance.Host
	parts := []string{fmt.Sprintf("%s, %s of %s/%s", format.Plural(int64(host.CPUs), "core", "cores"), cmp.Or(host.Model, "a processor"), host.OS, host.Arch)}
	for _, name := range f.StoreNames() {
		if s := f.Stores[name]; !strings.Contains(name, ".") {
			version, _, _ := strings.Cut(s.Version, " (")
			parts = append(parts, strings.TrimSpace(name+" "+version)+" ("+s.Kind+")")
		}
	}
	return strings.Join(parts, "; ")
}
