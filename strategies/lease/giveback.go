package lease

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quotabench/quotabench/strategies"
)

// The names of jobs.
const jobGiveBack, jobPrefetch = "give-back", "prefetch"

// debt is a block that Redis has to be told about, with the units that were not spent.
type debt struct {
	key            string
	number, unused int64
	ends           time.Time // of its window
}

// Jobs implements [strategies.Jobber].
func (s *lease) Jobs() []strategies.Job {
	jobs := []strategies.Job{{Name: jobGiveBack, Every: s.every, Run: s.giveBack}}
	if s.prefetch > 0 {
		jobs = append(jobs, strategies.Job{Name: jobPrefetch, Run: s.fetch})
	}
	return jobs
}

// fetch draws the blocks that are wanted, in the order of their keys.
func (s *lease) fetch(ctx context.Context) (changed bool, err error) {
	s.mu.Lock()
	var wanted []*holding
	was := map[*holding]holding{}
	for _, h := range s.held {
		if h.wanted = h.wanted && h.turn == nil && h.number > 0; h.wanted {
			wanted, was[h] = append(wanted, h), *h
		}
	}
	s.mu.Unlock()
	slices.SortFunc(wanted, func(a, b *holding) int { return cmp.Compare(was[a].key, was[b].key) })
	for _, h := range wanted {
		of, sent, r := was[h], s.clock.Now(), reply{}
		if err == nil {
			r, err = s.run(ctx, of.key, charge{limit: of.limit, draws: true}, of.debt(of.old))
		}
		changed = changed || r.number > 0
		s.mu.Lock()
		if h.window == of.window {
			h.wanted, h.old = false, block{}
			if err == nil {
				h.next, h.scarce = r.block(of.limit, sent), r.number == 0
			}
		}
		if err != nil {
			s.owes(of.debt(of.old))
		}
		s.mu.Unlock()
	}
	return changed, err
}

// giveBack settles blocks that nobody has spent from since the last round, and those whose
// time is over. It forgets subjects whose window has ended.
func (s *lease) giveBack(ctx context.Context) (changed bool, err error) {
	debts, busy := s.idle(false)
	settled, err := s.settle(ctx, debts)
	return busy || settled, err
}

// idle takes out the blocks that are settled next, in the order of their keys. busy reports
// whether others may be idle in the next round. all takes out every block.
func (s *lease) idle(all bool) (debts []debt, busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	debts, s.owed = s.owed, nil
	for a, h := range s.held {
		switch over := !now.Before(h.ends); {
		case h.turn != nil || h.wanted && !all:
			continue
		case !all && !over && h.busy && !h.stale(now, s.valid):
			h.busy, busy = false, true
			continue
		}
		for _, b := range []block{h.old, h.block, h.next} {
			if b.number > 0 {
				debts = append(debts, h.debt(b))
			}
		}
		delete(s.held, a)
	}
	debts = slices.DeleteFunc(debts, func(d debt) bool { return !now.Before(d.ends) })
	slices.SortFunc(debts, func(a, b debt) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.number, b.number)) })
	return debts, busy
}

// settle tells Redis about blocks. What fails, and what comes after that, stays owed.
func (s *lease) settle(ctx context.Context, debts []debt) (changed bool, err error) {
	done := 0
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.owed = append(s.owed, debts[done:]...)
	}()
	for ; done < len(debts); done++ {
		if _, err := s.run(ctx, debts[done].key, charge{}, debts[done]); err != nil {
			return done > 0, fmt.Errorf("give back %d blocks: %w", len(debts)-done, err)
		}
	}
	return done > 0, nil
}

// Close implements [strategies.Strategy]: what is held goes back.
func (s *lease) Close(ctx context.Context) error {
	debts, _ := s.idle(true)
	_, err := s.settle(ctx, debts)
	return err
}
