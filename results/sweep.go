package results

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/stat"
)

// Sweep says which parameters the runs of a file differ in. The values of a run are in
// [Params.Point].
type Sweep struct {
	// Parameters that vary, one or two.
	Parameters []Swept `json:"parameters"`
	// Until is the condition whose edge is looked for, e.g. "p99<5ms"; empty for none.
	Until string `json:"until,omitempty"`
	// Search is set if the values of the only parameter were chosen by a search
	// between the two that are listed.
	Search bool `json:"search,omitempty"`
}

// Swept is a parameter that varies.
type Swept struct {
	// Name as the command line takes it, e.g. "workers" or "three-tier.lag".
	Name string `json:"name"`
	// Values in the order in which they were given; in a search the lowest and the
	// highest that it may try.
	Values []string `json:"values"`
}

// SweepSeries is one strategy over the values of the first parameter.
type SweepSeries struct {
	// Strategy is its label without the options that vary.
	Strategy string
	// Second is the value of the second parameter; empty if there is one parameter.
	Second string
	// Points in ascending order of the value, or in the given order if a value is no
	// number.
	Points []SweepPoint
}

// SweepPoint is one strategy at one value.
type SweepPoint struct {
	// Value as it was given.
	Value string
	// X is the value as a number, times in nanoseconds. Numeric is false if it is
	// none, and X is then its place among the given ones.
	X       float64
	Numeric bool
	Summary *Summary
}

// SweepSeries puts the summaries of a sweep in order: strategies by name, and
// within one the values of the second parameter. It is nil if the file is of no
// sweep.
func (f *File) SweepSeries() []SweepSeries {
	if f.Sweep == nil || len(f.Sweep.Parameters) == 0 {
		return nil
	}
	first := f.Sweep.Parameters[0]
	var out []SweepSeries
	all := f.Summarised()
	for i := range all {
		summary := &all[i]
		series := SweepSeries{Strategy: f.Sweep.Unswept(summary.Label)}
		if len(f.Sweep.Parameters) > 1 {
			series.Second = summary.Params.Point[f.Sweep.Parameters[1].Name]
		}
		point := SweepPoint{Value: summary.Params.Point[first.Name], Summary: summary}
		point.X, point.Numeric = stat.ParseValue(point.Value)
		if !point.Numeric {
			point.X = float64(slices.Index(first.Values, point.Value))
		}
		sweepSeries, _ := collect.In(&out, series, func(x SweepSeries) bool {
			return x.Strategy == series.Strategy && x.Second == series.Second
		})
		sweepSeries.Points = append(sweepSeries.Points, point)
	}
	for i := range out {
		slices.SortStableFunc(out[i].Points, func(a, b SweepPoint) int { return cmp.Compare(a.X, b.X) })
	}
	slices.SortStableFunc(out, func(a, b SweepSeries) int {
		return cmp.Or(strings.Compare(a.Strategy, b.Strategy), f.Sweep.second(a.Second)-f.Sweep.second(b.Second))
	})
	return out
}

func (s *Sweep) second(value string) int {
	if len(s.Parameters) < 2 {
		return 0
	}
	return slices.Index(s.Parameters[1].Values, value)
}

// Unswept is a strategy's label without the options that vary, and without its kind of
// client if that varies.
func (s *Sweep) Unswept(label string) string {
	first, options, ok := strings.Cut(label, ":")
	name, _, _ := strings.Cut(first, "@")
	if slices.ContainsFunc(s.Parameters, func(swept Swept) bool { return swept.Name == "client" }) {
		first = name
	}
	if !ok {
		return first
	}
	var kept []string
	drop := false
	for part := range strings.SplitSeq(options, ",") {
		option, _, isOption := strings.Cut(part, "=")
		if isOption {
			drop = slices.ContainsFunc(s.Parameters, func(swept Swept) bool {
				return swept.Name == option || swept.Name == name+"."+option
			})
		}
		if !drop {
			kept = append(kept, part)
		}
	}
	if kept == nil {
		return first
	}
	return first + ":" + strings.Join(kept, ",")
}

// Knee is the value of a swept parameter from which on more of it brings little: the
// point of the curve of decisions per second that lies farthest above the straight line
// between the curve's ends, both axes scaled to their ranges (Satopää et al., "Finding a
// Kneedle in a Haystack", 2011).
type Knee struct {
	// At is the index of the point in [SweepSeries.Points]; -1 if there is no knee.
	At int
	// Distance of that point, or of the farthest one, from the line, in heights of the
	// curve; 0 if it was not computed.
	Distance float64
	// Why there is none; empty if there is one.
	Why string
}

// minKneeDistance is how far above the line a knee lies at least. A curve that stays
// closer is called straight.
const minKneeDistance = 0.1

// minKneePoints are two ends and what may lie between them.
const minKneePoints = 3

// Knee looks for the knee of the decisions per second over the values. There is none
// if values are no numbers, if fewer than three have a figure, if the
// curve is straight or falls, and if the interval of the point over rounds reaches
// down to the line between the upper ends of the outer intervals, or to the first
// interval: then noise explains it.
func (s *SweepSeries) Knee() Knee {
	points, why := s.curve()
	if why != "" {
		return Knee{At: -1, Why: why}
	}
	first := &s.Points[points[0]]
	last := &s.Points[points[len(points)-1]]
	best, distance := s.farthest(points)
	none := func(why string) Knee { return Knee{At: -1, Distance: distance, Why: why} }
	straight := best < 0 || distance < minKneeDistance && last.figure().Value > first.figure().Value
	switch {
	case straight && last.figure().Value < first.figure().Value:
		return none("decisions per second fall")
	case straight:
		return none("the curve is straight, or bends upwards")
	case s.Points[best].figure().Value <= first.figure().Value || distance < minKneeDistance:
		return none("decisions per second do not rise")
	}
	knee := &s.Points[best]
	upperEnds := line(first, last, knee.X, func(figure *Figure) float64 { return figure.Hi })
	if knee.figure().Lo <= max(first.figure().Hi, upperEnds) {
		return none("the intervals of the rounds overlap")
	}
	return Knee{At: best, Distance: distance}
}

// curve are the points that have a throughput, or why there is no curve with a knee.
func (s *SweepSeries) curve() (points []int, why string) {
	for i := range s.Points {
		point := &s.Points[i]
		if !point.Numeric {
			return nil, "the values are no numbers"
		}
		if point.Summary.Throughput.Rounds > 0 {
			points = append(points, i)
		}
	}
	if len(points) < minKneePoints {
		return nil, "fewer than 3 values have a throughput"
	}
	for _, i := range points {
		if s.Points[i].figure().Rounds < 2 {
			return nil, "one round says nothing about how much figures vary"
		}
	}
	low, high := s.lowestAndHighest(points)
	if high == low || s.Points[points[len(points)-1]].X == s.Points[points[0]].X {
		return nil, "decisions per second do not change"
	}
	return points, ""
}

// lowestAndHighest of the points' decisions per second.
func (s *SweepSeries) lowestAndHighest(points []int) (low, high float64) {
	low = math.Inf(1)
	high = math.Inf(-1)
	for _, i := range points {
		value := s.Points[i].figure().Value
		low = min(low, value)
		high = max(high, value)
	}
	return low, high
}

// farthest is the point that lies farthest above the line between the curve's ends, and by which share of the curve's
// height; -1 if none lies above it.
func (s *SweepSeries) farthest(points []int) (best int, distance float64) {
	first := &s.Points[points[0]]
	last := &s.Points[points[len(points)-1]]
	low, high := s.lowestAndHighest(points)
	best = -1
	for _, i := range points[1 : len(points)-1] {
		point := &s.Points[i]
		onLine := line(first, last, point.X, func(figure *Figure) float64 { return figure.Value })
		above := (point.figure().Value - onLine) / (high - low)
		if above > distance {
			best = i
			distance = above
		}
	}
	return best, distance
}

func (p *SweepPoint) figure() *Figure { return &p.Summary.Throughput }

// line is the height at value of the straight line between two points.
func line(a, b *SweepPoint, value float64, of func(*Figure) float64) float64 {
	from := of(a.figure())
	to := of(b.figure())
	return from + (to-from)*(value-a.X)/(b.X-a.X)
}
