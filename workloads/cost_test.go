package workloads

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

func TestCostForms(t *testing.T) {
	for form, want := range map[string]cost{
		"policy":             {name: "policy"},
		"recorded":           {name: "recorded"},
		"25":                 {name: "constant", low: 25, high: 25},
		"constant:7":         {name: "constant", low: 7, high: 7},
		"uniform:3-9":        {name: "uniform", low: 3, high: 9},
		"uniform:4-4":        {name: "uniform", low: 4, high: 4},
		"lognormal:500:1.25": {name: "lognormal", median: 500, sigma: 1.25},
	} {
		if got, err := parseCost(form); err != nil || got != want {
			t.Errorf("%s: %+v, %v", form, got, err)
		}
	}
	for form, want := range map[string]string{
		"": "unknown cost", "Policy": "unknown cost", "-3": "unknown cost", "2.5": "unknown cost", "policy:1": "unknown cost",
		"constant": "unknown cost",
		"0":        "from 1 to 1000000000000000", "constant:": "whole number", "constant:1e3": "whole number",
		"1000000000000001":     "whole number",
		"99999999999999999999": "whole number",
		"uniform:":             "uniform:A-B", "uniform:5": "uniform:A-B", "uniform:9-3": "A is not above B",
		"uniform:0-3": "uniform:A-B", "uniform:1-2-3": "uniform:A-B",
		"lognormal:5": "lognormal:MEDIAN:SIGMA", "lognormal:0.5:1": "lognormal:MEDIAN:SIGMA",
		"lognormal:5:0":   "lognormal:MEDIAN:SIGMA",
		"lognormal:5:4.1": "lognormal:MEDIAN:SIGMA", "lognormal:NaN:1": "lognormal:MEDIAN:SIGMA",
		"lognormal:5:1:1":  "lognormal:MEDIAN:SIGMA",
		"lognormal:1e14:1": "more than 1000000000000000",
	} {
		got, err := parseCost(form)
		if err == nil || !strings.Contains(err.Error(), want) || got != (cost{}) {
			t.Errorf("%q: %+v, error %v, want one with %q", form, got, err, want)
		} else if strings.HasPrefix(err.Error(), "unknown") && !strings.Contains(err.Error(), costForms) {
			t.Errorf("%q: error %v does not list the forms", form, err)
		}
	}
}

func FuzzParseCost(f *testing.F) {
	for _, form := range []string{"policy", "recorded", "1", "007", "constant:5", "uniform:1-10", "uniform:1--1",
		"lognormal:500:1", "lognormal:1:1e-9", "lognormal::", "lognormal:0x10:1"} {
		f.Add(form, uint64(1)<<63)
	}
	f.Fuzz(func(t *testing.T, form string, x uint64) {
		c, err := parseCost(form)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: error of several lines: %v", form, err)
			}
			return
		}
		if again, err := parseCost(c.String()); err != nil || again != c {
			t.Errorf("%q prints as %v, which is %+v, %v", form, c, again, err)
		}
		if c.name == "recorded" {
			return
		}
		p, err := c.prices(&quota.Policy{Limit: quota.MaxLimit, Unit: "units"})
		if err != nil {
			t.Fatalf("%q: %v", form, err)
		}
		// The quantile function never falls, and stays in bounds.
		if got, next := p.draw(x), p.draw(max(x, x+1)); got < 1 || got > maxCost || next < got || got < p.draw(0) ||
			next > p.draw(math.MaxUint64) {
			t.Errorf("%q: %d at %#x, then %d", form, got, x, next)
		}
	})
}

// drawn are the costs of the first n operations, sorted.
func drawn(t *testing.T, workload, form string, n int64) []int64 {
	t.Helper()
	p := *policy(t, "agent-tokens")
	p.Limit = 1 << 40
	s, _ := build(t, workload, Params{Seed: 6, Policy: &p, Options: given("cost", form)})
	out := make([]int64, n)
	for i := range out {
		var op Op
		s.At(int64(i), &op)
		out[i] = op.Units
	}
	slices.Sort(out)
	return out
}

func TestUniformCosts(t *testing.T) {
	const n = 120_000
	for _, w := range []string{"steady", "abuse", "boundary"} {
		count := map[int64]int{}
		for _, c := range drawn(t, w, "uniform:3-8", n) {
			count[c]++
		}
		if len(count) != 6 {
			t.Errorf("%s: %d different costs: %v", w, len(count), count)
		}
		for c := int64(3); c <= 8; c++ {
			closeTo(t, w, float64(count[c])/n, 1./6, n)
		}
		if c := drawn(t, w, "12", 500); c[0] != 12 || c[499] != 12 {
			t.Errorf("%s: constant costs are from %d to %d", w, c[0], c[499])
		}
	}
}

// TestLognormalQuantiles compares the table with the distribution from one end to
// the other.
func TestLognormalQuantiles(t *testing.T) {
	for _, c := range []struct{ median, sigma float64 }{{1e9, 0.1}, {1e9, 1}, {1e8, 2.5}, {1e6, 4}} {
		l := newLognormal(c.median, c.sigma)
		last := int64(0)
		for k := range 5_000 {
			u := (float64(k) + 0.5) / 5_000
			got := l.quantile(uint64(math.Ldexp(u, 64)))
			want := c.median * math.Exp(c.sigma*math.Sqrt2*math.Erfinv(2*u-1))
			// A straight line over 1/32 of an octave, and whole units.
			if math.Abs(float64(got)-want) > 1+want*0.001*c.sigma {
				t.Fatalf("median %v, sigma %v: quantile %v is %d, want %.1f", c.median, c.sigma, u, got, want)
			}
			if got < last {
				t.Fatalf("median %v, sigma %v: quantile %v is %d after %d", c.median, c.sigma, u, got, last)
			}
			last = got
		}
		// The far tails, where u itself has too few digits.
		for e := 3; e <= octaves; e++ {
			p := math.Ldexp(1.5, -e-1)
			z := math.Sqrt2 * math.Erfcinv(2*p)
			x := uint64(math.Ldexp(p, 64))
			for what, v := range map[string][2]float64{
				"lower": {float64(l.quantile(x)), c.median * math.Exp(-c.sigma*z)},
				"upper": {float64(l.quantile(^x)), c.median * math.Exp(c.sigma*z)},
			} {
				if math.Abs(v[0]-v[1]) > 1+v[1]*0.001*c.sigma {
					t.Errorf("median %v, sigma %v: %s tail of %v is %.0f, want %.1f", c.median, c.sigma, what, p, v[0], v[1])
				}
			}
		}
		ends := [...]int64{l.quantile(0), l.quantile(1 << 42), l.quantile(math.MaxUint64), l.quantile(^uint64(1 << 42))}
		if ends[0] != ends[1] || ends[2] != ends[3] || ends[2] == l.quantile(math.MaxUint64-1<<44) {
			t.Errorf("median %v, sigma %v: costs are not capped where they should be: %v", c.median, c.sigma, ends)
		}
	}
}

func TestLognormalCosts(t *testing.T) {
	testenv.Sequential(t)
	const n = 200_000
	for _, w := range []string{"steady", "hot-key"} {
		costs := drawn(t, w, "lognormal:500:1", n)
		sum := 0.0
		for _, c := range costs {
			sum += float64(c)
		}
		mean := 500 * math.Exp(0.5)
		sd := mean * math.Sqrt(math.E-1)
		if got := sum / n; math.Abs(got-mean) > 5*sd/math.Sqrt(n) {
			t.Errorf("%s: mean %.1f, want %.1f", w, got, mean)
		}
		for _, z := range []float64{-2, -1, 0, 1, 2, 3} {
			at := int64(math.Round(500 * math.Exp(z)))
			below, _ := slices.BinarySearch(costs, at)
			// Costs are rounded to whole units.
			want := 0.5 * math.Erfc(-math.Log((float64(at)-0.5)/500)/math.Sqrt2)
			if got := float64(below) / n; math.Abs(got-want) > 5*math.Sqrt(want*(1-want)/n)+0.0005 {
				t.Errorf("%s: %.4f of the costs are below %d, want %.4f", w, got, at, want)
			}
		}
	}
}

func TestMeanOfPrices(t *testing.T) {
	p := &quota.Policy{Limit: quota.MaxLimit, Unit: "units", Costs: []int64{1, 5, 25}}
	for form, want := range map[string]float64{"policy": 31. / 3, "8": 8, "uniform:1-1000": 500.5,
		"lognormal:100:0.5": 100 * math.Exp(0.125)} {
		c, err := parseCost(form)
		if err != nil {
			t.Fatal(err)
		}
		prices, err := c.prices(p)
		if got := prices.mean(); err != nil || math.Abs(got-want) > 0.005*want {
			t.Errorf("%s: mean %v, %v; want %v", form, got, err, want)
		}
	}
}

func TestCostNotes(t *testing.T) {
	for form, want := range map[string]string{
		"":                "cost of a request in cents: 1, 5, 25, each as likely",
		"3":               "cost of a request in cents: 3",
		"uniform:2-6":     "cost of a request in cents: 2 to 6, each as likely",
		"lognormal:100:1": "cost of a request in cents: 1 to 13442, log-normal with the median 100",
	} {
		for _, w := range []string{"hot-key", "steady", "boundary"} {
			if _, info := build(t, w, Params{Policy: policy(t, "agent-spend"),
				Options: given("cost", form)}); !strings.Contains(strings.Join(info.Notes, "\n"), want) {
				t.Errorf("%s, cost %q: notes %q lack %q", w, form, info.Notes, want)
			}
		}
	}
}

// TestReplacedCosts replays a trace with costs that are not its own.
func TestReplacedCosts(t *testing.T) {
	p := Params{Seed: 1, Policy: policy(t, "agent-api"), Options: given("trace", "testdata/anonymous.csv")}
	recorded, _ := build(t, "trace", p)
	p.Set("cost", 1)
	s, info := build(t, "trace", p)
	var a, b Op
	for i := range s.Len() {
		recorded.At(i, &a)
		s.At(i, &b)
		if b.Units != 1 || a.Units != 10*(10+i) || a.At != b.At || a.Subject != b.Subject {
			t.Fatalf("row %d: %+v, recorded %+v", i, b, a)
		}
	}
	notes := strings.Join(info.Notes, "\n")
	if !strings.Contains(notes, "the recorded costs are replaced: cost of a request in requests: 1") ||
		strings.Contains(notes, "tokens") {
		t.Errorf("notes %q", info.Notes)
	}
}
