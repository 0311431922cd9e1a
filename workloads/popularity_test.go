package workloads

import (
	"math"
	"strings"
	"testing"
)

func TestPopularityForms(t *testing.T) {
	for form, want := range map[string]popularity{
		"single":     {name: "single"},
		"uniform":    {name: "uniform"},
		"zipf":       {name: "zipf", s: 1},
		"zipf:0":     {name: "zipf"},
		"zipf:1.25":  {name: "zipf", s: 1.25},
		"hot:0.9:10": {name: "hot", share: 0.9, hot: 10},
	} {
		if got, err := parsePopularity(form); err != nil || got != want {
			t.Errorf("%s: %+v, %v", form, got, err)
		}
	}
	for form, want := range map[string]string{
		"": "unknown popularity", "Zipf": "unknown popularity", "single:1": "unknown popularity",
		"uniform:": "unknown popularity",
		"zipf:":    "exponent", "zipf:-1": "exponent", "zipf:5": "exponent", "zipf:1:2": "exponent", "zipf:Inf": "exponent",
		"hot": "hot:SHARE:N", "hot:0.5": "hot:SHARE:N", "hot:1:2": "hot:SHARE:N", "hot:0:2": "hot:SHARE:N",
		"hot:0.5:0": "hot:SHARE:N",
		"hot:0.5:x": "hot:SHARE:N", "hot:x:1": "hot:SHARE:N", "hot:0.5:1:2": "hot:SHARE:N", "hot:0.5:5000000": "hot:SHARE:N",
	} {
		got, err := parsePopularity(form)
		if err == nil || !strings.Contains(err.Error(), want) || got != (popularity{}) {
			t.Errorf("%q: %+v, error %v, want one with %q", form, got, err, want)
		} else if strings.HasPrefix(err.Error(), "unknown") && !strings.Contains(err.Error(), popularityForms) {
			t.Errorf("%q: error %v does not list the forms", form, err)
		}
	}
}

func FuzzParsePopularity(f *testing.F) {
	for _, form := range []string{"single", "uniform", "zipf", "zipf:1.5", "hot:0.8:3", "hot:1e-3:1", "zipf:0x1p-2",
		"hot::", "zipf:1_0"} {
		f.Add(form)
	}
	f.Fuzz(func(t *testing.T, form string) {
		p, err := parsePopularity(form)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: error of several lines: %v", form, err)
			}
			return
		}
		if again, err := parsePopularity(p.String()); err != nil || again != p {
			t.Errorf("%q prints as %v, which is %+v, %v", form, p, again, err)
		}
		if n := 200; p.fits(n) == nil {
			w := p.weights(n)
			for i := range w {
				if w[i] == 0 || w[i] > weightOne || i > 0 && w[i] > w[i-1] {
					t.Fatalf("%q: weight %d is %d after %d", form, i, w[i], w[max(i-1, 0)])
				}
			}
		}
	})
}

// TestPopularityMass compares the probability of every subject with the form's
// definition.
func TestPopularityMass(t *testing.T) {
	for _, c := range []struct {
		form string
		n    int
		want func(i int) float64
	}{
		{"single", 1, func(int) float64 { return 1 }},
		{"uniform", 300, func(int) float64 { return 1. / 300 }},
		{"zipf:2", 2, func(i int) float64 { return []float64{0.8, 0.2}[i] }},
		{"hot:0.9:10", 1_000, func(i int) float64 {
			if i < 10 {
				return 0.09
			}
			return 0.1 / 990
		}},
		{"hot:0.25:1", 4, func(int) float64 { return 0.25 }},
		{"hot:0.999:1", 3, func(i int) float64 { return []float64{0.999, 0.0005, 0.0005}[i] }},
	} {
		p, err := parsePopularity(c.form)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.fits(c.n); err != nil {
			t.Fatal(err)
		}
		for i, got := range mass(newAlias(p.weights(c.n))) {
			if math.Abs(got-c.want(i)) > 2e-12*float64(c.n) {
				t.Errorf("%s: subject %d has %v, want %v", c.form, i, got, c.want(i))
			}
		}
	}
}

// TestPopularityOfStreams draws from whole streams, so that a form that is parsed
// and then not used shows.
func TestPopularityOfStreams(t *testing.T) {
	const n = 60_000
	for _, m := range All() {
		if !m.Takes("subjects") || m.NeedsTrace {
			continue
		}
		for form, hottest := range map[string]float64{"uniform": 1. / 50, "zipf:0.5": 1 / 12.7523724, "hot:0.6:3": 0.2} {
			s, _ := build(t, m.Name, Params{Seed: 4, Policy: usual(t, m),
				Options: given("subjects", 50, "popularity", form, "over-quota", 0.0)})
			count := make([]int, Subjects(s))
			var op Op
			for i := range int64(n) {
				s.At(i, &op)
				count[op.Subject]++
			}
			closeTo(t, m.Name+", "+form+": subject 0", float64(count[0])/n, hottest, n)
			rest := 0
			for _, c := range count[3:] {
				rest += c
			}
			want := map[string]float64{"uniform": 47. / 50, "zipf:0.5": 1 - (1+math.Sqrt(1./2)+math.Sqrt(1./3))/12.7523724,
				"hot:0.6:3": 0.4}[form]
			closeTo(t, m.Name+", "+form+": subjects 3 to 49", float64(rest)/n, want, n)
		}
		s, _ := build(t, m.Name, Params{Policy: usual(t, m), Options: given("popularity", "single", "over-quota", 0.0)})
		if Subjects(s) != 1 {
			t.Errorf("%s, single: %d subjects", m.Name, Subjects(s))
		}
	}
}

func TestPopularityOfTraces(t *testing.T) {
	p := Params{Seed: 1, Policy: policy(t, "agent-tokens"),
		Options: given("trace", "testdata/anonymous.csv", "subjects", 4, "popularity", "hot:0.97:1")}
	s, info := build(t, "trace", p)
	if Subjects(s) != 4 || !strings.Contains(info.Notes[0], "assigned to 4 subjects") ||
		!strings.HasSuffix(info.Notes[0], "popularity hot:0.97:1") {
		t.Errorf("%d subjects, notes %q", Subjects(s), info.Notes)
	}
	hot := 0
	var op Op
	for i := range s.Len() {
		s.At(i, &op)
		if op.Subject == 0 {
			hot++
		}
	}
	if s.Len() != 20 || hot < 16 { // 0.97 to the power of 20 is 0.54
		t.Errorf("%d of %d rows are the hot subject's", hot, s.Len())
	}
}
