package results

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// curve is a series with planted decisions per second, each with the same relative
// half-width of its interval.
func curve(xs, ys []float64, width float64) *SweepSeries {
	s := &SweepSeries{}
	for i, x := range xs {
		f := Figure{Value: ys[i], Lo: ys[i] * (1 - width), Hi: ys[i] * (1 + width), Rounds: 6}
		s.Points = append(s.Points, SweepPoint{Value: fmt.Sprint(x), X: x, Numeric: true,
			Summary: &Summary{TimingSummary: TimingSummary{Throughput: f}}})
	}
	return s
}

func TestPlantedKnee(t *testing.T) {
	pools := []float64{1, 2, 4, 8, 16, 32, 64}
	of := func(f func(x float64) float64) []float64 {
		ys := make([]float64, len(pools))
		for i, x := range pools {
			ys[i] = f(x)
		}
		return ys
	}
	for _, x := range []struct {
		name   string
		values []float64
		width  float64
		want   float64 // 0 for none
		why    string
	}{
		{"8 callers", of(func(x float64) float64 { return 500 * min(x, 8) }), 0.02, 8, ""},
		{"4 callers", of(func(x float64) float64 { return 500 * min(x, 4) }), 0.02, 4, ""},
		{"falls beyond its best", of(func(x float64) float64 { return min(x, 16) - max(0, x-16)/8 }), 0.02, 16, ""},
		{"straight", of(func(x float64) float64 { return 500 * x }), 0.02, 0, "straight"},
		{"bends upwards", of(func(x float64) float64 { return x * x }), 0.02, 0, "bends upwards"},
		{"flat", of(func(float64) float64 { return 500 }), 0.02, 0, "do not change"},
		{"falls", of(func(x float64) float64 { return 500 / x }), 0.02, 0, "fall"},
		{"noise alone", []float64{100, 101, 104, 103, 102, 103, 102}, 0.1, 0, "overlap"},
	} {
		k := curve(pools, x.values, x.width).Knee()
		if x.want == 0 && (k.At >= 0 || !strings.Contains(k.Why, x.why)) {
			t.Errorf("%s: %+v, want none because %q", x.name, k, x.why)
		}
		if x.want > 0 && (k.At < 0 || pools[k.At] != x.want) {
			t.Errorf("%s: %+v, want %v", x.name, k, x.want)
		}
	}
	// On the curve to 8 of 1..64 the knee is 7/63 along and at its full height.
	if k := curve(pools, of(func(x float64) float64 {
		return min(x, 8)
	}), 0).Knee(); math.Abs(k.Distance-(1-7.0/63)) > 1e-12 {
		t.Errorf("distance %v", k.Distance)
	}
	one := curve(pools[:2], []float64{1, 2}, 0)
	if k := one.Knee(); k.At >= 0 {
		t.Errorf("a knee of two values: %+v", k)
	}
	missing := curve(pools, of(func(x float64) float64 { return min(x, 8) }), 0)
	missing.Points[3].Summary.Throughput = Figure{}
	if k := missing.Knee(); k.At != 2 && k.At != 4 {
		t.Errorf("a point without a figure is the knee, or hides the others: %+v", k)
	}
}

func TestUnswept(t *testing.T) {
	s := &Sweep{Parameters: []Swept{{Name: "three-tier.lag"}, {Name: "ttl"}}}
	for label, want := range map[string]string{
		"three-tier": "three-tier", "three-tier:lag=5s": "three-tier",
		"three-tier:write=literal,lag=1s,reset=job": "three-tier:write=literal,reset=job",
		"other:lag=5s": "other:lag=5s", "other:ttl=1s": "other", "other:keys=a,b,ttl=1s": "other:keys=a,b",
	} {
		if got := s.Unswept(label); got != want {
			t.Errorf("%s is %q, want %q", label, got, want)
		}
	}
}

// TestSweepSeries: rounds have their points in random order, and series do not.
func TestSweepSeries(t *testing.T) {
	f := &File{Sweep: &Sweep{Parameters: []Swept{{Name: "lag", Values: []string{"0s", "1s"}},
		{Name: "workers", Values: []string{"8", "64"}}}}}
	for _, p := range [][3]string{{"b:lag=1s", "1s", "64"}, {"b", "0s", "8"}, {"a:lag=1s", "1s", "8"}, {"b", "0s", "64"},
		{"b:lag=1s", "1s", "8"}, {"a", "0s", "8"}} {
		f.Runs = append(f.Runs, Run{Params: Params{Label: p[0], Point: map[string]string{"lag": p[1], "workers": p[2]}}})
	}
	got := ""
	for _, s := range f.SweepSeries() {
		got += s.Strategy + "/" + s.Second + ":"
		for _, p := range s.Points {
			got += fmt.Sprintf(" %s=%g", p.Value, p.X)
		}
		got += "\n"
	}
	if want := "a/8: 0s=0 1s=1e+09\nb/8: 0s=0 1s=1e+09\nb/64: 0s=0 1s=1e+09\n"; got != want {
		t.Errorf("series\n%swant\n%s", got, want)
	}
}
