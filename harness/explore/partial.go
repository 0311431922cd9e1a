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
	// changed is called, without the lock, when broken has changed; nil for nothing.
	changed func()
}

// notify ends a change.
func (p *progress) notify(changed bool) {
	p.mu.Unlock()
	if changed && p.changed != nil {
		p.changed()
	}
}

// read is what there is now.
func (p *progress) read() (*Result, *Census, []breakage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	res, census := p.res, p.census
	return &res, &census, slices.Clone(p.broken)
}

// told takes in what a child has read.
func (p *progress) told(n *news) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.res, p.census, p.broken = *n.Search, *n.Census, nil
	for _, f := range n.Found {
		_, path, _ := parseToken(f.Token) // which the child has made
		p.broken = append(p.broken, breakage{f, path})
	}
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
	p.notify(changed)
}

// walked notes how far a walk has come.
func (p *progress) walked(w *statelessSearch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.res.Waited = w.waiting
	p.res.States = w.points + 1
	p.res.Runs = w.runs
	p.res.Depth = w.depth
	p.census.Schedules = w.runs
	p.census.Leaking = w.leaking
	p.census.Worst = w.worstLeak
	p.census.Waited = w.waiting
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
	p.notify(changed)
}

// endedByStrategy is why such a search is not complete.
const endedByStrategy = "the strategy ended it"

// withheldBy is why nothing may be claimed of a strategy that has ended its search: by a
// panic, with its process, or by a call that did not return. It is nil for other errors.
func withheldBy(err error) []results.Withheld {
	var p *PanicError
	var d *DiedError
	var h *HungError
	switch {
	case errors.As(err, &p):
		return []results.Withheld{{Code: harness.CodePanicked, Detail: p.Error()}}
	case errors.As(err, &d):
		return []results.Withheld{{Code: harness.CodePanicked, Detail: d.Error()}}
	case errors.As(err, &h):
		return []results.Withheld{{Code: harness.CodeHung, Detail: h.Error()}}
	}
	return nil
}

// partial is what a search had found when the strategy ended it with an error, and nil
// if it had not begun or another thing ended it.
func (p *progress) partial(ctx context.Context, sel strategies.Selection, cfg Config, err error) *Result {
	reasons := withheldBy(err)
	res, _, broken := p.read()
	if reasons == nil || res.Runs == 0 {
		return nil
	}
	res.Capped, res.Withheld, res.Findings = endedByStrategy, reasons, []Finding{}
	slices.SortStableFunc(broken, byProperty)
	for _, b := range broken {
		res.Findings = append(res.Findings, b.shown(ctx, sel, cfg))
	}
	return res
}

// partialCensus is that of an enumeration.
func (p *progress) partialCensus(ctx context.Context, sel strategies.Selection, cfg Config, err error) *Census {
	reasons := withheldBy(err)
	_, c, broken := p.read()
	if reasons == nil || c.Schedules == 0 {
		return nil
	}
	c.Complete, c.Withheld = false, reasons
	for _, b := range broken {
		if b.Property == Leak {
			f := b.shown(ctx, sel, cfg)
			c.Shortest = &f
		}
	}
	return c
}

// shown is a finding with its steps, from an engine or a process of its own: the one that
// it was found on may be in a call that does not return. It has no steps if the strategy
// ends that, too.
func (b breakage) shown(ctx context.Context, sel strategies.Selection, cfg Config) Finding {
	if cfg.isolates(sel) {
		f := b.unshown(sel, &cfg)
		f.Token = tokenOf(sel, &cfg, b.path, b.Property)
		if a, err := inChild(ctx, sel, &cfg, task{Token: f.Token}, new(progress)); err == nil {
			f.Steps, f.Columns, f.Faults = a.Replayed.Finding.Steps, a.Replayed.Finding.Columns, a.Replayed.Finding.Faults
		}
		return f
	}
	f, err := explored(ctx, sel, cfg, func(s *search) (Finding, error) {
		again := b
		s.short = true
		err := s.repeat(&again)
		return again.Finding, err
	})
	if err != nil {
		return b.unshown(sel, &cfg)
	}
	return f
}

// unshown is a finding without its steps.
func (b breakage) unshown(sel strategies.Selection, cfg *Config) Finding {
	f := b.Finding
	f.Strategy = sel.String()
	f.Policy = cfg.Policy.Name
	f.Steps = []results.Step{}
	f.Columns = []results.Column{}
	return f
}
