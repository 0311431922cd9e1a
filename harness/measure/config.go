package measure

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// Config says what to measure. The zero values of optional fields are filled in
// by [Config.Complete].
type Config struct {
	Strategies []strategies.Selection
	Policy     quota.Policy
	Workload   *workloads.Meta
	// Stream holds the workload's own parameters. Seed, Policy and Requests are
	// set by the harness.
	Stream workloads.Params

	// Workers call the strategy at the same time; in open loop they are the most
	// requests in service at once. Default 50.
	Workers int
	// Rate in requests per second makes the loop open; 0 leaves it to the
	// workload.
	Rate float64
	// Arrivals of an open loop: "poisson" (default) or "constant". A trace with a
	// speed arrives as recorded.
	Arrivals string
	// Requests bounds a round; 0 means that only Duration does.
	Requests int64
	// Duration bounds the measured part of a round; 0 means that only Requests does.
	Duration time.Duration
	// Rounds is how often every strategy is run. Default 10.
	Rounds int
	// Instances of the application that share the stores. Default 1.
	Instances int
	// Pool is the connections per instance to each store; 0 means one per worker,
	// at most 64 to Redis and 16 to PostgreSQL.
	Pool int
	// ClientRetries of the Redis client; 0 means none.
	ClientRetries int
	Seed          uint64

	// Outages take stores away in mid-run. They need a Duration.
	Outages []Outage

	// Redis may be nil where no strategy needs it.
	Redis stores.Store
	// Postgres may be nil or unavailable; strategies that can then use the model.
	Postgres stores.Store

	// NoReference leaves the reference loops out.
	NoReference bool
	// Closed makes the loop closed also where the workload's is open.
	Closed bool

	// Observer is told of progress; nil for none.
	Observer Observer
	// Timer runs while requests are measured, and not while a run is set up and
	// judged; nil for none. A *testing.B is one.
	Timer Timer
	// HistoryLimit is the most events kept per run. Default 1<<23 (256 MB).
	HistoryLimit int

	// base is the clock that the run is measured with; nil is the wall clock.
	base *timebase
}

// Timer is a clock that can be stopped.
type Timer interface {
	StartTimer()
	StopTimer()
}

// DefaultDuration of a round: ten rounds of every built-in strategy take about a
// minute.
const DefaultDuration = 250 * time.Millisecond

// Limits of what one run accepts.
const (
	MaxWorkers   = 20_000
	MaxInstances = 255
	MaxRounds    = 1_000
	maxSpeed     = 1e6
	maxRedisPool = 64
	maxSQLPool   = 16
)

// Complete fills in defaults and reports the first thing that does not fit.
func (c *Config) Complete() error {
	if len(c.Strategies) == 0 {
		return errors.New("no strategy to run")
	}
	if c.Workload == nil {
		return errors.New("no workload to run")
	}
	setDefault(&c.Workers, 50)
	setDefault(&c.Rounds, 10)
	setDefault(&c.Instances, 1)
	setDefault(&c.HistoryLimit, 1<<23)
	if c.Requests == 0 && c.Duration == 0 && !c.Workload.NeedsTrace {
		c.Duration = DefaultDuration
	}
	switch {
	case c.Workers < 1 || c.Workers > MaxWorkers:
		return fmt.Errorf("%d workers: give 1 to %d", c.Workers, MaxWorkers)
	case c.Instances < 1 || c.Instances > MaxInstances:
		return fmt.Errorf("%d instances: give 1 to %d", c.Instances, MaxInstances)
	case c.Rounds < 1 || c.Rounds > MaxRounds:
		return fmt.Errorf("%d rounds: give 1 to %d", c.Rounds, MaxRounds)
	case c.Pool < 0:
		return fmt.Errorf("a pool of %d connections: give 1 or more, or 0 for the default", c.Pool)
	case c.Requests < 0 || c.Duration < 0 || c.Rate < 0 || c.ClientRetries < 0:
		return errors.New("requests, duration, rate and client retries cannot be negative")
	case c.Arrivals != "" && c.Arrivals != "poisson" && c.Arrivals != "constant":
		return fmt.Errorf("arrivals %q: one of poisson, constant", c.Arrivals)
	case c.Stream.Speed > maxSpeed:
		return fmt.Errorf("a speed of %g: give at most %g times the recorded one", c.Stream.Speed, maxSpeed)
	case len(c.Outages) > 0 && c.Duration == 0:
		return errors.New("an outage needs a duration to be a share of: give --duration")
	case c.Policy.Limit < 1:
		return fmt.Errorf("a limit of %d: give 1 or more", c.Policy.Limit)
	}
	c.Workers = max(c.Workers, c.Instances)
	return nil
}

func setDefault(v *int, d int) {
	if *v == 0 {
		*v = d
	}
}

// redisPool and sqlPool are the connections of one instance.
func (c *Config) redisPool() int {
	if c.Pool > 0 {
		return c.Pool
	}
	return min(c.Workers, maxRedisPool)
}

func (c *Config) sqlPool() int {
	if c.Pool > 0 {
		return c.Pool
	}
	return min(c.Workers, maxSQLPool)
}

// CannotRun returns why a strategy cannot take part in this measurement, or nil.
func (c *Config) CannotRun(s strategies.Selection) error {
	if why, ok := s.Excluded[strategies.ModeMeasure]; ok {
		return fmt.Errorf("cannot be measured: %s", why)
	}
	if s.NeedsStore(strategies.NeedRedis) && c.Redis == nil {
		return errors.New("needs Redis: start one and give its URL by --redis, or use --redis process or --redis embedded")
	}
	if s.NeedsStore(strategies.NeedPostgres) && c.Postgres == nil {
		return errors.New("needs PostgreSQL: install its server (Debian: postgresql, macOS: brew install postgresql), or give a URL by --postgres")
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

// crossesWindows reports whether the workload passes through several windows by
// design. Runs that merely last too long are found by the audit.
func (c *Config) crossesWindows() bool {
	return c.Policy.Window.Kind.Tumbling() && (c.Stream.Speed > 0 || c.Workload.Boundary)
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

// windowText describes a policy's window in a result, e.g. "fixed 1m0s".
func windowText(w quota.Window) string {
	parts := []string{w.Kind.String()}
	if w.Length > 0 {
		parts = append(parts, w.Length.String())
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

// Notes are what a report's header has to say about how requests met windows.
func (c *Config) Notes() []string {
	var notes []string
	if p, err := quota.LookupPolicy(c.Policy.Name); err == nil && p.Limit != c.Policy.Limit {
		notes = append(notes, fmt.Sprintf("the limit is %d %s here, %d in the policy's record", c.Policy.Limit, p.Unit, p.Limit))
	}
	switch {
	case !c.Policy.Window.Kind.Tumbling():
	case c.Stream.Speed > 0:
		notes = append(notes, fmt.Sprintf("windows follow recorded time at %g times its speed", c.Stream.Speed))
	case c.Workload.NeedsTrace:
		notes = append(notes, "replayed at full speed: windows are those of the wall clock, one begins with each run")
	default:
		notes = append(notes, "one window begins with each run")
	}
	return notes
}
