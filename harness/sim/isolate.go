package sim

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/isolate"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// childArgument is the one argument that a program is started with to serve a simulation.
const childArgument = "isolated-simulation"

// Isolated is [Run] with each foreign strategy in a process of its own, which is this
// program again. Code that is not under its caller's control can then end that process, as
// a panic on a goroutine of a library's does: the strategy's run is judged up to then,
// its audit has a finding with a [harness.DiedError], and the others go on. Foreign
// strategies and the workload must be registered, and the program must call
// [ServeIsolated] before it does anything else.
func Isolated(ctx context.Context, cfg Config) (*Report, error) {
	cfg.isolates = !isolate.Within()
	return Run(ctx, cfg)
}

// ServeIsolated is for programs that call [Isolated]: where this process has been started
// for a simulation, it simulates and does not return.
func ServeIsolated() { isolate.Serve(childArgument, serve) }

// task is what a child is given: a configuration with one strategy.
type task struct {
	Strategy, Workload string
	// Zone is the policy's time zone, which has no form in JSON.
	Zone isolate.Zone

	Plan                  harness.Plan
	Start                 time.Time
	Rushes                []Rush
	Topology              Topology
	RedisNet, PostgresNet *Network
	Every                 time.Duration
	Tracked               int
	Live                  bool // whether anyone asks

	// Trail is a file for what a child has come to.
	Trail string
	// Until is where another child has died, and of what; nil where none has.
	Until *ending
}

// ending is where a child died.
type ending struct {
	trailed
	Died harness.DiedError
}

// trailed is how far a child has come: how often time has passed, and whether the run was
// judged.
type trailed struct {
	Passes int64
	Judged bool
}

// message is one of a child on its standard output. The last one is Done.
type message struct {
	Done  bool         `json:",omitempty"`
	Share float64      `json:",omitempty"`
	Live  *LiveFigures `json:",omitempty"`

	Run    *results.Run    `json:",omitempty"`
	Series *results.Series `json:",omitempty"`
	Trace  uint64          `json:",omitempty"`
	Begun  bool            `json:",omitempty"`
	Error  string          `json:",omitempty"`
}

// tellEvery is how often a child says how far it has come.
const tellEvery = 100 * time.Millisecond

// serve does what a child is for.
func serve(ctx context.Context, t *task, to *json.Encoder) error {
	cfg, err := t.config()
	if err != nil {
		return to.Encode(message{Done: true, Error: err.Error()})
	}
	end := isolate.Every(tellEvery, func() error {
		m := message{Share: cfg.Progress.Share()}
		if cfg.Live != nil {
			for _, f := range cfg.Live.Figures() {
				m.Live = &f
			}
		}
		return to.Encode(m)
	})
	m := message{Done: true}
	report, err := Run(ctx, cfg)
	end()
	if report == nil {
		m.Error = err.Error()
	} else if len(report.Runs) > 0 { // an error that comes with a report is in the run's audit
		m.Run, m.Series, m.Trace, m.Begun = &report.Runs[0], &report.Series[0], report.Traces[0], true
	}
	return to.Encode(m)
}

// config is the task as the child runs it.
func (t *task) config() (cfg Config, err error) {
	cfg = Config{
		Plan: t.Plan, Start: t.Start, Rushes: t.Rushes, Topology: t.Topology, RedisNet: t.RedisNet, PostgresNet: t.PostgresNet,
		Every: t.Every, Tracked: t.Tracked, Parallel: 1, Progress: new(Progress),
	}
	if t.Live {
		cfg.Live = new(Live)
	}
	if cfg.Strategies, err = strategies.Parse(t.Strategy); err != nil || len(cfg.Strategies) != 1 {
		return cfg, fmt.Errorf("strategy %s is none of this program: %w", t.Strategy, err)
	}
	if cfg.Workload, err = workloads.Lookup(t.Workload); err != nil {
		return cfg, err
	}
	if cfg.Policy.Window.Location, err = t.Zone.Location(); err != nil {
		return cfg, err
	}
	cfg.trail, err = openTrail(t.Trail, t.Until)
	return cfg, err
}

// isolated simulates one strategy in a process of its own, and where that has died once
// more in another one, which ends before.
func isolated(ctx context.Context, cfg *Config, sel strategies.Selection, stream workloads.Stream, info workloads.Info, part *atomic.Uint64) *pass {
	if cfg.Live != nil {
		cfg.Live.begin(&blank(cfg, sel, stream, info).run)
	}
	p, err := inChild(ctx, cfg, sel, nil, part)
	var died *isolate.Death
	if errors.As(err, &died) {
		at := ending{Died: harness.DiedError(*died)}
		err = &at.Died
		if p != nil { // it says how far the child had come
			at.trailed = p.reached
			if again, failed := inChild(ctx, cfg, sel, &at, nil); failed == nil && again.begun {
				return again
			}
		}
	}
	if err == nil {
		return p
	}
	p = blank(cfg, sel, stream, info)
	harness.StrikeFailed(&p.run, err)
	return p
}

// inChild has a child simulate a strategy. Where it died in the midst of that, what comes
// beside the [*isolate.Death] says how far it had come.
func inChild(ctx context.Context, cfg *Config, sel strategies.Selection, until *ending, part *atomic.Uint64) (p *pass, err error) {
	t := task{
		Strategy: sel.String(), Workload: cfg.Workload.Name, Plan: cfg.Plan, Start: cfg.Start, Rushes: cfg.Rushes, Topology: cfg.Topology,
		RedisNet: cfg.RedisNet, PostgresNet: cfg.PostgresNet, Every: cfg.Every, Tracked: cfg.Tracked, Live: cfg.Live != nil, Until: until,
	}
	if t.Zone, err = isolate.ZoneOf(cfg.Policy.Window.Location); err != nil {
		return nil, err
	}
	t.Plan.Policy.Window.Location = nil
	t.Plan.Strategies, t.Plan.Workload, t.Plan.Stores, t.Plan.Stream.Policy = nil, nil, nil, nil
	dir, err := os.MkdirTemp(cfg.HistoryDir, "quotabench-child-") // a child that dies leaves its history there
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file, err := os.CreateTemp(dir, "trail-")
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	t.Plan.HistoryDir, t.Trail = dir, file.Name()
	var m message
	err = isolate.Child(ctx, childArgument, &t, func(next message) (last bool) {
		if next.Live != nil {
			cfg.Live.told(next.Live)
		}
		if part != nil && !next.Done {
			part.Store(math.Float64bits(next.Share))
		}
		m = next
		return next.Done
	})
	var died *isolate.Death
	switch {
	case errors.As(err, &died):
		at, failed := readTrail(t.Trail)
		if failed != nil || at.Passes == 0 { // as it was opened
			return nil, errors.Join(err, failed)
		}
		return &pass{reached: at}, err
	case err != nil:
		return nil, err
	case m.Error != "":
		return nil, errors.New(m.Error)
	case m.Run == nil: // it was interrupted before it began
		return &pass{}, nil
	}
	return &pass{run: *m.Run, series: *m.Series, trace: m.Trace, begun: m.Begun}, nil
}

// blank is a pass of which nothing is known but what was asked for.
func blank(cfg *Config, sel strategies.Selection, stream workloads.Stream, info workloads.Info) *pass {
	p := &pass{run: cfg.Blank(sel, 1, stream, info), begun: true}
	p.run.Params.Instances = cfg.Topology.total()
	p.series = results.Series{Strategy: p.run.Params.Label, Unit: cfg.Policy.Unit, Counters: []string{}, Tiers: []string{}, Samples: []results.Sample{}}
	return p
}

// trail keeps how far a simulation has come in a file, so that another process knows it
// when this one has died; and has this one end where another has.
type trail struct {
	f     *os.File
	at    trailed
	until *ending // nil for none
	err   error
}

func openTrail(path string, until *ending) (*trail, error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("open the trail: %w", err)
	}
	return &trail{f: f, until: until}, nil
}

// passed notes that time has passed and that all goroutines have come to rest. Where
// another process died before time passed once more, it panics with what that died of:
// nothing of the present moment has happened then.
func (t *trail) passed() {
	if t == nil {
		return
	}
	t.at.Passes++
	t.write()
	if u := t.until; u != nil && !u.Judged && t.at.Passes >= u.Passes {
		panic(&u.Died)
	}
}

// judged notes that the figures are complete, and returns what another process died of
// after that; nil where none did.
func (t *trail) judged() error {
	if t == nil {
		return nil
	}
	t.at.Judged = true
	t.write()
	if t.until == nil {
		return nil
	}
	return &t.until.Died
}

// ends reports whether the process ends without closing the strategy, of which another
// may have died.
func (t *trail) ends() bool { return t != nil && t.until != nil }

// failed is what went wrong with the file.
func (t *trail) failed() error {
	if t == nil {
		return nil
	}
	return t.err
}

const trailBytes = 9

func (t *trail) write() {
	var b [trailBytes]byte
	binary.BigEndian.PutUint64(b[:], uint64(t.at.Passes))
	if t.at.Judged {
		b[8] = 1
	}
	if _, err := t.f.WriteAt(b[:], 0); err != nil && t.err == nil {
		t.err = fmt.Errorf("write the trail: %w", err)
	}
}

// readTrail is the zero value where time has not passed.
func readTrail(path string) (at trailed, err error) {
	b, err := os.ReadFile(path)
	if err != nil || len(b) < trailBytes {
		return at, err
	}
	return trailed{Passes: int64(binary.BigEndian.Uint64(b)), Judged: b[8] == 1}, nil
}
