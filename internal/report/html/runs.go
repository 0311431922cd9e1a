package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/results"
)

// settingView is what strategies were compared in: all of one policy, workload and load.
type settingView struct {
	ID, Policy, Title string
	Record            string // the record's name
	Facts             []fact
	Decision          text.Decision

	simulated bool
	group     []results.Summary
}

// Full is the table to decide from.
func (v *settingView) Full() *document.Table { return v.Decision.Table.To(document.Full) }

// Brief is what a terminal shows of it.
func (v *settingView) Brief() *document.Table {
	table := v.Decision.Table.To(document.Brief)
	table.Compact()
	return table
}

// runs shows what was run, on what, and every strategy of it.
func (v *recordView) runs(record *Record, p *panels) error {
	file := record.File
	v.Kind = file.Kind
	v.Simulated = file.Kind == results.Simulated
	head := *file
	if record.Provenance != nil {
		head.Provenance = *record.Provenance
	}
	v.Facts = facts(text.Head(head))
	if c := head.Provenance.Command; c != "" {
		v.Facts = append(v.Facts, fact{"command", []string{c}})
	}
	for _, source := range file.Sources {
		v.Facts = append(v.Facts, fact{"source", []string{fmt.Sprintf("%s: %s, %s %s", source.Name,
			format.Number(source.Runs, "run"), source.Provenance.Host.Name, text.When(source.Provenance.Time))}})
	}
	v.skipped(file.Skipped)
	v.LeftOut = text.Joined(text.LeftOuts(file))
	v.Findings = append(v.Findings, text.Findings(file.Summarised())...)
	if file.Sweep != nil {
		return v.sweep(file)
	}
	for i, setting := range ranking.Of(*file) {
		summaries := setting.Summaries()
		if len(summaries) == 0 {
			continue
		}
		view := &settingView{ID: fmt.Sprintf("%s-t%d", v.ID, i+1), Policy: summaries[0].Policy,
			Title:    settingTitle(&summaries[0]),
			Decision: text.Decide(file, setting),
			Record:   format.Join(", ", v.Name, pick(v.Simulated, "simulated", "")), simulated: v.Simulated, group: summaries}
		view.Facts = facts(text.Setting(*file, summaries))
		v.Settings = append(v.Settings, view)
		for j := range summaries {
			row := &view.Decision.Table.Rows[j]
			row.Link = p.of(row.Strategy.Label, summaries[j].Strategy).ID
			p.run(v, view, row.Strategy, &summaries[j], file)
		}
	}
	return nil
}

// discards says what a finding takes back.
var discards = map[string]string{
	codes.DiscardsCorrectness: "invalid", codes.DiscardsRound: "rounds left out of timings",
	codes.DisturbsTimings: "timings are marked", codes.DisturbsResponse: "response times are marked",
	codes.Disturbs: "the machine was disturbed", codes.DiscardsNothing: "note",
}

// facts joins entries that continue the one before, and then those that say the same.
func facts(entries []document.Entry) []fact {
	var all, out []fact
	for _, entry := range entries {
		if n := len(all); n > 0 && (entry.Label == "" || entry.Label == all[n-1].Name) {
			all[n-1].Values = append(all[n-1].Values, entry.Text)
			continue
		}
		all = append(all, fact{entry.Label, []string{entry.Text}})
	}
	for _, f := range all {
		if i := slices.IndexFunc(out, func(o fact) bool { return slices.Equal(o.Values, f.Values) }); i >= 0 {
			out[i].Name += ", " + f.Name
			continue
		}
		out = append(out, f)
	}
	return out
}

func (v *recordView) skipped(all []results.Skipped) {
	var names collect.By[string, string]
	for _, skipped := range all {
		names.Add(skipped.Reason, skipped.Strategy)
	}
	for _, reason := range names.Keys {
		v.Skipped = append(v.Skipped, fact{reason, names.Of[reason]})
	}
}

func settingTitle(summary *results.Summary) string {
	params := &summary.Params
	loop := format.Number(params.Workers, "worker")
	if at := &summary.AtRate().Params; at.Loop == codes.OpenLoop && at.RatePerS > 0 {
		loop += ", " + format.Digits(at.RatePerS) + " requests/s"
	}
	return format.Join(" · ", text.Policy(summary), summary.Workload, loop, format.Number(params.Instances, "instance"))
}

// latencies of all strategies by percentile.
func (v *settingView) latencies() *document.Table {
	var notes figures.Notes
	table := latencyColumns("Latency of "+v.Title, "strategy")
	for i := range v.group {
		summary := &v.group[i]
		addPercentiles(table, &notes, summary.Label, summary.Latency())
	}
	table.Notes = notes.Lines()
	return table
}

func latencyColumns(caption, first string) *document.Table {
	return newTable(caption, first, "#p50", "#p90", "#p99", "#p99.9", "#p99.99", "#largest")
}

// addPercentiles adds a row of a latency.
func addPercentiles(table *document.Table, notes *figures.Notes, name string, percentiles *results.Percentiles) {
	cells := []string{name}
	for _, percentile := range []results.Percentile{percentiles.P50, percentiles.P90, percentiles.P99, percentiles.P999,
		percentiles.P9999} {
		cells = append(cells, notes.Percentile(percentile))
	}
	largest := "-"
	if percentiles.P50.Rounds > 0 {
		largest = format.NS(float64(percentiles.Max))
	}
	table.Add(append(cells, largest)...)
}

// sweep says which value to use, in place of a table to decide from: its points are settings of their own.
func (v *recordView) sweep(file *results.File) error {
	decision, err := text.DecideSweep(file)
	if err != nil {
		return err
	}
	var names []string
	for _, swept := range file.Sweep.Parameters {
		names = append(names, swept.Name)
	}
	v.Facts = append(v.Facts, facts(decision.Setting)...)
	v.Sweep = &settingView{Title: "Sweep of " + strings.Join(names, " by "), Decision: decision}
	return nil
}
