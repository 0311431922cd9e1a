package plot

import (
	"cmp"
	"fmt"
	"slices"

	"gonum.org/v1/plot/vg/draw"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results"
)

// scheduleRow is one strategy, explored and measured.
type scheduleRow struct {
	series
	census            *results.Census
	schedules, trials float64 // that leaked, in percent
}

// Schedules draws, for each strategy, the share of leaking schedules that an
// exploration counted next to the share of trials that leaked in a run. The first is
// no probability: real schedules are not equally likely. It returns [ErrNothingToPlot]
// if no strategy is in both records.
func Schedules(exploration *results.Exploration, file results.File) (*Plot, error) {
	var notes captions
	var rows []scheduleRow
	all := plotted(file)
	for _, series := range all {
		var best *results.Census
		for _, census := range exploration.Censuses {
			if census.Strategy == series.Label && census.Schedules > 0 && (best == nil || census.Clients > best.Clients) {
				best = census
			}
		}
		switch {
		case best == nil:
			continue
		case len(best.Withheld) > 0:
			notes.add("Not shown", series.label, "its schedules may not be believed")
			continue
		case !series.Counts() || series.Leak.Trials == 0:
			notes.add("Not shown", series.label, "no trial of its run counts")
			continue
		}
		rows = append(rows, scheduleRow{
			series, best, results.Percent(best.Leaking, best.Schedules),
			results.Percent(series.Leak.LeakedTrials, series.Leak.Trials),
		})
		if !best.Complete {
			notes.add("Hollow", series.label, "not every schedule was run")
		}
	}
	if err := drawn(len(rows), "no strategy is in both a run and an exploration with --full"); err != nil {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b scheduleRow) int {
		return cmp.Or(cmp.Compare(b.trials, a.trials), cmp.Compare(b.schedules, a.schedules))
	})
	return drawSchedules(rows, file, all, notes.text()), nil
}

// drawSchedules draws a row for each strategy.
func drawSchedules(rows []scheduleRow, file results.File, all []series, notes string) *Plot {
	t := table{charts: []axes{newAxes()}, key: []keyEntry{
		{"of all schedules of few clients", scheduleGlyph},
		{fmt.Sprintf("of trials in the run, %s", format.Plural(int64(all[0].Params.Workers), "worker", "workers")),
			trialGlyph},
	}}
	x := &t.charts[0]
	x.X.Label.Text = "share that leaks, in %"
	linearAxis(&x.X, []float64{100})
	desc := "Share of leaking schedules next to the share of trials that leaked:"
	for _, scheduleRow := range rows {
		at := t.row(scheduleRow.label, false)
		glyph := scheduleGlyph
		if !scheduleRow.census.Complete {
			glyph = hollow(glyph)
		}
		x.add(bar(scheduleRow.schedules, scheduleRow.trials, at, draw.LineStyle{Color: lifelineInk, Width: 2}),
			dot(scheduleRow.schedules, at+2.5, glyph),
			dot(scheduleRow.trials, at-2.5, trialGlyph))
		desc += fmt.Sprintf(" %s %s of %s schedules of %s, %s of %s trials;", scheduleRow.label,
			format.Count(scheduleRow.census.Leaking),
			format.Count(scheduleRow.census.Schedules), format.Plural(int64(scheduleRow.census.Clients), "client", "clients"),
			format.Count(scheduleRow.Leak.LeakedTrials), format.Count(scheduleRow.Leak.Trials))
	}
	t.sheet = sheet{title: "Leaks among schedules, and under load", caption: caption(file, all, throughputLoop),
		simulated: file.Kind == results.Simulated, desc: drawable(desc[:len(desc)-1] + "."),
		note: format.Join(" ", "A share of schedules is no probability: under load some are far more likely than others.",
			notes)}
	return t.plot()
}

var (
	scheduleGlyph = draw.GlyphStyle{Color: palette[0], Radius: dotRadius, Shape: draw.CircleGlyph{}}
	trialGlyph    = draw.GlyphStyle{Color: palette[1], Radius: dotRadius, Shape: draw.BoxGlyph{}}
)
