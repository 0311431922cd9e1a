package plot

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// TestTrendsAreInProportion: on both axes a factor is the same distance wherever it is.
func TestTrendsAreInProportion(t *testing.T) {
	a := decades("x", []float64{1, 1000})
	at := func(v float64) float64 { return float64(a.place(math.Log10(v), 0, 1)) }
	if math.Abs((at(10)-at(1))-(at(1000)-at(100))) > 1e-9 {
		t.Errorf("the axis is not logarithmic: %+v", a)
	}
	labels := ""
	for _, tick := range a.ticks {
		labels += tick.label + " "
	}
	if got := strings.Join(strings.Fields(labels), " "); got != "1 10 100 1,000" {
		t.Errorf("labels %q", got)
	}
}

func TestTrendsSayWhatTheyShow(t *testing.T) {
	p, err := Trends("Title", "caption", "", Trend{Title: "memory", X: "states", Y: "MiB", Lines: []TrendLine{{Name: "one", X: []float64{10, 1000}, Y: []float64{5, 70}}}})
	if err != nil {
		t.Fatal(err)
	}
	if want := "Title. memory, one: 5 at 10, 70 at 1,000."; p.Desc() != want {
		t.Errorf("%q, want %q", p.Desc(), want)
	}
	for _, l := range [][]TrendLine{nil, {{Name: "one"}}, {{Name: "one", X: []float64{0, 1}, Y: []float64{1, 1}}}, {{Name: "one", X: []float64{1, 2}, Y: []float64{1, -1}}}} {
		if _, err := Trends("t", "c", "", Trend{Title: "p", Lines: l}); !errors.Is(err, ErrNothingToPlot) {
			t.Errorf("%+v: %v", l, err)
		}
	}
}
