package plot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/quota/trouble"
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
func Throughput(f results.File) (*Plot, error) {
	all := plotted(f)
	var paces []pace
	var notes captions
	for _, s := range all {
		p, ok := paceOf(f.Runs, s)
		if !ok {
			notes.add("Not shown", s.label, "the record does not have it")
			continue
		}
		paces = append(paces, p)
	}
	if err := drawn(len(paces), "the record has no decisions over time"); err != nil {
		return nil, err
	}
	shades, shaded := outages(all)
	g := figure{sheet: sheet{
		title: "Throughput over time", caption: caption(f, all, throughputLoop),
		simulated: f.Kind == results.Simulated, desc: throughputDesc(paces),
		note: format.Join(" ", "Decisions per second, mean over rounds.", shaded, disturbance(all, throughputOf), notes.text()),
	}}
	end := 0.0
	for _, p := range paces {
		end = max(end, p.sliceNS*float64(len(p.perS)))
	}
	for _, x := range facetsOf(paces, func(p *pace) int { return p.store() }) {
		p := newPanel(format.Join(": ", x.title, "decisions per second"))
		spanAxis(&p.X, "time since the start of a round", end)
		for _, pace := range x.lines {
			l := line{name: marked(pace.label, pace.Throughput), style: pace.style}
			for k, v := range pace.perS {
				l.add((float64(k)+0.5)*pace.sliceNS, v)
			}
			p.lines = append(p.lines, l)
		}
		linearAxis(&p.Y, values(ordered(p.lines)))
		for _, s := range shades {
			p.shade(s.from*end, s.to*end)
		}
		g.panels = append(g.panels, p)
	}
	return g.plot(), nil
}

// paceOf condenses the rounds of a summary.
func paceOf(runs []results.Run, s series) (pace, bool) {
	p := pace{series: s}
	var rounds []*results.OverTime
	for i := range runs {
		r := &runs[i]
		if s.Key == "" || r.Key() != s.Key || !r.OverTime.Sound() || !s.Keeps(r.Repetition) {
			continue
		}
		if len(rounds) > 0 && len(r.OverTime.Admitted) != len(rounds[0].Admitted) {
			continue
		}
		rounds = append(rounds, r.OverTime)
		p.sliceNS += float64(r.OverTime.SliceNS)
	}
	if len(rounds) == 0 {
		return p, false
	}
	p.sliceNS /= float64(len(rounds))
	for k := range rounds[0].Admitted {
		values := make([]float64, len(rounds))
		for i, o := range rounds {
			values[i] = o.DecisionsPerS(k)
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
	for _, e := range all[0].Params.Trouble {
		switch kind := e.Kind(); {
		case kind == trouble.Outage:
			away = append(away, format.Plain(e.Where.Name))
		case kind == trouble.Network && e.When != trouble.Always:
			bad = append(bad, format.Plain(e.String()))
		default:
			continue
		}
		out = append(out, shade{e.When.From, e.When.To})
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
