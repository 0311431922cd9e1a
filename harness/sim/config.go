package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/quota"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// Config says what to simulate. The zero values of optional fields are filled in
// by [Config.Complete].
type Config struct {
	Strategies []strategies.Selection
	Policy     quota.Policy
	Workload   *workloads.Meta
	// Stream holds the workload's own parameters. Seed, Policy and Requests are
	// set from the fields here.
	Stream workloads.Params
	Seed   uint64

	// Start is the first moment of virtual time, and of the policy's. Default
	// 2026-01-01 00:00 UTC; a trace at its recorded speed starts with its first row.
	Start time.Time
	// Duration of virtual time in which requests are issued; 0 means that only
	// Requests and the workload bound them.
	Duration time.Duration
	// Requests bounds them; 0 for no bound.
	Requests int64

	// Workers call the strategies at the same time; in open loop they are the
	// most requests in service at once. Default 50, in open loop 10,000.
	Workers int
	// Rate in requests per second makes the loop open; 0 leaves it to the workload.
	Rate float64
	// Arrivals of an open loop: "poisson" (default) or "constant". A trace with a
	// speed arrives as recorded.
	Arrivals string
	// Rushes add arrivals to an open loop.
	Rushes []Rush
	// Closed makes the loop closed also where the workload's is open.
	Closed bool

	Topology Topology
	// RedisNet and PostgresNet are how long the stores take; nil is record 003's.
	RedisNet, PostgresNet *Network

	// Outages take stores away in mid-run, in all regions. They need a Duration.
	Outages []measure.Outage

	// Every is the distance between two samples of the series. Default one 288th
	// of the duration, at least a millisecond; negative takes none.
	Every time.Duration
	// Tracked subjects have their counters read at every sample: the first so
	// many to be asked for. Default 200.
	Tracked int

	// Redis, where not nil, is a real server that carries out the commands
	// instead of the table in memory. It has a clock of its own, so that Start must
	// lie in its future, and keys that expire in virtual time are deleted there.
	Redis *redisstore.Store
	// HistoryLimit is the most events kept per run. Default 1<<24 (512 MB).
	HistoryLimit int64
	// Done, where not nil, is called after each strategy with how long it took in
	// virtual time and how many requests there were.
	Done func(strategy string, elapsed time.Duration, requests int64)
}

// Limits of what one run accepts.
const (
	maxWorkers  = 100_000
	maxDuration = 10 * 366 * 24 * time.Hour
	samples     = 288 // five minutes of a day
)

// Complete fills in defaults and reports the first thing that does not fit.
func (c *Config) Complete() error {
	switch {
	case len(c.Strategies) == 0:
		return errors.New("no strategy to simulate")
	case c.Workload == nil:
		return errors.New("no workload to simulate")
	case c.Policy.Limit < 1:
		return fmt.Errorf("a limit of %d: give 1 or more", c.Policy.Limit)
	}
	if c.Workload.NeedsTrace && c.Stream.Speed == 0 && !c.Closed {
		c.Stream.Speed = 1 // recorded time is what simulation is for
	}
	if c.Start.IsZero() {
		c.Start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	if c.Duration == 0 && c.Requests == 0 && !c.Workload.NeedsTrace {
		c.Duration = time.Minute
	}
	open := !c.Closed && (c.Rate > 0 || c.Workload.Loop == workloads.Open || c.Stream.Speed > 0)
	if c.Workers == 0 {
		c.Workers = 50
		if open {
			c.Workers = 10_000
		}
	}
	setDefault(&c.Tracked, 200)
	setDefault(&c.HistoryLimit, 1<<24)
	if c.RedisNet == nil {
		n := DefaultRedis()
		c.RedisNet = &n
	}
	if c.PostgresNet == nil {
		n := DefaultPostgres()
		c.PostgresNet = &n
	}
	switch {
	case c.Workers < 1 || c.Workers > maxWorkers:
		return fmt.Errorf("%d workers: give 1 to %d", c.Workers, maxWorkers)
	case c.Requests < 0 || c.Duration < 0 || c.Rate < 0 || c.Tracked < 0:
		return errors.New("requests, duration, rate and tracked subjects cannot be negative")
	case c.Duration > maxDuration:
		return fmt.Errorf("a duration of %v: give at most ten years", c.Duration)
	case c.Arrivals != "" && c.Arrivals != "poisson" && c.Arrivals != "constant":
		return fmt.Errorf("arrivals %q: one of poisson, constant", c.Arrivals)
	case len(c.Rushes) > 0 && (!open || c.Stream.Speed > 0):
		return errors.New("a rush adds to the arrivals of an open loop: give a rate")
	case len(c.Outages) > 0 && c.Duration == 0:
		return errors.New("an outage needs a duration to be a share of: give --duration")
	case c.Workload.Boundary && c.Duration == 0:
		return errors.New("this workload puts the end of a window into the middle of the duration: give one")
	}
	for _, r := range c.Rushes {
		if r.From.Before(c.Start) || c.Duration > 0 && !r.From.Before(c.Start.Add(c.Duration)) {
			return fmt.Errorf("the rush %v does not begin between the start, %s, and the end of the duration", r, c.Start.UTC().Format(time.RFC3339))
		}
	}
	return c.Topology.complete()
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// CannotRun returns why a strategy cannot take part in this simulation, or nil.
func (c *Config) CannotRun(s strategies.Selection) error {
	if why, ok := s.Excluded[strategies.ModeSimulate]; ok {
		return fmt.Errorf("cannot be simulated: %s", why)
	}
	if s.NeedsStore(strategies.NeedPostgres) {
		return errors.New("is SQL: it is measured and explored on a real PostgreSQL, which has no virtual time")
	}
	if err := s.ServesPolicy(&c.Policy); err != nil {
		return err
	}
	if c.Workload.GivesBack && !s.GivesBack {
		return fmt.Errorf("cannot take units back, which the workload %s asks for", c.Workload.Name)
	}
	if s.Reset == strategies.ResetsNever && c.crossesWindows() {
		return fmt.Errorf("has no reset, and this run crosses %s windows", c.Policy.Window.Kind)
	}
	return nil
}

// crossesWindows reports whether virtual time passes the end of a window.
func (c *Config) crossesWindows() bool {
	w := c.Policy.Window
	if !w.Kind.Tumbling() {
		return false
	}
	if c.Workload.Boundary || c.Stream.Speed > 0 {
		return true
	}
	return w.At(c.Start).Index != w.At(c.Start.Add(c.Duration)).Index
}

// Split separates the strategies that can take part from those that cannot.
func (c *Config) Split() (run []strategies.Selection, skipped map[string]string) {
	skipped = map[string]string{}
	for _, s := range c.Strategies {
		if err := c.CannotRun(s); err != nil {
			skipped[s.String()] = err.Error()
			continue
		}
		run = append(run, s)
	}
	return run, skipped
}
