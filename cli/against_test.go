package cli

import (
	"slices"
	"testing"

	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/results"
)

// TestBothSidesComeFirst: in any two rounds each program is first once, and which one begins is random.
func TestBothSidesComeFirst(t *testing.T) {
	begins := map[int]int{}
	for seed := range uint64(64) {
		a := &against{Settings: &group.Settings{}}
		a.Seed = seed
		for round := 1; round <= 12; round += 2 {
			first := a.order(1, round)
			second := a.order(1, round+1)
			slices.Reverse(second)
			if !slices.Equal(first, second) {
				t.Fatalf("seed %d, round %d: %v, and then %v backwards", seed, round, first, second)
			}
			begins[first[0]]++
		}
	}
	if begins[0] < 140 || begins[1] < 140 { // 192 of 384 each, with a deviation of 10
		t.Errorf("the programs begin %v times", begins)
	}
}

// TestARoundThatNeverCrossed: a slow round that asked nobody for more than the limit fails no comparison if others of
// its side did. A side of which no round did is invalid.
func TestARoundThatNeverCrossed(t *testing.T) {
	round := func(trials int64) results.Run {
		run := results.Run{Params: results.Params{Label: "a"}, Audit: results.Audit{Valid: true}}
		run.Leak.Trials = trials
		if trials == 0 {
			run.Audit.Discard(codes.NeverCrossed, codes.DiscardsCorrectness, "planted")
		}
		return run
	}
	a := &against{Settings: &group.Settings{}}
	a.files[1] = [2]*results.File{{Runs: []results.Run{round(3), round(0)}}, {Runs: []results.Run{round(0), round(0)}}}
	for i, side := range a.sidesOf(1) {
		if got := side.File.Runs[1].Audit.Valid; got != (i == 0) {
			t.Errorf("%s: valid %t", sides[i], got)
		}
	}
}
