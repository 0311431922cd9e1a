package explore

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/strategies"
)

// metEnough ends the random schedules once every finding was met so often: its share is
// then known to a tenth of itself, and further ones would take longer than most searches.
const metEnough = 100

// sample runs schedules at random, and counts for each finding in how many of them its
// property breaks. Every step that a schedule could take has the same chance: what comes
// out compares findings with each other, and is no probability of a system in service.
func (s *search) sample(ctx context.Context, res *Result) error {
	if s.cfg.Samples == 0 || len(res.Findings) == 0 || !s.Traits.State {
		return nil
	}
	wanted := map[Property]bool{}
	for i := range res.Findings {
		wanted[res.Findings[i].Property] = true
	}
	random := rand.New(seed.NewSource(s.cfg.Seed, seed.Schedules))
	met := map[Property]int{}
	rare := maps.Clone(wanted)
	run := 0
	for ; run < s.cfg.Samples && len(rare) > 0 && s.over(ctx) == ""; run++ {
		broken, err := s.wander(random, wanted)
		if err != nil {
			return err
		}
		for property := range broken {
			met[property]++
			if met[property] >= metEnough {
				delete(rare, property)
			}
		}
	}
	for i := range res.Findings {
		finding := &res.Findings[i]
		finding.Sampled = run
		finding.Met = met[finding.Property]
	}
	return nil
}

// doubts is how many schedules are run at random if nothing was found.
const doubts = 200

// doubt runs schedules at random of a limiter of others that has broken nothing, so far as its states were told apart.
// They take no two states for one: what they break follows from something that the search does not see.
func (s *search) doubt(ctx context.Context, res *Result) error {
	if s.sel.Form != strategies.Library || len(res.Findings) > 0 || res.Capped != "" || res.Pruned == 0 {
		return nil
	}
	random := rand.New(seed.NewSource(s.cfg.Seed, seed.Schedules))
	for range doubts {
		if s.over(ctx) != "" {
			break
		}
		broken, err := s.wander(random, s.wanted)
		if err != nil {
			return err
		}
		for property := range broken {
			return fmt.Errorf("%w: a schedule at random breaks a property (%s), and no state that was told apart by the "+
				"memory of its instances does: it keeps something outside of these, e.g. in a variable of its package",
				ErrNotDeterministic, property)
		}
	}
	return nil
}

// wander runs one schedule at random, and returns what it breaks.
func (s *search) wander(random *rand.Rand, wanted map[Property]bool) (map[Property]bool, error) {
	broken := map[Property]bool{}
	var next []engine.Choice
	return broken, s.drive(func() (choice engine.Choice, ok bool) {
		next = s.Enabled(next[:0], false)
		if len(next) == 0 || len(broken) == len(wanted) {
			return choice, false
		}
		return next[random.IntN(len(next))], true
	}, func(engine.Choice) error {
		found, err := s.check(wanted)
		for _, finding := range found {
			if wanted[finding.Property] {
				broken[finding.Property] = true
			}
		}
		return err
	})
}
