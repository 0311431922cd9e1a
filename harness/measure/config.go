package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/host/cores"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// Config says what to measure. The zero values of optional fields are filled in
// by [Config.Complete].
type Config struct {
	// Plan says what runs. Workers are 50 if it names none, and if it bounds
	// neither requests nor time a round lasts 100 ms, with outages 1 s. A load of
	// [harness.Both] without a rate has half of what the slowest strategy that uses a
	// store holds in its closed loop of the first round: at least [leastAutoRate], at
	// which slower strategies are saturated, and at most [mostAutoRate].
	harness.Plan

	// Rounds is how often every strategy is run. Default 10.
	Rounds int
	// Budget is the time within which the measurement answers: no round begins that would pass
	// it if it took as long as the longest one so far. The first round always begins, and those
	// that intervals need have twice the time: a busy machine is no reason to have none. 0 is no bound.
	Budget time.Duration
	// Enough is asked after each complete round, except the last, about all runs so far. The
	// measurement ends if it returns true; nil never does.
	Enough func(round int, runs []results.Run) bool
	// Earlier counts rounds that were measured before: the numbers of these go on from
	// there, and so do their request streams.
	Earlier int
	// Pool is the connections per instance to each store, at most 10,000; 0 means what a strategy asks
	// for, or, if it asks for none, one per worker, at most 64 to Redis and 16 to other stores.
	Pool int
	// ClientRetries of the Redis client, at most 100; 0 means none.
	ClientRetries int
	// NoReference leaves the reference loops out.
	NoReference bool
	// ReferenceLength is how long each reference loop runs. Default 100 ms, or as
	// long as a round if that is shorter.
	ReferenceLength time.Duration
	// Cores says where this process and the stores started for it run while requests
	// are measured. The zero value decides that for each strategy and load. It is
	// taken back before Measure returns.
	Cores Cores

	// Live can be asked for figures while the measurement goes on; nil if nothing asks.
	Live *Live
	// Observer is told of progress; nil for none.
	Observer Observer
	// Timer runs while requests are measured, and not while a run is set up and
	// judged; nil for none. A *testing.B is one.
	Timer Timer

	// base is the clock that the run is measured with; nil is the wall clock.
	base *timebase
}

// Timer is a clock that can be stopped.
type Timer interface {
	StartTimer()
	StopTimer()
}

const (
	// defaultReferenceLength is how long a reference loop runs. Longer ones are no steadier: the
	// speed of a virtual machine wanders from second to second, so what helps is a
	// loop right before and right after each strategy. Shorter ones than a round suffer more from
	// other programs than the round does.
	defaultReferenceLength = bounds.RoundDuration
	// maxConnections is how many connections all instances may have to one store: there are fewer ports than that to one
	// address.
	maxConnections = 60_000
	maxPool        = 16
)

// Complete fills in defaults and reports the first thing that does not fit.
func (c *Config) Complete() error {
	c.Workers = cmp.Or(c.Workers, 50)
	c.Rounds = cmp.Or(c.Rounds, 10)
	if c.Requests == 0 && c.Duration == 0 && c.Workload != nil && !c.Workload.NeedsTrace {
		c.Duration = bounds.RoundDuration
		if len(c.Trouble.Of(trouble.Outage, trouble.Network, trouble.Pause, trouble.Skew)) > 0 {
			c.Duration = bounds.TroubleDuration
		}
	}
	if c.ReferenceLength == 0 {
		c.ReferenceLength = defaultReferenceLength
		if c.Duration > 0 {
			c.ReferenceLength = min(c.ReferenceLength, c.Duration)
		}
	}
	switch {
	case c.Earlier < 0 || c.Earlier > bounds.MaxRounds:
		return fmt.Errorf("%d earlier rounds: give 0 to %d", c.Earlier, bounds.MaxRounds)
	case c.Rounds < 1 || c.Rounds > bounds.MaxRounds:
		return fmt.Errorf("%d rounds: give 1 to %d", c.Rounds, bounds.MaxRounds)
	case c.Budget < 0 || c.Budget > bounds.MaxDuration:
		return fmt.Errorf("a budget of %v: give at most %v", c.Budget, bounds.MaxDuration)
	case c.Pool < 0 || c.Pool > bounds.MaxPool:
		return fmt.Errorf("a pool of %d connections: give 1 to %d, or 0 for the default", c.Pool, bounds.MaxPool)
	case c.Duration > bounds.MaxDuration:
		return fmt.Errorf("a duration of %v: give at most %v", c.Duration, bounds.MaxDuration)
	case c.ReferenceLength < 0 || c.ReferenceLength > bounds.MaxDuration:
		return fmt.Errorf("reference loops of %v: give at most %v", c.ReferenceLength, bounds.MaxDuration)
	case c.ClientRetries < 0 || c.ClientRetries > bounds.MaxRetries:
		return fmt.Errorf("%d client retries: give 0 to %d", c.ClientRetries, bounds.MaxRetries)
	}
	if err := c.Plan.Complete(bounds.MaxWorkers); err != nil {
		return err
	}
	if n := len(c.Strategies) * c.Rounds; n > bounds.MaxRuns {
		return fmt.Errorf("%d strategies in %d rounds are %d runs, and the record of a measurement holds %d: "+
			"give fewer rounds, or fewer strategies", len(c.Strategies), c.Rounds, n, bounds.MaxRuns)
	}
	if n := c.Pool * c.Instances; n > maxConnections {
		return fmt.Errorf("%d connections in each of %d instances are %d to each store: give at most %d in all", c.Pool,
			c.Instances, n, maxConnections)
	}
	if err := c.checkRates(); err != nil {
		return err
	}
	if err := c.Cores.check(cores.Allowed()); err != nil {
		return err
	}
	return c.checkTrouble()
}

// checkTrouble reports an event that no run of these instances and stores can have.
func (c *Config) checkTrouble() error {
	if err := c.Trouble.Check(c.Instances, c.Duration); err != nil {
		return err
	}
	if len(c.Trouble.Of(trouble.Skew)) > 0 && len(c.Trouble.Of(trouble.Change)) > 0 {
		return errors.New("a limit that changes is judged by one clock: leave out the clocks that are wrong, or the " +
			"change of the limit")
	}
	for _, event := range c.Trouble {
		var err error
		switch event.Kind() {
		case trouble.Outage:
			err = c.checkOutage(&event)
		case trouble.Network:
			err = c.checkNetwork(&event)
		case trouble.Pause:
			if event.What.For >= c.DecisionTimeout {
				err = fmt.Errorf("decisions are given up after %v, so give a longer --decision-timeout", c.DecisionTimeout)
			}
		case trouble.Restart:
			err = errors.New("a measured run cannot restart instances: simulate it")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", event, err)
		}
	}
	return nil
}

// checkOutage reports an outage that its store cannot have, or of a store that the run has not.
func (c *Config) checkOutage(event *trouble.Event) error {
	name := event.Where.Name
	word := event.What.Word
	store, here := c.Stores.Get(name)
	switch {
	case c.lacks(name):
		return fmt.Errorf("this run has no store %s", name)
	case !here:
	case word == trouble.Empty && !volatile(store):
		return fmt.Errorf("%s keeps what it holds on a disk: give %s", name, event.Away())
	case word == trouble.Failover:
		return format.Wrapf(canFailOver(store, event, c.Duration), "%s cannot come back as its replica", name)
	case event.Breaks():
		breakable, ok := store.(stores.Breakable)
		err := errors.New("no store of its kind can")
		if ok {
			err = breakable.CanBreak(context.Background(), string(word))
		}
		return format.Wrapf(err, "%s cannot be %s", name, word)
	}
	return nil
}

// checkNetwork reports a network within this process, or to a store that the run has not.
func (c *Config) checkNetwork(event *trouble.Event) error {
	store, here := c.Stores.Get(event.Where.Name)
	switch {
	case c.lacks(event.Where.Name):
		return fmt.Errorf("this run has no store %s", event.Where.Name)
	case here && store.Info().Kind == stores.KindEmbedded:
		return errors.New("the network is within this process")
	}
	return nil
}

// lacks reports whether the run's stores are known, and have none of that name.
func (c *Config) lacks(store string) bool {
	_, here := c.Stores.Get(store)
	_, absent := c.Stores.Absent(store)
	return c.Stores != nil && !here && !absent
}

// checkRates reports open loops of more requests than can be judged.
func (c *Config) checkRates() error {
	switch {
	case c.Load.PerSecond > 0:
		return c.CheckHistory(c.Load.PerSecond, c.Duration, 0)
	case c.Open(workloads.Info{Loop: c.Workload.Loop}):
		return c.CheckHistory(c.RateInForce(), c.Duration, 0)
	}
	return nil
}

// poolOf is the connections of one instance to a store with that driver.
func (c *Config) poolOf(driver string) int {
	if c.Pool > 0 {
		return c.Pool
	}
	most := maxPool
	if d, err := stores.DriverOf(driver); err == nil {
		most = cmp.Or(d.Pool, most)
	}
	return min(c.Workers, most)
}

// volatile reports whether a store that ends loses what it holds.
func volatile(store stores.Store) bool {
	driver, err := stores.DriverOf(store.Driver())
	return err == nil && driver.Volatile
}

// poolFor is the connections of one of the strategy's instances to a store with that
// name and driver: those that a run was given, those that the strategy asks for as
// far as it has callers to use them, or the driver's.
func (c *Config) poolFor(selection strategies.Selection, name, driver string) int {
	asked := selection.Connections(name).Pool
	if c.Pool > 0 || asked <= 0 {
		return c.poolOf(driver)
	}
	callers := (c.Workers + c.Instances - 1) / c.Instances
	return min(asked, callers)
}

// CannotRun returns why a strategy cannot take part in this measurement, or nil.
func (c *Config) CannotRun(selection strategies.Selection) error {
	if err := selection.BuiltIn(); err != nil {
		return err // its stores may not be either
	}
	if err := c.Plan.CannotRun(selection, strategies.ModeMeasure, c.CrossesWindows()); err != nil {
		return err // its stores were not opened
	}
	if len(c.Trouble.Of(trouble.Skew)) > 0 && (selection.Foreign || selection.Outside) {
		return fmt.Errorf("%s goes by the clock of package time or of its own process, which is right: "+
			"leave wrong clocks out", selection.Name)
	}
	if selection.Outside && c.Stream.Speed() > 0 && c.Stream.Speed() != 1 {
		return fmt.Errorf("%s decides by its own clock, whose windows a replay at %g times the speed does not "+
			"shorten: give --workload %s:speed=1", selection.Name, c.Stream.Speed(), c.Workload.Name)
	}
	for _, need := range selection.Needs {
		if need == strategies.NeedSource {
			continue // which has a model
		}
		if _, ok := c.Stores.Get(string(strategies.NeedPostgres)); !ok && need == strategies.NeedReplica {
			continue // which a model has, too
		}
		store, ok := c.Stores.Get(string(need))
		if !ok {
			return c.missing(string(need))
		}
		if selection.Suits != nil {
			if err := selection.Suits(selection.Options, store); err != nil {
				return err
			}
		}
	}
	return nil
}

// StoresNeeded are the names of the stores that the plan's strategies need, as far as
// they can be measured at all, and of those that the measurement itself asks for.
func (c *Config) StoresNeeded() []string {
	var names []string
	if !c.NoReference {
		names = append(names, string(strategies.NeedRedis))
	}
	for _, event := range c.Trouble.Of(trouble.Outage, trouble.Network) {
		names = append(names, event.Where.Name)
	}
	for _, selection := range c.Strategies {
		if c.Plan.CannotRun(selection, strategies.ModeMeasure, c.CrossesWindows()) == nil {
			names = append(names, storesOf(selection)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// missing is why there is no store of that name.
func (c *Config) missing(name string) error {
	if why, ok := c.Stores.Absent(name); ok && why.Kind == stores.KindNone {
		return fmt.Errorf("it needs the store %s: %s", name, why.Detail)
	}
	return missing(name)
}

// missing says how to get a store that is not there.
func missing(name string) error {
	if driver, err := stores.DriverOf(name); err == nil && driver.Name == name {
		return fmt.Errorf("it needs %s: %s", driver.Title, cmp.Or(driver.Get, "give "+driver.Forms()+" by --"+name))
	}
	return fmt.Errorf("it needs the store %s: give it by --store %s=SPEC", name, name)
}

// Split separates the strategies that can take part from those that cannot.
func (c *Config) Split() (run []strategies.Selection, skipped map[string]string) {
	return c.Plan.Split(c.CannotRun)
}

// Notes are what a report's header has to say about how requests met windows.
func (c *Config) Notes() []string {
	var notes []string
	switch kind := c.Policy.Window.Kind; {
	case kind == quota.Standing:
	case c.Stream.Speed() > 0:
		notes = append(notes, fmt.Sprintf("windows follow recorded time at %g times its speed", c.Stream.Speed()))
	case !kind.Tumbling():
	case c.Workload.NeedsTrace:
		notes = append(notes, "replayed at full speed: windows are those of the wall clock, one begins with each run")
	default:
		notes = append(notes, "one window begins with each run")
	}
	for _, event := range c.Trouble.Of(trouble.Outage, trouble.Network) {
		if !c.uses(event.Where.Name) {
			notes = append(notes, fmt.Sprintf("%s has no effect: none of these strategies uses %s", event, event.Where.Name))
		}
	}
	return notes
}

// uses reports whether a strategy needs the store.
func (c *Config) uses(store string) bool {
	return slices.ContainsFunc(c.Strategies, func(selection strategies.Selection) bool {
		return slices.ContainsFunc(selection.Needs, func(need strategies.Need) bool { return need.Store() == store })
	})
}
