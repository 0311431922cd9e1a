package shortlist

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/parallel"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// clients is how many take part in a search, each on an instance of its own as far as there are so many.
const clients = 2

// The most states of a search: one with a fault has many more than one without.
const (
	statesWithout = 60_000
	statesWith    = 10_000
)

// Found is what one search of a strategy found.
type Found struct {
	// Faults that could happen.
	Faults []quota.Fault `json:"faults"`
	// Leak and FalseReject are schedules that the policy does not allow, and Guarantee one that breaks what the strategy
	// declares; nil for none.
	Leak        *Broken `json:"leak,omitempty"`
	FalseReject *Broken `json:"false_reject,omitempty"`
	Guarantee   *Broken `json:"guarantee,omitempty"`
	// Unfit is why the strategy cannot be searched; empty if it was.
	Unfit string `json:"unfit,omitempty"`
	// Failed is the error that ended the search; empty for none.
	Failed string `json:"failed,omitempty"`
}

// Broken is the shortest schedule that breaks a property.
type Broken struct {
	Units int64 `json:"units"`
	results.Schedule
}

// faults are those of the searches of a strategy, a search each: none, the passing of time, the death of callers, and
// what has to be survived. A real PostgreSQL can be given none of them.
func (s *Shortlist) faults(sel strategies.Selection) [][]quota.Fault {
	all := [][]quota.Fault{nil}
	if explore.OnPostgres(sel) {
		return all
	}
	if s.question.Policy.Window.Kind != quota.Standing {
		all = append(all, []quota.Fault{quota.FaultClock})
	}
	all = append(all, []quota.Fault{quota.FaultCrash})
	for _, fault := range s.question.Survive {
		if fault != quota.FaultClock && fault != quota.FaultCrash {
			all = append(all, []quota.Fault{fault})
		}
	}
	return all
}

// search searches those whose searches are not stored.
func (s *Shortlist) search(ctx context.Context, contenders []*contender, open *stores.Set) error {
	postgres, _ := open.Get(string(strategies.NeedPostgres))
	var onServer sync.Mutex // searches on PostgreSQL come one after the other
	var telling sync.Mutex
	var unknown []*contender
	for _, contender := range contenders {
		if s.stored(contender) == nil {
			unknown = append(unknown, contender)
		}
	}
	work := func(i int) []Found {
		contender := unknown[i]
		if explore.OnPostgres(contender.Selection) {
			onServer.Lock()
			defer onServer.Unlock()
		}
		telling.Lock()
		s.observer.Doing(contender.String())
		telling.Unlock()
		return s.searchOne(ctx, contender.Selection, postgres)
	}
	for i, found := range parallel.Do(runtime.GOMAXPROCS(0), len(unknown), work) {
		s.conclude(unknown[i], found)
	}
	return nil
}

// searchOne makes the searches of one strategy.
func (s *Shortlist) searchOne(ctx context.Context, sel strategies.Selection, postgres stores.Store) []Found {
	var all []Found
	for _, faults := range s.faults(sel) {
		if ctx.Err() != nil {
			return nil
		}
		one := Search(ctx, sel, explore.Config{
			Policy: s.question.Policy, Second: s.secondWindow(), Instances: min(clients, s.question.Instances),
			Seed: s.question.Seed, Faults: faults, Resources: explore.Resources{Postgres: postgres},
		})
		all = append(all, one)
	}
	return all
}

// secondWindow is the further window as a search takes it.
func (s *Shortlist) secondWindow() quota.Policy {
	if s.question.Second == nil {
		return quota.Policy{}
	}
	return *s.question.Second
}

// Search looks for the shortest schedule that speaks against a strategy. The configuration has the policy, the
// instances, the seed, the faults and PostgreSQL.
func Search(ctx context.Context, sel strategies.Selection, cfg explore.Config) Found {
	faults := cfg.Faults
	cfg.Clients = clients
	cfg.MaxStates = statesWithout
	cfg.Properties = []explore.Property{explore.Leak, explore.Guarantee, explore.FalseReject}
	if len(faults) > 0 {
		cfg.MaxStates = statesWith
	}
	// After a crash or an outage units may be counted that no caller holds: every strategy rejects for them, until they
	// end.
	for _, fault := range faults {
		if fault != quota.FaultClock {
			cfg.Properties = []explore.Property{explore.Leak, explore.Guarantee}
		}
	}
	found := Found{Faults: faults}
	result, err := explore.Run(ctx, sel, cfg)
	if _, unfit := errors.AsType[*explore.UnfitError](err); unfit {
		found.Unfit = err.Error()
		return found
	}
	if err != nil && ctx.Err() == nil {
		found.Failed = format.OneLine(err.Error())
	}
	if result != nil {
		found.Leak = broken(result, explore.Leak)
		found.FalseReject = broken(result, explore.FalseReject)
		found.Guarantee = broken(result, explore.Guarantee)
	}
	return found
}

// broken is the schedule that breaks a property, or nil.
func broken(result *results.Search, property explore.Property) *Broken {
	finding := result.Found(property)
	if finding == nil {
		return nil
	}
	schedule := results.Schedule{
		Steps: len(finding.Steps), Clients: result.Clients, Instances: result.Instances, Limit: result.Limit,
		Faults: finding.Faults,
	}
	if schedule.Faults == nil {
		schedule.Faults = []quota.Fault{}
	}
	return &Broken{Units: finding.Units, Schedule: schedule}
}

// conclude has a contender go on, or leave, by what its searches found; nil is nothing.
func (s *Shortlist) conclude(c *contender, searches []Found) {
	if searches == nil {
		c.unsearched = true
		return
	}
	c.unsearched = false
	for i := range searches {
		found := &searches[i]
		switch {
		case found.Unfit != "":
			c.unsearched = true
			return
		case found.Leak != nil && (found.Guarantee != nil || !s.withinBound(c, found.Leak.Faults)):
			s.schedule(c, codes.OverLimit, found.Leak, found.Faults)
		case found.Guarantee != nil:
			s.schedule(c, codes.BreaksGuarantee, found.Guarantee, found.Faults)
		case found.FalseReject != nil:
			s.schedule(c, codes.RejectsValid, found.FalseReject, found.Faults)
		case found.Failed != "":
			c.untried(results.Considered{
				Stage: codes.StageSearch, Cause: codes.Unsound, Detail: found.Failed,
				Command: s.exploreCommand(c, found.Faults),
			})
		}
		if c.left != nil {
			return
		}
		c.bounded = c.bounded || found.Leak != nil
	}
}

// schedule excludes a contender for a schedule that a search with some faults found.
func (s *Shortlist) schedule(c *contender, cause codes.Cause, broken *Broken, faults []quota.Fault) {
	schedule := broken.Schedule
	c.excluded(results.Considered{
		Stage: codes.StageSearch, Cause: cause, Units: broken.Units, Schedule: &schedule,
		Command: s.exploreCommand(c, faults),
	})
}

// exploreCommand makes a search again.
func (s *Shortlist) exploreCommand(c *contender, faults []quota.Fault) string {
	command := fmt.Sprintf("quotabench explore %s --policy %s", format.Quoted(c.String()), s.policyText())
	if s.question.Instances < clients {
		command += fmt.Sprintf(" --instances %d", s.question.Instances)
	}
	if len(faults) > 0 {
		command += " --faults " + strings.Join(format.Strings(faults), ",")
	}
	return command
}

// policyText is how the command line takes the policy, with both windows if there are two.
func (s *Shortlist) policyText() string {
	if s.question.Second == nil {
		return nameOrText(&s.question.Policy)
	}
	return format.Quoted(s.question.Policy.Text() + " and " + s.question.Second.Text())
}

// nameOrText is how the command line takes a policy: by its name if that is known, or as a text.
func nameOrText(policy *quota.Policy) string {
	known, err := quota.LookupPolicy(policy.Name)
	if err == nil && known.Window == policy.Window && known.Limit == policy.Limit && known.Unit == policy.Unit {
		return policy.Name
	}
	return format.Quoted(policy.Text())
}
