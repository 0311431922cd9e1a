package plot

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
)

// Quantity is what a sweep shows on its vertical axis.
type Quantity struct {
	// Name is part of a file's name, e.g. "p99".
	Name  string
	title string
	of    func(s *results.Summary) reading
	axis  func(a *plot.Axis, title string, values []float64)
	// show renders a value for people.
	show func(v float64) string
	// rare quantities are not worth a drawing where they are 0 everywhere.
	rare bool
}

// reading is a quantity of one summary.
type reading struct {
	value, lo, hi float64
	ok            bool   // there is one
	doubt         string // why it may not be believed; empty where it may
}

// The quantities of sweeps.
var (
	// QuantityP99 is the p99 latency with its interval over rounds.
	QuantityP99 = Quantity{"p99", "p99 latency", readP99, latencyAxis, format.NS, false}
	// QuantityLeak is the leak in percent of the limit, from certain to possible.
	QuantityLeak = Quantity{"leak", "leak, in % of the limit", readLeak, percentAxis, format.Pct, false}
	// QuantityFalseRejects is the share of requests that were rejected wrongly.
	QuantityFalseRejects = Quantity{"false-rejects", "false rejects, in % of valid requests", readFalseRejects, percentAxis, format.Pct,
		true}
	// QuantityPoolWait is the time that a request waits for connections.
	QuantityPoolWait = Quantity{"pool-wait", "wait for a connection per request", readPoolWait, waitAxis, format.NS, true}
	// QuantityThroughput is decisions per second with its interval over rounds.
	QuantityThroughput = Quantity{"throughput", "decisions per second", readThroughput, linearAxis,
		func(v float64) string { return format.Digits(v) + "/s" }, false}
)

// Quantities returns what a sweep can show.
func Quantities() []Quantity {
	return []Quantity{QuantityP99, QuantityLeak, QuantityFalseRejects, QuantityThroughput, QuantityPoolWait}
}

func readP99(s *results.Summary) (r reading) {
	p := s.Latency().P99
	if !p.Shown() {
		return reading{}
	}
	r = reading{value: p.Value, lo: p.Value, hi: p.Value, ok: p.Value > 0}
	if p.Coverage > 0 {
		r.lo, r.hi = p.Lo, p.Hi
	}
	if 2*p.Waited > p.Rounds {
		r.doubt = "waiting for a core could explain its p99 in most rounds"
	}
	return r
}

func readLeak(s *results.Summary) reading {
	possible := max(s.Leak.PctOfLimit, s.Leak.PossiblePctOfLimit)
	return reading{value: s.Leak.PctOfLimit, lo: s.Leak.PctOfLimit, hi: possible, ok: s.Counts()}
}

func readFalseRejects(s *results.Summary) reading {
	v := s.FalseRejects.PctOfValid
	return reading{value: v, lo: v, hi: v, ok: s.Counts()}
}

func readThroughput(s *results.Summary) reading {
	t := s.Throughput
	return reading{value: t.Value, lo: t.Lo, hi: t.Hi, ok: t.Rounds > 0}
}

func readPoolWait(s *results.Summary) reading {
	if s.PoolWait == nil {
		return reading{}
	}
	w := s.PoolWait.MeanNS
	return reading{value: w.Value, lo: w.Lo, hi: w.Hi, ok: w.Rounds > 0}
}

// waitAxis is linear, since no wait at all is what is hoped for.
func waitAxis(a *plot.Axis, title string, values []float64) {
	linearAxis(a, title, values)
	a.Tick.Marker = plot.TickerFunc(durationTicks)
}

func latencyAxis(a *plot.Axis, title string, values []float64) {
	timeAxis(a, title, slices.Min(values), slices.Max(values))
}

// SweepPoint is one measurement of a sweep.
type SweepPoint struct {
	// Line that the point belongs to: a strategy, with the second parameter's value
	// where two were swept.
	Line string
	// Value of the parameter, as it was given: a number, a duration, a share or a word.
	Value string
	// Summary of that setting.
	Summary *results.Summary
}

// Knee is where a line begins to bend.
type Knee struct{ Line, Value string }

// SweepData is a quantity against a parameter.
type SweepData struct {
	// Param names the parameter, e.g. "workers".
	Param string
	// Quantity on the vertical axis.
	Quantity Quantity
	// Points in any order; those of one line are joined in the order of their values.
	Points []SweepPoint
	// Knees are marked.
	Knees []Knee
	// Caption says what the figures rest on, in one line.
	Caption string
	// Simulated is set where latencies are modelled.
	Simulated bool
}

// Sweep draws a quantity against a parameter: a line per strategy, with intervals. It
// returns [ErrNothingToPlot] where no point has the quantity.
func Sweep(d SweepData) (*Plot, error) {
	var notes captions
	s := sweptLines{lines: map[string]map[string]reading{}}
	for _, p := range d.Points {
		s.add(&p, d.Quantity.of(p.Summary), &notes)
	}
	if len(s.names) == 0 {
		return nil, fmt.Errorf("%w: no setting of %s has %s", ErrNothingToPlot, d.Param, d.Quantity.title)
	}
	if len(s.names) > maxDots {
		return nil, tooMany(len(s.names))
	}
	if d.Quantity.rare && slices.Max(s.extent) == 0 {
		return nil, fmt.Errorf("%w: %s is 0 in every setting of %s", ErrNothingToPlot, d.Quantity.title, d.Param)
	}
	p := newPanel("")
	p.Y.Padding = 14
	place := settingsAxis(&p.X, d.Param, s.values)
	slices.SortFunc(s.values, func(a, b string) int { return compareFloat(place[a], place[b]) })
	d.Quantity.axis(&p.Y, d.Quantity.title, s.extent)
	if d.Simulated && d.Quantity.Name == QuantityP99.Name {
		p.Y.Label.Text = "modelled " + p.Y.Label.Text
	}
	var told []string
	for _, name := range s.names {
		l, said := s.line(name, &d, place)
		told = append(told, said)
		p.lines = append(p.lines, l)
	}
	styled(p.lines)
	for _, k := range d.Knees {
		at, ok := place[k.Value]
		i := slices.IndexFunc(p.lines, func(l line) bool { return l.name == k.Line })
		if ok && i >= 0 {
			p.upright(at, draw.LineStyle{Color: p.lines[i].style.line.Color, Width: 1, Dashes: boundaryStyle.Dashes})
			told = append(told, "knee of "+k.Line+" at "+k.Value)
		}
	}
	title, _, _ := strings.Cut(upperFirst(d.Quantity.title), ", in %")
	title = drawable(title + " against " + d.Param)
	g := figure{panels: []*panel{p}, least: 360, sheet: sheet{
		title: title, caption: d.Caption, note: format.Join(" ", d.note(), notes.text()), simulated: d.Simulated,
		desc: drawable(title + ". " + strings.Join(told, "; ") + "."),
	}}
	return g.plot(), nil
}

// sweptLines are the readings of each line by the parameter's value.
type sweptLines struct {
	values, names []string
	lines         map[string]map[string]reading
	extent        []float64
}

func (s *sweptLines) add(p *SweepPoint, r reading, notes *captions) {
	if !slices.Contains(s.values, p.Value) {
		s.values = append(s.values, p.Value)
	}
	if !r.ok {
		notes.add("No figure", p.Line+" at "+p.Value, "it cannot be shown")
		return
	}
	if r.doubt != "" {
		notes.add("Pale", p.Line+" at "+p.Value, r.doubt)
	}
	if s.lines[p.Line] == nil {
		s.lines[p.Line] = map[string]reading{}
		s.names = append(s.names, p.Line)
	}
	s.lines[p.Line][p.Value] = r
	s.extent = append(s.extent, r.value, r.lo, r.hi)
}

// line joins the readings of one name, and says where it begins and ends.
func (s *sweptLines) line(name string, d *SweepData, place map[string]float64) (l line, said string) {
	l = line{name: name}
	first, last := "", ""
	for _, v := range s.values {
		r, ok := s.lines[name][v]
		if !ok {
			continue
		}
		l.marks = append(l.marks, len(l.at))
		l.add(place[v], r.value)
		l.lo, l.hi = append(l.lo, r.lo), append(l.hi, r.hi)
		l.pale = append(l.pale, r.doubt != "")
		if last = fmt.Sprintf("%s at %s", d.Quantity.show(r.value), v); first == "" {
			first = last
		}
	}
	return l, name + ": " + first + ", " + last
}

// note says what whiskers and rules are.
func (d *SweepData) note() string {
	note := "Whiskers: interval over rounds, their range where fewer than 6 count."
	switch d.Quantity.Name {
	case QuantityP99.Name:
		note = "Whiskers: interval over rounds, if 6 or more are kept."
	case QuantityLeak.Name:
		note = "Whiskers: from certain to possible leak."
	}
	if len(d.Knees) > 0 {
		note += " Dashed, in the line's colour: the knee, from which on more brings little throughput."
	}
	return note
}

// SweepOf draws a quantity against what a sweep varies, with the knee of each line. It
// returns [ErrNothingToPlot] for other records.
func SweepOf(f results.File, q Quantity) (*Plot, error) {
	all := f.SweepSeries()
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: the record is of no sweep", ErrNothingToPlot)
	}
	d := SweepData{Param: f.Sweep.Parameters[0].Name, Quantity: q, Simulated: f.Kind == results.Simulated}
	for i := range all {
		s := &all[i]
		name := shorten(format.Plain(s.Strategy))
		if s.Second != "" {
			name += ", " + format.Plain(f.Sweep.Parameters[1].Name) + " " + format.Plain(s.Second)
		}
		for _, p := range s.Points {
			d.Points = append(d.Points, SweepPoint{name, format.Plain(p.Value), p.Summary})
		}
		if k := s.Knee(); k.At >= 0 {
			d.Knees = append(d.Knees, Knee{name, format.Plain(s.Points[k.At].Value)})
		}
	}
	first := all[0].Points[0].Summary
	var points []series
	for _, p := range d.Points {
		points = append(points, series{Summary: p.Summary})
	}
	kept := keptText(points)
	d.Caption = format.Join(" · ", "workload "+format.Plain(first.Workload),
		fmt.Sprintf("%s (%s)", format.Plain(first.Policy), format.Units(first.Params.Limit, format.Plain(first.Params.Unit))),
		kept+" each", storesCaption(f))
	if d.Simulated {
		d.Caption = "SIMULATED in virtual time, latencies are modelled · " + d.Caption
	}
	return Sweep(d)
}

// upperFirst begins a title.
func upperFirst(s string) string {
	if s == "" || strings.HasPrefix(s, "p99") {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
