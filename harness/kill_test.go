package harness

import (
	"testing"

	"github.com/quotabench/quotabench/strategies"
)

// TestKills: a share of the callers is killed, the same ones from the same seed, and what cannot be
// killed so is refused.
func TestKills(t *testing.T) {
	for text, want := range map[string]string{"0.25": "0.25:0", "1:3": "1:3", "0": "", "1e-3:1000": "0.001:1000"} {
		var p Plan
		if err := p.SetKills(text); err != nil || p.kills() != want {
			t.Errorf("%q: %q, %v; want %q", text, p.kills(), err, want)
		}
	}
	for _, text := range []string{"", "x", "1.1", "-0.1", "NaN", "0.1:", "0.1:0", "0.1:-1", "0.1:1001", "0.1:2:3"} {
		if err := new(Plan).SetKills(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	a, b, other := &Plan{Seed: 1, KillShare: 0.25}, &Plan{Seed: 1, KillShare: 0.5}, &Plan{Seed: 2, KillShare: 0.25}
	n, differ := 0, 0
	for i := range int64(10_000) {
		if a.Kills(i) {
			n++
		}
		if a.Kills(i) && !b.Kills(i) {
			t.Fatalf("request %d is killed of a quarter, and not of half", i)
		}
		if a.Kills(i) != other.Kills(i) {
			differ++
		}
	}
	if n < 2300 || n > 2700 || differ < 3000 || (*Plan)(nil).Kills(0) {
		t.Errorf("%d of 10,000 are killed, and %d differ by the seed", n, differ)
	}
	redis := strategies.Selection{Meta: &strategies.Meta{Needs: []strategies.Need{strategies.NeedRedis}}}
	foreign := strategies.Selection{Meta: &strategies.Meta{Needs: redis.Needs, Foreign: true}}
	batched := redis
	batched.Client = strategies.AutoPipeline
	for i, c := range []struct {
		s       strategies.Selection
		mode    strategies.Mode
		refused bool
	}{
		{redis, strategies.ModeSimulate, false}, {foreign, strategies.ModeMeasure, false}, {foreign, strategies.ModeSimulate, true},
		{batched, strategies.ModeMeasure, true}, {strategies.Selection{Meta: &strategies.Meta{}}, strategies.ModeMeasure, true},
	} {
		if err := a.cannotKill(c.s, c.mode); (err != nil) != c.refused {
			t.Errorf("%d: %v", i, err)
		}
		if err := new(Plan).cannotKill(c.s, c.mode); err != nil {
			t.Errorf("%d, and nobody is killed: %v", i, err)
		}
	}
}
