package results

import (
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"strings"
	"testing"
)

// spread records the same n values around ns in a histogram.
func spread(n int, ns int64) *Histogram {
	h := NewHistogram()
	for i := range n {
		h.Record(ns + int64(i)*ns/100)
	}
	return h
}

// TestLatencyOfParts: a distribution in parts stores each value once, and reads as
// a histogram of all of them does.
func TestLatencyOfParts(t *testing.T) {
	admitted := spread(900, 1e6)
	failed := spread(300, 7e6)
	failed.RecordAtLeast(3e9)
	failed.Record(2 * bounds.MaxRecorded)
	l := must[Latency](t)(LatencyOf([]Part{{"admitted", "redis", admitted}, {"rejected", "redis", NewHistogram()},
		{"error", "", failed}, {"error", "x", nil}}))
	if l.Histogram != "" || len(l.Parts) != 2 || l.Parts[0].Histogram == "" || l.Parts[1].Histogram == "" ||
		l.Parts[1].Outcome != "error" {
		t.Errorf("stored as %+v", l)
	}
	all := NewHistogram()
	all.Merge(admitted)
	all.Merge(failed)
	want := must[Latency](t)(all.Latency())
	want.Histogram = ""
	if l.Distribution != want.Distribution {
		t.Errorf("the whole is %+v, want %+v", l.Distribution, want.Distribution)
	}
	got := must[*Histogram](t)(l.Decode())
	if d := must[Latency](t)(got.Latency()); d.P99 != want.P99 || d.Samples != 1202 || d.AtLeast != 1 ||
		d.OutOfRange != 1 {
		t.Errorf("decoded to %+v", d.Distribution)
	}
}

func TestLatencyDecodeRefuses(t *testing.T) {
	good := func() Latency {
		return must[Latency](t)(LatencyOf([]Part{{"admitted", "redis", spread(10, 1e6)},
			{"rejected", "redis", spread(5, 2e6)}}))
	}
	for want, spoil := range map[string]func(*Latency){
		"the parts hold 15 values":                 func(l *Latency) { l.Samples++ },
		"(0 unfinished, 0 out of range)":           func(l *Latency) { l.AtLeast = 2 },
		"which its parts already hold":             func(l *Latency) { l.Histogram = l.Parts[0].Histogram },
		"part 1: histogram holds 5 values, the re": func(l *Latency) { l.Parts[1].Samples = 6 },
		"part 0: decode histogram":                 func(l *Latency) { l.Parts[0].Histogram = "!" },
	} {
		l := good()
		spoil(&l)
		if _, err := l.Decode(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %q", err, want)
		}
	}
	l := good()
	l.Parts[0].Histogram = ""
	if h, err := l.Decode(); h != nil || err != nil {
		t.Errorf("a part without a histogram: %v, %v; a part of the values would pass for all", h, err)
	}
}

// TestFewStallsWidenTheInterval: a percentile behind which are fewer than five stalls is
// printed, with an interval up to the largest value. Those of response times say nothing of
// service times, and the other way round.
func TestFewStallsWidenTheInterval(t *testing.T) {
	runs := func(response, service int) (out []Run) {
		for i := range bounds.LeastRounds {
			r := round(i+1, 0, 1)
			r.Params.Loop = codes.OpenLoop
			a := must[Latency](t)(spread(5_000, 1e6).Latency())
			r.Service = a
			r.Service.StallsP99 = service
			r.Service.StallsP999 = service
			a.StallsP99 = response
			a.StallsP999 = response
			r.Response = &a
			out = append(out, r)
		}
		return out
	}
	wide := func(p *Percentiles) bool {
		return p.P99.Shown() && p.P99.Value < float64(p.Max) && p.P99.Hi == float64(p.Max)
	}
	for stalls, want := range map[[2]int][2]bool{{0, 33}: {true, false}, {33, 0}: {false, true},
		{33, 33}: {false, false}} {
		s := one(t, runs(stalls[0], stalls[1])...)
		if got := [2]bool{wide(s.Response), wide(&s.Service)}; got != want || s.Latency() != s.Response {
			t.Errorf("stalls %v: wide %v, want %v; response %+v, service %+v", stalls, got, want, s.Response.P99, s.Service.P99)
		}
	}
}
