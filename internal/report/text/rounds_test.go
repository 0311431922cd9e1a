package text

import (
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/results"
)

// words are those of a report, without what it is laid out with.
func words(t *testing.T, f results.File) string {
	t.Helper()
	return strings.Join(strings.Fields(render(t, f)), " ")
}

// TestHeaderSaysWhatBracketsAre: rounds are left out of all strategies, and the header and
// the tables must not promise more than is left.
func TestHeaderSaysWhatBracketsAre(t *testing.T) {
	after := func(n int) func(r *results.Run) {
		return func(r *results.Run) {
			if r.Repetition > n && r.Strategy == "incr-expire" { // half of a round
				r.Audit.Discard("stood-still", codes.DiscardsRound, "x")
			}
		}
	}
	const pooled, brackets = "percentiles are those of all kept rounds together, decisions per second their mean, " +
		"other figures medians; ", "brackets are intervals of about 95 % confidence, from a bootstrap over rounds"
	for name, c := range map[string]struct {
		rounds int
		change func(r *results.Run)
		wants  []string
	}{
		"none left out": {24, after(24),
			[]string{"24 of each strategy; " + pooled + brackets, "SPEED", "rounds kept: 24 of 24"}},
		"ten left out": {24, after(14), []string{brackets, "rounds kept: 14 of 24"}},
		"three left": {24, after(3),
			[]string{"fewer than 6 rounds are kept, so there are no brackets", "rounds kept: 3 of 24",
				"1.05 commands per decision, p99 7"}},
		"few": {3, after(3), []string{pooled +
			"fewer than 6 rounds are kept, so there are no brackets", "rounds kept: 3 of 3"}},
		"one": {1, after(1), []string{"one round says nothing about how much figures vary", "rounds kept: 1 of 1"}},
		"one strategy began later": {8, func(r *results.Run) {
			if r.Repetition > 6 && r.Strategy == "incr-expire" {
				r.Strategy = "later"
				r.Params.Label = "later"
			}
		}, []string{"2 to 8 of each strategy", "rounds kept: 6 of 6 (incr-expire-atomic 8 of 8; later 2 of 2)"}},
		"no histograms": {8, func(r *results.Run) {
			r.Service.Histogram = ""
		}, []string{"percentiles are medians, since histograms were not stored"}},
	} {
		f := fixture.New(c.rounds, fixture.Strategies[:2]...)
		for i := range f.Runs {
			c.change(&f.Runs[i])
		}
		got := words(t, f)
		for _, want := range c.wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: nothing about %q in\n%s", name, want, render(t, f))
			}
		}
	}
}

// TestKeptRoundsOfTwoLoops: the loops next to each other may keep other rounds.
func TestKeptRoundsOfTwoLoops(t *testing.T) {
	f := fixture.New(7, fixture.Strategies[0])
	for i := range f.Runs {
		r := &f.Runs[i]
		paced := *r
		paced.Params.Loop = codes.OpenLoop
		paced.Params.RatePerS = 100
		r.Paced = &paced
	}
	f.Runs[6].Audit.Discard("stood-still", codes.DiscardsRound, "x")
	if got := words(t, f); !strings.Contains(got, "rounds kept: 7 of 7 in open loop, 6 of 7 in closed loop") {
		t.Errorf("got\n%s", render(t, f))
	}
}

// TestAnswerSaysWhatIsAsGood: strategies that are not shown to be slower than the cheapest are named, and nothing is
// called the cheapest by timings that say nothing.
func TestAnswerSaysWhatIsAsGood(t *testing.T) {
	apart := fixture.New(8, fixture.Strategies[:2]...)
	equal := fixture.New(8, fixture.Strategies[:2]...)
	for i := range apart.Runs {
		if r := &apart.Runs[i]; r.Params.Label != "incr-expire" {
			r.ThroughputPerS *= 0.6
		}
	}
	for i := range equal.Runs {
		r := &equal.Runs[i]
		r.ThroughputPerS = 50_000 + float64(r.Repetition)
	}
	standIn := fixture.New(8, fixture.Strategies[:2]...)
	standIn.Stores["redis"] = results.Store{Kind: "embedded"}
	for name, c := range map[string]struct {
		file  results.File
		want  string
		lacks string
	}{
		"apart": {apart, "Use incr-expire: never over the limit in 8,000 windows, 1.05 commands per decision, p99 719 µs with 50 " +
			"callers that never pause. It was chosen over incr-expire-atomic (slower).", "(not shown to be slower"},
		"equal":     {equal, "over incr-expire-atomic (as good).", "(slower)"},
		"stand-ins": {standIn, "Timings on stand-ins were not compared.", "slower"},
	} {
		if got := words(t, c.file); !strings.Contains(got, c.want) || strings.Contains(got, c.lacks) {
			t.Errorf("%s: want %q and not %q in\n%s", name, c.want, c.lacks, render(t, c.file))
		}
	}
}

// TestUnitOfP99: the unit is that of the smallest, except of one that took no time at all, as a decision in virtual
// time may.
func TestUnitOfP99(t *testing.T) {
	for _, c := range []struct {
		all  []float64
		want string
		div  float64
	}{{nil, "p99", 1}, {[]float64{0}, "p99", 1}, {[]float64{0, 119_167, 5e6}, "p99, µs", 1e3},
		{[]float64{41, 1.5e6}, "p99, µs", 1e3}} {
		if title, div := latencyTitle("p99", false, c.all); title != c.want || div != c.div {
			t.Errorf("%v: %q by %g, want %q by %g", c.all, title, div, c.want, c.div)
		}
	}
	f := swept("")
	for i := range f.Runs {
		r := &f.Runs[i]
		r.Service = results.Latency{Distribution: results.Distribution{Samples: 1_000_000, StallsP99: 100, StallsP999: 100}}
		if r.Params.Workers == 1 {
			r.Service.P99 = 119_167
		}
	}
	if d, err := DecideSweep(&f); err != nil || d.Table.To(document.Brief).Columns[4].Title != "p99, µs" {
		t.Errorf("%v, the title of p99 is %q", err, d.Table.To(document.Brief).Columns[4].Title)
	}
}
