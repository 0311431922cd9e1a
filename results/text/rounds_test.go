package text

import (
	"strings"
	"testing"

	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/internal/fixture"
)

// TestHeaderSaysWhatBracketsAre: where rounds were struck the brackets stand on
// the others, and the header must not promise the interval of all.
func TestHeaderSaysWhatBracketsAre(t *testing.T) {
	strike := func(r *results.Run) { r.Audit.Strike("reference-drift", results.StrikesTimings, "x") }
	for name, c := range map[string]struct {
		strike func(r *results.Run)
		want   string
	}{
		"none struck": {func(*results.Run) {}, "24 of each strategy; figures are medians; brackets are order statistics of rounds (7th to 18th of 24: 97.7 % confidence)"},
		"three left": {func(r *results.Run) {
			if r.Repetition > 3 {
				strike(r)
			}
		}, "24 of each strategy; figures are medians; the timings of 3 count: fewer than 6, so that brackets are the range of rounds and no confidence interval"},
		"ten left": {func(r *results.Run) {
			if r.Repetition > 10 {
				strike(r)
			}
		}, "the timings of 10 count: brackets are order statistics of rounds (2nd to 9th of 10: 97.9 % confidence)"},
		"one strategy has three left": {func(r *results.Run) {
			if r.Repetition > 3 && r.Strategy == "incr-expire" {
				strike(r)
			}
		}, "the timings of 3 to 24 count: brackets are order statistics of rounds with at least 95 % confidence where 6 or more count, and the range of rounds elsewhere"},
		"one left": {func(r *results.Run) {
			if r.Repetition > 1 {
				strike(r)
			}
		}, "no strategy has a p99 in two rounds whose timings count, so there are no brackets"},
	} {
		f := fixture.New(24, fixture.Strategies[:2]...)
		for i := range f.Runs {
			c.strike(&f.Runs[i])
		}
		header, _, _ := strings.Cut(render(t, f), "\nSPEED")
		if got := strings.Join(strings.Fields(header), " "); !strings.Contains(got, c.want) {
			t.Errorf("%s: nothing about %q in\n%s", name, c.want, header)
		}
	}
}
