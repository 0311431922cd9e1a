package workloads

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

func arrive(t testing.TB, a Arrivals, err error, n int) []time.Duration {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]time.Duration, n)
	for i := range out {
		at, ok := a.Next()
		if !ok {
			t.Fatalf("ended after %d", i)
		}
		if i > 0 && at < out[i-1] {
			t.Fatalf("arrival %d at %v is before the previous one at %v", i, at, out[i-1])
		}
		out[i] = at
	}
	return out
}

func TestConstant(t *testing.T) {
	for _, rate := range []float64{0.001, 0.5, 1, 3, 1_000, 2_999_999, maxRate} {
		a, err := Constant(rate)
		at := arrive(t, a, err, 5_000)
		for i := range at {
			want := float64(i) * 1e9 / rate
			if got := float64(at[i]); got > want || got <= want-1 {
				t.Fatalf("rate %v: arrival %d at %v ns, want %v", rate, i, got, want)
			}
		}
	}
}

func TestPoisson(t *testing.T) {
	testenv.Sequential(t)
	const n = 400_000
	for _, rate := range []float64{0.001, 7, 10_000, 3e6, maxRate} {
		a, err := Poisson(rate, 42)
		at := arrive(t, a, err, n)
		mean := 1e9 / rate
		// The n-th arrival is the sum of n distances: its own deviation is 1/sqrt(n).
		if got := float64(at[n-1]) / n / mean; math.Abs(got-1) > 5/math.Sqrt(n) {
			t.Errorf("rate %v: mean distance is %v of what it should be", rate, got)
		}
		if rate > 1e5 { // distances of a few ns are rounded too much for what follows
			continue
		}
		var square, product float64
		var beyond [3]int
		last := time.Duration(0)
		before := mean
		for _, x := range at {
			gap := float64(x - last)
			square += (gap - mean) * (gap - mean)
			product += (gap - mean) * (before - mean)
			for k, m := range [...]float64{0.1, 1, 5} {
				if gap > m*mean {
					beyond[k]++
				}
			}
			last = x
			before = gap
		}
		if cv := math.Sqrt(square/n) / mean; math.Abs(cv-1) > 5*math.Sqrt(2./n) {
			t.Errorf("rate %v: coefficient of variation %v", rate, cv)
		}
		if r := product / square; math.Abs(r) > 5/math.Sqrt(n) {
			t.Errorf("rate %v: neighbouring distances correlate by %v", rate, r)
		}
		for k, m := range [...]float64{0.1, 1, 5} {
			closeTo(t, "distances beyond the mean's multiple", float64(beyond[k])/n, math.Exp(-m), n)
		}
	}
}

// TestPoissonAddsUp compares the running sum with one of any precision: parts of
// nanoseconds and their carries must not get lost.
func TestPoissonAddsUp(t *testing.T) {
	testenv.Sequential(t)
	const n = 400_000
	a, err := Poisson(1000, 9)
	at := arrive(t, a, err, n)
	perLog := uint64(math.Round(math.Ln2 * 1e6 * (1 << 16)))
	random := newStream(9, seed.Arrivals)
	sum := new(big.Int)
	gap := new(big.Int)
	for i, got := range at {
		gap.SetUint64(negLog2(random.at(uint64(i))))
		sum.Add(sum, gap.Mul(gap, new(big.Int).SetUint64(perLog)))
		if want := new(big.Int).Rsh(sum, 48).Int64(); int64(got) != want {
			t.Fatalf("arrival %d at %d, want %d", i, got, want)
		}
	}
}

func TestPoissonSeeds(t *testing.T) {
	sample := func(seed uint64) []time.Duration {
		a, err := Poisson(1000, seed)
		return arrive(t, a, err, 5)
	}
	if !slices.Equal(sample(1), sample(1)) || slices.Equal(sample(1), sample(2)) {
		t.Errorf("%v, %v, %v", sample(1), sample(1), sample(2))
	}
	want := []time.Duration{496126, 2028036, 3430600, 4567763, 4610999}
	if !slices.Equal(sample(1), want) {
		t.Errorf("arrivals of seed 1 have changed: %d", sample(1))
	}
}

func FuzzNegLog2(f *testing.F) {
	for _, x := range []uint64{0, 1, 2, 1<<63 - 1, 1 << 63, 1<<63 + 1, math.MaxUint64 - 1, math.MaxUint64,
		0xB504F333F9DE6484} {
		f.Add(x)
	}
	f.Fuzz(func(t *testing.T, x uint64) {
		var want float64
		if n := bits.LeadingZeros64(^x); n >= 20 { // log2 itself loses the digits near 1
			want = -math.Log1p(-float64(math.MaxUint64-x)/(1<<64)) / math.Ln2
		} else {
			want = 64 - math.Log2(float64(x)+1)
		}
		if got := float64(negLog2(x)) / (1 << 32); math.Abs(got-want) > 0x1p-30 {
			t.Errorf("negLog2(%#x) = %v, want %v", x, got, want)
		}
	})
}

func TestFromTrace(t *testing.T) {
	s, info := build(t, "trace", Params{Policy: policy(t, "user-links"), Options: given("speed", 2)})
	if info.Loop != Open {
		t.Errorf("a paced replay is a %s loop", info.Loop)
	}
	a, err := FromTrace(s, 2)
	got := arrive(t, a, err, int(s.Len()))
	// 23:59:59.5, then 00:00:00 twice, 00:00:00.25 and 00:00:01.
	want := []time.Duration{0, 250e6, 250e6, 375e6, 750e6}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if at, ok := a.Next(); ok {
		t.Errorf("one more arrival, at %v", at)
	}
	slow, err := FromTrace(s, 1e-12)
	if at := arrive(t, slow, err, 5); at[4] != math.MaxInt64 {
		t.Errorf("beyond what a duration holds: %v", at)
	}
}

func TestArrivalsRefuse(t *testing.T) {
	s, _ := build(t, "trace", Params{Policy: policy(t, "user-links")})
	endless, _ := build(t, "hot-key", Params{Policy: policy(t, "user-links")})
	refused := func(what string, a Arrivals, err error, want string) {
		if err == nil || a != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", what, a, err)
		}
	}
	for _, rate := range []float64{0, -1, minRate / 2, maxRate * 2, math.NaN(), math.Inf(1)} {
		a, err := Constant(rate)
		refused("constant", a, err, "rate")
		a, err = Poisson(rate, 1)
		refused("poisson", a, err, "rate")
	}
	for _, speed := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		a, err := FromTrace(s, speed)
		refused("trace", a, err, "speed")
	}
	a, err := FromTrace(endless, 1)
	refused("endless", a, err, "no recorded moments")
}
