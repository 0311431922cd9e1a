package plot

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/results"
)

// Quantity is what a sweep shows on its vertical axis.
type Quantity struct {
	// Name is part of a file's name, e.g. "p99".
	Name  string
	title string
	of    func(s *results.Summary) reading
	axis  func(a *plot.Axis, values []float64)
	// show renders a value for people.
	show func(v float64) string
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
	perSecond := func(v float64) string { return format.Digits(v) + "/s" }
	return []Quantity{
		{quantityP99, "p99 latency", readP99, latencyAxis, format.NS, false},
		{quantityLeak, "leak, in % of the limit, logarithmic", readLeak, percentAxis, format.Pct, false},
		{"false-rejects", "false rejects, in % of valid requests, logarithmic", readFalseRejects, percentAxis, format.Pct, true},
		{"lost", "acknowledged units lost, per round", readLost, linearAxis, format.Digits, true},
		{"throughput", "decisions per second", readThroughput, linearAxis, perSecond, false},
		{"pool-wait", "wait for a connection per request", readPoolWait, waitAxis, format.NS, true},
	}
}

func readP99(s *results.Summary) reading {
	p := s.Latency().P99
	r := reading{Figure: p.Figure, ok: p.Shown() && p.Value > 0}
	if p.Coverage == 0 {
		r.Lo = p.Value
		r.Hi = p.Value
	}
	return r
}

func readLeak(s *results.Summary) reading {
	possible := max(s.Leak.PctOfLimit, s.Leak.PossiblePctOfLimit)
	return reading{Figure: results.Figure{Value: s.Leak.PctOfLimit, Lo: s.Leak.PctOfLimit, Hi: possible}, ok: s.Counts()}
}

func readFalseRejects(s *results.Summary) reading {
	return exactly(s.FalseRejects.PctOfValid, s.Counts())
}

func readLost(s *results.Summary) reading {
	units, ok := s.Drift.Lost()
	return exactly(units/float64(max(s.Rounds-s.Invalid, 1)), ok && s.Counts())
}

func readThroughput(s *results.Summary) reading {
	return reading{Figure: s.Throughput, ok: s.Throughput.Value > 0} // which a simulation does not have
}

func readPoolWait(s *results.Summary) reading {
	if s.PoolWait == nil {
		return reading{}
	}
	return reading{Figure: s.PoolWait.MeanNS, ok: s.PoolWait.MeanNS.Rounds > 0}
}

// exactly is a reading without an interval.
func exactly(x float64, ok bool) reading {
	return reading{Figure: results.Figure{Value: x, Lo: x, Hi: x}, ok: ok}
}

// waitAxis is linear, since no wait at all is what is hoped for.
func waitAxis(a *plot.Axis, values []float64) {
	linearAxis(a, values)
	a.Tick.Marker = plot.TickerFunc(durationTicks)
}

func latencyAxis(a *plot.Axis, values []float64) {
	timeAxis(a, slices.Min(values), slices.Max(values))
}

// sweepPlot is what the plot of a sweep gathers.
type sweepPlot struct {
	panel  *panel
	place  map[string]float64
	knees  map[string]float64 // by the line's name
	extent []float64
	notes  captions
	told   []string
}

// SweepOf draws a quantity against what a sweep varies: a line per strategy, with intervals
// and its knee. It returns [ErrNothingToPlot] for other records, and if no point has the
// quantity.
func SweepOf(f results.File, q Quantity) (*Plot, error) {
	all := f.SweepSeries()
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: the record is of no sweep", ErrNothingToPlot)
	}
	var values []string
	var points []series
	for i := range all {
		for _, p := range all[i].Points {
			values = append(values, format.Plain(p.Value))
			points = append(points, series{Summary: p.Summary})
		}
	}
	param := f.Sweep.Parameters[0].Name
	if param == "latency" { // of the network, and not what is measured
		param = "network latency"
	}
	s := sweepPlot{panel: newPanel(q.title), knees: map[string]float64{}}
	p := s.panel
	p.Y.Padding = 14
	s.place = settingsAxis(&p.X, param, values)
	for i := range all {
		name := shorten(format.Plain(all[i].Strategy))
		if all[i].Second != "" {
			name += ", " + format.Plain(f.Sweep.Parameters[1].Name) + " " + format.Plain(all[i].Second)
		}
		s.line(line{name: name, style: styleOf(i)}, &all[i], &q)
	}
	if err := drawn(len(p.lines), fmt.Sprintf("no setting of %s has %s", param, q.title)); err != nil {
		return nil, err
	}
	if q.rare && slices.Max(s.extent) == 0 {
		return nil, fmt.Errorf("%w: %s is 0 in every setting of %s", ErrNothingToPlot, q.title, param)
	}
	q.axis(&p.Y, s.extent)
	first := all[0].Points[0].Summary
	simulated := f.Kind == results.Simulated
	if simulated && q.Name == quantityP99 {
		p.title = "modelled " + p.title
	}
	for _, l := range ordered(p.lines) {
		if at, ok := s.knees[l.name]; ok {
			p.upright(at, draw.LineStyle{Color: l.style.line.Color, Width: 1, Dashes: boundaryStyle.Dashes})
		}
	}
	title, _, _ := strings.Cut(upperFirst(q.title), ", in %")
	title = drawable(title + " against " + param)
	shown := func(s *results.Summary) results.Figure { return q.of(s).Figure }
	g := figure{panels: []*panel{p}, sheet: sheet{
		title: title, caption: captionOf(f, first, keptText(points, latencyLoop)+" each"), simulated: simulated,
		note: format.Join(" ", s.note(&q), disturbance(points, shown), s.notes.text()),
		desc: drawable(title + ". " + strings.Join(s.told, "; ") + "."),
	}}
	return g.plot(), nil
}

// line joins the readings of one series, and says where it begins, ends and bends.
func (s *sweepPlot) line(l line, all *results.SweepSeries, q *Quantity) {
	var told []string
	disturbed := false
	for _, p := range all.Points {
		r := q.of(p.Summary)
		value := format.Plain(p.Value)
		if !r.ok {
			s.notes.add("No figure", l.name+" at "+value, "it cannot be shown")
			continue
		}
		disturbed = disturbed || r.Disturbed
		l.marks = append(l.marks, len(l.at))
		l.add(s.place[value], r.Value)
		l.lo = append(l.lo, r.Lo)
		l.hi = append(l.hi, r.Hi)
		s.extent = append(s.extent, r.Value, r.Lo, r.Hi)
		told = append(told, fmt.Sprintf("%s at %s", q.show(r.Value), value))
	}
	if told == nil {
		return
	}
	if disturbed {
		l.name = figures.Mark + l.name
	}
	s.panel.lines = append(s.panel.lines, l)
	s.told = append(s.told, l.name+": "+told[0]+", "+told[len(told)-1])
	if k := all.Knee(); k.At >= 0 {
		value := format.Plain(all.Points[k.At].Value)
		s.knees[l.name] = s.place[value]
		s.told = append(s.told, "knee of "+l.name+" at "+value)
	}
}

// note says what whiskers and rules are.
func (s *sweepPlot) note(q *Quantity) string {
	note := "Whiskers: interval over rounds, their range if fewer than 6 count."
	switch q.Name {
	case quantityP99:
		note = "Whiskers: interval over rounds, if 6 or more are kept."
	case quantityLeak:
		note = "Whiskers: from certain to possible leak."
	}
	if len(s.knees) > 0 {
		note += " Dashed, in the line's colour: the knee, from which on more brings little throughput."
	}
	return note
}

// upperFirst begins a title.
func upperFirst(s string) string {
	if s == "" || strings.HasPrefix(s, "p99") {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
