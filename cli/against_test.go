package cli

import (
	"slices"
	"testing"

	"github.com/quotabench/quotabench/internal/app/settings/group"
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
