package plot

import (
	"bytes"
	"errors"
	"fmt"
	"image/png"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/results"
)

func TestPlotsDeterministic(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[:3]...)
	for name, make := range map[string]func(results.File) (*Plot, error){"latency": Latency, "leak": Leak} {
		var svgs, pngs [][]byte
		for range 2 {
			p := fixture.Must[*Plot](t)(make(f))
			p.width = 500
			p.height = 300 // pixels take their time
			svgs = append(svgs, fixture.Must[[]byte](t)(p.SVG()))
			pngs = append(pngs, fixture.Must[[]byte](t)(p.PNG()))
		}
		if !bytes.Equal(svgs[0], svgs[1]) || !bytes.Equal(pngs[0], pngs[1]) {
			t.Errorf("%s: the same results gave other bytes", name)
		}
		if _, err := png.Decode(bytes.NewReader(pngs[0])); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPlotContents(t *testing.T) {
	measured := fixture.New(1, fixture.Strategies...)
	measured.Runs[0].Params.Unit = "<&>"
	open := fixture.Cases()["open"]
	simulated := fixture.Cases()["simulated"]
	for _, c := range []struct {
		name  string
		plot  func(results.File) (*Plot, error)
		file  results.File
		wants []string
	}{
		{"latency", Latency, measured,
			[]string{"Latency by percentile", "percentile of requests", "service time", "99 %", "1 ms", "check-then-set",
				"exact", "redis process 7.0.15"}},
		{"latency open", Latency, open, []string{"response time", "open loop, poisson at 5,000/s"}},
		{"latency simulated", Latency, simulated, []string{"SIMULATED", "modelled service time"}},
		{"leak", Leak, measured, []string{"Leak and latency", "leak, in % of the limit", "p99 service time", "none found",
			"100 %", "does not enforce", "three-tier"}},
		{"leak simulated", Leak, simulated, []string{"SIMULATED", "modelled p99 service time"}},
		{"leak odd", Leak, fixture.Cases()["odd"], []string{"(invalid)", "~"}},
	} {
		text := readSVG(t, fixture.Must[[]byte](t)(fixture.Must[*Plot](t)(c.plot(c.file)).SVG())).text
		for _, want := range c.wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: nothing about %q in\n%s", c.name, want, text)
			}
		}
	}
}

func TestNothingToPlot(t *testing.T) {
	bare := fixture.New(1, fixture.Strategies[0])
	bare.Runs[0].Service = results.Latency{}
	for name, f := range map[string]results.File{"no runs": {Kind: results.Measured}, "no latencies": bare} {
		if _, err := Latency(f); !errors.Is(err, ErrNothingToPlot) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Leak(f); errors.Is(err, ErrNothingToPlot) != (len(f.Runs) == 0) { // a leak stands without latencies
			t.Errorf("%s: %v", name, err)
		}
	}
	crowd := fixture.New(1, fixture.Many(maxDots+1)...)
	for _, plot := range []func(results.File) (*Plot, error){Latency, Leak} {
		if _, err := plot(crowd); err == nil || !strings.Contains(err.Error(), "too many") {
			t.Errorf("%d strategies in one plot: %v", maxDots+1, err)
		}
	}
}

func TestRender(t *testing.T) {
	p := fixture.Must[*Plot](t)(Latency(fixture.New(1, fixture.Strategies[:2]...)))
	p.width = 500
	p.height = 300
	for ext, magic := range map[string]string{"svg": "<svg ", "png": "\x89PNG"} {
		if b := fixture.Must[[]byte](t)(p.Render(ext)); !strings.HasPrefix(string(b), magic) {
			t.Errorf("%s begins with %q", ext, b[:8])
		}
	}
	if _, err := p.Render("jpg"); err == nil || !strings.Contains(err.Error(), "svg or png") {
		t.Errorf("jpg: %v", err)
	}
}

func TestDrawable(t *testing.T) {
	if got := drawable("µs · a-配=é…"); got != "µs · a-?=é…" {
		t.Errorf("got %q", got)
	}
}

// TestOneColourPerStrategy: plots sort lines by where they end, and a strategy has one colour in all plots of a record.
func TestOneColourPerStrategy(t *testing.T) {
	swatch := regexp.MustCompile(`stroke:(#\w+);stroke-width:1\.6[^\n]*\n(?:<path[^\n]*\n){0,4}<text[^>]*>([^<]+)</text>`)
	sweep := swept("workers", "1", "2", "4")
	for i := range sweep.Runs {
		if r := &sweep.Runs[i]; r.Strategy != sweep.Runs[0].Strategy {
			r.ThroughputPerS /= 2
		}
	}
	colours := map[string]string{}
	var orders [][]string
	for _, quantity := range []string{"p99", "throughput"} {
		var order []string
		svg := fixture.Must[[]byte](t)(fixture.Must[*Plot](t)(SweepOf(sweep, quantityOf(quantity))).SVG())
		for _, m := range swatch.FindAllStringSubmatch(string(svg), -1) {
			if was, ok := colours[m[2]]; ok && was != m[1] {
				t.Errorf("%s is %s in one plot and %s in another", m[2], was, m[1])
			}
			colours[m[2]] = m[1]
			order = append(order, m[2])
		}
		orders = append(orders, order)
	}
	if len(orders[0]) == 0 || slices.Equal(orders[0], orders[1]) {
		t.Errorf("both plots name %v: nothing was tested", orders[0])
	}
}

func TestStylesDiffer(t *testing.T) {
	seen := map[string]int{}
	for i := range 56 {
		s := styleOf(i)
		k := fmt.Sprintf("%v %v %#v", s.line.Color, s.line.Dashes, s.glyph.Shape)
		if j, ok := seen[k]; ok {
			t.Errorf("strategies %d and %d look the same", j, i)
		}
		seen[k] = i
	}
	// Colour is never all that tells two of the first 20 lines apart, and lines of
	// one colour differ in dash and in marker.
	for i := range 20 {
		for j := range i {
			a := styleOf(i)
			b := styleOf(j)
			dash := fmt.Sprint(a.line.Dashes) != fmt.Sprint(b.line.Dashes)
			marker := a.glyph.Shape != b.glyph.Shape
			if a.line.Color == b.line.Color && (!dash || !marker) {
				t.Errorf("lines %d and %d share their colour, and dash or marker", j, i)
			}
			if i == j+1 && (a.line.Color == b.line.Color || !dash || !marker) {
				t.Errorf("neighbours %d and %d are too much alike", j, i)
			}
		}
	}
}

func TestSeriesPlot(t *testing.T) {
	s := results.Series{
		Strategy: "three-tier", Unit: "links", Tracked: 7, Tiers: []string{"redis"}, Counters: []string{"redis eu"},
		Outages: []results.Span{{Store: "redis", FromNS: 1e9, ToNS: 2e9}},
	}
	for i := range 5 {
		n := int64(i)
		s.Samples = append(s.Samples, results.Sample{AtNS: n * 1e9, Issued: 10 * n, Usage: 5 * n, Leak: n, Keys: 300 * n,
			Hits:     []int64{9 * n},
			Counters: []results.Counter{{Readings: 7, Drifting: n, Drift: -14 * n, Size: 14 * n, MeanNS: n * 1e8}}})
	}
	text := checkSVG(t, "series", fixture.Must[*Plot](t)(Series(s))).text
	for _, want := range []string{"three-tier over virtual time", "SIMULATED", "counters of 7 subjects",
		"redis away from 1s to 2s (shaded)", "leak so far: links over the limit", "keys in Redis",
		"all decisions by redis", "redis eu", "drift, signed: links, sum of 7 tracked subjects", "-60", "units withheld",
		"staleness, mean of the tracked subjects", "400 ms", "Drift of redis eu: -56 links"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing about %q in\n%s", want, text)
		}
	}
	s.Samples = nil
	if _, err := Series(s); !errors.Is(err, ErrNothingToPlot) {
		t.Errorf("no samples: %v", err)
	}
}
