package explore

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/programs"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Complete fills in defaults, as [Run] does, and reports the first thing that does not
// fit, as an [UnfitError].
func (c Config) Complete(sel strategies.Selection) (Config, error) {
	c, err := c.fit(sel)
	if err != nil {
		err = &UnfitError{Err: err}
	}
	return c, err
}

func (c Config) fit(sel strategies.Selection) (Config, error) {
	if err := c.fitKind(sel); err != nil {
		return c, err
	}
	sel = c.windowed(sel)
	if c.Service != "" {
		setDefault(&c.Workers, 1)
	}
	c.setDefaults()
	if c.Service != "" {
		c.setServiceDefaults(sel)
	}
	if err := c.fitPolicy(sel.Meta); err != nil {
		return c, err
	}
	if len(c.Scripts) == 0 {
		c.Scripts = defaultScripts(sel.Meta, &c.Policy, c.Limit)
	}
	if err := c.fitBounds(); err != nil {
		return c, err
	}
	for _, script := range c.Scripts {
		if err := script.Validate(sel.Meta); err != nil {
			return c, err
		}
		if script.Others() && c.Service == "" {
			return c, fmt.Errorf("script %q has another subject, which a service alone is searched with: give one by "+
				"--service, or leave it out", script)
		}
	}
	if err := c.fitLimits(); err != nil {
		return c, err
	}
	if err := c.fitFaults(); err != nil {
		return c, err
	}
	if err := c.setLimit(sel.Meta); err != nil {
		return c, err
	}
	err := c.fitSecond(sel.Meta)
	return c, err
}

// fitSecond sets the limit of the second window, and reports why there can be none.
func (c *Config) fitSecond(meta *strategies.Meta) error {
	switch {
	case c.Second.Limit == 0:
		return nil
	case meta.TwoQuotas:
		c.namesSecond = true
		c.Second.Limit = min(c.Second.Limit, c.Limit)
		if err := meta.ServesPolicy(&c.Second); err != nil {
			return err
		}
	case meta.Form != strategies.Library && c.Service == "":
		return fmt.Errorf("strategy %s charges a request to one window: give one of the two", meta.Name)
	}
	if c.Second.Window == c.Policy.Window {
		return errors.New("both windows are the same: give two different ones")
	}
	if c.LearnWindow {
		return errors.New("a service whose window is to be learned has one: leave the second out")
	}
	return nil
}

// fitPolicy sets the policy if none is given, and reports why it cannot be searched.
func (c *Config) fitPolicy(meta *strategies.Meta) error {
	if c.Policy.Name == "" {
		policy, err := ownPolicy(meta)
		if err != nil {
			return err
		}
		c.Policy = policy
	}
	if c.Policy.Window.Timeline != (quota.Timeline{}) {
		return fmt.Errorf("policy %s has a timeline of its own, and time is virtual here: leave it out", c.Policy.Name)
	}
	err := meta.ServesPolicy(&c.Policy)
	if err == nil {
		return nil
	}
	policy, none := ExamplePolicy(meta)
	if none != nil {
		return err
	}
	same := c.Policy.As(policy.Window.Kind)
	same.Costs = nil
	if meta.ServesPolicy(&same) == nil {
		policy = same
	}
	service := ""
	if c.Service != "" {
		service = " --service " + format.Quoted(c.Service)
	}
	if c.Request != "" {
		service += " --request " + format.Quoted(c.Request)
	}
	return fmt.Errorf("%w; this searches it: quotabench explore %s%s --policy '%s'", err, meta.Name, service, policy.Text())
}

// fitFaults reports a fault that cannot be injected.
func (c *Config) fitFaults() error {
	for _, fault := range c.Faults {
		if !slices.Contains(engine.Faults, fault) {
			return fmt.Errorf("fault %q cannot be injected", fault)
		}
		if c.Service == "" && engine.OfServices(fault) {
			return fmt.Errorf("fault %s can befall a service alone: give one by --service, or leave the fault out", fault)
		}
	}
	return nil
}

// setLimit sets the limit that is searched, and reports why the strategy does not serve it.
func (c *Config) setLimit(meta *strategies.Meta) error {
	c.limitNamed = c.Limit > 0
	c.Limit = cmp.Or(c.Limit, c.roomForAllButOne())
	c.Policy.Limit = c.Limit
	if err := meta.ServesPolicy(&c.Policy); err != nil {
		return fmt.Errorf("a search needs a limit of %d here: if the limiter is right with that, have its Serves take "+
			"it (%w)", c.Limit, err)
	}
	return nil
}

// fitKind reports why the strategy cannot be explored so, whatever the bounds.
func (c *Config) fitKind(sel strategies.Selection) error {
	if c.Service != "" {
		return c.fitService(sel)
	}
	if sel.Name == "http" {
		return fmt.Errorf("strategy %s is explored as a service that is started here: give its command by --service",
			sel.Name)
	}
	if why, ok := sel.Excludes(strategies.ModeExplore); ok {
		return fmt.Errorf("strategy %s cannot be explored: %s", sel.Name, why)
	}
	if n := len(sel.RedisNeeds()); n > 1 {
		return fmt.Errorf("strategy %s cannot be explored: it needs %d Redis, and a search has one", sel.Name, n)
	}
	if err := sel.BuiltIn(); err != nil {
		return fmt.Errorf("strategy %s: %w", sel.Name, err)
	}
	if sel.Foreign {
		if err := c.fitForeign(sel); err != nil {
			return err
		}
	}
	if OnPostgres(sel) {
		return c.fitPostgres(sel)
	}
	return nil
}

func (c *Config) setDefaults() {
	setDefault(&c.Clients, 2)
	setDefault(&c.Times, 1)
	setDefault(&c.Ticks, c.Times+1)
	setDefault(&c.JobRounds, 1)
	c.Seed = cmp.Or(c.Seed, 1)
	c.DecisionTimeout = cmp.Or(c.DecisionTimeout, bounds.DecisionTimeout)
	setDefault(&c.MaxStates, bounds.DefaultStates)
	setDefault(&c.Preemptions, bounds.DefaultPreemptions)
	setDefault(&c.Asks, bounds.DefaultAsks)
	setDefault(&c.Workers, runtime.GOMAXPROCS(0))
	setDefault(&c.MaxSchedules, 5_000_000)
	setDefault(&c.Instances, c.Clients)
	if len(c.Properties) == 0 {
		c.Properties = Properties()
	}
}

// fitBounds reports a number that is out of its bounds.
func (c *Config) fitBounds() error {
	switch {
	case c.Clients < 1 || c.Clients > bounds.MaxClients:
		return fmt.Errorf("%d clients: give 1 to %d", c.Clients, bounds.MaxClients)
	case c.Instances < 1 || c.Instances > c.Clients:
		return fmt.Errorf("%d instances for %d clients: give 1 to %d", c.Instances, c.Clients, c.Clients)
	case len(c.Scripts) > c.Clients:
		return fmt.Errorf("%d scripts for %d clients: give at most one per client", len(c.Scripts), c.Clients)
	case len(c.Skew) > c.Instances:
		return fmt.Errorf("%d clocks for %d instances: give at most one per instance", len(c.Skew), c.Instances)
	case c.Limit < 0 || c.Used < 0 || c.Limit > bounds.MaxUnits || c.Used > bounds.MaxUnits:
		return fmt.Errorf("a limit of %d units of which %d are used: give 0 to %d", c.Limit, c.Used, int64(bounds.MaxUnits))
	case c.Times < 1 || c.Times > bounds.MaxTimes || c.JobRounds > bounds.MaxTimes:
		return fmt.Errorf("faults and rounds of jobs happen 1 to %d times", bounds.MaxTimes)
	case c.Ticks < 1 || c.Ticks > bounds.MaxTimes+1:
		return fmt.Errorf("the clock ticks 1 to %d times", bounds.MaxTimes+1)
	case c.Workers < 1 || c.Preemptions > bounds.MaxTimes || c.MaxMemory < 0 || c.Samples < 0:
		return fmt.Errorf("%d workers, %d preemptions, %d bytes, %d samples: give at least one worker, at most %d "+
			"preemptions, and nothing below 0", c.Workers, c.Preemptions, c.MaxMemory, c.Samples, bounds.MaxTimes)
	case c.Asks > bounds.MaxAsks:
		return fmt.Errorf("%d asks of the last client: give at most %d", c.Asks, bounds.MaxAsks)
	case c.MaxStates < 1 || c.MaxStates > bounds.MaxStates || c.MaxSchedules < 1 || c.MaxSchedules > bounds.MaxSchedules:
		return fmt.Errorf("a search of %d states, or %d schedules: give 1 to %d states and 1 to %d schedules", c.MaxStates,
			c.MaxSchedules, bounds.MaxStates, int64(bounds.MaxSchedules))
	}
	if c.Timeout < 0 {
		return fmt.Errorf("a timeout of %v: give a positive one, or none", c.Timeout)
	}
	if err := bounds.CheckDecisionTimeout(c.DecisionTimeout); err != nil {
		return err
	}
	return bounds.CheckSkew(c.Skew)
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

func setDefault[T int | int64](v *T, d T) { *v = cmp.Or(*v, d) }

// policyName is the name of the policy, and that of a second window.
func (c *Config) policyName() string {
	if c.Second.Limit == 0 {
		return c.Policy.Name
	}
	return c.Policy.Name + " and " + c.Second.Name
}

// setup is what an engine runs.
func (c *Config) setup() *engine.Setup {
	operated := slices.ContainsFunc(c.Scripts, Script.Operates)
	ordered := operated || c.Passes || slices.Contains(c.Faults, quota.FaultClock) ||
		slices.Contains(c.Properties, FalseReject) || slices.Contains(c.Properties, Guarantee)
	asks := max(0, c.Asks)
	if c.enumerates {
		asks = 0
	}
	var second *quota.Policy
	if c.Second.Limit > 0 {
		second = &c.Second
	}
	return &engine.Setup{
		Asks:   asks,
		Second: second, NamesSecond: c.namesSecond,
		Policy: c.Policy, Used: c.Used, Clients: c.Clients, Instances: c.Instances, Scripts: c.Scripts, Skew: c.Skew,
		Seed: c.Seed, Faults: c.Faults, Times: c.Times, MostTicks: c.Ticks, Passes: c.Passes, From: c.From,
		JobRounds: c.JobRounds,
		Learns:    c.LearnWindow,
		Life:      bounds.DefaultLife, Ordered: ordered, Shares: c.shares,
		Patience: c.DecisionTimeout, Stateless: c.enumerates,
	}
}

// OnPostgres reports whether a strategy is explored on a PostgreSQL server. Those
// that use it in addition to Redis have a model for it.
func OnPostgres(sel strategies.Selection) bool { return sel.NeedsStore(strategies.NeedPostgres) }

// fitPostgres reports why a strategy cannot be explored on PostgreSQL here.
func (c *Config) fitPostgres(sel strategies.Selection) error {
	switch {
	case len(sel.RedisNeeds()) > 0:
		return fmt.Errorf("strategy %s cannot be explored: it needs Redis and PostgreSQL at once, which cannot be parked "+
			"together", sel.Name)
	case len(c.Faults) > 0:
		return fmt.Errorf("strategy %s is explored on a real PostgreSQL, in which no faults can be injected: leave them out",
			sel.Name)
	case c.Passes || c.From != 0:
		return fmt.Errorf("strategy %s is explored on a real PostgreSQL, whose clock cannot be moved", sel.Name)
	case c.Postgres == nil:
		return fmt.Errorf("strategy %s needs PostgreSQL: give auto, process, container or a URL by --postgres, and install "+
			"its server for the first two (%s)", sel.Name, programs.Named("postgres").Packages())
	}
	return nil
}

// fitForeign reports why code that keeps its own time cannot be explored here.
func (c *Config) fitForeign(sel strategies.Selection) error {
	switch {
	case OnPostgres(sel), sel.NeedsStore(strategies.NeedSource):
		return fmt.Errorf("strategy %s cannot be explored: it is foreign and needs a database, and a bubble has Redis alone",
			sel.Name)
	case sel.ClockFixed && (c.Passes || slices.Contains(c.Faults, quota.FaultClock)):
		return fmt.Errorf("strategy %s takes the time from where nothing can move it, and would be judged by another clock: "+
			"leave the fault clock, and time that passes, out", sel.Name)
	case slices.ContainsFunc(c.Skew, func(duration time.Duration) bool { return duration != 0 }):
		return fmt.Errorf("strategy %s reads the clock of package time, and a bubble has one for all instances: leave the "+
			"skew out", sel.Name)
	}
	return nil
}
