package html

import (
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/text"
)

// sweep shows what varies with a parameter, in place of a table to decide from: its
// points are settings of their own.
func (v *recordView) sweep(f *results.File) error {
	var names []string
	for _, p := range f.Sweep.Parameters {
		names = append(names, p.Name)
	}
	title := "Sweep of " + strings.Join(names, " by ")
	if f.Sweep.Until != "" {
		title += ", until " + f.Sweep.Until
	}
	setting, err := text.SweepSetting(*f)
	if err != nil {
		return err
	}
	v.Facts = append(v.Facts, facts(setting)...)
	conclusions, err := text.SweepConclusions(*f)
	if err != nil {
		return err
	}
	v.Sweep = &sweepView{Title: title}
	series := f.SweepSeries()
	for i := range series {
		// Conclusions are one for each series, in their order.
		v.Sweep.Conclusions = append(v.Sweep.Conclusions, fact{conclusions[i].Label, []string{conclusions[i].Text}})
		v.Sweep.Tables = append(v.Sweep.Tables, sweptTable(f.Sweep, &series[i], conclusions[i].Label))
	}
	return nil
}

// sweepView is what a sweep shows.
type sweepView struct {
	Title       string
	Conclusions []fact
	Tables      []*table
}

// sweptTable has a row for each value.
func sweptTable(sweep *results.Sweep, s *results.SweepSeries, name string) *table {
	t := newTable(name, sweep.Parameters[0].Name, "#decisions/s", "#p50", "#p99", "#leak, % of limit", "#false rejects", "#errors", "#pool wait, mean", "#had to wait")
	for i := range s.Points {
		x := s.Points[i].Summary
		r, l := x.AtRate(), x.Latency()
		p50, notes := percentileText(l.P50)
		t.note(notes)
		p99, notes := percentileText(l.P99)
		t.note(notes)
		if 2*r.Saturated > r.Timed {
			p50, p99 = "saturated", "-"
		}
		leak, rejects := "invalid", "-"
		if x.Counts() {
			leak, rejects = format.Pct(x.Leak.PctOfLimit), text.FalseRejects(x)
		}
		wait, waited := "-", "-"
		if w := r.PoolWait; w != nil {
			wait, waited = "0", format.Pct(w.WaitedPct)
			if w.MeanNS.Value > 0 {
				wait = format.NS(w.MeanNS.Value)
			}
		}
		throughput := interval(x.Throughput, func(v float64) string { return format.Count(int64(v + 0.5)) })
		if !x.TimingsCount {
			throughput, notes = percentileText(results.Percentile{Status: results.NotMeasurable})
			t.note(notes)
		}
		t.add(s.Points[i].Value, throughput, p50, p99, leak, rejects, fmt.Sprint(x.Errors), wait, waited)
	}
	return t
}
