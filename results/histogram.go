package results

import (
	"fmt"
	"io"
	"math"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/quotabench/quotabench/internal/kit/bounds"
)

const (
	// digits are kept of every value: percentiles are good to 0.1 %.
	digits = 3
	// maxEncoded is above what our geometry can encode to: 30 thousand counts of
	// at most 9 bytes each.
	maxEncoded = 512 << 10
)

// Histogram is a distribution of durations from 0 ns to an hour, kept to
// three digits. What lies outside is counted and not clamped into the range. It
// takes 270 kB and is not safe for concurrent use: each worker has its own, and
// they are merged afterwards.
type Histogram struct {
	histogram  *hdr.Histogram
	few        []int64 // that were recorded, and are not in h yet
	atLeast    int64
	outOfRange int64
}

// maxFew is how many values are kept by themselves: a worker often records no more in a
// pass, and to merge a histogram takes longer than to record as many.
const maxFew = 64

// NewHistogram makes an empty histogram.
func NewHistogram() *Histogram {
	return &Histogram{histogram: hdr.New(1, bounds.MaxRecorded, digits), few: make([]int64, 0, maxFew)}
}

// Record adds a duration in nanoseconds.
func (h *Histogram) Record(ns int64) {
	switch {
	case ns < 0 || ns > bounds.MaxRecorded:
		h.outOfRange++
	case len(h.few) < cap(h.few):
		h.few = append(h.few, ns)
	default:
		_ = h.histogram.RecordValue(ns) // it is in range
	}
}

// all is the histogram with all values in range.
func (h *Histogram) all() *hdr.Histogram {
	if len(h.few) > 0 {
		for _, ns := range h.few {
			_ = h.histogram.RecordValue(ns)
		}
		h.few = h.few[:0]
	}
	return h.histogram
}

// RecordAtLeast adds an operation that has taken ns nanoseconds so far and is not
// finished. Leaving such operations out would favour the slowest strategy.
func (h *Histogram) RecordAtLeast(ns int64) {
	h.atLeast++
	h.Record(ns)
}

// Reset empties the histogram and keeps its memory.
func (h *Histogram) Reset() {
	h.histogram.Reset()
	h.few = h.few[:0]
	h.atLeast = 0
	h.outOfRange = 0
}

// Merge adds what another histogram holds.
func (h *Histogram) Merge(histogram *Histogram) {
	for _, ns := range histogram.few {
		_ = h.histogram.RecordValue(ns)
	}
	if histogram.histogram.TotalCount() > 0 {
		h.outOfRange += h.histogram.Merge(histogram.histogram)
	}
	h.outOfRange += histogram.outOfRange
	h.atLeast += histogram.atLeast
}

// Count is the number of recorded values, those out of range included.
func (h *Histogram) Count() int64 { return h.histogram.TotalCount() + int64(len(h.few)) + h.outOfRange }

// Max is the largest value in nanoseconds, or an hour if longer ones were
// recorded; 0 for an empty histogram.
func (h *Histogram) Max() int64 {
	if h.outOfRange > 0 {
		return bounds.MaxRecorded
	}
	return h.all().Max()
}

// Quantile returns the smallest value that at least the share q of all values do
// not exceed, or an hour if that value is out of range; 0 for an empty
// histogram.
func (h *Histogram) Quantile(q float64) int64 {
	total := h.Count()
	if total == 0 {
		return 0
	}
	in := h.all().TotalCount()
	rank := rankOf(q, total)
	if rank > in {
		return bounds.MaxRecorded
	}
	// A quarter of a rank off keeps rounding inside the library from moving the
	// answer to a neighbour.
	return min(h.histogram.ValueAtPercentile((float64(rank)-0.25)/float64(in)*100), bounds.MaxRecorded)
}

// rankOf is which of total values in ascending order is the quantile q, from 1.
func rankOf(q float64, total int64) int64 {
	return min(max(int64(math.Ceil((q-1e-9)*float64(total))), 1), total)
}

// bar is how many samples have a value.
type bar struct{ value, count int64 }

// bars are the samples by value, in ascending order, as [Histogram.Quantile] gives values.
// an hour may occur twice.
func (h *Histogram) bars() (out []bar) {
	for i, n := range h.all().Export().Counts {
		if n > 0 {
			out = append(out, bar{min(valueAt(i+1)-1, bounds.MaxRecorded), n})
		}
	}
	if h.outOfRange > 0 {
		out = append(out, bar{bounds.MaxRecorded, h.outOfRange})
	}
	return out
}

// WriteHGRM writes the percentiles in microseconds, to the nanosecond, in the text form
// that HdrHistogram's plotter and tools read (.hgrm). Values out of range are written
// as an hour.
func (h *Histogram) WriteHGRM(w io.Writer) error {
	all := h.all()
	if h.outOfRange > 0 {
		all = hdr.New(1, bounds.MaxRecorded, digits)
		all.Merge(h.all())
		if err := all.RecordValues(bounds.MaxRecorded, h.outOfRange); err != nil {
			return fmt.Errorf("values out of range: %w", err)
		}
	}
	const ticksPerHalf = 5 // as HdrHistogram's own tools have it
	_, err := all.PercentilesPrint(w, ticksPerHalf, float64(time.Microsecond))
	return err
}

// Latency condenses the histogram, its encoding included. Stalls are unknown to a
// histogram and read -1.
func (h *Histogram) Latency() (Latency, error) {
	distribution, err := h.encoded()
	return Latency{Distribution: distribution}, err
}

// Distribution condenses the histogram, and leaves the histogram itself out.
func (h *Histogram) Distribution() Distribution {
	return Distribution{
		Samples: h.Count(), AtLeast: h.atLeast, OutOfRange: h.outOfRange, Max: h.Max(),
		P50: h.Quantile(0.5), P90: h.Quantile(0.9), P99: h.Quantile(0.99),
		P999: h.Quantile(0.999), P9999: h.Quantile(0.9999),
		StallsP99: -1, StallsP999: -1,
	}
}

func (h *Histogram) encoded() (Distribution, error) {
	distribution := h.Distribution()
	data, err := h.all().Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		return distribution, fmt.Errorf("encode histogram: %w", err)
	}
	distribution.Histogram = string(data)
	return distribution, nil
}

// Part is the histogram of one outcome ("admitted", "rejected" or "error") at one
// tier.
type Part struct {
	Outcome, Tier string
	Histogram     *Histogram
}

// LatencyOf condenses a distribution that was recorded in parts. The whole is
// their sum, and each value is encoded once, in its part. Parts without values
// are left out. Stalls are unknown to histograms and read -1.
func LatencyOf(parts []Part) (Latency, error) {
	all := NewHistogram()
	var latency Latency
	for _, part := range parts {
		if part.Histogram == nil || part.Histogram.Count() == 0 {
			continue
		}
		distribution, err := part.Histogram.encoded()
		if err != nil {
			return latency, err
		}
		all.Merge(part.Histogram)
		latency.Parts = append(latency.Parts, LatencyPart{Outcome: part.Outcome, Tier: part.Tier, Distribution: distribution})
	}
	latency.Distribution = all.Distribution()
	return latency, nil
}
