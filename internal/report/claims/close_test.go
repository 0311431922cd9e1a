package claims

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/results"
)

// TestClose: a verdict is close exactly if another pass may decide otherwise.
func TestClose(t *testing.T) {
	disturbed := planted(6)
	simulated := planted(6)
	one := planted(3)
	for i := range disturbed.File.Runs {
		disturbed.File.Runs[i].Audit.Discard("machine-busy", codes.Disturbs, "planted")
	}
	disturbed.File.Summaries = results.Summarise(disturbed.File.Runs)
	simulated.File.Kind = results.Simulated
	for i := range 4 {
		one.File.Runs[i].Audit.Discard("stood-still", codes.DiscardsRound, "suspended")
	}
	records := map[string]*Record{"a": planted(6), "b": disturbed}
	for condition, want := range map[string]struct {
		Verdict
		close bool
	}{
		`a["slow"].throughput > 950`:  {Holds, true}, // 1,000 to 1,050
		`a["slow"].throughput > 800`:  {Holds, false},
		`a["slow"].throughput < 1025`: {Undecided, true},
		`a["slow"].throughput < 900`:  {Refuted, true},
		`a["slow"].throughput < 500`:  {Refuted, false},
		// What decides alone leaves nothing to what is close.
		`a["slow"].throughput > 950 && a["slow"].leak > 0`:  {Refuted, false},
		`a["slow"].leak > 0 && b["slow"].throughput > 950`:  {Refuted, false},
		`a["slow"].throughput > 950 || a["slow"].leak == 0`: {Holds, false},
		`a["slow"].throughput > 950 && a["slow"].leak == 0`: {Holds, true},
		`!(a["slow"].throughput > 950)`:                     {Refuted, true},
		// A count varies, too, if it was measured; none at all is no limit that something is close to.
		`a["slow"].issued >= 600`: {Holds, true},
		`a["slow"].issued >= 500`: {Holds, false},
		`a["slow"].leak == 0`:     {Holds, false},
		`a["fast"].leak == 0`:     {Refuted, false},
		// What this pass lacks, another may have; what the record never has, it will not.
		`b["slow"].throughput < 2000`:                      {Undecided, true}, // next to other programs
		`b["slow"].throughput > 800`:                       {Holds, false},
		`b["slow"].throughput / b["fast"].throughput < 1`:  {Holds, false}, // which disturbed both
		`b["gone"].throughput > 1`:                         {Undecided, false},
		`b["slow"].leak_tiers["sql"] == 0`:                 {Undecided, false},
		`share(a["slow"].admitted, a["slow"].issued) > 59`: {Undecided, true},
	} {
		if j := decide(t, condition, records); j.Verdict != want.Verdict || j.Close != want.close {
			t.Errorf("%s: %s, close %t, want %s, %t", condition, j.Verdict, j.Close, want.Verdict, want.close)
		}
	}
	if j := decide(t, `a["slow"].throughput > 1024.9`, map[string]*Record{"a": simulated}); j.Close {
		t.Errorf("a simulation, which is the same in each pass: %+v", j)
	}
	if j := decide(t, `max(a["slow"].runs.throughput_per_s) > 1`, map[string]*Record{"a": one}); j.Verdict != Holds || !j.Close {
		t.Errorf("one round whose timings count, of three: %+v", j)
	}
}

// TestPassesAgree: of many pairs of passes that differ by chance only, those whose verdicts differ are marked in one of
// the two at least, and in nearly all cases in both. Far from the limit nothing is marked.
func TestPassesAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pass := func(centre float64) *Record {
		r := planted(6)
		pass := rng.NormFloat64() / 20 // by which the machine is slower or faster this time
		for i := range r.File.Runs {
			r.File.Runs[i].ThroughputPerS = centre * math.Exp(pass+rng.NormFloat64()/10)
		}
		r.File.Summaries = results.Summarise(r.File.Runs)
		return r
	}
	differ := 0
	half := 0
	for _, centre := range []float64{400, 700, 850, 950, 1000, 1050, 1200, 1500, 2800} {
		for range 40 {
			a := decide(t, `a["slow"].throughput > 1000`, map[string]*Record{"a": pass(centre)})
			b := decide(t, `a["slow"].throughput > 1000`, map[string]*Record{"a": pass(centre)})
			if (a.Close || b.Close) && (centre == 400 || centre == 2800) {
				t.Errorf("%v, far from the limit: %+v, %+v", centre, a, b)
			}
			if a.Verdict == b.Verdict {
				continue
			}
			differ++
			switch {
			case !a.Close && !b.Close:
				t.Errorf("around %v: %s and %s, and none is marked", centre, a.Verdict, b.Verdict)
			case !a.Close || !b.Close:
				half++
			}
		}
	}
	if differ < 50 || half > differ/10 {
		t.Errorf("%d of 360 pairs differ, of which %d are marked in one pass only", differ, half)
	}
}
