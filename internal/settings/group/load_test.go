package group

import (
	"testing"

	"github.com/quotabench/quotabench/harness/measure"
	_ "github.com/quotabench/quotabench/internal/testenv"
	"github.com/quotabench/quotabench/results"
)

// TestSpareRounds: each round that the machine disturbed is replaced by another one, of both loops, as long as there are spare ones.
func TestSpareRounds(t *testing.T) {
	s := New(Run)
	s.Spare = 2
	c := measure.Config{Rounds: 6}
	s.Replace(&c)
	if c.Rounds != 8 {
		t.Fatalf("%d rounds at most, want 8", c.Rounds)
	}
	var runs []results.Run
	for round := 1; round <= 8; round++ {
		r := results.Run{Strategy: "incr-expire", Repetition: round, ElapsedNS: 1, Audit: results.Audit{Valid: true, TimingsValid: true}}
		paced := r
		if round == 3 {
			r.Audit.Discard("cpu-steal", results.DiscardsRound, "planted")
		}
		if round == 5 || round == 6 {
			paced.Audit.Discard("cpu-steal", results.DiscardsRound, "planted")
		}
		r.Paced = &paced
		runs = append(runs, r)
		if got := c.Enough(round, runs); got != (round == 8) {
			t.Errorf("after %d rounds: enough is %t", round, got)
		}
	}
}
