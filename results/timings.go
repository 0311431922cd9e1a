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
	s.response(use)
	var throughput, ratio []float64
	var service, reference []*Latency
	var late []*Lateness
	var costs []Cost
	for _, r := range use {
		throughput = append(throughput, r.ThroughputPerS)
		if r.ReferencePerS > 0 {
			ratio = append(ratio, r.ThroughputPerS/r.ReferencePerS)
		}
		service = append(service, &r.Service)
		if r.Reference != nil {
			reference = append(reference, &Latency{Distribution: *r.Reference})
		}
		if r.Lateness != nil {
			late = append(late, r.Lateness)
		}
		costs = append(costs, r.Cost)
	}
	s.Throughput, s.Ratio = OverRounds(throughput), OverRounds(ratio)
	s.Service = percentiles(service)
	if len(reference) > 0 {
		p := percentiles(reference)
		s.Reference = &p
	}
	s.lateness(late)
	s.Cost = medianCost(costs)
	// The probe is not a timing: any round's will do, and only one has it.
	for _, r := range runs {
		if s.Cost.Probe == nil {
			s.Cost.Probe = r.Cost.Probe
		}
	}
}

// response condenses the response times of those rounds that have ones that
// count, or of all if none does.
func (s *Summary) response(use []*Run) {
	answered := slices.DeleteFunc(slices.Clone(use), func(r *Run) bool { return !r.Audit.ResponseValid() })
	s.ResponseCounts = len(answered) > 0
	if !s.ResponseCounts {
		answered = use
	}
	var response []*Latency
	for _, r := range answered {
		if r.Response != nil {
			response = append(response, r.Response)
		}
	}
	if len(response) > 0 {
		p := percentiles(response)
		s.Response = &p
	}
}

func (s *Summary) lateness(rounds []*Lateness) {
	if len(rounds) == 0 {
		return
	}
	l := &Lateness{}
	for _, f := range []func(*Lateness) *int64{
		func(l *Lateness) *int64 { return &l.PacerP50 }, func(l *Lateness) *int64 { return &l.PacerP99 },
		func(l *Lateness) *int64 { return &l.WorkerP50 }, func(l *Lateness) *int64 { return &l.WorkerP99 },
	} {
		values := make([]float64, len(rounds))
		for i, r := range rounds {
			values[i] = float64(*f(r))
		}
		slices.Sort(values)
		*f(l) = int64(median(values))
	}
	for i, r := range rounds {
		if i == 0 || r.BacklogEnd > l.BacklogEnd {
			l.BacklogHalf, l.BacklogEnd = r.BacklogHalf, r.BacklogEnd
		}
		if r.Saturated {
			l.Saturated = true
			s.Saturated++
		}
	}
	s.Lateness = l
}

// percentiles condenses one latency per round.
func percentiles(rounds []*Latency) Percentiles {
	var p Percentiles
	for _, l := range rounds {
		p.Max = max(p.Max, l.Max)
		p.AtLeast += l.AtLeast
	}
	merged := mergeHistograms(rounds)
	p.Curve = curveOver(merged)
	none := func(*Latency) int { return -1 }
	p.P50 = p.percentile(rounds, merged, 0.5, func(l *Latency) int64 { return l.P50 }, none)
	p.P90 = p.percentile(rounds, merged, 0.9, func(l *Latency) int64 { return l.P90 }, none)
	p.P99 = p.percentile(rounds, merged, 0.99, func(l *Latency) int64 { return l.P99 }, stallsP99)
	p.P999 = p.percentile(rounds, merged, 0.999, func(l *Latency) int64 { return l.P999 }, func(l *Latency) int { return l.StallsP999 })
	// Stalls behind p99.99 are not recorded; those behind p99.9 are at least as
	// many samples, and too few of them rule out the rarer ones too.
	p.P9999 = p.percentile(rounds, merged, 0.9999, func(l *Latency) int64 { return l.P9999 }, func(l *Latency) int { return l.StallsP999 })
	return p
}

// stallsP99 counts events behind p99. Those behind p99.9 are among them, and may
// be more where what lies between the two never pauses for long enough to end
// an event.
func stallsP99(l *Latency) int { return max(l.StallsP99, l.StallsP999) }

func (p *Percentiles) percentile(rounds []*Latency, merged *Histogram, q float64, at func(*Latency) int64, stalls func(*Latency) int) Percentile {
	kept, waited := notWaited(rounds, q)
	out := Percentile{Waited: waited, Struck: len(kept) == 0 && len(rounds) > 0}
	if out.Struck {
		kept = rounds
	}
	need := MinSamples(q)
	var total int64
	events, known, each := 0, false, true
	values := make([]float64, 0, len(kept))
	for _, l := range rounds {
		total += l.Samples
		if n := stalls(l); n >= 0 {
			events, known = events+n, true
		}
	}
	for _, l := range kept {
		each = each && l.Samples >= need
		values = append(values, float64(at(l)))
	}
	largest := Figure{Value: float64(p.Max), Rounds: len(rounds)}
	switch {
	case total == 0:
		out.Status = NoSamples
	case total < need:
		out.Figure, out.Status = largest, TooFew
	case known && events < minStalls:
		out.Figure, out.Status = largest, EventDriven
	case each:
		out.Figure, out.Status = OverRounds(values), PerRound
	case merged != nil:
		v := float64(merged.Quantile(q))
		out.Figure, out.Status = Figure{Value: v, Lo: v, Hi: v, Rounds: len(rounds)}, Merged
	default:
		out.Figure, out.Status = largest, TooFew
	}
	return out
}

// notWaited returns the rounds whose percentile is not to be explained by waiting
// for a core, and the mean share of moments in which it is.
func notWaited(rounds []*Latency, q float64) (kept []*Latency, mean float64) {
	n := 0
	for _, l := range rounds {
		share := l.Waited.at(q)
		if share >= 0 {
			mean += share
			n++
		}
		if share <= MaxWaited {
			kept = append(kept, l)
		}
	}
	return kept, mean / float64(max(n, 1))
}
