package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
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
	Links             map[string]string // to panels, by label
	Columns           []decisionColumn
	Rows              []decisionRow

	notes     figures.Notes
	simulated bool
	group     []results.Summary
}

// Notes explain marks of the rows.
func (v *settingView) Notes() []string {
	notes := append([]string{text.KeptRounds(v.group)}, v.notes.Lines()...)
	if disturbed := figures.Disturbance(v.group); disturbed != "" {
		notes = append(notes, disturbed)
	}
	return notes
}

// runs shows what was run, on what, and every strategy of it.
func (v *recordView) runs(r *Record, p *panels) error {
	f := r.File
	v.Kind = f.Kind
	v.Simulated = f.Kind == results.Simulated
	head := *f
	if r.Provenance != nil {
		head.Provenance = *r.Provenance
	}
	v.Facts = facts(text.Head(head))
	if c := head.Provenance.Command; c != "" {
		v.Facts = append(v.Facts, fact{"command", []string{c}})
	}
	for _, m := range f.Sources {
		v.Facts = append(v.Facts, fact{"source", []string{fmt.Sprintf("%s: %s, %s %s", m.Name,
			format.Number(m.Runs, "run"), m.Provenance.Host.Name, text.When(m.Provenance.Time))}})
	}
	v.skipped(f.Skipped)
	v.LeftOut = text.Joined(text.LeftOuts(f))
	v.Findings = append(v.Findings, text.Findings(f.Summarised())...)
	if f.Sweep != nil {
		return v.sweep(f)
	}
	for i, a := range ranking.Of(*f) {
		g := a.Summaries()
		if len(g) == 0 {
			continue
		}
		s := &settingView{ID: fmt.Sprintf("%s-t%d", v.ID, i+1), Policy: g[0].Policy, Title: settingTitle(&g[0]),
			Decision: text.Decide(f, a), Links: map[string]string{},
			Record: format.Join(", ", v.Name, pick(v.Simulated, "simulated", "")), simulated: v.Simulated, group: g}
		s.Facts = facts(text.Setting(*f, g))
		s.decide(&a, p)
		for _, row := range s.Rows {
			s.Links[row.Label] = row.Panel
		}
		v.Settings = append(v.Settings, s)
		for j := range g {
			p.run(v, s, &s.Rows[j], &g[j], f)
		}
	}
	return nil
}

// discards says what a finding takes back.
var discards = map[string]string{
	results.DiscardsCorrectness: "invalid", results.DiscardsRound: "rounds left out of timings",
	results.DisturbsTimings: "timings are marked", results.DisturbsResponse: "response times are marked",
	results.Disturbs: "the machine was disturbed", results.DiscardsNothing: "note",
}

// facts joins entries that continue the one before, and then those that say the same.
func facts(entries []text.Entry) []fact {
	var all, out []fact
	for _, e := range entries {
		if n := len(all); n > 0 && (e.Label == "" || e.Label == all[n-1].Name) {
			all[n-1].Values = append(all[n-1].Values, e.Text)
			continue
		}
		all = append(all, fact{e.Label, []string{e.Text}})
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
	for _, s := range all {
		names.Add(s.Reason, s.Strategy)
	}
	for _, reason := range names.Keys {
		v.Skipped = append(v.Skipped, fact{reason, names.Of[reason]})
	}
}

func settingTitle(s *results.Summary) string {
	p := &s.Params
	loop := format.Number(p.Workers, "worker")
	if at := &s.AtRate().Params; at.Loop == results.OpenLoop && at.RatePerS > 0 {
		loop += ", " + format.Digits(at.RatePerS) + " requests/s"
	}
	return format.Join(" · ", text.Policy(s), s.Workload, loop, format.Number(p.Instances, "instance"))
}

// latencies of all strategies by percentile.
func (v *settingView) latencies() *table {
	t := latencyColumns("Latency of "+v.Title, "strategy")
	for i := range v.group {
		x := &v.group[i]
		t.percentiles(x.Label, x.Latency())
	}
	return t
}

func latencyColumns(caption, first string) *table {
	return newTable(caption, first, "#p50", "#p90", "#p99", "#p99.9", "#p99.99", "#largest")
}

// percentiles adds a row of a latency.
func (t *table) percentiles(name string, p *results.Percentiles) {
	cells := []string{name}
	for _, x := range []results.Percentile{p.P50, p.P90, p.P99, p.P999, p.P9999} {
		cells = append(cells, t.notes.Percentile(x))
	}
	largest := "-"
	if p.P50.Rounds > 0 {
		largest = format.NS(float64(p.Max))
	}
	t.Add(append(cells, largest)...)
}

// sweep says which value to use, in place of a table to decide from: its points are settings of their own.
func (v *recordView) sweep(f *results.File) error {
	d, err := text.DecideSweep(f)
	if err != nil {
		return err
	}
	var names []string
	for _, p := range f.Sweep.Parameters {
		names = append(names, p.Name)
	}
	v.Facts = append(v.Facts, facts(d.Setting)...)
	v.Sweep = &settingView{Title: "Sweep of " + strings.Join(names, " by "), Decision: d}
	return nil
}
