package plot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
)

// pace is how many decisions a strategy made per second, slice by slice.
type pace struct {
	series
	perS    []float64 // mean over rounds
	sliceNS float64   // mean over rounds
}

// Throughput draws decisions per second over the time of a round, one line per
// strategy: the mean over rounds. Stores that were taken away are shaded.
func Throughput(file results.File) (*Plot, error) {
	all := plotted(file)
	var paces []pace
	var notes captions
	for _, series := range all {
		pace, ok := paceOf(file.Runs, series)
		if !ok {
			notes.add("Not shown", series.label, "the record does not have it")
			continue
		}
		paces = append(paces, pace)
	}
	if err := drawn(len(paces), "the record has no decisions over time"); err != nil {
		return nil, err
	}
	shades, shaded := outages(all)
	g := figure{sheet: sheet{
		title: "Throughput over time", caption: caption(file, all, throughputLoop),
		simulated: file.Kind == results.Simulated, desc: throughputDesc(paces),
		note: format.Join(" ", "Decisions per second, mean over rounds.", shaded, disturbance(all, throughputOf),
			notes.text()),
	}}
	end := 0.0
	for _, pace := range paces {
		end = max(end, pace.sliceNS*float64(len(pace.perS)))
	}
	for _, facet := range facetsOf(paces, func(p *pace) int { return p.store() }) {
		panel := newPanel(format.Join(": ", facet.title, "decisions per second"))
		spanAxis(&panel.X, "time since the start of a round", end)
		for _, pace := range facet.lines {
			l := line{name: marked(pace.label, pace.Throughput), style: pace.style}
			for k, value := range pace.perS {
				l.add((float64(k)+0.5)*pace.sliceNS, value)
			}
			panel.lines = append(panel.lines, l)
		}
		linearAxis(&panel.Y, values(ordered(panel.lines)))
		for _, shade := range shades {
			panel.shade(shade.from*end, shade.to*end)
		}
		g.panels = append(g.panels, panel)
	}
	return g.plot(), nil
}

// paceOf condenses the rounds of a summary.
func paceOf(runs []results.Run, s series) (pace, bool) {
	p := pace{series: s}
	var rounds []*results.OverTime
	for i := range runs {
		run := &runs[i]
		if s.Key == "" || run.Key() != s.Key || !run.OverTime.Sound() || !s.Keeps(run.Repetition) {
			continue
		}
		if len(rounds) > 0 && len(run.OverTime.Admitted) != len(rounds[0].Admitted) {
			continue
		}
		rounds = append(rounds, run.OverTime)
		p.sliceNS += float64(run.OverTime.SliceNS)
	}
	if len(rounds) == 0 {
		return p, false
	}
	p.sliceNS /= float64(len(rounds))
	for k := range rounds[0].Admitted {
		values := make([]float64, len(rounds))
		for i, overTime := range rounds {
			values[i] = overTime.DecisionsPerS(k)
		}
		p.perS = append(p.perS, stat.Mean(values))
	}
	return p, true
}

// shade is a stretch of time.
type shade struct{ from, to float64 }

// outages are the shares of a round during which stores were taken away, or the network was bad, which all
// strategies have in common.
func outages(all []series) (out []shade, note string) {
	var away, bad []string
	for _, event := range all[0].Params.Trouble {
		switch kind := event.Kind(); {
		case kind == trouble.Outage:
			away = append(away, format.Plain(event.Where.Name))
		case kind == trouble.Network && event.When != trouble.Always:
			bad = append(bad, format.Plain(event.String()))
		default:
			continue
		}
		out = append(out, shade{event.When.From, event.When.To})
	}
	if len(away) > 0 {
		note = "Shaded: " + strings.Join(away, ", ") + " was taken away."
	}
	if len(bad) > 0 {
		note = format.Join(" ", note, "Shaded: the network was bad ("+strings.Join(bad, ", ")+").")
	}
	return out, note
}

func throughputDesc(paces []pace) string {
	by := func(a, b pace) int { return cmp.Compare(a.Throughput.Value, b.Throughput.Value) }
	lo := slices.MinFunc(paces, by)
	hi := slices.MaxFunc(paces, by)
	return fmt.Sprintf("Decisions per second over the time of a round, of %s. "+
		"Over whole rounds %s makes the most, %s/s, and %s the fewest, %s/s.",
		format.Plural(int64(len(paces)), "strategy", "strategies"), hi.label, format.Digits(hi.Throughput.Value), lo.label,
		format.Digits(lo.Throughput.Value))
}
