package plot

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/plot"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/results"
)

// Quantity is what a sweep shows on its vertical axis.
type Quantity struct {
	// Name is part of a file's name, e.g. "p99".
	Name string
	// heading begins the title of the drawing, and title is that of the axis.
	heading, title string
	of             func(summary *results.Summary) reading
	axis           func(axis *plot.Axis, values []float64)
	// show renders a value for people.
	show func(value float64) string
	// rare quantities are not worth a drawing if they are 0 everywhere.
	rare bool
}

// reading is a quantity of one summary.
type reading struct {
	results.Figure
	ok bool // there is one
}

// The names of quantities with whiskers of their own kind.
const (
	quantityP99  = "p99"
	quantityLeak = "leak"
)

// Quantities returns what a sweep can show.
func Quantities() []Quantity {
	perSecond := func(value float64) string { return format.Digits(value) + "/s" }
	return []Quantity{
		{quantityP99, "p99 latency", "p99 latency", readP99, latencyAxis, format.NS, false},
		{quantityLeak, "Leak", "leak, in % of the limit, logarithmic", readLeak, percentAxis, format.Pct, false},
		{"false-rejects", "False rejects", "false rejects, in % of valid requests, logarithmic", readFalseRejects,
			percentAxis, format.Pct, true},
		{"lost", "Acknowledged units lost, per round", "acknowledged units lost, per round", readLost, linearAxis,
			format.Digits, true},
		{"throughput", "Decisions per second", "decisions per second", readThroughput, linearAxis, perSecond, false},
		{"pool-wait", "Wait for a connection per request", "wait for a connection per request", readPoolWait, waitAxis,
			format.NS, true},
	}
}

func readP99(summary *results.Summary) reading {
	percentile := summary.Latency().P99
	r := reading{Figure: percentile.Figure, ok: percentile.Shown() && percentile.Value > 0}
	if percentile.Coverage == 0 {
		r.Lo = percentile.Value
		r.Hi = percentile.Value
	}
	return r
}

func readLeak(summary *results.Summary) reading {
	possible := max(summary.Leak.PctOfLimit, summary.Leak.PossiblePctOfLimit)
	return reading{Figure: results.Figure{Value: summary.Leak.PctOfLimit, Lo: summary.Leak.PctOfLimit, Hi: possible},
		ok: summary.Counts()}
}

func readFalseRejects(summary *results.Summary) reading {
	return exactly(summary.FalseRejects.PctOfValid, summary.Counts())
}

func readLost(summary *results.Summary) reading {
	units, ok := summary.Drift.Lost()
	return exactly(units/float64(max(summary.Rounds-summary.Invalid, 1)), ok && summary.Counts())
}

func readThroughput(summary *results.Summary) reading {
	return reading{Figure: summary.Throughput, ok: summary.Throughput.Value > 0} // which a simulation does not have
}

func readPoolWait(summary *results.Summary) reading {
	if summary.PoolWait == nil {
		return reading{}
	}
	return reading{Figure: summary.PoolWait.MeanNS, ok: summary.PoolWait.MeanNS.Rounds > 0}
}

// exactly is a reading without an interval.
func exactly(value float64, ok bool) reading {
	return reading{Figure: results.Figure{Value: value, Lo: value, Hi: value}, ok: ok}
}

// waitAxis is linear, since no wait at all is what is hoped for.
func waitAxis(axis *plot.Axis, values []float64) {
	linearAxis(axis, values)
	axis.Tick.Marker = plot.TickerFunc(durationTicks)
}

func latencyAxis(axis *plot.Axis, values []float64) {
	timeAxis(axis, slices.Min(values), slices.Max(values))
}

// sweepPlot is what the plot of a sweep gathers.
type sweepPlot struct {
	panel  *panel
	place  map[string]float64
	extent []float64
	notes  captions
	told   []string
}

// SweepOf draws a quantity against what a sweep varies: a line per strategy, with intervals. It returns
// [ErrNothingToPlot] for other records, and if no point has the quantity.
func SweepOf(file results.File, quantity Quantity) (*Plot, error) {
	all := file.SweepSeries()
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: the record is of no sweep", ErrNothingToPlot)
	}
	var values []string
	var points []series
	for i := range all {
		for _, point := range all[i].Points {
			values = append(values, format.Plain(point.Value))
			points = append(points, series{Summary: point.Summary})
		}
	}
	param := file.Sweep.Parameters[0].Name
	if param == "latency" { // of the network, and not what is measured
		param = "network latency"
	}
	s := sweepPlot{panel: newPanel(quantity.title)}
	p := s.panel
	p.Y.Padding = 14
	s.place = settingsAxis(&p.X, param, values)
	for i := range all {
		name := shorten(format.Plain(all[i].Strategy))
		if all[i].Second != "" {
			name += ", " + format.Plain(file.Sweep.Parameters[1].Name) + " " + format.Plain(all[i].Second)
		}
		s.line(line{name: name, style: styleOf(i)}, &all[i], &quantity)
	}
	if err := drawn(len(p.lines), fmt.Sprintf("no setting of %s has %s", param, quantity.title)); err != nil {
		return nil, err
	}
	if quantity.rare && slices.Max(s.extent) == 0 {
		return nil, fmt.Errorf("%w: %s is 0 in every setting of %s", ErrNothingToPlot, quantity.title, param)
	}
	quantity.axis(&p.Y, s.extent)
	first := all[0].Points[0].Summary
	if file.Kind == results.Simulated && quantity.Name == quantityP99 {
		p.title = "modelled " + p.title
	}
	p.lines = ordered(p.lines)
	return s.sheet(&file, &quantity, param, points, first).plot(), nil
}

// sheet is the finished figure of a sweep: its panel with title, caption and notes.
func (s *sweepPlot) sheet(file *results.File, quantity *Quantity, param string, points []series,
	first *results.Summary) *figure {
	title := drawable(quantity.heading + " against " + param)
	shown := func(summary *results.Summary) results.Figure { return quantity.of(summary).Figure }
	return &figure{panels: []*panel{s.panel}, sheet: sheet{
		title: title, caption: captionOf(*file, first, keptText(points)+" each"),
		simulated: file.Kind == results.Simulated,
		note:      format.Join(" ", quantity.note(), disturbance(points, shown), s.notes.text()),
		desc:      drawable(title + ". " + strings.Join(s.told, "; ") + "."),
	}}
}

// line joins the readings of one series, and says where it begins and ends.
func (s *sweepPlot) line(l line, all *results.SweepSeries, quantity *Quantity) {
	var told []string
	disturbed := false
	for _, point := range all.Points {
		reading := quantity.of(point.Summary)
		value := format.Plain(point.Value)
		if !reading.ok {
			s.notes.add("No figure", l.name+" at "+value, "it cannot be shown")
			continue
		}
		disturbed = disturbed || reading.Disturbed
		l.marks = append(l.marks, len(l.at))
		l.add(s.place[value], reading.Value)
		l.values = append(l.values, reading.Lo)
		l.hi = append(l.hi, reading.Hi)
		s.extent = append(s.extent, reading.Value, reading.Lo, reading.Hi)
		told = append(told, fmt.Sprintf("%s at %s", quantity.show(reading.Value), value))
	}
	if told == nil {
		return
	}
	if disturbed {
		l.name = figures.Mark + l.name
	}
	s.panel.lines = append(s.panel.lines, l)
	s.told = append(s.told, l.name+": "+told[0]+", "+told[len(told)-1])
}

// note says what whiskers are.
func (q *Quantity) note() string {
	switch q.Name {
	case quantityP99:
		return "Whiskers: interval over rounds, if 6 or more are kept."
	case quantityLeak:
		return "Whiskers: from certain to possible leak."
	default:
		return "Whiskers: interval over rounds, their range if fewer than 6 count."
	}
}
