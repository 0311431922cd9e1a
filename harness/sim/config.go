package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// Config says what to simulate. The zero values of optional fields are filled in
// by [Config.Complete].
type Config struct {
	// Plan says what runs. Workers are 50 if it names none, in open loop 10,000;
	// if it bounds neither requests nor time, a minute of virtual time passes; a
	// trace is replayed at its recorded speed. Instances are those of one region.
	//
	// A store named "redis", if there is one, carries out the commands instead of
	// the Redis in this process. It has a clock of its own, so Start must lie in
	// its future, and keys that expire in virtual time are deleted there. Other
	// stores are not used: no database has virtual time.
	harness.Plan

	// Start is the first moment of virtual time, and of the policy's. Default
	// 2026-01-01 00:00 UTC; a trace at its recorded speed starts with its first row.
	Start time.Time
	// Rushes add arrivals to an open loop.
	Rushes   []Rush
	Topology Topology
	// RedisNet and PostgresNet are how long the stores take; nil is ADR-005's.
	RedisNet, PostgresNet *Network

	// Every is the distance between two samples of the series. Default one 288th
	// of the duration, at least a millisecond; negative takes none.
	Every time.Duration
	// Tracked subjects have their counters read at every sample: the first so
	// many to be asked for. Default 200.
	Tracked int

	// Parallel is how many strategies are simulated at the same time, each on one
	// processor and in memory of its own; 0 means as many as there are processors. The
	// report is the same. On a real server it is one.
	Parallel int
	// CPU has the processor time of a decision recorded, the least of four simulations: one strategy at a time, on one
	// processor and without the garbage collector. Records of one seed then differ by it.
	CPU bool
	// Isolate has each foreign strategy simulated in a process of its own, which is this
	// program again: a panic on a goroutine that it has started then ends only its own run,
	// whose audit says so. Foreign strategies and the workload must be
	// registered, and the program must call [harness.ServeIsolated].
	Isolate bool

	// Live, if not nil, can be asked how the simulation goes on.
	Live *Live `json:"-"`
	// Progress is told how far the simulation has come; nil for nothing.
	Progress *Progress `json:"-"`
	// SoFar is given all runs up to now after each strategy; nil for nothing.
	SoFar func([]results.Run) `json:"-"`
}

// Limits of what one run accepts.
const (
	// maxSamples is how many samples the series of a strategy may have, and
	// maxReadings how many counters are read for it. If it is not known in advance
	// how long a run takes, its series gets coarser when it is that long.
	maxSamples  = 100_000
	maxReadings = 200_000_000

	samples = 288 // five minutes of a day
)

// The first and the last moment at which virtual time may begin. It is counted in
// nanoseconds since 1970, which end in 2262, and what follows it must fit: ten
// years of duration, the windows of that time, and clocks that are ahead.
var (
	firstStart = time.Unix(0, 0).UTC()
	lastStart  = time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC)
)

// Complete fills in defaults and reports the first setting that does not fit.
func (c *Config) Complete() error {
	c.setTimes()
	open := c.openLoop()
	c.setSizes(open)
	if err := c.Plan.Complete(bounds.MaxVirtualWorkers); err != nil {
		return err
	}
	if err := c.checkLimits(); err != nil {
		return err
	}
	if err := c.checkLoad(open); err != nil {
		return err
	}
	if err := c.checkSizes(open); err != nil {
		return err
	}
	if err := c.Topology.complete(c.Instances); err != nil {
		return err
	}
	return c.checkTrouble()
}

// setTimes fills in the start, the speed of a trace and the duration.
func (c *Config) setTimes() {
	if c.Workload != nil && c.Workload.NeedsTrace && c.Stream.Speed() == 0 && c.Load.Loop != workloads.Closed {
		c.Stream.Set("speed", 1) // the recorded time
	}
	if c.Start.IsZero() {
		c.Start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	if c.Duration == 0 && c.Requests == 0 && c.Workload != nil && !c.Workload.NeedsTrace {
		c.Duration = time.Minute
	}
}

// openLoop reports whether requests start when they are due: by the workload, or
// because a trace is replayed by its recorded times.
func (c *Config) openLoop() bool {
	if c.Workload == nil {
		return false
	}
	replayed := c.Stream.Speed() > 0 && c.Load.Loop != workloads.Closed
	return replayed || c.Open(workloads.Info{Loop: c.Workload.Loop})
}

// setSizes fills in the numbers of workers and tracked subjects, and the networks.
func (c *Config) setSizes(open bool) {
	workers := 50
	if open {
		workers = 10_000
	}
	c.Workers = cmp.Or(c.Workers, workers)
	c.Tracked = cmp.Or(c.Tracked, 200)
	c.RedisNet = cmp.Or(c.RedisNet, new(defaultRedis()))
	c.PostgresNet = cmp.Or(c.PostgresNet, new(defaultPostgres()))
}

// checkLimits reports a number or a time beyond its limits.
func (c *Config) checkLimits() error {
	switch {
	case c.Load.Loop == harness.Both:
		return errors.New("a simulation has no latency for a second loop: give a closed loop or an open one")
	case c.Parallel < 0 || c.Parallel > bounds.MaxParallel:
		return fmt.Errorf("%d strategies at the same time: give 0 to %d", c.Parallel, bounds.MaxParallel)
	case c.Tracked < 0 || c.Tracked > bounds.MaxTracked:
		return fmt.Errorf("%d tracked subjects: give 1 to %d", c.Tracked, bounds.MaxTracked)
	case c.Duration > bounds.MaxVirtualDuration:
		return fmt.Errorf("a duration of %v: give at most %v, which is ten years", c.Duration, bounds.MaxVirtualDuration)
	case c.Start.Before(firstStart) || c.Start.After(lastStart):
		return fmt.Errorf("virtual time starts at %s: give a moment from %s to %s, so that all that follows lies "+
			"before 2262, where nanoseconds since 1970 end",
			c.Start.UTC().Format(time.RFC3339), firstStart.Format(time.RFC3339), lastStart.Format(time.RFC3339))
	}
	return nil
}

// checkLoad reports rushes and windows that the load cannot have.
func (c *Config) checkLoad(open bool) error {
	switch {
	case len(c.Rushes) > 0 && (!open || c.Stream.Speed() > 0):
		return errors.New("a rush adds to the arrivals of an open loop: give a rate")
	case c.Workload.Boundary && c.Duration == 0:
		return errors.New("this workload puts the end of a window into the middle of the duration: give one")
	}
	end := c.Start.Add(cmp.Or(c.Duration, bounds.MaxVirtualDuration))
	for _, rush := range c.Rushes {
		if rush.From.Before(c.Start) || !rush.From.Before(end) {
			return fmt.Errorf("the rush %v does not begin between the start, %s, and the end of the duration", rush,
				c.Start.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// checkTrouble reports an event that virtual time cannot have.
func (c *Config) checkTrouble() error {
	if err := c.Trouble.Check(c.Topology.total(), c.Duration); err != nil {
		return err
	}
	c.Topology.clocks = c.Trouble.Clocks(c.Topology.total(), c.Duration)
	if len(c.Trouble.Of(trouble.Change)) > 0 && c.Topology.skewed() {
		return errors.New("a limit that changes is judged by one clock: leave out the clocks that are wrong, or the " +
			"change of the limit")
	}
	for _, event := range c.Trouble.Of(trouble.Outage, trouble.Network) {
		isRedis := event.Where.Name == string(strategies.NeedRedis)
		_, real := c.Stores.Get(event.Where.Name)
		switch replaced := event.What.Word == trouble.Empty || event.What.Word == trouble.Failover; {
		case !isRedis && event.Where.Name != string(strategies.NeedPostgres):
			return fmt.Errorf("%s: a simulation has the stores redis and postgres", event)
		case event.Breaks():
			return fmt.Errorf("%s: a simulation has no server that can be %s: leave that out, or measure it", event,
				event.What.Word)
		case replaced && !isRedis:
			return fmt.Errorf("%s: %s keeps what it holds on a disk, and a simulation has no replica of it: give %s", event,
				event.Where.Name, event.Away())
		case replaced && real:
			return fmt.Errorf("%s: only the Redis in this process can come back without its data in virtual time: give %s",
				event, event.Away())
		case event.What.Cut:
			return fmt.Errorf("%s: a simulation has no time-outs of clients, so nothing would end a cut: give loss=1", event)
		case event.What.Bandwidth > 0:
			return fmt.Errorf("%s: a simulation sends no bytes: leave out the bandwidth", event)
		}
	}
	return nil
}

// checkSizes reports series that cannot be held, and open loops that cannot be
// judged.
func (c *Config) checkSizes(open bool) error {
	rate := 0.0
	if open {
		rate = c.RateInForce()
	}
	if rate > 0 {
		more := 0.0
		for _, rush := range c.Rushes {
			more += rush.Rate * rush.For.Seconds()
		}
		if err := c.CheckHistory(rate, c.Duration, more); err != nil {
			return err
		}
	}
	if c.Every <= 0 {
		return nil
	}
	if c.Stream.Speed() > 0 {
		return nil // known once the trace is read: see CheckStream
	}
	length := c.length(rate)
	return c.checkSamples(int64(length/c.Every), length)
}

// CheckStream reports what does not fit to the stream that was made: a trace that
// takes too long, or has too many samples.
func (c *Config) CheckStream(info workloads.Info) error {
	length, err := c.CheckReplay(info, bounds.MaxVirtualDuration)
	if err != nil || c.Every <= 0 {
		return err
	}
	return c.checkSamples(int64(length/c.Every), length)
}

// checkSamples reports a series that cannot be held.
func (c *Config) checkSamples(n int64, length time.Duration) error {
	tracked := int64(c.Tracked)
	readings := n * tracked
	switch {
	case n > maxSamples:
		closest := (length / maxSamples).Round(time.Nanosecond) + 1
		return fmt.Errorf("a sample every %v for %v makes %s samples per strategy: give at most %s, which is every %v",
			c.Every, length, format.Count(n), format.Count(maxSamples), closest)
	case readings > maxReadings:
		return fmt.Errorf("%s samples of %s tracked subjects are %s readings per strategy: give at most %s, by a longer "+
			"time between samples or fewer tracked subjects",
			format.Count(n), format.Count(tracked), format.Count(readings), format.Count(maxReadings))
	}
	return nil
}

// length is how long an open loop with a rate, or a run with a duration, takes; 0
// if that is not known.
func (c *Config) length(rate float64) time.Duration {
	if c.Duration == 0 && c.Requests > 0 && rate > 0 {
		return time.Duration(min(float64(c.Requests)/rate*float64(time.Second), float64(bounds.MaxVirtualDuration)))
	}
	return c.Duration
}

// CannotRun returns why a strategy cannot take part in this simulation, or nil.
func (c *Config) CannotRun(selection strategies.Selection) error {
	redis := selection.RedisNeeds()
	if len(redis) > 1 {
		return errors.New("it needs several Redis, and a simulation has one: it is measured on real ones")
	}
	for _, need := range selection.Needs {
		if slices.Contains(redis, need) {
			continue
		}
		switch need {
		case strategies.NeedRedis, strategies.NeedSource, strategies.NeedReplica:
		case strategies.NeedPostgres:
			return errors.New("it is SQL: it is measured and explored on a real PostgreSQL, which has no virtual time")
		default:
			return fmt.Errorf("it needs %s, which has no virtual time: it is measured on a real one", need)
		}
	}
	return c.Plan.CannotRun(selection, strategies.ModeSimulate, c.crossesWindows())
}

// crossesWindows reports whether virtual time passes the end of a window.
func (c *Config) crossesWindows() bool {
	window := c.Policy.Window
	if !window.Kind.Tumbling() {
		return false
	}
	return c.CrossesWindows() || window.At(c.Start).Index != window.At(c.Start.Add(c.Duration)).Index
}

// Split separates the strategies that can take part from those that cannot.
func (c *Config) Split() (run []strategies.Selection, skipped map[string]string) {
	return c.Plan.Split(c.CannotRun)
}

// Notes are what a report's header has to say about virtual time and regions.
func (c *Config) Notes() []string {
	topology := &c.Topology
	where := "a Redis in each"
	if topology.SharedRedis {
		where = "one Redis, in the first"
	}
	notes := []string{fmt.Sprintf("virtual time from %s; regions %s with %s each, %s; PostgreSQL in the first",
		c.Start.UTC().Format(time.RFC3339), strings.Join(topology.Regions, ", "), format.Number(c.Instances, "instance"),
		where)}
	for _, rush := range c.Rushes {
		notes = append(notes, fmt.Sprintf("a rush of %g more requests per second from %s for %v", rush.Rate,
			rush.From.UTC().Format(time.RFC3339), rush.For))
	}
	return notes
}
