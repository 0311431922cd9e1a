package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/report/figures"
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
	{"p50", 0.5, func(d *results.Distribution) int64 { return d.P50 }},
	{"p90", 0.9, func(d *results.Distribution) int64 { return d.P90 }},
	{advisory, 0.99, func(d *results.Distribution) int64 { return d.P99 }},
	{"p99.9", 0.999, func(d *results.Distribution) int64 { return d.P999 }},
}

// oneRate says why latencies are not compared.
const oneRate = "latencies are compared only at one rate, which the base and the head share where --rate is given"

// advisory is the percentile that is always compared, and fails nothing unless it is
// asked for: it varies by 30 % between unchanged runs.
const advisory = "p99"

// Timings are the names of [Options.Timings].
func Timings() []string {
	out := []string{Throughput}
	for _, p := range percentiles {
		out = append(out, p.name)
	}
	return out
}

// MaxShift is by how much the reference loop may differ between the two sides: beyond
// it the machine was another one. The audit of a run has the same bound.
const MaxShift = 0.10

// sample is a figure with one value per round on each side.
type sample struct {
	row        Row
	p          *pair
	base, head []float64 // costs: more is worse
	middle     func([]float64) float64
	// why the rounds cannot tell, whatever they show.
	doubt string
}

// samples are the figures of a pair that vary. Those that nothing can be said of are
// added to the comparison at once.
func (c *Comparison) samples(p *pair, o *Options) (out []*sample) {
	if reason := placed(p); reason != "" {
		c.discard(p, Row{Figure: Throughput, Kind: Sample}, reason)
		return nil
	}
	if s := c.throughput(p); s != nil {
		out = append(out, s)
	}
	for _, x := range percentiles {
		gated := slices.Contains(o.Timings, x.name)
		if !gated && x.name != advisory {
			continue
		}
		if s := c.latency(p, x, gated); s != nil {
			out = append(out, s)
		}
	}
	out = append(out, racy(p)...)
	doubt := o.doubt(p)
	for _, s := range out {
		s.doubt = doubt
		s.row.Advisory = s.row.Advisory || p.baseline
	}
	return out
}

// discard adds a row of which nothing can be said.
func (c *Comparison) discard(p *pair, r Row, why string) {
	r.Verdict = Discarded
	r.Detail = why
	c.add(p, r)
}

// placed says why runs were not made in the same way: on other cores.
func placed(p *pair) string {
	b := p.base[0].Placement
	h := p.head[0].Placement
	if b == nil || h == nil || b.Mode == h.Mode && b.Harness == h.Harness && b.Stores == h.Stores && b.Procs == h.Procs {
		return ""
	}
	text := func(p *results.Placement) string {
		return format.Join(", ", p.Mode, "harness "+p.Harness, "stores "+p.Stores, fmt.Sprintf("%d threads", p.Procs))
	}
	return "placed otherwise: " + text(b) + " in the base, " + text(h) + " in the head"
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
	speed := func(r *results.Run) (float64, bool) { return r.ReferencePerS, r.ReferencePerS > 0 }
	b := stat.Median(p.rounds(p.base, speed))
	h := stat.Median(p.rounds(p.head, speed))
	switch {
	case b == 0 || h == 0:
		return "no reference loop counts on one side, and all rounds of the base were made before those of the head"
	case math.Abs(math.Log(h/b)) > math.Log1p(MaxShift):
		return fmt.Sprintf("the reference loop itself went from %s to %s/s: the machine changed between the two sides", format.Digits(b),
			format.Digits(h))
	}
	return ""
}

// disturbed reports whether the timings of one side are marked.
func (p *pair) disturbed(runs []*results.Run) bool {
	kept := 0
	disturbed := 0
	for _, r := range runs {
		if !p.kept[r] {
			continue
		}
		kept++
		if r.Audit.Disturbed() {
			disturbed++
		}
	}
	return results.Marked(disturbed, kept)
}

// rounds are the values of the rounds that are kept and that have one.
func (p *pair) rounds(runs []*results.Run, f func(*results.Run) (float64, bool)) (out []float64) {
	for _, r := range runs {
		if !p.kept[r] {
			continue
		}
		if v, ok := f(r); ok {
			out = append(out, v)
		}
	}
	return out
}

func (c *Comparison) throughput(p *pair) *sample {
	cost := func(r *results.Run) (float64, bool) {
		switch {
		case r.ThroughputPerS <= 0:
			return 0, false
		case r.ReferencePerS > 0:
			return r.ReferencePerS / r.ThroughputPerS, true
		}
		return 1 / r.ThroughputPerS, true
	}
	s := &sample{p: p, base: p.rounds(p.base, cost), head: p.rounds(p.head, cost), middle: stat.Median[float64],
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

// latency is a percentile divided by that of the reference loop. It is taken if
// callers wait at the common rate, which has to be the same on both sides.
func (c *Comparison) latency(p *pair, x percentile, gated bool) *sample {
	at := func(r *results.Run) *results.Run { return cmp.Or(r.Paced, r) }
	row := Row{Figure: x.name, Unit: OfReference, Kind: Sample, Advisory: !gated}
	b := at(p.base[0]).Params.RatePerS
	if i := slices.IndexFunc(slices.Concat(p.base, p.head), func(r *results.Run) bool { return at(r).Params.RatePerS != b }); i >= 0 {
		if gated {
			h := at(slices.Concat(p.base, p.head)[i]).Params.RatePerS
			c.discard(p, row, fmt.Sprintf("open loops ran at %g and at %g requests/s: give both sides the same --rate", b, h))
		} else if !slices.Contains(c.Notes, oneRate) {
			c.Notes = append(c.Notes, oneRate)
		}
		return nil
	}
	cost := func(r *results.Run) (float64, bool) {
		r = at(r)
		l := r.Latency()
		if !p.kept[r] || l.Samples < stat.MinSamples(x.q) || r.Reference == nil || x.at(r.Reference) <= 0 {
			return 0, false
		}
		return float64(x.at(&l.Distribution)) / float64(x.at(r.Reference)), true
	}
	s := &sample{p: p, base: p.rounds(p.base, cost), head: p.rounds(p.head, cost), middle: stat.Median[float64], row: row}
	if len(s.base) == 0 || len(s.head) == 0 {
		if gated {
			c.discard(p, row, "no round has one that counts")
		}
		return nil
	}
	s.row.Base, s.row.Head = p.pooled(x.name, p.base), p.pooled(x.name, p.head)
	return s
}

// pooled is a percentile over all kept rounds divided by that of the reference loop, as
// reports and gates have it. The rounds are tested one by one.
func (p *pair) pooled(name string, runs []*results.Run) *float64 {
	var kept []results.Run
	for _, r := range runs {
		if p.kept[r] {
			kept = append(kept, *r)
		}
	}
	for _, s := range results.Summarise(kept) {
		if v, err := (Gate{field: name, by: Reference}).value(&s); err == nil {
			return &v
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
		{Leak, results.LeakProperty, "% of the units over quota", false,
			func(r *results.Run) (float64, bool) { return r.Leak.PctOfOverQuota, true }},
		{FalseRejects, results.FalseRejectProperty, "% of valid requests", true,
			func(r *results.Run) (float64, bool) { return r.FalseRejects.PctOfValid, true }},
	} {
		if exactly(p.base, x.property) || exactly(p.head, x.property) {
			continue
		}
		s := &sample{p: p, middle: Mean, row: Row{Figure: x.figure, Unit: x.unit, Kind: Sample, Advisory: x.advisory}}
		if s.fill(x.share); *s.row.Base != 0 || *s.row.Head != 0 {
			out = append(out, s)
		}
	}
	return out
}

// processor is the processor time of a decision in rounds of one simulation, which is all in which they differ.
func processor(p *pair) []*sample {
	s := &sample{p: p, middle: stat.Median[float64], row: Row{Figure: ClientCPU, Unit: "ns per decision", Kind: Sample}}
	s.fill(figures.Of(ClientCPU).Round)
	if *s.row.Base == 0 || *s.row.Head == 0 {
		return nil
	}
	return []*sample{s}
}

// fill takes the valid rounds of both sides that have the figure.
func (s *sample) fill(of func(*results.Run) (float64, bool)) {
	values := func(runs []*results.Run) (out []float64) {
		for _, r := range runs {
			if v, ok := of(r); ok && r.Audit.Valid && !r.Partial {
				out = append(out, v)
			}
		}
		return out
	}
	s.base, s.head = values(s.p.base), values(s.p.head)
	s.row.Base, s.row.Head = new(s.middle(s.base)), new(s.middle(s.head))
}

// judge tests all samples. Those that are gated share the error.
func (c *Comparison) judge(all []*sample, o *Options) {
	gated := 0
	for _, s := range all {
		if !s.row.Advisory {
			gated++
		}
	}
	for _, s := range all {
		alpha := o.Rule.Alpha
		if !s.row.Advisory && !o.Rule.Each {
			alpha /= float64(gated)
		}
		t := o.Rule.Test(s.base, s.head, alpha, s.middle)
		s.row.Test = &t
		s.row.Verdict, s.row.Detail = o.Rule.verdict(&t, s.doubt)
		c.add(s.p, s.row)
	}
}

// verdict that follows from a test.
func (r Rule) verdict(t *Test, doubt string) (Verdict, string) {
	switch {
	case doubt != "" && (t.Shown || t.Reverse):
		return Inconclusive, doubt
	case t.Shown:
		return Worse, ""
	case t.Reverse:
		return Better, ""
	case doubt != "":
		return Inconclusive, doubt
	case t.Smallest == 0:
		return Inconclusive, fmt.Sprintf("%d and %d rounds are too few, or too different, to show any worsening", t.BaseRounds, t.HeadRounds)
	case t.Smallest > r.Promised:
		return Inconclusive, fmt.Sprintf("these rounds show a worsening of %s at the least", format.Pct(100*t.Smallest))
	case t.Change >= r.Promised:
		return Inconclusive, fmt.Sprintf("the rounds differ by %s, which may be chance", format.Pct(100*t.Change))
	}
	return Same, ""
}
