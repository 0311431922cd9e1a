package results

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSignedRank against values of published tables and enumeration of all signs.
func TestSignedRank(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{1, 2, 3, 4, 5, 6}, 2.0 / 64},
		{[]float64{-1, 2, 3, 4, 5, 6}, 4.0 / 64},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8}, 2.0 / 256},
		{[]float64{-1, -2, 3, 4, 5, 6, 7, 8}, 10.0 / 256},
		{[]float64{0, 0, 0}, 1},
		{[]float64{1, -1}, 1},
	} {
		if got := signedRank(append([]float64(nil), c.values...)); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: p is %g, want %g", c.values, got, c.want)
		}
	}
	// Of random signs at most the share p is as extreme, for each p.
	rng := rand.New(rand.NewPCG(5, 6))
	const n = 20000
	for _, level := range []float64{0.01, 0.05, 0.2} {
		low := 0
		for range n {
			x := make([]float64, 9)
			for i := range x {
				x[i] = rng.NormFloat64()
			}
			if signedRank(x) <= level {
				low++
			}
		}
		if share := float64(low) / n; share > level+3*math.Sqrt(level/n) {
			t.Errorf("p is at most %g in %g of cases", level, share)
		}
	}
}

// TestComparePairs: rounds are compared with themselves, and only those that both have.
func TestComparePairs(t *testing.T) {
	var runs []Run
	for i := range 10 {
		for label, factor := range map[string]float64{"a": 1, "b": 2} {
			if label == "b" && i == 9 {
				continue
			}
			r := round(i+1, 0, 1000*float64(i+1)*factor)
			r.Params.Label = label
			runs = append(runs, r)
		}
	}
	all := Summarise(runs)
	a := &all[0]
	b := &all[1]
	if a.Label != "a" {
		a, b = b, a
	}
	perS := func(t Timing) float64 { return t.PerS }
	d := a.Compare(b, perS)
	if math.Abs(d.Ratio-0.5) > 1e-9 || d.Rounds != 9 || d.Ordered(0.02) != -1 || b.Compare(a, perS).Ordered(0.02) != 1 {
		t.Errorf("a has half of b in each round: %+v", d)
	}
	apart := Summarise(runs)
	if d := a.Compare(&apart[0], perS); d.Rounds != 0 || d.Ordered(0.02) != 0 {
		t.Errorf("rounds of two measurements are no pairs: %+v", d)
	}
	if d := (difference{Ratio: 0.96, P: 0.001, Rounds: 12}); d.Ordered(0.02) != 0 {
		t.Error("a difference of 4 % puts strategies in order")
	}
}
