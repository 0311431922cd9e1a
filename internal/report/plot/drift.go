package plot

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results"
)

// Drift draws how far counters were from the truth when nothing was in flight any more,
// round by round: the worst reading with its sign, in percent of the limit. Rounds begin
// with counters of their own, so the lines are no trend. Strategies without drift
// are named; if there is none at all, it returns [ErrNothingToPlot].
func Drift(file results.File) (*Plot, error) {
	all := plotted(file)
	var lines []line
	var notes captions
	rounds := 1.0
	for _, series := range all {
		line, known := driftOf(file.Runs, series)
		switch {
		case !known:
		case !slices.ContainsFunc(line.at, func(at plotter.XY) bool { return at.Y != 0 }):
			notes.add("Not drawn", series.label, "no drift at the end of any round")
		default:
			lines = append(lines, line)
			rounds = max(rounds, line.last().X)
		}
	}
	if err := drawn(len(lines), "no counter was away from the truth at the end of a round"); err != nil {
		return nil, err
	}
	p := newPanel("drift, % of the limit")
	p.lines = ordered(lines)
	p.X.Label.Text = "round"
	p.X.Min = 0.5
	p.X.Max = rounds + 0.5
	var ticks plot.ConstantTicks
	for n := 1.0; n <= rounds; n++ {
		ticks = append(ticks, plot.Tick{Value: n, Label: tickValue(n)})
	}
	p.X.Tick.Marker = ticks
	linearAxis(&p.Y, values(lines))
	p.zero()
	g := figure{panels: []*panel{p}, sheet: sheet{
		title: "Drift at the end of each round", caption: caption(file, all, throughputLoop),
		simulated: file.Kind == results.Simulated, desc: driftDesc(lines),
		note: format.Join(" ", "The worst counter at rest; above 0 it says too much. Each round has counters of its own.",
			notes.text()),
	}}
	return g.plot(), nil
}

// driftOf is the drift of a strategy by round. It is not known if no counter was
// read.
func driftOf(runs []results.Run, s series) (l line, known bool) {
	l.name = s.label
	l.style = s.style
	for i := range runs {
		run := &runs[i]
		if s.Key == "" || run.Key() != s.Key || run.Drift == nil || run.Partial || !run.Audit.Valid {
			continue
		}
		l.add(float64(run.Repetition), run.Drift.PctOfLimit)
		l.marks = append(l.marks, len(l.marks))
	}
	return l, len(l.at) > 0
}

func driftDesc(lines []line) string {
	most := func(l line) float64 {
		return slices.MaxFunc(l.at, func(a, b plotter.XY) int { return cmp.Compare(math.Abs(a.Y), math.Abs(b.Y)) }).Y
	}
	worst := slices.MaxFunc(lines, func(a, b line) int { return cmp.Compare(math.Abs(most(a)), math.Abs(most(b))) })
	return fmt.Sprintf("Drift of counters at the end of each round, of %s. %s is farthest from the truth, by %+.4g %% "+
		"of the limit.",
		format.Plural(int64(len(lines)), "strategy", "strategies"), worst.name, most(worst))
}
