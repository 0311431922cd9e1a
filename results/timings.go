package results

import (
	"fmt"
	"math"
	"slices"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/stat"
)

// disturbedRounds are the rounds of a setting, by repetition, in which the machine was
// disturbed for more than a fifth of the time, or that were interrupted. Their time-outs may
// be the machine's.
func disturbedRounds(runs []*Run) map[int]bool {
	type part struct {
		whole, disturbed int64
		partial          bool
	}
	rounds := map[int]*part{}
	for _, run := range runs {
		p := rounds[run.Repetition]
		if p == nil {
			p = &part{}
			rounds[run.Repetition] = p
		}
		spent := max(run.ElapsedNS, 1)
		p.whole += spent
		p.partial = p.partial || run.Partial
		if run.Audit.discards(codes.Disturbs) {
			p.disturbed += spent
		}
	}
	out := map[int]bool{}
	for n, part := range rounds {
		out[n] = part.partial || float64(part.disturbed) > bounds.MaxDisturbed*float64(part.whole)
	}
	return out
}

// leftOut are the rounds of a setting, by repetition, that did not happen as planned: one
// ended early, a store died, the process stood still. Every other round is behind the
// timings, whatever the machine did: rounds that are chosen by what disturbed them leave a
// busy machine without any figure, and those that are chosen by their outcome bias what is left.
func leftOut(runs []*Run) map[int]bool {
	out := map[int]bool{}
	for _, run := range runs {
		if run.Partial || !run.Audit.Planned() {
			out[run.Repetition] = true
		}
	}
	return out
}

// observed are the timings of the rounds behind a summary.
type observed struct {
	// throughput, ratio to a bare client, p99 of background jobs, and share of the processor that other programs used, by
	// round.
	throughput, ratio, jobs, others []float64
	service, response, reference    []*Latency
	lateness                        []*Lateness
	// late rounds have response times that the generator disturbed.
	late int
}

// timings condenses all rounds except those that are left out.
func (s *Summary) timings(runs []*Run, out map[int]bool) {
	use := slices.DeleteFunc(slices.Clone(runs), func(run *Run) bool { return out[run.Repetition] })
	s.Timed = len(use)
	s.each = map[int]Timing{}
	var all observed
	for _, run := range use {
		if run.Audit.Disturbed() {
			s.Disturbed++
		}
		if run.Latency().WaitedForCore(0.99) {
			s.CoreWaitNS = max(s.CoreWaitNS, run.Waiting.longest())
		}
		s.each[run.Repetition] = timingOf(run)
		all.add(run)
	}
	s.lateness(all.lateness)
	s.costs(runs, use)
	if len(all.others) > 0 {
		s.OthersShare = stat.Mean(all.others)
	}
	s.Throughput = meanOf(all.throughput)
	s.Ratio = meanOf(all.ratio)
	s.impossible()
	s.mark(&all)
}

// add takes the timings of a round.
func (o *observed) add(run *Run) {
	if run.Audit.discards(codes.DisturbsResponse) {
		o.late++
	}
	o.others = append(o.others, run.OthersShare)
	o.throughput = append(o.throughput, run.ThroughputPerS)
	if run.ReferencePerS > 0 {
		o.ratio = append(o.ratio, run.ThroughputPerS/run.ReferencePerS)
	}
	if p99, ok := run.JobP99(); ok {
		o.jobs = append(o.jobs, p99)
	}
	o.service = append(o.service, &run.Service)
	if run.Response != nil {
		o.response = append(o.response, run.Response)
	}
	if run.Reference != nil {
		o.reference = append(o.reference, &Latency{Distribution: *run.Reference})
	}
	if run.Lateness != nil {
		o.lateness = append(o.lateness, run.Lateness)
	}
}

// mark sets the latencies, and marks all timings if too many rounds were disturbed.
func (s *Summary) mark(all *observed) {
	disturbed := bounds.Marked(s.Disturbed, s.Timed)
	s.Throughput.Disturbed = disturbed
	s.Ratio.Disturbed = disturbed
	if all.jobs != nil {
		jobs := OverRounds(all.jobs)
		jobs.Disturbed = disturbed
		s.JobP99 = &jobs
	}
	s.Service = percentiles(all.service).marked(disturbed)
	if len(all.response) > 0 {
		response := percentiles(all.response).marked(disturbed || 2*all.late > s.Timed)
		s.Response = &response
	}
	if len(all.reference) > 0 {
		reference := percentiles(all.reference).marked(disturbed)
		s.Reference = &reference
	}
}

// costs are the medians over the rounds behind the timings, or over all if there are none:
// counts of commands are no timings.
func (s *Summary) costs(runs, use []*Run) {
	if len(use) == 0 {
		use = runs
	}
	costs := make([]Cost, len(use))
	for i, run := range use {
		costs[i] = run.Cost
	}
	s.Cost = medianCost(costs)
	for _, run := range runs { // the probe is made once
		if s.Cost.Probe == nil {
			s.Cost.Probe = run.Cost.Probe
		}
	}
}

// marked are the percentiles, each marked if the rounds were disturbed.
func (p Percentiles) marked(disturbed bool) Percentiles {
	for _, percentile := range []*Percentile{&p.P50, &p.P90, &p.P99, &p.P999, &p.P9999} {
		percentile.Disturbed = disturbed
	}
	return p
}

// minExcess is by how much a strategy must be faster than a bare client at least to be impossible.
const minExcess = 0.05

// impossible marks the timings of a strategy that sends a command for each decision and
// makes more decisions than a bare client sends commands.
func (s *Summary) impossible() {
	if s.Ratio.Coverage == 0 || s.Ratio.Lo <= 1+minExcess || s.Cost.Commands < 1 {
		return
	}
	faster := fmt.Sprintf(
		"it made %.2f times the decisions of a bare client's INCR loop (interval %.2f to %.2f) with %.2f commands each",
		s.Ratio.Value, s.Ratio.Lo, s.Ratio.Hi, s.Cost.Commands)
	s.Audit.Observe("faster-than-bare", codes.DisturbsTimings, faster, "that cannot be")
	s.Occurrences["faster-than-bare"] = s.Timed
	s.Disturbed = s.Timed
}

// Keeps reports whether the round is behind the timings.
func (s *Summary) Keeps(round int) bool {
	_, ok := s.each[round]
	return ok
}

// Timing is one strategy's timing in one round.
type Timing struct {
	// P50 and P99 of what callers wait for, in nanoseconds.
	P50, P99 float64
	// PerS is decisions per second.
	PerS float64
}

// timingOf is that of a round. Requests that waited longer and longer for as long as the round
// lasted have no latency that could be compared: theirs is the longest that there is.
func timingOf(run *Run) Timing {
	if run.Lateness != nil && run.Lateness.Saturated {
		return Timing{P50: float64(bounds.MaxRecorded), P99: float64(bounds.MaxRecorded), PerS: run.ThroughputPerS}
	}
	return Timing{P50: float64(run.Latency().P50), P99: float64(run.Latency().P99), PerS: run.ThroughputPerS}
}

func (s *Summary) lateness(rounds []*Lateness) {
	if len(rounds) == 0 {
		return
	}
	lateness := &Lateness{}
	for _, f := range []func(*Lateness) *int64{
		func(l *Lateness) *int64 { return &l.PacerP50 }, func(l *Lateness) *int64 { return &l.PacerP99 },
		func(l *Lateness) *int64 { return &l.WorkerP50 }, func(l *Lateness) *int64 { return &l.WorkerP99 },
	} {
		values := make([]float64, len(rounds))
		for i, r := range rounds {
			values[i] = float64(*f(r))
		}
		*f(lateness) = int64(stat.Median(values))
	}
	for i, r := range rounds {
		if i == 0 || r.BacklogEnd > lateness.BacklogEnd {
			lateness.BacklogHalf = r.BacklogHalf
			lateness.BacklogEnd = r.BacklogEnd
		}
		if r.Saturated {
			lateness.Saturated = true
			s.Saturated++
		}
	}
	s.Lateness = lateness
}

// latencies are those of several rounds, as far as percentiles of them together depend on it.
type latencies struct {
	rounds []*Latency
	pool   *pool // nil if a round has no histogram
	max    int64
	// atLeast counts operations that had not ended, whose latency is at least what was recorded.
	atLeast int64
	samples int64
	// fewest samples of any round.
	fewest int64
	// stallsKnown is set if some round has counted its stalls; stalls99 and stalls999 are those behind p99 and p99.9.
	stallsKnown         bool
	stalls99, stalls999 int
}

func latenciesOf(rounds []*Latency) *latencies {
	l := &latencies{rounds: rounds, pool: newPool(rounds), fewest: math.MaxInt64}
	for _, latency := range rounds {
		l.max = max(l.max, latency.Max)
		l.atLeast += latency.AtLeast
		l.samples += latency.Samples
		l.fewest = min(l.fewest, latency.Samples)
		// Events behind p99.9 are among those behind p99. They may be more if the samples
		// between the two never pause for long enough to end an event.
		if n := max(latency.StallsP99, latency.StallsP999); n >= 0 {
			l.stalls99 += n
			l.stallsKnown = true
		}
		l.stalls999 += max(latency.StallsP999, 0)
	}
	return l
}

// percentile is the quantile q of all rounds together. ofRound is that of one round, and stalls are the events behind
// it.
func (l *latencies) percentile(q float64, ofRound func(*Latency) int64, stalls int) Percentile {
	if l.samples == 0 {
		return Percentile{Status: codes.NoSamples}
	}
	out := l.estimate(q, ofRound)
	for _, latency := range l.rounds {
		if latency.Waited.at(q) > maxWaited {
			out.Waited++
		}
	}
	if l.stallsKnown && stalls < minStalls && out.Coverage > 0 {
		out.Hi = max(out.Hi, float64(l.max)) // one stall more or less moves it anywhere up to the largest value
	}
	return out
}

// estimate is the quantile with its interval: of the pool, or of the rounds' own quantiles if a round has no histogram.
// With fewer samples than the quantile needs it is the largest latency.
func (l *latencies) estimate(q float64, ofRound func(*Latency) int64) Percentile {
	least := stat.MinSamples(q)
	if l.samples < least || l.pool == nil && l.fewest < least {
		largest := float64(l.max)
		return Percentile{
			Figure: Figure{Value: largest, Lo: largest, Hi: largest, Rounds: len(l.rounds)},
			Status: codes.TooFew,
		}
	}
	if l.pool != nil {
		return Percentile{Figure: l.pool.figure(q), Status: codes.Pooled}
	}
	values := make([]float64, len(l.rounds))
	for i, latency := range l.rounds {
		values[i] = float64(ofRound(latency))
	}
	return Percentile{Figure: OverRounds(values), Status: codes.PerRound}
}

// percentiles pools the histograms of rounds.
func percentiles(rounds []*Latency) Percentiles {
	all := latenciesOf(rounds)
	return Percentiles{
		Max:     all.max,
		AtLeast: all.atLeast,
		Curve:   all.pool.curve(),
		P50:     all.percentile(0.5, func(latency *Latency) int64 { return latency.P50 }, minStalls),
		P90:     all.percentile(0.9, func(latency *Latency) int64 { return latency.P90 }, minStalls),
		P99:     all.percentile(0.99, func(latency *Latency) int64 { return latency.P99 }, all.stalls99),
		P999:    all.percentile(0.999, func(latency *Latency) int64 { return latency.P999 }, all.stalls999),
		// Stalls behind p99.99 are not recorded; those behind p99.9 are at least as
		// many samples, and too few of them rule out the rarer ones too.
		P9999: all.percentile(0.9999, func(latency *Latency) int64 { return latency.P9999 }, all.stalls999),
	}
}
