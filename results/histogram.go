package results

import (
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// MaxDuration is the longest duration in nanoseconds that a [Histogram] tells
// apart from longer ones.
const MaxDuration = int64(time.Hour)

const (
	// digits are kept of every value: percentiles are good to 0.1 %.
	digits = 3
	// maxEncoded is above what our geometry can encode to: 30 thousand counts of
	// at most 9 bytes each.
	maxEncoded = 512 << 10
)

// Histogram is a distribution of durations from 0 ns to [MaxDuration], kept to
// three digits. What lies outside is counted and not clamped into the range. It
// takes 270 kB and is not safe for concurrent use: each worker has its own, and
// they are merged afterwards.
type Histogram struct {
	h          *hdr.Histogram
	atLeast    int64
	outOfRange int64
}

// NewHistogram makes an empty histogram.
func NewHistogram() *Histogram { return &Histogram{h: hdr.New(1, MaxDuration, digits)} }

// Record adds a duration in nanoseconds.
func (h *Histogram) Record(ns int64) {
	if ns > MaxDuration || h.h.RecordValue(ns) != nil {
		h.outOfRange++
	}
}

// RecordAtLeast adds an operation that has taken ns nanoseconds so far and is not
// finished. Leaving such operations out would favour the slowest strategy.
func (h *Histogram) RecordAtLeast(ns int64) {
	h.atLeast++
	h.Record(ns)
}

// Reset empties the histogram and keeps its memory.
func (h *Histogram) Reset() {
	h.h.Reset()
	h.atLeast, h.outOfRange = 0, 0
}

// Merge adds what another histogram holds.
func (h *Histogram) Merge(o *Histogram) {
	h.outOfRange += o.outOfRange + h.h.Merge(o.h)
	h.atLeast += o.atLeast
}

// Count is the number of recorded values, those out of range included.
func (h *Histogram) Count() int64 { return h.h.TotalCount() + h.outOfRange }

// Max is the largest value in nanoseconds, or MaxDuration where longer ones were
// recorded; 0 for an empty histogram.
func (h *Histogram) Max() int64 {
	if h.outOfRange > 0 {
		return MaxDuration
	}
	return h.h.Max()
}

// Quantile returns the smallest value that at least the share q of all values do
// not exceed, or MaxDuration where that value is out of range; 0 for an empty
// histogram.
func (h *Histogram) Quantile(q float64) int64 {
	total := h.Count()
	if total == 0 {
		return 0
	}
	in := h.h.TotalCount()
	rank := int64(math.Ceil(q*float64(total) - 1e-9*float64(total)))
	rank = min(max(rank, 1), total)
	if rank > in {
		return MaxDuration
	}
	// A quarter of a rank off keeps rounding inside the library from moving the
	// answer to a neighbour.
	return min(h.h.ValueAtPercentile((float64(rank)-0.25)/float64(in)*100), MaxDuration)
}

// WriteHGRM writes the percentiles in microseconds, to the nanosecond, in the text form
// that HdrHistogram's plotter and tools read (.hgrm). Values out of range are written
// as [MaxDuration].
func (h *Histogram) WriteHGRM(w io.Writer) error {
	all := h.h
	if h.outOfRange > 0 {
		all = hdr.New(1, MaxDuration, digits)
		all.Merge(h.h)
		if err := all.RecordValues(MaxDuration, h.outOfRange); err != nil {
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
	d, err := h.encoded()
	return Latency{Distribution: d}, err
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
	d := h.Distribution()
	b, err := h.h.Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		return d, fmt.Errorf("encode histogram: %w", err)
	}
	d.Histogram = string(b)
	return d, nil
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
	var l Latency
	for _, p := range parts {
		if p.Histogram == nil || p.Histogram.Count() == 0 {
			continue
		}
		d, err := p.Histogram.encoded()
		if err != nil {
			return l, err
		}
		all.Merge(p.Histogram)
		l.Parts = append(l.Parts, LatencyPart{Outcome: p.Outcome, Tier: p.Tier, Distribution: d})
	}
	l.Distribution = all.Distribution()
	return l, nil
}

// Decode unpacks the histogram of a stored latency, of its parts where it has
// some. It returns nil without an error where none was stored. Counts that
// disagree with the histogram are an error.
func (l *Latency) Decode() (*Histogram, error) {
	if len(l.Parts) == 0 {
		return l.Distribution.Decode()
	}
	if l.Histogram != "" {
		return nil, errors.New("a latency with parts has a histogram of its own, which its parts already hold")
	}
	all, missing := NewHistogram(), false
	var samples, atLeast, outOfRange int64
	for i := range l.Parts {
		p := &l.Parts[i]
		h, err := p.Decode()
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
		if h == nil {
			missing = true
		} else {
			all.Merge(h)
		}
		samples, atLeast, outOfRange = samples+p.Samples, atLeast+p.AtLeast, outOfRange+p.OutOfRange
	}
	if samples != l.Samples || atLeast != l.AtLeast || outOfRange != l.OutOfRange {
		return nil, fmt.Errorf("the parts hold %d values (%d unfinished, %d out of range), the whole says %d (%d, %d)",
			samples, atLeast, outOfRange, l.Samples, l.AtLeast, l.OutOfRange)
	}
	if missing {
		return nil, nil
	}
	return all, nil
}

// Decode unpacks the histogram of a stored distribution. It returns nil without an
// error where none was stored.
func (l *Distribution) Decode() (*Histogram, error) {
	if l.Histogram == "" {
		return nil, nil
	}
	if len(l.Histogram) > maxEncoded {
		return nil, fmt.Errorf("histogram of %d bytes is too large to be one of ours", len(l.Histogram))
	}
	if err := checkGeometry(l.Histogram); err != nil {
		return nil, err
	}
	h, err := hdr.Decode([]byte(l.Histogram))
	if err != nil {
		return nil, fmt.Errorf("decode histogram: %w", err)
	}
	if n := h.TotalCount() + l.OutOfRange; n != l.Samples {
		return nil, fmt.Errorf("histogram holds %d values, the record says %d", n, l.Samples)
	}
	return &Histogram{h: h, atLeast: l.AtLeast, outOfRange: l.OutOfRange}, nil
}

// checkGeometry looks at the head of an encoded histogram. The library allocates
// whatever geometry it finds there: 50 MB for 5 digits and the widest range, out
// of a hundred bytes.
func checkGeometry(encoded string) error {
	const prefix = 8 // cookie and length of what is compressed
	b := base64.NewDecoder(base64.StdEncoding, strings.NewReader(encoded))
	if _, err := io.CopyN(io.Discard, b, prefix); err != nil {
		return fmt.Errorf("decode histogram: %w", err)
	}
	z, err := zlib.NewReader(b)
	if err != nil {
		return fmt.Errorf("decode histogram: %w", err)
	}
	defer func() { _ = z.Close() }() // it reads on from memory alone
	var head struct {
		_               [3]int32 // cookie, length, offset
		Digits          int32
		Lowest, Highest int64
	}
	if err := binary.Read(z, binary.BigEndian, &head); err != nil {
		return fmt.Errorf("decode histogram: %w", err)
	}
	if head.Lowest != 1 || head.Highest != MaxDuration || head.Digits != digits {
		return fmt.Errorf("histogram covers %d to %d ns in %d digits, not 1 to %d in %d", head.Lowest, head.Highest, head.Digits, MaxDuration, digits)
	}
	return nil
}

// StallGap is the silence in nanoseconds after which a slow operation belongs to
// another stall.
const StallGap = int64(10 * time.Millisecond)

// Stalls counts the separate events behind slow operations that began at the
// given moments, in nanoseconds and ascending. A thousand slow operations
// during one pause of the machine are one event, and say nothing of how often
// such pauses come.
func Stalls(moments []int64) int {
	n := 0
	for i, m := range moments {
		if i == 0 || m-moments[i-1] > StallGap {
			n++
		}
	}
	return n
}
