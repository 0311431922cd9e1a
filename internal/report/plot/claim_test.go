package plot

import (
	"errors"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/report/claims"
	"github.com/quotabench/quotabench/internal/report/figures"
)

// TestClaim draws the figure at each value with the limit, and says both to those who cannot see it.
func TestClaim(t *testing.T) {
	limit := 10_000.0
	j := &claims.Judgement{Record: "R", ID: "T1", Says: "It takes 10 µs.", Curve: &claims.Curve{
		Parameter: "share", Shown: "p99", Unit: figures.Nanoseconds, Limit: &limit,
		Points: []claims.Point{{At: "0.1", Value: 2e6, Lo: 1e6, Hi: 3e6}, {At: "1", Value: 4_000, Lo: 4_000, Hi: 4_000}},
	}}
	p, err := Claim(j)
	if err != nil {
		t.Fatal(err)
	}
	svg, err := p.Render("svg")
	if err != nil || p.Title() != "R T1: It takes 10 µs" {
		t.Fatalf("%q, %v", p.Title(), err)
	}
	for _, want := range []string{"2.00 ms at 0.1, 4.00 µs at 1", "limit", "share"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the drawing does not say %q", want)
		}
	}
	if !strings.Contains(string(svg), "Whiskers") {
		t.Error("nothing says what the whiskers are")
	}
	j.Curve.Limit = nil
	j.Curve.Points[0].Lo = 2e6
	j.Curve.Points[0].Hi = 2e6
	p, err = Claim(j)
	if err != nil {
		t.Fatal(err)
	}
	svg, err = p.Render("svg")
	if err != nil || strings.Contains(string(svg), "limit") || strings.Contains(string(svg), "Whiskers") {
		t.Errorf("a limit is drawn that varies, or there is a note about whiskers without any: %v", err)
	}
	j.Curve.Points = nil
	if _, err := Claim(j); !errors.Is(err, ErrNothingToPlot) {
		t.Errorf("without points: %v", err)
	}
}
