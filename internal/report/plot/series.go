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
func Series(series results.Series) (*Plot, error) {
	if len(series.Samples) == 0 {
		return nil, fmt.Errorf("%w: the series of %s has no samples", ErrNothingToPlot, series.Strategy)
	}
	g := figure{least: 108, sheet: sheet{
		title: drawable(series.Strategy) +
			" over virtual time", caption: seriesCaption(&series), note: seriesNote(&series), desc: seriesDesc(&series),
		simulated: true,
	}}
	var still []string
	for _, quantity := range seriesQuantities(&series) {
		panel := newPanel(quantity.title)
		for k, course := range quantity.lines {
			l := line{name: course.name, style: styleOf(k)}
			for i := range series.Samples {
				l.add(float64(series.Samples[i].AtNS), course.at(i))
			}
			panel.lines = append(panel.lines, l)
		}
		all := values(panel.lines)
		if !slices.ContainsFunc(all, func(value float64) bool { return value != 0 && !math.IsNaN(value) }) {
			still = append(still, quantity.short)
			continue
		}
		momentsAxis(&panel.X, &series)
		linearAxis(&panel.Y, all)
		if quantity.duration {
			panel.Y.Tick.Marker = plot.TickerFunc(durationTicks)
		}
		for _, span := range series.Outages {
			panel.shade(float64(span.FromNS), float64(span.ToNS))
		}
		if marksWindows(&series) {
			for _, at := range series.WindowEndsNS {
				panel.upright(float64(at), boundaryStyle)
			}
		}
		panel.zero()
		g.panels = append(g.panels, panel)
	}
	if len(g.panels) == 0 {
		return nil, fmt.Errorf("%w: %s did nothing that a sample shows", ErrNothingToPlot, series.Strategy)
	}
	if len(still) > 0 {
		g.caption += " · 0 throughout, and not drawn: " + strings.Join(still, ", ")
	}
	return g.plot(), nil
}

// marksWindows reports whether the ends of windows are drawn: many would be a grey ground.
func marksWindows(series *results.Series) bool {
	return len(series.WindowEndsNS) > 0 && len(series.WindowEndsNS) <= 60
}

func seriesCaption(series *results.Series) string {
	parts := []string{"SIMULATED, latencies are modelled", format.Plural(int64(len(series.Samples)), "sample", "samples")}
	if len(series.Counters) > 0 {
		parts = append(parts, fmt.Sprintf("counters of %s are read",
			format.Plural(int64(series.Tracked), "subject", "subjects")))
	}
	if len(series.Tiers) == 1 {
		parts = append(parts, "all decisions by "+storeNamed(series.Tiers[0]))
	}
	for _, span := range series.Outages {
		what := storeNamed(span.Store) + " away"
		if span.Network != "" {
			what = "network " + span.Network
		}
		parts = append(parts, fmt.Sprintf("%s from %v to %v (shaded)", what, time.Duration(span.FromNS),
			time.Duration(span.ToNS)))
	}
	return format.Join(" · ", parts...)
}

func seriesNote(series *results.Series) string {
	ends := ""
	if marksWindows(series) {
		ends = "Dashed: a window ends."
	}
	counters := ""
	if len(series.Counters) > 0 {
		counters = "Drift: what a counter says less what callers were told. " +
			"A counter that is too high withholds units, one that is too low gives units away. " +
			"Staleness: how long ago what a counter says was the truth."
	}
	return format.Join(" ", "A leak and a false reject count once no order of the requests explains them otherwise; "+
		"every attempt on a withheld unit counts, unless its reservation expired.", counters, ends)
}

func seriesDesc(series *results.Series) string {
	sample := &series.Samples[len(series.Samples)-1]
	text := fmt.Sprintf("%s over %v of virtual time: at the end %s of %s admitted, a leak of %s, %s.", series.Strategy,
		time.Duration(sample.AtNS),
		format.Count(sample.Admitted), format.Plural(sample.Issued, "request", "requests"),
		format.Units(sample.Leak, series.Unit),
		format.Plural(sample.FalseRejects, "false reject", "false rejects"))
	for k, name := range series.Counters {
		text += fmt.Sprintf(" Drift of %s: %s %s.", storeNamed(name), format.Signed(sample.Counters[k].Drift), series.Unit)
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

func seriesQuantities(series *results.Series) []quantity {
	samples := series.Samples
	one := func(f func(sample *results.Sample) int64) []course {
		return []course{{"", func(i int) float64 { return float64(f(&samples[i])) }}}
	}
	counters := func(f func(counter *results.Counter) float64) (out []course) {
		for k, name := range series.Counters {
			out = append(out, course{storeNamed(name), func(i int) float64 {
				if samples[i].Counters[k].Readings == 0 {
					return math.NaN()
				}
				return f(&samples[i].Counters[k])
			}})
		}
		return out
	}
	out := []quantity{
		// What subjects were given at the start would hide what happened since.
		{short: "usage", title: "usage: " + series.Unit + " consumed in the window in force, all subjects",
			lines: one(func(sample *results.Sample) int64 { return sample.Usage - sample.Fill })},
		// One axis would hide a leak behind a thousand times as many false rejects.
		{short: "leak", title: "leak so far: " + series.Unit + " over the limit, all subjects",
			lines: one(func(sample *results.Sample) int64 { return sample.Leak })},
		{short: "false rejects", title: "false rejects so far: requests refused although there was room, all subjects",
			lines: one(func(sample *results.Sample) int64 { return sample.FalseRejects })},
	}
	if len(series.Counters) > 0 {
		of := fmt.Sprintf(", sum of %s", format.Plural(int64(series.Tracked), "tracked subject", "tracked subjects"))
		out = append(out,
			quantity{"drift", "drift, signed: " + series.Unit + of, false, counters(func(counter *results.Counter) float64 {
				return float64(counter.Drift)
			})},
			quantity{"units withheld", "units withheld by counters that are too high: " + series.Unit + of, false,
				counters(func(counter *results.Counter) float64 { return float64(counter.Size+counter.Drift) / 2 })},
			// The worst subject is in the record: one that never heals makes it a straight line.
			quantity{"staleness", "staleness, mean of the tracked subjects", true,
				counters(func(counter *results.Counter) float64 { return float64(counter.MeanNS) })})
	}
	if len(series.Tiers) > 1 {
		out = append(out, quantity{"decisions by store", "decided by, % of the decisions since the sample before", false,
			hits(series)})
	}
	if slices.ContainsFunc(samples, func(sample results.Sample) bool { return sample.Keys > 0 }) {
		out = append(out, quantity{short: "keys", title: "keys in Redis that have not expired",
			lines: one(func(sample *results.Sample) int64 { return sample.Keys })})
	}
	return out
}

// hits are the shares of decisions by tier, of those since the sample before.
func hits(series *results.Series) (out []course) {
	samples := series.Samples
	for k, name := range series.Tiers {
		out = append(out, course{storeNamed(name), func(i int) float64 {
			before := int64(0)
			decided := samples[i].Issued - samples[i].InFlight
			if i > 0 {
				before = samples[i-1].Hits[k]
				decided = decided - (samples[i-1].Issued - samples[i-1].InFlight)
			}
			if decided <= 0 {
				return math.NaN()
			}
			return 100 * float64(samples[i].Hits[k]-before) / float64(decided)
		}})
	}
	return out
}
