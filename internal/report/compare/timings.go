package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Throughput divided by that of the reference loop of the same round is the one timing
// that is always gated.
const Throughput = "throughput"

// ClientCPU is the processor time of a decision in a simulation, which is compared in pairs of rounds.
const ClientCPU = "client-cpu"

// OfReference is the unit of a timing that is divided by that of the reference loop.
const OfReference = "of the reference loop"

// percentile is a timing: a latency divided by that of the reference loop of the same round.
type percentile struct {
	name string
	q    float64
	at   func(*results.Distribution) int64
}

var percentiles = []percentile{
	{"p50", 0.5, func(distribution *results.Distribution) int64 { return distribution.P50 }},
	{"p90", 0.9, func(distribution *results.Distribution) int64 { return distribution.P90 }},
	{advisory, 0.99, func(distribution *results.Distribution) int64 { return distribution.P99 }},
	{"p99.9", 0.999, func(distribution *results.Distribution) int64 { return distribution.P999 }},
}

// oneRate says why latencies are not compared.
const oneRate = "latencies are compared only at one rate, which the base and the head share where --rate is given"

// advisory is the percentile that is always compared, and fails nothing unless it has a
// tolerance: it varies by 30 % between unchanged runs.
const advisory = "p99"

// Timings are the names of timings that [Options.Tolerances] can have.
func Timings() []string {
	out := []string{Throughput}
	for _, percentile := range percentiles {
		out = append(out, percentile.name)
	}
	return out
}

// MaxShift is by how much the reference loop may differ between the two sides: beyond
// it the machine was another one. The audit of a run has the same bound.
const MaxShift = 0.10

// sample is a figure with one value per round on each side.
type sample struct {
	row        Row
	pair       *pair
	base, head []float64 // costs: more is worse
	middle     func([]float64) float64
	// why the rounds cannot tell, whatever they show.
	doubt string
}

// samples are the figures of a pair that vary. Those that nothing can be said of are
// added to the comparison at once.
func (c *Comparison) samples(p *pair, options *Options) (out []*sample) {
	if reason := placed(p); reason != "" {
		c.discard(p, Row{Figure: Throughput, Kind: Sample}, reason)
		return nil
	}
	if sample := c.throughput(p); sample != nil {
		out = append(out, sample)
	}
	for _, percentile := range percentiles {
		_, gated := options.Tolerances[percentile.name]
		if !gated && percentile.name != advisory {
			continue
		}
		sample, why := c.latency(p, percentile, gated)
		switch {
		case sample != nil:
			out = append(out, sample)
		case gated:
			c.missing(p, percentile.name, why, options)
		}
	}
	out = append(out, racy(p)...)
	doubt := options.doubt(p)
	for _, sample := range out {
		sample.doubt = doubt
		sample.row.Advisory = sample.row.Advisory || p.baseline
	}
	return out
}

// discard adds a row of which nothing can be said.
func (c *Comparison) discard(p *pair, row Row, why string) {
	row.Verdict = Discarded
	row.Detail = why
	c.add(p, row)
}

// missing adds a row for a timing that was to be compared, and could not: that is no pass.
func (c *Comparison) missing(p *pair, figure, why string, options *Options) {
	row := Row{Figure: figure, Unit: OfReference, Kind: Sample, Required: !options.Lenient}
	c.discard(p, row, why)
}

// placed says why runs were not made in the same way: on other cores.
func placed(p *pair) string {
	placement := p.base[0].Placement
	h := p.head[0].Placement
	if placement == nil || h == nil || placement.Mode == h.Mode && placement.Harness == h.Harness &&
		placement.Stores == h.Stores && placement.Procs == h.Procs {
		return ""
	}
	text := func(p *results.Placement) string {
		return format.Join(", ", p.Mode, "harness "+p.Harness, "stores "+p.Stores, fmt.Sprintf("%d threads", p.Procs))
	}
	return "placed otherwise: " + text(placement) + " in the base, " + text(h) + " in the head"
}

// doubt says why a difference may be the machine's. All rounds of one file were made
// before those of the other, so whatever the machine did in between is in all of
// them; the reference loop shows it.
func (o *Options) doubt(p *pair) string {
	if o.Paired {
		return ""
	}
	if p.disturbed(p.base) || p.disturbed(p.head) {
		return "the machine was disturbed, and all rounds of the base were made before those of the head"
	}
	speed := func(run *results.Run) (float64, bool) { return run.ReferencePerS, run.ReferencePerS > 0 }
	b := stat.Median(p.rounds(p.base, speed))
	h := stat.Median(p.rounds(p.head, speed))
	switch {
	case b == 0 || h == 0:
		return "no reference loop counts on one side, and all rounds of the base were made before those of the head"
	case math.Abs(math.Log(h/b)) > math.Log1p(MaxShift):
		return fmt.Sprintf("the reference loop itself went from %s to %s/s: the machine changed between the two sides",
			format.Digits(b),
			format.Digits(h))
	}
	return ""
}

// disturbed reports whether the timings of one side are marked.
func (p *pair) disturbed(runs []*results.Run) bool {
	kept := 0
	disturbed := 0
	for _, run := range runs {
		if !p.kept[run] {
			continue
		}
		kept++
		if run.Audit.Disturbed() {
			disturbed++
		}
	}
	return bounds.Marked(disturbed, kept)
}

// rounds are the values of the rounds that are kept and that have one.
func (p *pair) rounds(runs []*results.Run, f func(*results.Run) (float64, bool)) (out []float64) {
	for _, run := range runs {
		if !p.kept[run] {
			continue
		}
		if value, ok := f(run); ok {
			out = append(out, value)
		}
	}
	return out
}

func (c *Comparison) throughput(p *pair) *sample {
	cost := func(run *results.Run) (float64, bool) {
		switch {
		case run.ThroughputPerS <= 0:
			return 0, false
		case run.ReferencePerS > 0:
			return run.ReferencePerS / run.ThroughputPerS, true
		}
		return 1 / run.ThroughputPerS, true
	}
	s := &sample{pair: p, base: p.rounds(p.base, cost), head: p.rounds(p.head, cost), middle: stat.Median[float64],
		row: Row{Figure: Throughput, Unit: OfReference, Kind: Sample}}
	if len(s.base) == 0 || len(s.head) == 0 {
		c.discard(p, s.row, "no round of one side happened as planned")
		return nil
	}
	if p.head[0].ReferencePerS == 0 {
		s.row.Unit = "per s"
	}
	s.row.Base, s.row.Head = new(1/stat.Median(s.base)), new(1/stat.Median(s.head))
	return s
}

// latency is a percentile divided by that of the reference loop, or why there is none. It is taken if
// callers wait at the common rate, which has to be the same on both sides.
func (c *Comparison) latency(p *pair, x percentile, gated bool) (s *sample, why string) {
	at := func(run *results.Run) *results.Run { return cmp.Or(run.Paced, run) }
	row := Row{Figure: x.name, Unit: OfReference, Kind: Sample, Advisory: !gated}
	b := at(p.base[0]).Params.RatePerS
	if i := slices.IndexFunc(slices.Concat(p.base, p.head), func(run *results.Run) bool {
		return at(run).Params.RatePerS != b
	}); i >= 0 {
		if !gated && !slices.Contains(c.Notes, oneRate) {
			c.Notes = append(c.Notes, oneRate)
		}
		h := at(slices.Concat(p.base, p.head)[i]).Params.RatePerS
		return nil, fmt.Sprintf("open loops ran at %g and at %g requests/s: give both sides the same --rate", b, h)
	}
	cost := func(run *results.Run) (float64, bool) {
		run = at(run)
		latency := run.Latency()
		if !p.kept[run] || latency.Samples < stat.MinSamples(x.q) || run.Reference == nil || x.at(run.Reference) <= 0 {
			return 0, false
		}
		return float64(x.at(&latency.Distribution)) / float64(x.at(run.Reference)), true
	}
	s = &sample{pair: p, base: p.rounds(p.base, cost), head: p.rounds(p.head, cost), middle: stat.Median[float64],
		row: row}
	if len(s.base) == 0 || len(s.head) == 0 {
		return nil, "no round of one side has one that counts: give both sides --rate, and more rounds"
	}
	s.row.Base, s.row.Head = p.pooled(x.name, p.base), p.pooled(x.name, p.head)
	return s, ""
}

// pooled is a percentile over all kept rounds divided by that of the reference loop, as
// reports have both. The rounds are tested one by one.
func (p *pair) pooled(name string, runs []*results.Run) *float64 {
	var kept []results.Run
	for _, run := range runs {
		if p.kept[run] {
			kept = append(kept, *run)
		}
	}
	for _, summary := range results.Summarise(kept) {
		value, err := figures.Of(name).Value(&summary)
		reference, none := figures.Of("bare." + name).Value(&summary)
		if err == nil && none == nil && reference > 0 {
			ratio := value / reference
			return &ratio
		}
	}
	return nil
}

// racy are the figures of decisions that no clause makes exact, as shares per round.
// The leak is gated, false rejects are advisory.
func racy(p *pair) (out []*sample) {
	for _, x := range []struct {
		figure, property, unit string
		advisory               bool
		share                  func(*results.Run) (float64, bool)
	}{
		{Leak, string(quota.PropertyLeak), "% of the units over quota", false,
			func(run *results.Run) (float64, bool) { return run.Leak.PctOfOverQuota, true }},
		{FalseRejects, string(quota.PropertyFalseReject), "% of valid requests", true,
			func(run *results.Run) (float64, bool) { return run.FalseRejects.PctOfValid, true }},
	} {
		if exactly(p.base, x.property) || exactly(p.head, x.property) {
			continue
		}
		s := &sample{pair: p, middle: Mean, row: Row{Figure: x.figure, Unit: x.unit, Kind: Sample, Advisory: x.advisory}}
		s.fill(x.share)
		if *s.row.Base != 0 || *s.row.Head != 0 {
			out = append(out, s)
		}
	}
	return out
}

// processor is the processor time of a decision in rounds of one simulation, which is all in which they differ.
func processor(p *pair) []*sample {
	s := &sample{pair: p, middle: stat.Median[float64], row: Row{Figure: ClientCPU, Unit: "ns per decision", Kind: Sample}}
	s.fill(figures.Of(ClientCPU).Round)
	if *s.row.Base == 0 || *s.row.Head == 0 {
		return nil
	}
	return []*sample{s}
}

// fill takes the valid rounds of both sides that have the figure.
func (s *sample) fill(of func(*results.Run) (float64, bool)) {
	values := func(runs []*results.Run) (out []float64) {
		for _, run := range runs {
			if value, ok := of(run); ok && run.Audit.Valid && !run.Partial {
				out = append(out, value)
			}
		}
		return out
	}
	s.base, s.head = values(s.pair.base), values(s.pair.head)
	s.row.Base, s.row.Head = new(s.middle(s.base)), new(s.middle(s.head))
}

// judge tests all samples. Those that are gated share the error.
func (c *Comparison) judge(all []*sample, options *Options) {
	gated := 0
	for _, sample := range all {
		if !sample.row.Advisory {
			gated++
		}
	}
	for _, sample := range all {
		alpha := options.Rule.Alpha
		if !sample.row.Advisory && !options.Rule.Each {
			alpha /= float64(gated)
		}
		rule := options.Rule
		if tolerance, ok := options.Tolerances[sample.row.Figure]; ok && tolerance.Percent {
			sample.row.Required = !options.Lenient
			share := tolerance.By / 100
			if sample.row.Figure == Throughput { // which falls by that, and the cost rises by more
				share = 1/max(1-share, 0.01) - 1
			}
			rule = rule.beyond(share)
		}
		test := rule.Test(sample.base, sample.head, alpha, sample.middle)
		sample.row.Test = &test
		sample.row.Verdict, sample.row.Detail = rule.verdict(&test, sample.doubt)
		c.add(sample.pair, sample.row)
	}
}

// verdict that follows from a test.
func (r Rule) verdict(test *Test, doubt string) (Verdict, string) {
	switch {
	case doubt != "" && (test.Shown || test.Reverse):
		return Inconclusive, doubt
	case test.Shown:
		return Worse, ""
	case test.Reverse:
		return Better, ""
	case doubt != "":
		return Inconclusive, doubt
	case test.Smallest == 0:
		return Inconclusive, fmt.Sprintf("%d and %d rounds are too few, or too different, to show any worsening",
			test.BaseRounds, test.HeadRounds)
	case test.Smallest > r.Promised:
		return Inconclusive, fmt.Sprintf("these rounds would not show a worsening below %s", format.Pct(100*test.Smallest))
	case test.Change >= r.Promised:
		return Inconclusive, fmt.Sprintf("the rounds differ by %s, which may be chance", format.Pct(100*test.Change))
	}
	return Same, ""
}
