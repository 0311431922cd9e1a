package explore

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// progress is how far a search or an enumeration has come, for the case that the strategy
// ends it. What was given up may go on to write to it.
type progress struct {
	mu     sync.Mutex
	res    Result
	census Census
	broken []breakage
	// found is told of all findings where there are others than before; nil for none.
	found func([]breakage)
}

// notify is called without the lock, after what was broken has become another.
func (p *progress) notify(changed bool, broken []breakage) {
	if changed && p.found != nil {
		p.found(broken)
	}
}

// count is what an enumeration has counted up to now.
func (p *progress) count() *Census {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.census
	return &c
}

// searched notes how far a search has come.
func (p *progress) searched(res *Result, broken []breakage) {
	p.mu.Lock()
	p.res = *res
	changed := !slices.EqualFunc(broken, p.broken, func(a, b breakage) bool { // another path replaces one
		return len(a.path) == len(b.path) && (len(a.path) == 0 || &a.path[0] == &b.path[0])
	})
	if changed {
		p.broken = slices.Clone(broken) // the search sorts its own
	}
	p.mu.Unlock()
	p.notify(changed, broken)
}

// walked notes how far a walk has come.
func (p *progress) walked(w *walk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.res.Waited, p.res.States, p.res.Runs, p.res.Depth = w.waiting, w.points+1, w.runs, w.depth
	p.census.Schedules, p.census.Leaking, p.census.Worst, p.census.Waited = w.runs, w.leaking, w.worstLeak, w.waiting
	p.broken = p.broken[:0]
	for _, property := range properties {
		if b := w.found[property]; b != nil {
			p.broken = append(p.broken, *b)
		}
	}
}

// counted notes how far an enumeration has come.
func (p *progress) counted(c *Census, shortest *breakage) {
	p.mu.Lock()
	p.census = *c
	changed := shortest != nil && (len(p.broken) == 0 || !slices.Equal(shortest.path, p.broken[0].path))
	if changed {
		p.broken = []breakage{{shortest.Finding, slices.Clone(shortest.path)}}
	}
	broken := p.broken
	p.mu.Unlock()
	p.notify(changed, broken)
}

// ended is why nothing may be claimed of a strategy that has ended its search: by a panic,
// or by a call that did not return. ok is false for other errors.
func ended(err error) (reason results.Withheld, ok bool) {
	var p *PanicError
	var h *HungError
	switch {
	case errors.As(err, &p):
		return results.Withheld{Code: harness.CodePanicked, Detail: p.Error()}, true
	case errors.As(err, &h):
		return results.Withheld{Code: harness.CodeHung, Detail: h.Error()}, true
	}
	return results.Withheld{}, false
}

// partial is what a search had found when the strategy ended it with an error, and nil
// where it had not begun or another thing ended it.
func (p *progress) partial(ctx context.Context, sel strategies.Selection, cfg Config, err error) *Result {
	reason, ok := ended(err)
	p.mu.Lock()
	res, broken := p.res, slices.Clone(p.broken)
	p.mu.Unlock()
	if !ok || res.Runs == 0 {
		return nil
	}
	res.Capped, res.Withheld, res.Findings = "the strategy ended it", []results.Withheld{reason}, []Finding{}
	slices.SortStableFunc(broken, byProperty)
	for _, b := range broken {
		res.Findings = append(res.Findings, b.shown(ctx, sel, cfg))
	}
	return &res
}

// partialCensus is that of an enumeration.
func (p *progress) partialCensus(ctx context.Context, sel strategies.Selection, cfg Config, err error) *Census {
	reason, ok := ended(err)
	p.mu.Lock()
	c, broken := p.census, slices.Clone(p.broken)
	p.mu.Unlock()
	if !ok || c.Schedules == 0 {
		return nil
	}
	c.Complete, c.Withheld = false, []results.Withheld{reason}
	for _, b := range broken {
		if b.Property == Leak {
			f := b.shown(ctx, sel, cfg)
			c.Shortest = &f
		}
	}
	return &c
}

// shown is a finding with its steps, from an engine of its own: the one that it was found
// on may be in a call that does not return. Without its steps it is left where the
// strategy ends that, too.
func (b breakage) shown(ctx context.Context, sel strategies.Selection, cfg Config) Finding {
	f, err := explored(ctx, sel, cfg, func(s *search) (Finding, error) {
		again := b
		s.short = true
		err := s.repeat(&again)
		return again.Finding, err
	})
	if err != nil {
		f = b.Finding
		f.Strategy, f.Policy, f.Steps, f.Columns = sel.String(), cfg.Policy.Name, []results.Step{}, []results.Column{}
	}
	return f
}
