package plot

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot"

	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/results"
)

// swept is a sweep of one parameter with known throughput, p99 and leak at each value.
func swept(param string, values ...string) results.File {
	f := fixture.New(6, fixture.Strategies[0], fixture.Strategies[3])
	f.Sweep = &results.Sweep{Parameters: []results.Swept{{Name: param, Values: values}}}
	base := f.Runs
	f.Runs = nil
	f.Summaries = nil
	for i, v := range values {
		for _, r := range base {
			r.Params.Point = map[string]string{param: v}
			r.ThroughputPerS = math.Min(8_000, 1_000*math.Pow(2, float64(i))) + float64(r.Repetition)
			r.FalseRejects = results.FalseRejects{}
			f.Runs = append(f.Runs, r)
		}
	}
	return f
}

// quantityOf is the one of a name.
func quantityOf(name string) Quantity {
	all := Quantities()
	return all[slices.IndexFunc(all, func(q Quantity) bool { return q.Name == name })]
}

// TestSweep has values of each kind: far apart, near each other, times, words, and 0
// among numbers of many sizes.
func TestSweep(t *testing.T) {
	for _, values := range [][]string{
		{"1", "8", "64", "512", "4096"}, {"10", "20", "30", "40", "50"}, {"10ms", "1s", "1m"},
		{"uniform", "zipf:1.1", strings.Repeat("word ", 12)}, {"0", "0.001", "0.5", "1"}, {"7"},
		{"1", "2", "4", "8", "16", "32", "64", "128", "256", "512", "1024", "2048", "4096", "8192", "16384", "32768", "65536",
			"131072", "262144", "524288"},
	} {
		f := swept("workers", values...)
		f.Summaries = f.Summarised() // once for all quantities
		for _, q := range Quantities() {
			p, err := SweepOf(f, q)
			if q.rare {
				if !errors.Is(err, ErrNothingToPlot) {
					t.Errorf("%s is 0 everywhere and is drawn: %v", q.Name, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			text := checkSVG(t, q.Name+" over "+strings.Join(values, " "), p).text
			if !strings.Contains(text, "against workers") || !strings.Contains(text, strings.TrimSpace(values[0])) {
				t.Errorf("%s over %v: %s", q.Name, values, text)
			}
		}
	}
}

// TestSweepOverLatency: what is swept is not taken for what is measured.
func TestSweepOverLatency(t *testing.T) {
	p := fixture.Must[*Plot](t)(SweepOf(swept("latency", "0s", "1ms"), quantityOf("p99")))
	if got := p.Title(); got != "p99 latency against network latency" {
		t.Errorf("the title is %q", got)
	}
}

// TestSweepLost draws units that are planted as lost, per round.
func TestSweepLost(t *testing.T) {
	f := swept("failover", "1ms", "5ms")
	for i := range f.Runs {
		f.Runs[i].Drift = &results.Drift{Tiers: []results.TierDrift{{Tier: "redis", At: "rest", Readings: 1, Lost: 7}}}
	}
	q := quantityOf("lost")
	for _, s := range f.SweepSeries() {
		for _, p := range s.Points {
			if r := q.of(p.Summary); p.Summary.Rounds < 2 || r.Value != 7 {
				t.Errorf("%v in each of %d rounds, want 7", r.Value, p.Summary.Rounds)
			}
		}
	}
	if _, err := SweepOf(f, q); err != nil {
		t.Error(err)
	}
}

func TestSweepSecondParameter(t *testing.T) {
	f := swept("workers", "1", "8", "64")
	f.Sweep.Parameters = append(f.Sweep.Parameters, results.Swept{Name: "pool", Values: []string{"4", "16"}})
	base := f.Runs
	f.Runs = nil
	for _, pool := range []string{"4", "16"} {
		for _, r := range base {
			r.Params.Point = map[string]string{"workers": r.Params.Point["workers"], "pool": pool}
			f.Runs = append(f.Runs, r)
		}
	}
	p := fixture.Must[*Plot](t)(SweepOf(f, quantityOf("p99")))
	text := checkSVG(t, "two parameters", p).text
	for _, want := range []string{", pool 4", ", pool 16"} {
		if !strings.Contains(text, want) {
			t.Errorf("no line for %q in %s", want, text)
		}
	}
	if _, err := SweepOf(fixture.New(1, fixture.Strategies[0]), quantityOf("p99")); !errors.Is(err, ErrNothingToPlot) {
		t.Errorf("of no sweep: %v", err)
	}
	for _, p := range f.Runs {
		if p.Params.Point["pool"] == "" {
			t.Fatal("a run without a pool")
		}
	}
	if _, err := SweepOf(f, quantityOf("pool-wait")); !errors.Is(err, ErrNothingToPlot) {
		t.Errorf("without figures: %v", err)
	}
}

// TestSharesStandApart: 0.99 and 0.999 are as far from each other as 0.001 and 0.1.
func TestSharesStandApart(t *testing.T) {
	var axis plot.Axis
	place := settingsAxis(&axis, "over-quota", []string{"0.001", "0.1", "0.99", "0.999"})
	if place["0.999"]-place["0.99"] != place["0.1"]-place["0.001"] {
		t.Errorf("shares are at %v", place)
	}
	place = settingsAxis(&axis, "over-quota", []string{"0.05", "0.5", "0.99", "1"})
	if place["1"]-place["0.99"] != place["0.5"]-place["0.05"] {
		t.Errorf("shares up to all are at %v", place)
	}
}
