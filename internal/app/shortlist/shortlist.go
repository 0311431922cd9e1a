// Package shortlist finds the strategies that are worth measuring under a policy. It takes them through stages, the
// cheap ones first: what they declare, searches of all schedules of a few clients, and a simulation across the end of a
// window. A strategy that a stage speaks against is left out, with the reason.
package shortlist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// Question is what a strategy is wanted for.
type Question struct {
	// Strategies to choose from.
	Strategies []strategies.Selection
	// Policy with the limit that is asked for.
	Policy quota.Policy
	// Second is a further window of the same limiter, e.g. of 1,000 requests per hour next to 10 per second; nil for none.
	Second *quota.Policy
	// Instances of the application.
	Instances int
	// GivesBack is set if callers commit, refund or abandon what they were given, as uploads do.
	GivesBack bool
	// Survive are faults under which the limit has to hold. While Redis is away, decisions have to go on as well.
	Survive []quota.Fault
	// Seed of everything random.
	Seed uint64
	// Budget is how long all stages may take, by the wall clock; 0 for no bound.
	Budget time.Duration
	// Most is how many strategies are measured at most; 0 for no bound.
	Most int
}

// Observer is told of progress. Its methods are called one at a time.
type Observer interface {
	// Stage begins, with so many strategies.
	Stage(name codes.Stage, strategies int)
	// Doing is told what the stage does next.
	Doing(what string)
}

type silent struct{}

func (silent) Stage(codes.Stage, int) {}
func (silent) Doing(string)           {}

// contender is a strategy on its way through the stages.
type contender struct {
	strategies.Selection
	// left says how it left; nil as long as it has not.
	left *results.Considered
	// taken is what a reader must know of one that has not left; nil for nothing.
	taken *results.Considered
	// unsearched is set if no search could be made.
	unsearched bool
	// bounded is set if a search or a simulation found what the strategy declares.
	bounded bool
}

// excluded is how a contender leaves that something speaks against.
func (c *contender) excluded(why results.Considered) {
	why.Strategy = c.String()
	why.Outcome = codes.Excluded
	c.left = &why
}

// stays is what is said of a contender that has not left.
func (c *contender) stays() results.Considered {
	var stays results.Considered
	if c.taken != nil {
		stays = *c.taken
	}
	stays.Strategy = c.String()
	stays.Outcome = codes.Taken
	return stays
}

// untried is how a contender leaves of which nothing can be said.
func (c *contender) untried(why results.Considered) {
	why.Strategy = c.String()
	why.Outcome = codes.Untried
	c.left = &why
}

// Shortlist is under way, or done after [Shortlist.Finish].
type Shortlist struct {
	question Question
	observer Observer
	all      []*contender
}

// DefaultPolicy is the name of the policy if nobody gives one: 1,000 requests per hour.
const DefaultPolicy = "agent-api"

// New takes strategies through the stages that need no store: what they declare, and what stored searches found.
func New(question Question) *Shortlist {
	shortlist := &Shortlist{question: question, observer: silent{}}
	for _, sel := range question.Strategies {
		shortlist.all = append(shortlist.all, &contender{Selection: sel})
	}
	shortlist.declared()
	for _, contender := range shortlist.still() {
		shortlist.conclude(contender, shortlist.stored(contender))
	}
	return shortlist
}

// still are the contenders that have not left.
func (s *Shortlist) still() []*contender {
	var contenders []*contender
	for _, contender := range s.all {
		if contender.left == nil {
			contenders = append(contenders, contender)
		}
	}
	return contenders
}

// LeaveOut leaves out what cannot be measured on the stores that are open, for the reason that cannot gives.
func (s *Shortlist) LeaveOut(cannot func(strategies.Selection) error) {
	for _, contender := range s.still() {
		err := cannot(contender.Selection)
		if err == nil {
			continue
		}
		why := results.Considered{Stage: codes.StageStore, Cause: codes.CannotRun, Detail: err.Error()}
		if lacking, ok := errors.AsType[*strategies.NotBuiltInError](err); ok {
			why.Detail = lacking.What()
			why.Advice = lacking.Elsewhere
		}
		contender.untried(why)
	}
}

// Finish takes those that are left through the stages that take time. What the budget does not suffice for is left
// untried. The observer is told of progress; it may be nil. An error means that a stage could not run.
func (s *Shortlist) Finish(ctx context.Context, open *stores.Set, observer Observer) error {
	if observer != nil {
		s.observer = observer
	}
	if s.question.Budget > 0 {
		limited, cancel := context.WithTimeout(ctx, s.question.Budget)
		defer cancel()
		ctx = limited
	}
	for _, stage := range s.stages(open) {
		contenders := s.still()
		if len(contenders) == 0 {
			break
		}
		if ctx.Err() == nil {
			s.observer.Stage(stage.name, len(contenders))
		}
		if err := stage.run(ctx, contenders); err != nil && ctx.Err() == nil {
			return err
		}
	}
	s.keepBest()
	return nil
}

// stage is a part of the way.
type stage struct {
	name codes.Stage
	run  func(ctx context.Context, contenders []*contender) error
}

func (s *Shortlist) stages(open *stores.Set) []stage {
	search := func(ctx context.Context, contenders []*contender) error { return s.search(ctx, contenders, open) }
	out := []stage{{codes.StageSearch, search}}
	if s.question.Policy.Window.Kind != quota.Standing {
		out = append(out, stage{codes.StageSimulation, s.simulate})
	}
	if slices.Contains(s.question.Survive, quota.FaultOutage) {
		outage := func(ctx context.Context, contenders []*contender) error { return s.outage(ctx, contenders, open) }
		out = append(out, stage{codes.StageOutage, outage})
	}
	return out
}

// wellKnown reports whether people would try a strategy: a design record describes it, or it is a well-known way.
func wellKnown(sel strategies.Selection) bool {
	return sel.Core || sel.Form == strategies.Documented || sel.Form == strategies.Hardened ||
		sel.Form == strategies.Reference
}

// keepBest leaves out those that come after the most that are to be measured.
func (s *Shortlist) keepBest() {
	contenders := s.still()
	if s.question.Most == 0 || len(contenders) <= s.question.Most {
		return
	}
	prospects := map[string]*contender{}
	var order []ranking.Prospect
	for _, contender := range contenders {
		prospects[contender.String()] = contender
		units, _ := s.bound(contender, nil)
		order = append(order, ranking.Prospect{
			Label: contender.String(), PerProcess: contender.PerProcess, WellKnown: wellKnown(contender.Selection),
			Stores:   len(contender.Needs),
			Searched: !contender.unsearched, Bounded: contender.bounded, Declares: units,
		})
	}
	ranking.SortProspects(order)
	for _, prospect := range order[s.question.Most:] {
		contender := prospects[prospect.Label]
		contender.untried(results.Considered{
			Stage: codes.StageNumber, Cause: codes.Outranked, Units: int64(s.question.Most),
			Command: fmt.Sprintf("quotabench run %s --policy %s", format.Quoted(contender.String()), s.policyText()),
		})
	}
}

// Measure are the strategies that are worth measuring.
func (s *Shortlist) Measure() []strategies.Selection {
	var out []strategies.Selection
	for _, contender := range s.still() {
		out = append(out, contender.Selection)
	}
	return out
}

// Considered are all strategies, with what became of each.
func (s *Shortlist) Considered() []results.Considered {
	out := []results.Considered{}
	for _, contender := range s.all {
		if contender.left == nil {
			out = append(out, contender.stays())
			continue
		}
		out = append(out, *contender.left)
	}
	return out
}
