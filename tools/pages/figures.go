package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/text"
	"github.com/quotabench/quotabench/strategies"
)

// figures quotes the strategy's rows of every record, measured ones first.
func figures(b *bytes.Buffer, m *strategies.Meta, e *Evidence) {
	rows := e.figures(m.Name)
	if len(rows) == 0 {
		if why := e.skipped(m.Name); why != "" {
			fmt.Fprintf(b, "## Measured\n\nIt took no part in the recorded runs: %s\n\n", sentence(why))
		}
		return
	}
	for _, kind := range []struct{ name, title string }{{results.Measured, "Measured"}, {results.Simulated, "Simulated"}} {
		of := slices.DeleteFunc(slices.Clone(rows), func(f figure) bool { return f.file.Kind != kind.name })
		if len(of) == 0 {
			continue
		}
		fmt.Fprintf(b, "## %s\n\n", kind.title)
		for len(of) > 0 {
			same := slices.DeleteFunc(slices.Clone(of), func(f figure) bool { return f.file != of[0].file || f.setting() != of[0].setting() })
			table(b, m, same)
			of = slices.DeleteFunc(of, func(f figure) bool { return slices.Contains(same, f) })
		}
	}
}

// setting says in one sentence what was asked of the strategy.
func (f figure) setting() string {
	s, p := f.summary, &f.summary.Params
	callers := fmt.Sprintf("%s on %s", format.Plural(int64(p.Workers), "caller", "callers"), format.Plural(int64(p.Instances), "instance", "instances"))
	if p.Loop == results.ClosedLoop {
		callers += " that never pause"
		if s.Paced != nil {
			callers += fmt.Sprintf(", and for p50 and p99 %s requests per second", format.Count(int64(s.Paced.Params.RatePerS)))
		}
	} else {
		callers = fmt.Sprintf("%s requests per second on %s", format.Digits(p.RatePerS), format.Plural(int64(p.Instances), "instance", "instances"))
	}
	if p.Cold {
		callers += ", with cold connections"
	}
	if len(p.Outages) > 0 {
		callers += ", with outages " + strings.Join(p.Outages, ", ")
	}
	return fmt.Sprintf("Workload %s, policy %s with a limit of %s (%s): %s.", s.Workload, s.Policy, format.Units(p.Limit, p.Unit), p.WindowText(), callers)
}

// table shows strategies of one record and setting.
func table(b *bytes.Buffer, m *strategies.Meta, rows []figure) {
	fmt.Fprintf(b, "%s %s\n\n", rows[0].setting(), origin(rows[0].file, m))
	timed := rows[0].file.Kind == results.Measured
	columns := []string{"strategy", "leak", "trials that leaked", "worst window", "false rejects", "drift at rest", "guarantee"}
	if timed {
		columns = slices.Insert(columns, 1, "decisions/s", "p50", "p99", "rounds kept")
	}
	line(b, columns)
	line(b, strings.Split(strings.Repeat("---,", len(columns)-1)+"---", ","))
	for _, r := range rows {
		s := r.summary
		cells := []string{cell(s.Label)}
		if timed {
			lat := s.Latency()
			cells = append(cells, perS(s), percentile(lat.P50), percentile(lat.P99), kept(s))
		}
		if s.Counts() {
			cells = append(cells, format.Range(s.Leak.Units, s.Leak.Possible), text.Trials(s.Leak.Leak), format.Count(s.Leak.WorstUnits), text.FalseRejects(s),
				cell(strings.ReplaceAll(text.Drift(s), "\n", "; ")), verdict(m, s))
		} else {
			cells = append(cells, "invalid", "-", "-", "-", "-", "-")
		}
		line(b, cells)
	}
	fmt.Fprintln(b)
	for _, r := range rows {
		own(b, r.summary)
	}
}

// verdict on what the strategy declares.
func verdict(m *strategies.Meta, s *results.Summary) string {
	if len(s.Guarantee) == 0 && len(s.NotPromised) == 0 && len(m.Guarantee) > 0 {
		return "not judged"
	}
	return text.Guarantee(s)
}

// own lists what a strategy counts itself.
func own(b *bytes.Buffer, s *results.Summary) {
	var parts []string
	for _, m := range text.Own(s) {
		part := m.Name + ": " + m.Value
		if m.Unit != "time" && m.Unit != m.Name {
			part += " " + m.Unit
		}
		if m.PerDecision != "" {
			part += " (" + m.PerDecision + " per decision)"
		}
		parts = append(parts, part)
	}
	if len(parts) > 0 {
		fmt.Fprintf(b, "Own figures of a round of %s: %s.\n\n", s.Label, strings.Join(parts, "; "))
	}
}

func line(b *bytes.Buffer, cells []string) { fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | ")) }

// kept are the rounds behind decisions per second, and those behind latencies if these
// are others.
func kept(s *results.Summary) string {
	first, rate := text.Kept(s), text.Kept(s.AtRate())
	if first == rate {
		return first
	}
	return first + ", " + rate
}

func perS(s *results.Summary) string {
	if !s.TimingsCount {
		return "not measurable"
	}
	return format.Count(int64(s.Throughput.Value))
}

// percentile over all rounds, marked if it may be waiting for a core.
func percentile(p results.Percentile) string {
	switch {
	case p.Status == results.NotMeasurable:
		return "not measurable"
	case !p.Shown():
		return "-"
	case 2*p.Waited > p.Rounds:
		return format.NS(p.Value) + " (w)"
	}
	return format.NS(p.Value)
}

// origin says where and how a record came about: with all stores, or those that the
// strategy needs.
func origin(f *results.File, m *strategies.Meta) string {
	if f.Kind == results.Simulated {
		out := fmt.Sprintf("Simulated in virtual time with modelled latencies, workload %s, seed %d", f.Workload.Name, f.Seed)
		return strings.Join(append([]string{out}, f.Workload.Notes...), "; ") + "."
	}
	host := f.Provenance.Host
	parts := []string{fmt.Sprintf("Measured on %s, %s of %s/%s", format.Plural(int64(host.CPUs), "core", "cores"), cmp.Or(host.Model, "a processor"), host.OS, host.Arch)}
	for _, name := range f.StoreNames() {
		if m != nil && !needs(m, name) {
			continue
		}
		s := f.Stores[name]
		version, _, _ := strings.Cut(s.Version, " (")
		parts = append(parts, strings.TrimSpace(name+" "+version)+" ("+s.Kind+")")
	}
	if f.Provenance.Command != "" {
		parts = append(parts, "`"+f.Provenance.Command+"`")
	}
	return strings.Join(parts, "; ") + "."
}

// needs reports whether the strategy asks for the store with its default options.
func needs(m *strategies.Meta, store string) bool {
	sel, err := m.Select(nil)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(sel.Needs, func(n strategies.Need) bool {
		return string(n) == store || n == strategies.NeedSource && store == string(strategies.NeedPostgres)
	})
}
