package plot

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
)

const driftTitle = "Drift at the end of each round"

// Drift draws how far counters were from the truth when nothing was in flight any more,
// round by round: the worst reading with its sign, in percent of the limit. Rounds begin
// with counters of their own, so that the lines are no trend. Strategies without drift
// are named; where there is none at all, it returns [ErrNothingToPlot].
func Drift(f results.File) (*Plot, error) {
	all := plotted(f)
	var lines []line
	var values []float64
	var notes captions
	rounds := 1
	for _, s := range all {
		l, known := driftOf(f.Runs, s)
		switch {
		case !known:
		case !slices.ContainsFunc(l.y, func(v float64) bool { return v != 0 }):
			notes.add("Not drawn", s.label, "no drift at the end of any round")
		default:
			lines, values = append(lines, l), append(values, l.y...)
			rounds = max(rounds, int(slices.Max(l.x)))
		}
	}
	switch {
	case len(lines) == 0:
		return nil, fmt.Errorf("%w: no counter was away from the truth at the end of a round", ErrNothingToPlot)
	case len(lines) > maxDots:
		return nil, tooMany(len(lines))
	}
	slices.SortStableFunc(lines, func(a, b line) int { return compareFloat(b.y[len(b.y)-1], a.y[len(a.y)-1]) })
	for k := range lines {
		lines[k].style = styleOf(k)
	}
	x := axis{title: "round", lo: 0.5, hi: float64(rounds) + 0.5}
	for n := 1; n <= rounds; n++ {
		x.ticks = append(x.ticks, tick{at: float64(n), label: strconv.Itoa(n)})
	}
	g := figure{
		title: driftTitle, caption: throughputCaption(f, all), simulated: f.Kind == results.Simulated, width: 900, least: 300,
		note: format.Join(" ", "The worst counter at rest; above 0 it says too much. Each round has counters of its own.", notes.text()),
		desc: driftDesc(lines), panels: []panel{{x: x, y: linearAxis("drift, % of the limit", values), lines: lines, zero: true}},
	}
	return g.plot(), nil
}

// driftOf is the drift of a strategy by round. It is not known where no counter was
// read.
func driftOf(runs []results.Run, s series) (l line, known bool) {
	l.name = s.label
	for i := range runs {
		r := &runs[i]
		if s.Key == "" || r.Key() != s.Key || r.Drift == nil || r.Partial || !r.Audit.Valid {
			continue
		}
		l.x, l.y = append(l.x, float64(r.Repetition)), append(l.y, r.Drift.PctOfLimit)
		l.marks = append(l.marks, len(l.marks))
	}
	l.faint = len(l.x)
	return l, len(l.x) > 0
}

func driftDesc(lines []line) string {
	most := func(l line) float64 {
		v := 0.0
		for _, y := range l.y {
			if math.Abs(y) > math.Abs(v) {
				v = y
			}
		}
		return v
	}
	worst := slices.MaxFunc(lines, func(a, b line) int { return compareFloat(math.Abs(most(a)), math.Abs(most(b))) })
	return fmt.Sprintf("Drift of counters at the end of each round, of %s. %s is farthest from the truth, by %+.4g %% of the limit.",
		format.Plural(int64(len(lines)), "strategy", "strategies"), worst.name, most(worst))
}
