package results

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/stat"
)

// quantileOf is the definition: the smallest value that a share q of all values
// do not exceed.
func quantileOf(values []int64, q float64) int64 {
	v := slices.Clone(values)
	slices.Sort(v)
	for i, x := range v {
		if float64(i+1) >= q*float64(len(v))-1e-6 {
			return x
		}
	}
	return v[len(v)-1]
}

func TestHistogramQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 2, 3, 10, 100, 367, 368, 1_000, 20_000} {
		h := NewHistogram()
		var values []int64
		for range n {
			v := int64(math.Exp(6 + 4*rng.NormFloat64()))
			values = append(values, v)
			h.Record(v)
		}
		for _, q := range []float64{0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1} {
			want := quantileOf(values, q)
			got := h.Quantile(q)
			if diff := math.Abs(float64(got - want)); diff > 0.001*float64(want)+1 {
				t.Errorf("n %d: quantile %g is %d, want %d", n, q, got, want)
			}
		}
		if h.Count() != int64(n) {
			t.Errorf("n %d: count is %d", n, h.Count())
		}
	}
}

func TestHistogramOutOfRange(t *testing.T) {
	h := NewHistogram()
	for range 98 {
		h.Record(1_000)
	}
	h.Record(bounds.MaxRecorded + 1)
	h.Record(-5)
	h.Record(math.MaxInt64)
	h.RecordAtLeast(bounds.MaxRecorded)
	h.Record(0)
	l := must[Latency](t)(h.Latency())
	if l.Samples != 103 || l.OutOfRange != 3 || l.AtLeast != 1 {
		t.Errorf("samples %d, out of range %d, at least %d; want 103, 3, 1", l.Samples, l.OutOfRange, l.AtLeast)
	}
	if l.P90 < 999 || l.P90 > 1_001 {
		t.Errorf("p90 is %d, want 1000", l.P90)
	}
	// The 102nd and 103rd of 103 are out of range: clamping into the histogram
	// or dropping them would show a p99 of one hour or of 1 µs.
	if l.P99 != bounds.MaxRecorded || l.Max != bounds.MaxRecorded {
		t.Errorf("p99 is %d and the largest %d, want %d", l.P99, l.Max, bounds.MaxRecorded)
	}
}

// TestHistogramOfFew: values that are kept by themselves count like others, and merging
// them does not walk through the histogram.
func TestHistogramOfFew(t *testing.T) {
	one := NewHistogram()
	all := NewHistogram()
	for n := range 5 * maxFew {
		few := NewHistogram()
		for i := range maxFew / 2 {
			ns := int64(n*1_000 + i)
			few.Record(ns)
			one.Record(ns)
		}
		all.Merge(few)
		if few.histogram.TotalCount() != 0 {
			t.Fatal("a histogram of few values was filled")
		}
	}
	for _, q := range []float64{0, 0.01, 0.5, 0.99, 1} {
		if got, want := all.Quantile(q), one.Quantile(q); got != want || all.Count() != one.Count() {
			t.Errorf("quantile %g of %d is %d, want %d of %d", q, all.Count(), got, want, one.Count())
		}
	}
	var few, many strings.Builder
	h := NewHistogram()
	h.Record(7_000)
	if err := h.WriteHGRM(&few); err != nil {
		t.Fatal(err)
	}
	h.Max() // which has the value recorded
	if err := h.WriteHGRM(&many); err != nil {
		t.Fatal(err)
	}
	if few.String() != many.String() || !strings.Contains(few.String(), "7.0") {
		t.Errorf("percentiles of one value:\n%s\nand not\n%s", &few, &many)
	}
	if all.Max() != one.Max() {
		t.Errorf("the largest is %d, want %d", all.Max(), one.Max())
	}
	all.Reset()
	if all.Count() != 0 {
		t.Errorf("%d values after a reset", all.Count())
	}
}

func TestHistogramStored(t *testing.T) {
	a := NewHistogram()
	b := NewHistogram()
	for i := range int64(5_000) {
		a.Record(i * 977)
		b.RecordAtLeast(i * 1_013)
	}
	b.Record(bounds.MaxRecorded * 2)
	a.Merge(b)
	l := must[Latency](t)(a.Latency())
	got := must[*Histogram](t)(l.Decode())
	again := must[Latency](t)(got.Latency())
	if again.Histogram != l.Histogram || again.Samples != 10_001 || again.AtLeast != 5_000 || again.OutOfRange != 1 ||
		again.P999 != l.P999 {
		t.Errorf("stored and read again: %+v, was %+v", again, l)
	}
	if len(l.Histogram) > 20_000 {
		t.Errorf("takes %d bytes", len(l.Histogram))
	}
}

func TestHistogramDamaged(t *testing.T) {
	h := NewHistogram()
	h.Record(5)
	good := must[Latency](t)(h.Latency())
	foreign, err := hdr.New(1, 1_000, 2).Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]Latency{
		"not base64":     {Distribution: Distribution{Samples: 1, Histogram: "?"}},
		"cut off":        {Distribution: Distribution{Samples: 1, Histogram: good.Histogram[:16]}},
		"other geometry": {Distribution: Distribution{Samples: 0, Histogram: string(foreign)}},
		"wrong count":    {Distribution: Distribution{Samples: 2, Histogram: good.Histogram}},
		"huge":           {Distribution: Distribution{Samples: 1, Histogram: strings.Repeat("A", maxEncoded+1)}},
	} {
		if _, err := l.Decode(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if h, err := (&Latency{}).Decode(); h != nil || err != nil {
		t.Errorf("none stored: %v, %v", h, err)
	}
}

func TestStalls(t *testing.T) {
	const ms = int64(1e6)
	for _, c := range []struct {
		at   []int64
		want int
	}{
		{nil, 0},
		{[]int64{5}, 1},
		{[]int64{0, ms, 2 * ms, 12 * ms}, 1},
		{[]int64{0, ms, 11*ms + 1}, 2},
		{[]int64{0, 20 * ms, 40 * ms, 41 * ms}, 3},
	} {
		if got := stat.Stalls(c.at); got != c.want {
			t.Errorf("stalls at %v: %d, want %d", c.at, got, c.want)
		}
	}
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
