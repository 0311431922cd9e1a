package results

import "slices"

// timings condenses the rounds whose timings count, or all if none does.
func (s *Summary) timings(runs []*Run) {
	use := slices.DeleteFunc(slices.Clone(runs), func(r *Run) bool { return !r.Audit.TimingsValid || r.Partial })
	s.TimingsCount = len(use) > 0
	if !s.TimingsCount {
		use = runs
	}
	s.Timed = len(use)
	var throughput, ratio []float64
	var latency, service []*Latency
	var costs []Cost
	for _, r := range use {
		throughput = append(throughput, r.ThroughputPerS)
		if r.ReferencePerS > 0 {
			ratio = append(ratio, r.ThroughputPerS/r.ReferencePerS)
		}
		latency = append(latency, &r.Latency)
		if r.Service != nil {
			service = append(service, r.Service)
		}
		if r.Lateness != nil && r.Lateness.Saturated {
			s.Saturated++
		}
		costs = append(costs, r.Cost)
	}
	s.Throughput, s.Ratio = OverRounds(throughput), OverRounds(ratio)
	s.Latency = percentiles(latency)
	if len(service) > 0 {
		p := percentiles(service)
		s.Service = &p
	}
	s.Cost = medianCost(costs)
}

// percentiles condenses one latency per round.
func percentiles(rounds []*Latency) Percentiles {
	var p Percentiles
	for _, l := range rounds {
		p.Max = max(p.Max, l.Max)
		p.AtLeast += l.AtLeast
	}
	p.Merged = mergeHistograms(rounds)
	none := func(*Latency) int { return -1 }
	p.P50 = p.percentile(rounds, 0.5, func(l *Latency) int64 { return l.P50 }, none)
	p.P90 = p.percentile(rounds, 0.9, func(l *Latency) int64 { return l.P90 }, none)
	p.P99 = p.percentile(rounds, 0.99, func(l *Latency) int64 { return l.P99 }, func(l *Latency) int { return l.StallsP99 })
	p.P999 = p.percentile(rounds, 0.999, func(l *Latency) int64 { return l.P999 }, func(l *Latency) int { return l.StallsP999 })
	// Stalls behind p99.99 are not recorded; those behind p99.9 are at least as
	// many samples, and too few of them rule out the rarer ones too.
	p.P9999 = p.percentile(rounds, 0.9999, func(l *Latency) int64 { return l.P9999 }, func(l *Latency) int { return l.StallsP999 })
	return p
}

func (p *Percentiles) percentile(rounds []*Latency, q float64, at func(*Latency) int64, stalls func(*Latency) int) Percentile {
	need := minSamples(q)
	var total int64
	events, known, each := 0, false, true
	values := make([]float64, 0, len(rounds))
	for _, l := range rounds {
		total += l.Samples
		each = each && l.Samples >= need
		if n := stalls(l); n >= 0 {
			events, known = events+n, true
		}
		values = append(values, float64(at(l)))
	}
	switch {
	case total == 0:
		return Percentile{Status: NoSamples}
	case total < need:
		return Percentile{Figure{Value: float64(p.Max), Rounds: len(rounds)}, TooFew}
	case known && events < minStalls:
		return Percentile{Figure{Value: float64(p.Max), Rounds: len(rounds)}, EventDriven}
	case each:
		return Percentile{OverRounds(values), PerRound}
	case p.Merged != nil:
		v := float64(p.Merged.Quantile(q))
		return Percentile{Figure{Value: v, Lo: v, Hi: v, Rounds: len(rounds)}, Merged}
	default:
		return Percentile{Figure{Value: float64(p.Max), Rounds: len(rounds)}, TooFew}
	}
}

// mergeHistograms adds up all rounds, or returns nil if one has no readable
// histogram: a part of the rounds would pass for all of them.
func mergeHistograms(rounds []*Latency) *Histogram {
	if len(rounds) == 0 {
		return nil
	}
	m := NewHistogram()
	for _, l := range rounds {
		h, err := l.Decode()
		if err != nil || h == nil {
			return nil
		}
		m.Merge(h)
	}
	return m
}

// medianCost takes the median of every figure per decision, and the worst count
// of keys.
func medianCost(costs []Cost) Cost {
	var c Cost
	for _, f := range []func(*Cost) *float64{
		func(c *Cost) *float64 { return &c.Commands }, func(c *Cost) *float64 { return &c.RoundTrips },
		func(c *Cost) *float64 { return &c.Bytes }, func(c *Cost) *float64 { return &c.SQL },
		func(c *Cost) *float64 { return &c.ModelSQL }, func(c *Cost) *float64 { return &c.Allocs },
	} {
		values := make([]float64, len(costs))
		for i := range costs {
			values[i] = *f(&costs[i])
		}
		slices.Sort(values)
		*f(&c) = median(values)
	}
	for i := range costs {
		c.KeysAtEnd = max(c.KeysAtEnd, costs[i].KeysAtEnd)
		c.KeysWithoutTTL = max(c.KeysWithoutTTL, costs[i].KeysWithoutTTL)
	}
	return c
}
