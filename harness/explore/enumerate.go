package explore

import (
	"cmp"
	"context"
	"math"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// Census is what an enumeration counted.
type Census = results.Census

// Enumerate runs every schedule, without leaving out any that are alike, and
// counts those that leak. Errors are as those of [Run].
func Enumerate(ctx context.Context, sel strategies.Selection, cfg Config) (*Census, error) {
	cfg.enumerates = true
	cfg, err := cfg.Complete(sel)
	if err != nil {
		return nil, err
	}
	cfg.sofar = cmp.Or(cfg.sofar, new(progress))
	if cfg.isolates(sel) {
		return enumerateInChild(ctx, sel, &cfg)
	}
	cfg.First, cfg.began = false, clock.Nano()
	c, err := explored(ctx, sel, cfg, func(s *search) (*Census, error) { return s.enumerate(ctx) })
	if err != nil {
		return cfg.sofar.partialCensus(ctx, sel, cfg, err), err
	}
	return c, unseen(c.Withheld)
}

func (s *search) enumerate(ctx context.Context) (*Census, error) {
	c := &Census{Strategy: s.sel.String(), Policy: s.cfg.Policy.Name, Limit: s.cfg.Policy.Limit, Clients: s.cfg.Clients}
	c.Store, c.Service, c.Part = s.Traits.Store, s.cfg.Service, s.cfg.Part.String()
	s.cfg.sofar.note(nil, c, nil)
	var shortest *breakage
	var err error
	if s.Traits.State {
		shortest, err = s.everySchedule(ctx, c)
	} else {
		shortest, err = s.everyEnd(ctx, c)
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
	c.Withheld = withheld(s.Witness)
	return c, nil
}

// everyEnd counts over an engine that has no state.
func (s *search) everyEnd(ctx context.Context, c *Census) (shortest *breakage, err error) {
	if err := s.serially(); err != nil {
		return nil, err
	}
	w := s.newStatelessSearch()
	w.wanted[Leak], w.census = true, c
	if err := w.walkAndControl(ctx, math.MaxInt, s.cfg.MaxSchedules); err != nil {
		return nil, err
	}
	c.Complete = w.capped == ""
	c.Aborts, err = w.repeatAborts()
	if b, ok := w.found[Leak]; ok {
		shortest = &b
	}
	return shortest, err
}
