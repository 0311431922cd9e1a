package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/quotabench/quotabench/harness/explore/engine"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// Census is what an enumeration counted.
type Census = results.Census

// Enumerate runs every schedule, without leaving out any that are alike, and
// counts those that leak. Errors are as those of [Run].
func Enumerate(ctx context.Context, sel strategies.Selection, cfg Config) (*Census, error) {
	cfg, err := cfg.complete(sel)
	if err != nil {
		return nil, err
	}
	cfg.enumerates, cfg.First, cfg.began = true, false, clock.Nano()
	so := cmp.Or(cfg.sofar, new(progress))
	c, err := explored(ctx, sel, cfg, func(s *search) (*Census, error) { return s.enumerate(ctx, so) })
	if err != nil {
		return so.partialCensus(ctx, sel, cfg, err), err
	}
	return c, unseen(c.Withheld)
}

func (s *search) enumerate(ctx context.Context, so *progress) (*Census, error) {
	c := &Census{Strategy: s.sel.String(), Policy: s.cfg.Policy.Name, Limit: s.cfg.Policy.Limit, Clients: s.cfg.Clients}
	c.Store = s.Traits().Store
	so.counted(c, nil)
	var shortest *breakage
	var err error
	if s.Traits().State {
		shortest, err = s.everySchedule(ctx, c, so)
	} else {
		shortest, err = s.everyEnd(ctx, c, so)
	}
	if err != nil {
		return nil, err
	}
	if shortest != nil {
		if err := s.repeat(shortest); err != nil {
			return nil, err
		}
		c.Shortest = &shortest.Finding
	}
	c.Withheld = withheld(s.Witness())
	return c, nil
}

// everyEnd counts over an engine that has no state.
func (s *search) everyEnd(ctx context.Context, c *Census, so *progress) (*breakage, error) {
	if err := s.serially(); err != nil {
		return nil, err
	}
	w := s.newWalk(so)
	w.wanted[Leak], w.all = true, true
	if err := w.walk(ctx, math.MaxInt, s.cfg.MaxSchedules); err != nil {
		return nil, err
	}
	c.Schedules, c.Leaking, c.Worst, c.Complete, c.Waited = w.runs, w.leaking, w.worstLeak, w.capped == "", w.waiting
	var err error
	c.Aborts, err = w.repeatAborts()
	return w.found[Leak], err
}

// everySchedule counts depth first.
func (s *search) everySchedule(ctx context.Context, c *Census, so *progress) (*breakage, error) {
	if err := s.serially(); err != nil {
		return nil, err
	}
	var tree sched.Tree
	var path, next, shortest []engine.Choice
	var detail breach
	deepest := 0
	more := true
	for ; more && c.Schedules < s.cfg.MaxSchedules && s.over(ctx) == ""; more = tree.Next() {
		if err := s.Begin(); err != nil {
			return nil, errors.Join(err, s.End())
		}
		path = path[:0]
		var leak int64
		for {
			if next = s.Enabled(next[:0], false); len(next) == 0 {
				break
			}
			step := next[tree.Choose(len(next))]
			if err := s.Step(step); err != nil {
				return nil, errors.Join(err, s.End())
			}
			path = append(path, step)
			now := s.Run().Truth.Leak()
			if now > 0 && leak == 0 && (shortest == nil || len(path) < len(shortest)) {
				shortest = append(shortest[:0], path...)
				detail = breach{Leak, fmt.Sprintf("%d units over the limit of %d", now, c.Limit), now}
			}
			leak = max(leak, now)
		}
		if err := s.End(); err != nil {
			return nil, err
		}
		c.Schedules++
		deepest = max(deepest, len(path))
		s.cfg.Progress.set(Sofar{Runs: c.Schedules, Depth: int64(deepest), Share: tree.Share()})
		if leak > 0 {
			c.Leaking++
			c.Worst = max(c.Worst, leak)
		}
		if shortest == nil {
			so.counted(c, nil)
		} else {
			so.counted(c, &breakage{detail.finding(), shortest})
		}
	}
	c.Complete = !more
	if err := tree.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotDeterministic, err)
	}
	if shortest == nil {
		return nil, nil //nolint:nilnil // no schedule leaks
	}
	return &breakage{detail.finding(), shortest}, nil
}
