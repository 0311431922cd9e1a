package explore

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/explore/engine"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// Config says what to explore. Its zero value is two clients that each ask for
// one unit, with room for one of them, and no faults.
type Config struct {
	// Policy to enforce. The zero value is one of the strategy's own record if it
	// serves any, and otherwise the first that it serves. Its Limit is replaced.
	Policy quota.Policy
	// Limit in units. 0 leaves room for all requests but one.
	Limit int64
	// Used units of the subject at the start.
	Used int64
	// Clients that share one subject. Default 2.
	Clients int
	// Scripts of the clients; the last one serves those that have none of their
	// own. The default is a take of one unit. The first client also refunds it where the
	// strategy gives units back under a standing policy, and the others take two where
	// the policy's requests differ in cost.
	Scripts []Script
	// Instances of the application; client i asks instance i modulo this. 0 means
	// one per client.
	Instances int
	// Skew of each instance's clock ahead of virtual time; missing ones are 0.
	Skew []time.Duration
	// Seed of the strategies' own random numbers; 0 means 1.
	Seed uint64
	// Faults that may happen, each at most Times times in one schedule, clock
	// ticks one time more.
	Faults []quota.Fault
	// Times is how often each fault may happen. Default 1.
	Times int
	// JobRounds is how many rounds of a periodic job may start at moments of the
	// search's choosing, since nothing is known about the phase of its period. Rounds
	// that a caller wakes come on top. 0 means one, negative none.
	JobRounds int
	// Asks is how often one more client asks for one unit once the scripts of all others
	// have ended and everything is at rest, until it is rejected, where fewer than that are
	// left and no time has passed within a request: it shows what the scripts are too short for. 0 means [DefaultAsks], negative
	// none. There is no such client on PostgreSQL.
	Asks int
	// Properties to look for; empty means all of [Properties].
	Properties []Property
	// MaxStates bounds the search, and again its second part. Default [DefaultStates], at
	// most [MostStates].
	MaxStates int
	// MaxMemory bounds in bytes what a search holds of states, likewise; 0 for no bound. A
	// strategy and its stores come on top.
	MaxMemory int64
	// Preemptions is up to how many of them a second part of the search goes that a bound
	// has ended: it tries all schedules in which no caller and no job is interrupted
	// between two commands of a call, then all with one interruption, and so on. 0 means
	// [DefaultPreemptions], negative no second part. On PostgreSQL there is none. Of foreign
	// code each goroutine is interrupted for itself.
	Preemptions int
	// Workers that try steps at the same time, each with stores of its own; 0 for one per
	// processor. What is found does not depend on it. On PostgreSQL and for foreign code
	// there is one.
	Workers int
	// MaxSchedules bounds an enumeration. Default 5,000,000, at most [MostSchedules].
	MaxSchedules int64
	// Timeout ends a search or an enumeration that takes longer, by the wall clock, with
	// what it has found; 0 for none. The first part of a search has half of it, where there
	// is a second.
	Timeout time.Duration
	// Samples is how many schedules are run at random, at most, after a search that has
	// found something, to say how often that is met; 0 for none. They end once each finding
	// was met in a hundred. The command runs [DefaultSamples].
	Samples int
	// First ends a search at the first schedule that breaks a property. Of the other
	// properties it then claims no more than that none was found so far. An enumeration
	// goes on.
	First bool
	// Progress is told how far the search has come; nil for nothing.
	Progress *Progress
	// DecisionTimeout is how long a strategy may do nothing that the search sees, by the
	// wall clock, before it is given up. 0 means [harness.DefaultDecisionTimeout].
	DecisionTimeout time.Duration
	// Postgres is the PostgreSQL server that strategies which are SQL are explored
	// on, in a schema that is made for it and goes with it; nil for none.
	Postgres stores.Store

	// gaveUp is closed once nobody waits for the search any more, be it that it hangs.
	gaveUp <-chan struct{}
	// began is the moment from which Timeout counts, in nanoseconds.
	began int64
	// enumerates is set where every schedule is run, whatever states it leads to.
	enumerates bool
	// trail keeps the schedule being run for another process; nil for none.
	trail *trail
	// rehearses is set where a search is made again under another wall clock.
	rehearses bool
	// everyOrder has all steps tried, also where it is known what they lead to, and audited
	// has these held against that.
	everyOrder, audited bool
	// sofar is told what is found as it is found; nil for nothing.
	sofar *progress
}

// DefaultAsks is enough for limits of a few units, and MostAsks the most.
const (
	DefaultAsks = 4
	MostAsks    = engine.MostAsks
)

// DefaultStates bounds a search that is not given a bound.
const DefaultStates = 200_000

// Limits of what one exploration accepts: more would never end.
const (
	MaxClients = 16
	MaxTimes   = 16
	// MaxUnits bounds a subject's units: Lua and JavaScript count no further.
	MaxUnits = 1 << 53
	// MostStates and MostSchedules bound a search and an enumeration: each state is
	// held in memory, and each schedule is a run.
	MostStates    = 20_000_000
	MostSchedules = 1_000_000_000_000
)

// supported lists the faults that can be injected here.
var supported = []quota.Fault{
	quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry,
	quota.FaultClock, quota.FaultEviction, quota.FaultOutage,
}

// Faults lists the faults that can be injected.
func Faults() []quota.Fault { return slices.Clone(supported) }

// ParseFaults reads a comma-separated list of faults, or "all".
func ParseFaults(list string) ([]quota.Fault, error) {
	switch list {
	case "":
		return nil, nil
	case "all":
		return slices.Clone(supported), nil
	}
	var out []quota.Fault
	for name := range strings.SplitSeq(list, ",") {
		f := quota.Fault(strings.TrimSpace(name))
		if !slices.Contains(supported, f) {
			names := make([]string, len(supported))
			for i, s := range supported {
				names[i] = string(s)
			}
			return nil, quota.Unknown("fault", string(f), names, ", or all")
		}
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out, nil
}

// UnfitError says that a strategy cannot be explored in the way that is asked for.
type UnfitError = engine.UnfitError

// The scripts of clients.
type (
	// Script is what one client does, in order.
	Script = engine.Script
	// Action is one step of a script.
	Action = engine.Action
)

// What a client can do.
const (
	Take   = engine.Take
	Commit = engine.Commit
	Refund = engine.Refund
	Limit  = engine.Limit
)

// ParseScripts reads scripts such as "take=5,refund;take": one per client,
// separated by semicolons, the last of them for all further clients.
func ParseScripts(text string) ([]Script, error) { return engine.ParseScripts(text) }

// Complete fills in defaults, as [Run] does, and reports the first thing that does not
// fit, as an [UnfitError].
func (c Config) Complete(sel strategies.Selection) (Config, error) { return c.complete(sel) }

// complete fills in defaults and reports the first thing that does not fit, as an
// [UnfitError].
func (c Config) complete(sel strategies.Selection) (Config, error) {
	c, err := c.fit(sel)
	if err != nil {
		err = &UnfitError{Err: err}
	}
	return c, err
}

func (c Config) fit(sel strategies.Selection) (Config, error) {
	if why, ok := sel.Excludes(strategies.ModeExplore); ok {
		return c, fmt.Errorf("strategy %s cannot be explored: %s", sel.Name, why)
	}
	if n := len(sel.RedisNeeds()); n > 1 {
		return c, fmt.Errorf("strategy %s cannot be explored: it needs %d Redis, and a search has one", sel.Name, n)
	}
	if err := sel.BuiltIn(); err != nil {
		return c, fmt.Errorf("strategy %s %w", sel.Name, err)
	}
	if sel.Foreign {
		if err := c.fitForeign(sel); err != nil {
			return c, err
		}
	}
	if OnPostgres(sel) {
		if err := c.fitPostgres(sel); err != nil {
			return c, err
		}
	}
	setDefault(&c.Clients, 2)
	setDefault(&c.Times, 1)
	setDefault(&c.JobRounds, 1)
	c.Seed = cmp.Or(c.Seed, 1)
	c.DecisionTimeout = cmp.Or(c.DecisionTimeout, harness.DefaultDecisionTimeout)
	setDefault(&c.MaxStates, DefaultStates)
	setDefault(&c.Preemptions, DefaultPreemptions)
	setDefault(&c.Asks, DefaultAsks)
	setDefault(&c.Workers, runtime.GOMAXPROCS(0))
	setDefault(&c.MaxSchedules, 5_000_000)
	if c.Policy.Name == "" {
		p, err := ownPolicy(sel.Meta)
		if err != nil {
			return c, err
		}
		c.Policy = p
	}
	if c.Policy.Window.Timeline != (quota.Timeline{}) {
		return c, fmt.Errorf("policy %s has a timeline of its own, and time is virtual here: leave it out", c.Policy.Name)
	}
	if err := sel.ServesPolicy(&c.Policy); err != nil {
		return c, err
	}
	setDefault(&c.Instances, c.Clients)
	if len(c.Scripts) == 0 {
		c.Scripts = defaultScripts(sel.Meta, &c.Policy, c.Limit)
	}
	if len(c.Properties) == 0 {
		c.Properties = Properties()
	}
	switch {
	case c.Clients < 1 || c.Clients > MaxClients:
		return c, fmt.Errorf("%d clients: give 1 to %d", c.Clients, MaxClients)
	case c.Instances < 1 || c.Instances > c.Clients:
		return c, fmt.Errorf("%d instances for %d clients: give 1 to %d", c.Instances, c.Clients, c.Clients)
	case len(c.Scripts) > c.Clients:
		return c, fmt.Errorf("%d scripts for %d clients: give at most one per client", len(c.Scripts), c.Clients)
	case len(c.Skew) > c.Instances:
		return c, fmt.Errorf("%d clocks for %d instances: give at most one per instance", len(c.Skew), c.Instances)
	case c.Limit < 0 || c.Used < 0 || c.Limit > MaxUnits || c.Used > MaxUnits:
		return c, fmt.Errorf("a limit of %d units of which %d are used: give 0 to %d", c.Limit, c.Used, int64(MaxUnits))
	case c.Times < 1 || c.Times > MaxTimes || c.JobRounds > MaxTimes:
		return c, fmt.Errorf("faults and rounds of jobs happen 1 to %d times", MaxTimes)
	case c.Workers < 1 || c.Preemptions > MaxTimes || c.MaxMemory < 0 || c.Samples < 0:
		return c, fmt.Errorf("%d workers, %d preemptions, %d bytes, %d samples: give at least one worker, at most %d preemptions, and nothing below 0", c.Workers, c.Preemptions, c.MaxMemory, c.Samples, MaxTimes)
	case c.Asks > MostAsks:
		return c, fmt.Errorf("%d asks of the last client: give at most %d", c.Asks, MostAsks)
	case c.MaxStates < 1 || c.MaxStates > MostStates || c.MaxSchedules < 1 || c.MaxSchedules > MostSchedules:
		return c, fmt.Errorf("a search of %d states, or %d schedules: give 1 to %d states and 1 to %d schedules", c.MaxStates, c.MaxSchedules, MostStates, int64(MostSchedules))
	}
	if c.Timeout < 0 {
		return c, fmt.Errorf("a timeout of %v: give a positive one, or none", c.Timeout)
	}
	if err := harness.CheckDecisionTimeout(c.DecisionTimeout); err != nil {
		return c, err
	}
	if err := harness.CheckSkew(c.Skew); err != nil {
		return c, err
	}
	for _, s := range c.Scripts {
		if err := s.Validate(sel.Meta); err != nil {
			return c, err
		}
	}
	if err := c.fitLimits(); err != nil {
		return c, err
	}
	for _, f := range c.Faults {
		if !slices.Contains(supported, f) {
			return c, fmt.Errorf("fault %q cannot be injected", f)
		}
	}
	if c.Limit == 0 {
		c.Limit = c.roomForAllButOne()
	}
	c.Policy.Limit = c.Limit
	return c, nil
}

// fitLimits reports why the limit cannot change as the scripts say.
func (c *Config) fitLimits() error {
	operators := 0
	for i := range c.Clients {
		if c.setup().Script(i).Operates() {
			operators++
		}
	}
	switch {
	case operators > 1:
		return fmt.Errorf("%d clients change the limit: give that to one, and the others a script of their own", operators)
	case operators == 1 && c.Policy.Window.Kind == quota.Bucket:
		return errors.New("the size of a bucket cannot change: give a policy of another kind")
	}
	return nil
}

func setDefault[T int | int64](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// setup is what an engine runs.
func (c *Config) setup() *engine.Setup {
	operated := slices.ContainsFunc(c.Scripts, Script.Operates)
	ordered := operated || slices.Contains(c.Faults, quota.FaultClock) || slices.Contains(c.Properties, FalseReject) || slices.Contains(c.Properties, Guarantee)
	asks := max(0, c.Asks)
	if c.enumerates {
		asks = 0
	}
	return &engine.Setup{
		Asks:   asks,
		Policy: c.Policy, Used: c.Used, Clients: c.Clients, Instances: c.Instances, Scripts: c.Scripts, Skew: c.Skew,
		Seed: c.Seed, Faults: c.Faults, Times: c.Times, JobRounds: c.JobRounds, Life: harness.DefaultLife, Ordered: ordered,
		Patience: c.DecisionTimeout, Stateless: c.enumerates,
	}
}

// OnPostgres reports whether a strategy is explored on a PostgreSQL server. Those
// that use it beside Redis have a model for it.
func OnPostgres(sel strategies.Selection) bool { return sel.NeedsStore(strategies.NeedPostgres) }

// fitPostgres reports why a strategy cannot be explored on PostgreSQL here.
func (c *Config) fitPostgres(sel strategies.Selection) error {
	switch {
	case len(sel.RedisNeeds()) > 0:
		return fmt.Errorf("strategy %s cannot be explored: it needs Redis and PostgreSQL at once, which cannot be parked together", sel.Name)
	case len(c.Faults) > 0:
		return fmt.Errorf("strategy %s is explored on a real PostgreSQL, in which no faults can be injected: leave them out", sel.Name)
	case !available(c.Postgres):
		return fmt.Errorf("strategy %s needs PostgreSQL: install its server (Debian: postgresql, macOS: brew install postgresql), or give a URL by --postgres", sel.Name)
	}
	return nil
}

// fitForeign reports why code that keeps its own time cannot be explored here.
func (c *Config) fitForeign(sel strategies.Selection) error {
	switch {
	case OnPostgres(sel), sel.NeedsStore(strategies.NeedSource):
		return fmt.Errorf("strategy %s cannot be explored: it is foreign and needs a database, and a bubble has Redis alone", sel.Name)
	case sel.ClockFixed && slices.Contains(c.Faults, quota.FaultClock):
		return fmt.Errorf("strategy %s takes the time from where nothing can move it, and would be judged by another clock: leave the fault clock out", sel.Name)
	case slices.ContainsFunc(c.Skew, func(d time.Duration) bool { return d != 0 }):
		return fmt.Errorf("strategy %s reads the clock of package time, and a bubble has one for all instances: leave the skew out", sel.Name)
	}
	return nil
}

// available reports whether there is a server behind a store. One that stands for
// the lack of a server says so.
func available(s stores.Store) bool {
	if s == nil {
		return false
	}
	a, ok := s.(interface{ Available() bool })
	return !ok || a.Available()
}
