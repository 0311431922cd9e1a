package results

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
// where values are no numbers, where fewer than three have figures that count, where the
// curve is straight or falls, and where the interval of the point over rounds reaches
// down to the line between the upper ends of the outer intervals, or to the first
// interval: then noise explains it.
func (s *SweepSeries) Knee() Knee {
	none := func(why string, distance float64) Knee { return Knee{At: -1, Distance: distance, Why: why} }
	var at []int
	for i := range s.Points {
		p := &s.Points[i]
		if !p.Numeric {
			return none("the values are no numbers", 0)
		}
		if p.Summary.TimingsCount && p.Summary.Throughput.Rounds > 0 {
			at = append(at, i)
		}
	}
	if len(at) < minKneePoints {
		return none("fewer than 3 values have timings that count", 0)
	}
	first, last := &s.Points[at[0]], &s.Points[at[len(at)-1]]
	low, high := first.figure().Value, first.figure().Value
	for _, i := range at {
		y := s.Points[i].figure().Value
		low, high = min(low, y), max(high, y)
		if s.Points[i].figure().Rounds < 2 {
			return none("one round says nothing about how much figures vary", 0)
		}
	}
	if high == low || last.X == first.X {
		return none("decisions per second do not change", 0)
	}
	best, distance := -1, 0.0
	for _, i := range at[1 : len(at)-1] {
		p := &s.Points[i]
		if d := (p.figure().Value - line(first, last, p.X, func(f *Figure) float64 { return f.Value })) / (high - low); d > distance {
			best, distance = i, d
		}
	}
	switch {
	case best < 0 || distance < minKneeDistance && last.figure().Value > first.figure().Value:
		if last.figure().Value < first.figure().Value {
			return none("decisions per second fall", distance)
		}
		return none("the curve is straight, or bends upwards", distance)
	case s.Points[best].figure().Value <= first.figure().Value || distance < minKneeDistance:
		return none("decisions per second do not rise", distance)
	}
	p := &s.Points[best]
	bound := max(first.figure().Hi, line(first, last, p.X, func(f *Figure) float64 { return f.Hi }))
	if p.figure().Lo <= bound {
		return none("the intervals of the rounds overlap", distance)
	}
	return Knee{At: best, Distance: distance}
}

func (p *SweepPoint) figure() *Figure { return &p.Summary.Throughput }

// line is the height at x of the straight line between two points.
func line(a, b *SweepPoint, x float64, of func(*Figure) float64) float64 {
	from, to := of(a.figure()), of(b.figure())
	return from + (to-from)*(x-a.X)/(b.X-a.X)
}
