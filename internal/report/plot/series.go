package plot

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results"
)

var boundaryStyle = draw.LineStyle{Color: faint, Width: 1, Dashes: []vg.Length{4, 3}}

// Series draws a series as a column of panels over virtual time.
func Series(s results.Series) (*Plot, error) {
	if len(s.Samples) == 0 {
		return nil, fmt.Errorf("%w: the series of %s has no samples", ErrNothingToPlot, s.Strategy)
	}
	g := figure{least: 108, sheet: sheet{
		title: drawable(s.Strategy) + " over virtual time", caption: seriesCaption(&s), note: seriesNote(&s), desc: seriesDesc(&s),
		simulated: true,
	}}
	var still []string
	for _, q := range seriesQuantities(&s) {
		p := newPanel(q.title)
		for k, c := range q.lines {
			l := line{name: c.name, style: styleOf(k)}
			for i := range s.Samples {
				l.add(float64(s.Samples[i].AtNS), c.at(i))
			}
			p.lines = append(p.lines, l)
		}
		all := values(p.lines)
		if !slices.ContainsFunc(all, func(v float64) bool { return v != 0 && !math.IsNaN(v) }) {
			still = append(still, q.short)
			continue
		}
		momentsAxis(&p.X, &s)
		linearAxis(&p.Y, all)
		if q.duration {
			p.Y.Tick.Marker = plot.TickerFunc(durationTicks)
		}
		for _, o := range s.Outages {
			p.shade(float64(o.FromNS), float64(o.ToNS))
		}
		if marksWindows(&s) {
			for _, at := range s.WindowEndsNS {
				p.upright(float64(at), boundaryStyle)
			}
		}
		p.zero()
		g.panels = append(g.panels, p)
	}
	if len(g.panels) == 0 {
		return nil, fmt.Errorf("%w: %s did nothing that a sample shows", ErrNothingToPlot, s.Strategy)
	}
	if len(still) > 0 {
		g.caption += " · 0 throughout, and not drawn: " + strings.Join(still, ", ")
	}
	return g.plot(), nil
}

// marksWindows reports whether the ends of windows are drawn: many would be a grey ground.
func marksWindows(s *results.Series) bool {
	return len(s.WindowEndsNS) > 0 && len(s.WindowEndsNS) <= 60
}

func seriesCaption(s *results.Series) string {
	parts := []string{"SIMULATED, latencies are modelled", format.Plural(int64(len(s.Samples)), "sample", "samples")}
	if len(s.Counters) > 0 {
		parts = append(parts, fmt.Sprintf("counters of %s are read", format.Plural(int64(s.Tracked), "subject", "subjects")))
	}
	if len(s.Tiers) == 1 {
		parts = append(parts, "all decisions by "+storeNamed(s.Tiers[0]))
	}
	for _, o := range s.Outages {
		what := storeNamed(o.Store) + " away"
		if o.Network != "" {
			what = "network " + o.Network
		}
		parts = append(parts, fmt.Sprintf("%s from %v to %v (shaded)", what, time.Duration(o.FromNS), time.Duration(o.ToNS)))
	}
	return format.Join(" · ", parts...)
}

func seriesNote(s *results.Series) string {
	ends := ""
	if marksWindows(s) {
		ends = "Dashed: a window ends."
	}
	counters := ""
	if len(s.Counters) > 0 {
		counters = "Drift: what a counter says less what callers were told. " +
			"A counter that is too high withholds units, one that is too low gives units away. " +
			"Staleness: how long ago what a counter says was the truth."
	}
	return format.Join(" ", "A leak and a false reject count once no order of the requests explains them otherwise; "+
		"every attempt on a withheld unit counts, unless its reservation expired.", counters, ends)
}

func seriesDesc(s *results.Series) string {
	x := &s.Samples[len(s.Samples)-1]
	text := fmt.Sprintf("%s over %v of virtual time: at the end %s of %s admitted, a leak of %s, %s.", s.Strategy, time.Duration(x.AtNS),
		format.Count(x.Admitted), format.Plural(x.Issued, "request", "requests"), format.Units(x.Leak, s.Unit),
		format.Plural(x.FalseRejects, "false reject", "false rejects"))
	for k, name := range s.Counters {
		text += fmt.Sprintf(" Drift of %s: %s %s.", storeNamed(name), format.Signed(x.Counters[k].Drift), s.Unit)
	}
	return drawable(text)
}

// storeNamed is a store or tier by the name that people know.
func storeNamed(name string) string {
	if name == "model" {
		return "PostgreSQL (modelled)"
	}
	return name
}

// quantity is what a panel of a series shows.
type quantity struct {
	short    string // in a list
	title    string
	duration bool // in nanoseconds
	lines    []course
}

// course is how a quantity develops over the samples.
type course struct {
	name string
	at   func(i int) float64
}

func seriesQuantities(s *results.Series) []quantity {
	x := s.Samples
	one := func(f func(x *results.Sample) int64) []course {
		return []course{{"", func(i int) float64 { return float64(f(&x[i])) }}}
	}
	counters := func(f func(c *results.Counter) float64) (out []course) {
		for k, name := range s.Counters {
			out = append(out, course{storeNamed(name), func(i int) float64 {
				if x[i].Counters[k].Readings == 0 {
					return math.NaN()
				}
				return f(&x[i].Counters[k])
			}})
		}
		return out
	}
	out := []quantity{
		// What subjects were given at the start would hide what happened since.
		{short: "usage", title: "usage: " + s.Unit + " consumed in the window in force, all subjects",
			lines: one(func(x *results.Sample) int64 { return x.Usage - x.Fill })},
		// One axis would hide a leak behind a thousand times as many false rejects.
		{short: "leak", title: "leak so far: " + s.Unit + " over the limit, all subjects",
			lines: one(func(x *results.Sample) int64 { return x.Leak })},
		{short: "false rejects", title: "false rejects so far: requests refused although there was room, all subjects",
			lines: one(func(x *results.Sample) int64 { return x.FalseRejects })},
	}
	if len(s.Counters) > 0 {
		of := fmt.Sprintf(", sum of %s", format.Plural(int64(s.Tracked), "tracked subject", "tracked subjects"))
		out = append(out,
			quantity{"drift", "drift, signed: " + s.Unit + of, false, counters(func(c *results.Counter) float64 { return float64(c.Drift) })},
			quantity{"units withheld", "units withheld by counters that are too high: " + s.Unit + of, false,
				counters(func(c *results.Counter) float64 { return float64(c.Size+c.Drift) / 2 })},
			// The worst subject is in the record: one that never heals makes it a straight line.
			quantity{"staleness", "staleness, mean of the tracked subjects", true,
				counters(func(c *results.Counter) float64 { return float64(c.MeanNS) })})
	}
	if len(s.Tiers) > 1 {
		out = append(out, quantity{"decisions by store", "decided by, % of the decisions since the sample before", false, hits(s)})
	}
	if slices.ContainsFunc(x, func(x results.Sample) bool { return x.Keys > 0 }) {
		out = append(out, quantity{short: "keys", title: "keys in Redis that have not expired",
			lines: one(func(x *results.Sample) int64 { return x.Keys })})
	}
	return out
}

// hits are the shares of decisions by tier, of those since the sample before.
func hits(s *results.Series) (out []course) {
	x := s.Samples
	for k, name := range s.Tiers {
		out = append(out, course{storeNamed(name), func(i int) float64 {
			before := int64(0)
			decided := x[i].Issued - x[i].InFlight
			if i > 0 {
				before = x[i-1].Hits[k]
				decided = decided - (x[i-1].Issued - x[i-1].InFlight)
			}
			if decided <= 0 {
				return math.NaN()
			}
			return 100 * float64(x[i].Hits[k]-before) / float64(decided)
		}})
	}
	return out
}
