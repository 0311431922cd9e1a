package explore

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// Progress is how far a search or an enumeration has come. Its zero value is one that
// has not begun. It may be read while the search goes on.
type Progress struct {
	mu    sync.Mutex
	sofar Sofar
}

// Sofar is one reading of a [Progress].
type Sofar struct {
	// Runs of a schedule from its start.
	Runs int64
	// States that were met, and those of them whose next steps have not been tried. An
	// enumeration knows no states.
	States, Waiting int64
	// Depth is the length of the longest schedule, in steps.
	Depth int64
	// Counting is set in the second part of a search, which counts preemptions, and
	// Preemptions is the number that it has come to.
	Counting    bool
	Preemptions int64
	// Share of all schedules that an enumeration has run, 0 to 1, as if all that is left
	// were as large as what is done; 0 if that is not known.
	Share float64
}

// Read returns how far the search has come.
func (p *Progress) Read() Sofar {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sofar
}

func (p *Progress) set(sofar Sofar) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.sofar = sofar
	p.mu.Unlock()
}

// endAtFirst ends a search that is asked for the first finding, and says why.
func (s *search) endAtFirst() string {
	s.atFirst = true
	return "it ended at the first violation"
}

// over says why the search is to end now; empty if it is not.
func (s *search) over(ctx context.Context) string {
	switch {
	case s.timeUp() != "" && !errors.Is(ctx.Err(), context.Canceled):
		return s.timeUp()
	case ctx.Err() != nil:
		return stopped(ctx)
	default:
		return s.Run.Spent
	}
}

// stopped says how a context has ended a search; empty if it has not.
func stopped(ctx context.Context) string {
	switch err := ctx.Err(); {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return "the time of all searches was up"
	}
	return "interrupted"
}

// progress is how far a search or an enumeration has come, for the case that the strategy
// ends it. What was given up may go on to write to it.
type progress struct {
	mu     sync.Mutex
	res    Result
	census results.Census
	broken []breakage
	// changed is called, without the lock, when broken has changed; nil for nothing.
	changed func()
}

// read is what there is now.
func (p *progress) read() (*Result, *results.Census, []breakage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	res := p.res
	census := p.census
	return &res, &census, slices.Clone(p.broken)
}

// told takes in what a child has read.
func (p *progress) told(n *news) {
	var broken []breakage
	for _, finding := range n.Found {
		_, path, _ := parseToken(finding.Token) // which the child has made
		broken = append(broken, breakage{finding, path})
	}
	p.note(n.Search, n.Census, broken)
}

// note notes how far a search or an enumeration has come, nil for none, and what is broken. On nil it does nothing.
func (p *progress) note(res *Result, census *results.Census, broken []breakage) {
	if p == nil {
		return
	}
	p.mu.Lock()
	if res != nil {
		p.res = *res
	}
	if census != nil {
		p.census = *census
	}
	changed := !slices.EqualFunc(broken, p.broken, func(a, b breakage) bool { // another path replaces one
		return len(a.path) == len(b.path) && (len(a.path) == 0 || &a.path[0] == &b.path[0])
	})
	if changed {
		p.broken = slices.Clone(broken) // the search sorts its own
	}
	p.mu.Unlock()
	if changed && p.changed != nil {
		p.changed()
	}
}

// endedByStrategy is why such a search is not complete.
const endedByStrategy = "the strategy ended it"

// withheldBy is why nothing may be claimed of a strategy that has ended its search: by a
// panic, with its process, or by a call that did not return. It is nil for other errors.
func withheldBy(err error) []results.Withheld {
	var panicError *PanicError
	var death *DiedError
	var hungError *HungError
	switch {
	case errors.As(err, &panicError):
		return []results.Withheld{{Code: codes.Panicked, Detail: panicError.Error()}}
	case errors.As(err, &death):
		return []results.Withheld{{Code: codes.Panicked, Detail: death.Error()}}
	case errors.As(err, &hungError):
		return []results.Withheld{{Code: codes.Hung, Detail: hungError.Error()}}
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
	res.Capped = endedByStrategy
	res.Withheld = reasons
	res.Findings = []Finding{}
	slices.SortStableFunc(broken, byProperty)
	for _, breakage := range broken {
		res.Findings = append(res.Findings, breakage.shown(ctx, sel, cfg))
	}
	return res
}

// partialCensus is that of an enumeration.
func (p *progress) partialCensus(ctx context.Context, sel strategies.Selection, cfg Config, err error) *results.Census {
	reasons := withheldBy(err)
	_, census, broken := p.read()
	if reasons == nil || census.Schedules == 0 {
		return nil
	}
	census.Complete = false
	census.Withheld = reasons
	for _, breakage := range broken {
		if breakage.Property == Leak {
			finding := breakage.shown(ctx, sel, cfg)
			census.Shortest = &finding
		}
	}
	return census
}

// shown is a finding with its steps, from an engine or a process of its own: the one that
// it was found on may be in a call that does not return. It has no steps if the strategy
// ends that, too.
func (b breakage) shown(ctx context.Context, sel strategies.Selection, cfg Config) Finding {
	if cfg.isolates(sel) {
		finding := b.unshown(sel, &cfg)
		finding.Token = tokenOf(sel, &cfg, b.path, b.Property)
		if answer, err := inChild(ctx, sel, &cfg, task{Token: finding.Token}); err == nil {
			finding.Steps = answer.Replayed.Finding.Steps
			finding.Columns = answer.Replayed.Finding.Columns
			finding.Faults = answer.Replayed.Finding.Faults
		}
		return finding
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
	finding := b.Finding
	finding.Strategy = sel.String()
	finding.Policy = cfg.policyName()
	finding.Steps = []results.Step{}
	finding.Columns = []results.Column{}
	return finding
}
