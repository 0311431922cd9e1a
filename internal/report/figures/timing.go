package figures

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results"
)

// Mark precedes a timing in which something else than the strategy had a part, e.g. other
// programs. It is the only mark of timings.
const Mark = "~"

// Timing is a timing as every output shows it: tables, pages, labels of plots.
type Timing struct {
	// Value is e.g. "1.20 ms" or "~1.20 ms". It is "≥ 12.0 ms" if the samples give no more
	// than this bound, and "-" if there are none.
	Value string
	// Interval is e.g. "[0.90–14.0]" in the unit of the value; empty if it is not known.
	Interval string
	// Bound is set if the value is only a lower bound.
	Bound bool
}

// String is the value with its interval.
func (t Timing) String() string { return format.Join(" ", t.Value, t.Interval) }

// Scale is the unit that timings are shown in.
type Scale struct {
	// Length of the unit.
	Length float64
	// Unit stands behind the value; empty if the head of a column has it.
	Unit string
}

// scaleOf is the unit that suits a figure.
func (f *Figure) scaleOf(value float64) Scale {
	if f.Unit != Nanoseconds {
		return Scale{Length: 1}
	}
	length, unit := format.TimeUnit(value)
	return Scale{Length: length, Unit: unit}
}

// Timing shows the figure over all rounds, if it is a timing, in the unit that suits it.
func (f *Figure) Timing(summary *results.Summary) Timing {
	figure, bound := f.timed(summary)
	return show(figure, bound, f.scaleOf(figure.Value))
}

// TimingIn is [Figure.Timing] in a given unit.
func (f *Figure) TimingIn(summary *results.Summary, scale Scale) Timing {
	figure, bound := f.timed(summary)
	return show(figure, bound, scale)
}

// timed is the figure, and whether it is only a lower bound: there are fewer samples than the
// percentile needs, it is beyond the histogram's range, or the waits of requests grew for as
// long as the run lasted.
func (f *Figure) timed(summary *results.Summary) (figure results.Figure, bound bool) {
	latency := strings.HasPrefix(f.From, "latency.") || strings.HasPrefix(f.From, "response_ns.")
	bound = latency && summary.Overloaded()
	if f.AtRate {
		summary = summary.AtRate()
	}
	value, ok := f.in(summary)
	if !ok {
		return results.Figure{}, false
	}
	switch x := value.Interface().(type) {
	case results.Percentile:
		return x.Figure, bound || boundOnly(x)
	case results.Figure:
		return x, bound
	}
	return results.Figure{}, false
}

// Disturbed reports whether the figure is marked.
func (f *Figure) Disturbed(summary *results.Summary) bool {
	figure, _ := f.timed(summary)
	return figure.Disturbed
}

// Ends are the ends of the figure's interval.
func (f *Figure) Ends(summary *results.Summary) (lo, hi float64) {
	figure, _ := f.timed(summary)
	return figure.Lo, figure.Hi
}

// boundOnly reports whether the samples give a lower bound of the percentile and no more.
func boundOnly(percentile results.Percentile) bool {
	return percentile.Status == codes.TooFew || percentile.Value >= float64(bounds.MaxRecorded)
}

// Percentile shows a percentile over all rounds.
func Percentile(percentile results.Percentile) Timing {
	length, unit := format.TimeUnit(percentile.Value)
	return show(percentile.Figure, boundOnly(percentile), Scale{Length: length, Unit: unit})
}

// show is the one form of a timing.
func show(figure results.Figure, bound bool, scale Scale) Timing {
	if figure.Rounds == 0 {
		return Timing{Value: "-"}
	}
	digits := func(value float64) string { return format.Digits(value / scale.Length) }
	out := Timing{Value: format.Join(" ", digits(figure.Value), scale.Unit)}
	switch {
	case bound:
		out.Value = "≥ " + out.Value
		out.Bound = true
	case figure.Lo < figure.Hi:
		out.Interval = "[" + digits(figure.Lo) + "–" + digits(figure.Hi) + "]"
	}
	if figure.Disturbed {
		out.Value = Mark + out.Value
	}
	return out
}

// othersShown is the share of the processor time from which other programs are named as what
// disturbed timings.
const othersShown = 0.1

// Disturbance says in one sentence what disturbed the timings of strategies, and by how
// much; empty if nothing did.
func Disturbance(all []results.Summary) string {
	share := 0.0
	cause := ""
	for i := range all {
		for _, summary := range []*results.Summary{&all[i], all[i].AtRate()} {
			if !summary.Throughput.Disturbed && !summary.Latency().P50.Disturbed {
				continue
			}
			share = max(share, summary.OthersShare)
			cause = cmp.Or(cause, disturbing(summary))
		}
	}
	if share > othersShown {
		cause = fmt.Sprintf("other programs used %.0f %% of the processor", 100*share)
	}
	if cause != "" {
		cause = Mark + " " + cause + ": latencies are upper bounds"
	}
	return format.Join("; ", cause, coreWait(all))
}

// coreWait says how much of a p99 may be waiting for a core, of the strategy that waited in
// most rounds; empty if none did in more than half of them.
func coreWait(all []results.Summary) string {
	rounds := 0
	of := 0
	longest := int64(0)
	for i := range all {
		summary := all[i].AtRate()
		percentile := summary.Latency().P99
		if 2*percentile.Waited <= percentile.Rounds {
			continue
		}
		longest = max(longest, summary.CoreWaitNS)
		if percentile.Waited > rounds {
			rounds = percentile.Waited
			of = percentile.Rounds
		}
	}
	if rounds == 0 || longest == 0 {
		return ""
	}
	return fmt.Sprintf("up to %s of a p99 may be waiting for a core, in %d of %d rounds", format.NS(float64(longest)),
		rounds, of)
}

// disturbing is the first finding that marks timings, without what follows from it.
func disturbing(summary *results.Summary) string {
	for _, reason := range summary.Audit.Reasons {
		switch reason.Discards {
		case codes.Disturbs, codes.DisturbsTimings, codes.DisturbsResponse:
			return format.Plain(reason.Brief())
		}
	}
	return ""
}
