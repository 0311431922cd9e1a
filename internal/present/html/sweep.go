package html

import (
	"strings"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text"
	"github.com/quotabench/quotabench/results"
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
	t := figureColumns(name, sweep.Parameters[0].Name, "throughput", "p50", "p99", "leak-pct", "false-rejects", "errors", "pool-wait",
		"pool-waited")
	for i := range s.Points {
		x := s.Points[i].Summary
		t.figures(s.Points[i].Value, x)
		if x.TimingsCount {
			t.Rows[i][1] = interval(x.Throughput, func(v float64) string { return format.Count(int64(v + 0.5)) })
		}
	}
	return t
}
