package render_test

import (
	"bytes"
	"encoding/csv"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/internal/report/plot"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
)

// uneven is a record of two strategies and eight rounds, of which one is 20 times slower.
func uneven(t *testing.T) results.File {
	t.Helper()
	f := fixture.New(8, fixture.Strategies[0], fixture.Strategies[3])
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range f.Runs {
		r := &f.Runs[i]
		scale := 100e3 * (1 + float64(i%2))
		if r.Repetition == 5 {
			scale *= 20
		}
		h := results.NewHistogram()
		for range 4_000 {
			h.Record(int64(scale * (1 + rng.ExpFloat64())))
		}
		l := fixture.Must[results.Latency](t)(h.Latency())
		l.StallsP99 = 38
		l.StallsP999 = 4
		r.Service = l
	}
	f.Summaries = results.Summarise(f.Runs)
	return f
}

// cellOf is the cell of a strategy's row in a text's section that stands at a place.
func cellOf(t *testing.T, said, section, strategy string, at, words int) string {
	t.Helper()
	_, said, _ = strings.Cut(said, "\n"+section)
	for l := range strings.Lines(said) {
		if w := strings.Fields(l); len(w) > at+words && w[0] == strategy {
			return strings.Join(w[at:at+words], " ")
		}
	}
	t.Fatalf("no row of %s in %s", strategy, said)
	return ""
}

// TestOneP99: a strategy has one p99, that of all rounds together, wherever it is read.
func TestOneP99(t *testing.T) {
	f := uneven(t)
	var said bytes.Buffer
	if err := text.Table(&said, layout.Page{}, f); err != nil {
		t.Fatal(err)
	}
	page := string(fixture.Must[[]byte](t)(render.HTML([]*render.Bundle{{File: &f}})))
	latency := fixture.Must[*plot.Plot](t)(plot.Latency(f))
	leak := fixture.Must[*plot.Plot](t)(plot.Leak(f))
	var table []byte
	for _, r := range render.Exports() {
		if r.Name == "csv" {
			table = fixture.Must[[]render.Output](t)(r.Render(&render.Bundle{File: &f}))[0].Bytes
		}
	}
	rows := fixture.Must[[][]string](t)(csv.NewReader(bytes.NewReader(table)).ReadAll())
	column := func(row []string, name string) string {
		for i, n := range rows[0] {
			if n == name {
				return row[i]
			}
		}
		t.Fatalf("no column %s", name)
		return ""
	}
	stored := fixture.Must[results.File](t)(codec.Decode(fixture.Must[[]byte](t)(codec.Encode(f))))
	for i, s := range f.Summaries {
		all := results.NewHistogram()
		for r := range f.Runs {
			if f.Runs[r].Strategy == s.Strategy {
				all.Merge(fixture.Must[*results.Histogram](t)(f.Runs[r].Service.Decode()))
			}
		}
		ns := all.Quantile(0.99)
		want := format.NS(float64(ns))
		if f.Runs[0].Service.P99*2 > ns {
			t.Fatalf("%s: the slow round does not show in p99, %s", s.Label, want)
		}
		if got := stored.Summaries[i].Service.P99.Value; got != float64(ns) {
			t.Errorf("%s: JSON has %v, want %v", s.Label, got, ns)
		}
		if got := cellOf(t, said.String(), "SPEED", s.Label, 3, 2); got != want {
			t.Errorf("%s: the text has %q, want %q", s.Label, got, want)
		}
		if n := strings.Count(page, ">"+want+"<"); n < 3 { // the decision table, and below both plots
			t.Errorf("%s: the page has %s %d times", s.Label, want, n)
		}
		for name, p := range map[string]*plot.Plot{"latency": latency, "leak": leak} {
			if !strings.Contains(p.Desc(), s.Label+" has the lowest p99, "+want) &&
				!strings.Contains(p.Desc(), s.Label+" the highest, "+want) {
				t.Errorf("%s: the %s plot says %q, want %s", s.Label, name, p.Desc(), want)
			}
		}
		for _, row := range rows[1:] {
			if column(row, "strategy") != s.Label {
				continue
			}
			got, err := strconv.ParseFloat(column(row, "all_p99_ns"), 64)
			if err != nil || got != float64(ns) || column(row, "kept_rounds") != "8" || column(row, "run_rounds") != "8" {
				t.Errorf("%s: CSV has %v of %s rounds, want %v: %v", s.Label, got, column(row, "kept_rounds"), ns, err)
			}
		}
	}
	for name, text := range map[string]string{"text": said.String(), "page": page} {
		if !strings.Contains(text, "rounds kept: 8 of 8") {
			t.Errorf("%s does not say how many rounds are kept", name)
		}
	}
}

// TestOnlyKeepsFigures: the export of one strategy alone shows what that of all together shows.
func TestOnlyKeepsFigures(t *testing.T) {
	f := fixture.New(7, fixture.Strategies[:2]...)
	for i := range f.Runs {
		if f.Runs[i].Repetition > 5 && f.Runs[i].Strategy == fixture.New(1, fixture.Strategies[1]).Runs[0].Strategy {
			f.Runs[i].Audit.Discard("machine-busy", codes.Disturbs, "x")
		}
	}
	f.Summaries = results.Summarise(f.Runs)
	b := fixture.Must[*render.Bundle](t)((&render.Bundle{File: &f}).Only(f.Summaries[0].Label))
	if s := b.File.Summaries; len(s) != 1 || s[0].Timed != 7 || s[0].Disturbed != f.Summaries[0].Disturbed ||
		s[0].Throughput.Disturbed != f.Summaries[0].Throughput.Disturbed {
		t.Errorf("%d strategies, the first one marked %t, want %t", len(s), s[0].Throughput.Disturbed,
			f.Summaries[0].Throughput.Disturbed)
	}
}
