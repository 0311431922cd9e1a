package harness

import (
	"testing"

	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/strategies"
)

// TestKills: a share of the callers is killed, the same ones from the same seed, after the command that is said.
func TestKills(t *testing.T) {
	plan := func(seed uint64, text string) *Plan {
		return &Plan{Seed: seed, Surroundings: Surroundings{Trouble: trouble.MustParse("redis:away@0.1-0.2", text)}}
	}
	a := plan(1, "callers:killed=0.25,after=3")
	b := plan(1, "callers:killed=0.5")
	other := plan(2, "callers:killed=0.25")
	n := 0
	differ := 0
	for i := range int64(10_000) {
		dead := a.Kills(i) > 0
		if dead {
			n++
		}
		if dead && (a.Kills(i) != 3 || b.Kills(i) != 1) {
			t.Fatalf("request %d is killed of a quarter, and not of half", i)
		}
		if dead != (other.Kills(i) > 0) {
			differ++
		}
	}
	if n < 2300 || n > 2700 || differ < 3000 || (*Plan)(nil).Kills(0) > 0 {
		t.Errorf("%d of 10,000 are killed, and %d differ by the seed", n, differ)
	}
	redis := strategies.Selection{Meta: &strategies.Meta{Needs: []strategies.Need{strategies.NeedRedis}}}
	foreign := strategies.Selection{Meta: &strategies.Meta{Needs: redis.Needs,
		Foreign: true}}
	for i, c := range []struct {
		selection strategies.Selection
		mode      strategies.Mode
		refused   bool
	}{
		{redis, strategies.ModeSimulate, false}, {foreign, strategies.ModeMeasure, false},
		{foreign, strategies.ModeSimulate, true},
		{strategies.Selection{Meta: &strategies.Meta{}}, strategies.ModeMeasure, true},
	} {
		if err := a.cannotKill(c.selection, c.mode); (err != nil) != c.refused {
			t.Errorf("%d: %v", i, err)
		}
		if err := new(Plan).cannotKill(c.selection, c.mode); err != nil {
			t.Errorf("%d, and nobody is killed: %v", i, err)
		}
	}
}
