package plot

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
)

// scheduleRow is one strategy, explored and measured, in percent.
type scheduleRow struct {
	name               string
	schedules, trials  float64
	clients            int
	partial            bool // not every schedule was run
	leaking, leaked    int64
	allRuns, allTrials int64
}

const schedulesTitle = "Leaks among schedules, and under load"

// Schedules draws, for each strategy, the share of leaking schedules that an
// exploration counted beside the share of trials that leaked in a run. The first is no
// probability: real schedules are not equally likely. It returns [ErrNothingToPlot]
// where no strategy is in both records.
func Schedules(x *results.Exploration, f results.File) (*Plot, error) {
	var notes captions
	var rows []scheduleRow
	all := plotted(f)
	for _, s := range all {
		var best *results.Census
		for _, c := range x.Censuses {
			if c.Strategy == s.Label && c.Schedules > 0 && (best == nil || c.Clients > best.Clients) {
				best = c
			}
		}
		switch {
		case best == nil:
			continue
		case len(best.Withheld) > 0:
			notes.add("Not shown", s.label, "its schedules may not be believed")
			continue
		case !s.Counts() || s.Leak.Trials == 0:
			notes.add("Not shown", s.label, "no trial of its run counts")
			continue
		}
		rows = append(rows, scheduleRow{
			s.label, results.Percent(best.Leaking, best.Schedules), results.Percent(s.Leak.LeakedTrials, s.Leak.Trials), best.Clients,
			!best.Complete,
			best.Leaking, s.Leak.LeakedTrials, best.Schedules, s.Leak.Trials,
		})
		if !best.Complete {
			notes.add("Hollow", s.label, "not every schedule was run")
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%w: no strategy is in both a run and an exploration with --full", ErrNothingToPlot)
	}
	if len(rows) > maxDots {
		return nil, tooMany(len(rows))
	}
	slices.SortStableFunc(rows, func(a, b scheduleRow) int {
		if c := compareFloat(b.trials, a.trials); c != 0 {
			return c
		}
		return compareFloat(b.schedules, a.schedules)
	})
	return drawSchedules(rows, f, all, notes.text()), nil
}

// drawSchedules lays the rows out.
func drawSchedules(rows []scheduleRow, f results.File, all []series, notes string) *Plot {
	const width, step = vg.Length(760), vg.Length(24)
	s := textStyle(labelSize, ink, false)
	names := make([]string, len(rows))
	left := vg.Length(0)
	height := vg.Length(0)
	heights := make([]vg.Length, len(rows))
	desc := "Share of leaking schedules beside the share of trials that leaked:"
	for i, r := range rows {
		names[i] = fold(s, drawable(r.name), 230)
		heights[i] = max(step, blockHeight(s, names[i])+6)
		height += heights[i]
		left = max(left, s.Width(widestLine(s, names[i])))
		desc += fmt.Sprintf(" %s %s of %s schedules of %s, %s of %s trials;", r.name, format.Count(r.leaking), format.Count(r.allRuns),
			format.Plural(int64(r.clients), "client", "clients"), format.Count(r.leaked), format.Count(r.allTrials))
	}
	left = min(left+margin+12, width/2)
	workers := all[0].Params.Workers
	c := fold(captionStyle(false), drawable(throughputCaption(f, all)), width-2*margin)
	note := fold(footnoteStyle(), drawable(format.Join(" ",
		"A share of schedules is no probability: under load some are far more likely than others.", notes)), width-2*margin)
	head := margin + titleSize + 12 + captionStyle(false).Height(c) + 34
	foot := margin + blockHeight(footnoteStyle(), note) + 8
	p := &Plot{title: schedulesTitle, desc: drawable(desc[:len(desc)-1] + "."), width: width, height: head + height + foot + 44}
	area := vg.Rectangle{Min: vg.Point{X: left, Y: foot + 44}, Max: vg.Point{X: width - margin - 24, Y: foot + 44 + height}}
	fr := frame{area: area, x: axis{title: "share that leaks, in %", lo: 0, hi: 100}, y: axis{lo: 0, hi: 1}}
	for v := 0; v <= 100; v += 20 {
		fr.x.ticks = append(fr.x.ticks, tick{float64(v), fmt.Sprint(v)})
	}
	p.paint = func(cv draw.Canvas) {
		heading(cv, schedulesTitle, c, f.Kind == results.Simulated)
		fr.draw(cv)
		key := aligned(s, text.XLeft, text.YCenter)
		at := vg.Point{X: area.Min.X, Y: area.Max.Y + 16}
		for _, e := range []struct {
			name   string
			hollow bool
			style  draw.GlyphStyle
		}{{"of all schedules of few clients", false, scheduleGlyph},
			{fmt.Sprintf("of trials in the run, %s", format.Plural(int64(workers), "worker", "workers")), false, trialGlyph}} {
			drawMark(&cv, e.style, vg.Point{X: at.X + 5, Y: at.Y}, e.hollow, false)
			cv.FillText(key, vg.Point{X: at.X + 16, Y: at.Y}, e.name)
			at.X += 16 + s.Width(e.name) + 22
		}
		y := area.Max.Y
		for i, r := range rows {
			mid := y - heights[i]/2
			a, b := fr.point(r.schedules, 0).X, fr.point(r.trials, 0).X
			cv.StrokeLine2(draw.LineStyle{Color: lifelineInk, Width: 2}, a, mid, b, mid)
			drawMark(&cv, scheduleGlyph, vg.Point{X: a, Y: mid + 2.5}, r.partial, false)
			drawMark(&cv, trialGlyph, vg.Point{X: b, Y: mid - 2.5}, false, false)
			cv.FillText(aligned(s, text.XRight, text.YCenter), vg.Point{X: area.Min.X - 10, Y: mid}, names[i])
			y -= heights[i]
		}
		footnote(cv, note, foot-8)
	}
	return p
}

var (
	scheduleGlyph = draw.GlyphStyle{Color: palette[0], Radius: dotRadius, Shape: draw.CircleGlyph{}}
	trialGlyph    = draw.GlyphStyle{Color: palette[1], Radius: dotRadius, Shape: draw.BoxGlyph{}}
)
