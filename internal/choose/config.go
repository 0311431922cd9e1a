package choose

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// Outage says what has to happen while Redis cannot be reached.
type Outage string

// What can be asked for.
const (
	// OutageAny: nothing is asked for, and no outage takes place.
	OutageAny Outage = "any"
	// OutageOpen: requests are admitted, over the limit too.
	OutageOpen Outage = "open"
	// OutageClosed: the limit holds; requests may be rejected, or end in errors.
	OutageClosed Outage = "closed"
	// OutageSurvive: decisions go on, and the limit holds.
	OutageSurvive Outage = "survive"
)

// Outages are all of them.
func Outages() []string {
	return []string{string(OutageAny), string(OutageOpen), string(OutageClosed), string(OutageSurvive)}
}

// answers reports whether requests have to be decided, and holds whether the limit has
// to hold.
func (o Outage) answers() bool { return o == OutageOpen || o == OutageSurvive }
func (o Outage) holds() bool   { return o == OutageClosed || o == OutageSurvive }

// Config is the question. Only Strategies and Policy are required.
type Config struct {
	// Strategies to choose from.
	Strategies []strategies.Selection
	Policy     quota.Policy
	// Instances of the application in each region. Default 2.
	Instances int
	// Regions that the application runs in. Default 1.
	Regions int
	// Skew is how far the clocks of instances are apart, in simulations. Default 0.
	Skew time.Duration
	// Rate in requests per second of the whole application. Default [DefaultRate].
	Rate float64
	// Subjects that requests are for. Default [DefaultSubjects].
	Subjects int64
	// TolerateLeak is how many units over the limit one subject may be given in one
	// window.
	TolerateLeak int64
	// P99 is the longest 99th percentile of a decision, from the moment at which its
	// request was due; 0 asks for none.
	P99 time.Duration
	// Outage of Redis. Default [OutageAny].
	Outage Outage
	// Settles is set if callers commit, refund or abandon what they were given, as
	// uploads do.
	Settles bool
	// Budget is how long the choice may take, by the wall clock. What is not tested by
	// then is said to be not tested. Default [DefaultBudget].
	Budget time.Duration
	// MaxStates bounds each search. Default [DefaultMaxStates].
	MaxStates int
	// Seed of everything random. Default 1.
	Seed uint64
	// Stores are the open stores, by name. The database of record is a model if
	// there is no "postgres".
	Stores *stores.Set
	// Observer is told of progress; nil for none.
	Observer Observer

	// brisk is the length of runs that are too short for figures of speed, and suffice for
	// those of tests; 0 is none.
	brisk time.Duration
}

// Defaults of a question.
const (
	DefaultInstances = 2
	DefaultRate      = 1_000
	DefaultSubjects  = 10_000
	DefaultBudget    = 2 * time.Minute
	DefaultMaxStates = 60_000
)

// LeastBudget is the shortest that a choice may be given.
const LeastBudget = time.Second

// longer is what to do about strategies for which no time was left.
const longer = ": give a longer --budget"

// MaxRegions is how many regions a question may have.
const MaxRegions = 16

// Observer is told of progress. Its methods are called one at a time.
type Observer interface {
	// Stage begins, with so many strategies.
	Stage(name string, strategies int)
	// Doing is told what the stage does next.
	Doing(what string)
}

type silent struct{}

func (silent) Stage(string, int) {}
func (silent) Doing(string)      {}

// Complete fills in defaults, and reports the first thing that does not fit of what settings do not see to.
func (c *Config) Complete() error {
	c.Instances = cmp.Or(c.Instances, DefaultInstances)
	c.Regions = cmp.Or(c.Regions, 1)
	c.Rate = cmp.Or(c.Rate, DefaultRate)
	c.Subjects = cmp.Or(c.Subjects, DefaultSubjects)
	c.Outage = cmp.Or(c.Outage, OutageAny)
	c.Budget = cmp.Or(c.Budget, DefaultBudget)
	c.MaxStates = cmp.Or(c.MaxStates, DefaultMaxStates)
	c.Seed = cmp.Or(c.Seed, 1)
	if c.Observer == nil {
		c.Observer = silent{}
	}
	switch {
	case len(c.Strategies) == 0:
		return errors.New("no strategy to choose from")
	case c.Policy.Limit < 1:
		return fmt.Errorf("a limit of %d: give 1 or more", c.Policy.Limit)
	case c.Instances < 1 || c.Instances*c.Regions > harness.MaxInstances:
		return fmt.Errorf("%d instances in each of %d regions: give 1 to %d in all", c.Instances, c.Regions, harness.MaxInstances)
	}
	_, err := c.workload(steady)
	return err
}

// MaxSubjects is how many subjects a question may have.
const MaxSubjects = 1 << 22

// The workloads of the stages, by name.
const (
	hotKey   = "hot-key"
	uploads  = "uploads"
	boundary = "boundary"
	steady   = "steady"
)

// workload is the one with the name, or uploads if callers settle.
func (c *Config) workload(name string) (*workloads.Meta, error) {
	if c.Settles {
		name = uploads
	}
	return workloads.Lookup(name)
}

// StoresNeeded are the names of the stores that the strategies need which serve the
// policy, and of the one that the reference loop runs on.
func (c *Config) StoresNeeded() []string {
	names := []string{string(strategies.NeedRedis)}
	for _, s := range c.Strategies {
		if s.BuiltIn() != nil || s.ServesPolicy(&c.Policy) != nil {
			continue
		}
		for _, n := range s.Needs {
			if n == strategies.NeedSource {
				n = strategies.NeedPostgres
			}
			names = append(names, string(n))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// total is how many instances there are in all regions.
func (c *Config) total() int { return c.Instances * c.Regions }

// largest is the cost in units of the largest request.
func (c *Config) largest() int64 { return slices.Max(append([]int64{1}, c.Policy.Costs...)) }

// crossed is the policy with a limit that is crossed often in a short run. It is no
// lower than four times the leak that is tolerated, so that what is admitted once per
// instance is still seen.
func (c *Config) crossed() quota.Policy {
	requests := int64(crossedRequests)
	if c.Settles {
		requests = crossedUploads
	}
	p := c.Policy
	p.Limit = min(p.Limit, max(requests*c.largest(), 4*c.TolerateLeak))
	return p
}

// Requests' worth of a limit that is crossed often: what is committed is soon deleted,
// so uploads need a lower one.
const (
	crossedRequests = 50
	crossedUploads  = 10
)

// question is the record of what is asked.
func (c *Config) question() results.Question {
	return results.Question{
		Policy: c.Policy.Text(), Limit: c.Policy.Limit, Unit: c.Policy.Unit,
		Instances: c.Instances, Regions: c.Regions, Skew: int64(c.Skew), RatePerS: c.Rate, Subjects: c.Subjects,
		ToleratedLeak: c.TolerateLeak, P99: int64(c.P99), Outage: string(c.Outage), Settles: c.Settles, Faults: c.faults(),
	}
}

// faults are those that the search has happen, in addition to the passing of time:
// callers die everywhere, and Redis goes away if that is asked for.
func (c *Config) faults() []quota.Fault {
	if c.Outage.holds() {
		return []quota.Fault{quota.FaultCrash, quota.FaultOutage}
	}
	return []quota.Fault{quota.FaultCrash}
}
