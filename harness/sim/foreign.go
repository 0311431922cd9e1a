package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/contain/isolate"
	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/stacks"
	"github.com/quotabench/quotabench/internal/virtual/bubble"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// outOfBubbles is why code that goes by package time cannot be simulated so, or nil.
func (c *Config) outOfBubbles(sel strategies.Selection) error {
	_, real := c.Stores.Get(string(strategies.NeedRedis))
	switch {
	case real && needsRedis(sel):
		return errors.New("it goes by the clock of package time, which moves in this process alone: simulate it on the " +
			"embedded store")
	case c.Topology.skewed():
		return errors.New("it goes by the clock of package time, of which all instances have the same: " +
			"leave wrong clocks out")
	case sel.NeedsStore(strategies.NeedPostgres), sel.NeedsStore(strategies.NeedSource):
		return errors.New("it goes by the clock of package time, and is simulated over Redis alone")
	case c.Start.Before(firstOfBubbles):
		return errors.New("it goes by the clock of package time, which begins in 2000 in a simulation: give a later start")
	}
	return nil
}

// inBubble simulates code that goes by package time: in a bubble of testing/synctest whose
// time is virtual time.
func (p *pass) inBubble(ctx context.Context, watchdog *guard.Watchdog) (err error) {
	if err := p.cfg.outOfBubbles(p.sel); err != nil {
		return err
	}
	p.trail, err = isolate.OpenTrail()
	if err != nil {
		return err
	}
	defer func() {
		if value := recover(); value != nil && !strings.HasPrefix(fmt.Sprint(value), "deadlock") {
			panic(value)
		} else if value != nil {
			err = errors.Join(watchdog.Deadlocked(), p.trail.Close())
		}
	}()
	bubble.Run(func() {
		watchdog.Driver.Store(stacks.Current())
		time.Sleep(p.cfg.Start.Sub(clock.Runtime{}.Now()))
		err = p.simulate(bubble.Asked{Context: ctx})
	})
	return errors.Join(err, p.trail.Close())
}

// firstOfBubbles is the moment at which the clock of each bubble begins.
var firstOfBubbles = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// liveThrough has the goroutines of the strategy live through the time that passes, and
// names a call in which it passes by itself: other callers would have gone on meanwhile.
func (p *pass) liveThrough(w *network) {
	w.foreign = true
	w.scheduler.OnPass(func(duration time.Duration) {
		synctest.Wait()
		now := clock.Runtime{}.Now()
		if w.watching && now.After(w.scheduler.Now()) {
			w.witness.Note(witness.WaitsInCall,
				"a call waits for package time to pass, e.g. by time.Sleep: no other caller can go "+
					"on meanwhile in a simulation")
		}
		if left := w.scheduler.Now().Add(duration).Sub(now); left > 0 {
			time.Sleep(left)
			synctest.Wait()
		}
		if duration > 0 && p.trail != nil && p.site != nil {
			past := w.scheduler.Now().Add(duration).Sub(p.cfg.Start)
			_ = p.trail.Set([]byte(past.Truncate(time.Second).String())) // it only makes the text of a death better
		}
	})
}

// own reports whether an operation comes from a goroutine that the strategy has started.
// Until that is known nothing is read that a simulation writes.
func (w *network) own(name string) bool {
	if !w.careful || !w.scheduler.OnOwn() {
		return false
	}
	w.witness.Note(witness.OwnGoroutine, name+" came from a goroutine that the strategy has started")
	return true
}

// greeting are the commands by which a client begins a connection.
var greeting = map[string]bool{"hello": true, "client": true, "auth": true, "select": true, "ping": true}

// adopt is the context of a command. Foreign code may have one of its own: while the run is
// watched, the command belongs to the caller on whose goroutine it comes. From a goroutine
// of the strategy's own it is an error.
func (w *network) adopt(ctx context.Context, cmd redis.Cmder) (context.Context, error) {
	if greeting[cmd.Name()] && w.careful && w.scheduler.OnOwn() {
		return ctx, w.witness.Past() // a connection that no call asked for, e.g. of a subscription
	}
	if w.own(cmd.Name()) {
		return ctx, sched.ErrForeign
	}
	if w.foreign && w.watching && !w.inside.Load() {
		ctx = w.scheduler.Adopt(ctx)
		if sched.From(ctx) == nil {
			return ctx, sched.ErrForeign
		}
	}
	return ctx, nil
}

const isolatedKind = "isolated-simulation"

func init() { isolate.Handle(isolatedKind, simulateTask) }

// task is what a child is given: a configuration with one strategy.
type task struct {
	Strategy isolate.Strategy
	Workload string
	Config   Config
	Live     bool // whether anyone asks
}

// news is how far a child has come.
type news struct {
	Share float64
	Live  *LiveFigures
}

// simulateTask does what a child is for.
func simulateTask(ctx context.Context, t *task, tell func(any) error) (report *Report, err error) {
	cfg := t.Config
	sel, err := t.Strategy.Select(&cfg.Policy)
	if err != nil {
		return nil, err
	}
	cfg.Workload, err = workloads.Lookup(t.Workload)
	if err != nil {
		return nil, err
	}
	cfg.Strategies, cfg.HistoryDir, cfg.Progress = []strategies.Selection{sel}, isolate.Dir(), new(Progress)
	if t.Live {
		cfg.Live = new(Live)
	}
	end := isolate.Every(func() error {
		n := news{Share: cfg.Progress.Share()}
		if cfg.Live != nil {
			for _, figures := range cfg.Live.Figures() {
				n.Live = &figures
			}
		}
		return tell(&n)
	})
	defer end()
	report, err = Run(ctx, cfg)
	if report != nil {
		err = nil // it is in the run's audit
	}
	return report, err
}

// isolated simulates one strategy in a process of its own.
func isolated(ctx context.Context, p *pass) {
	cfg := p.cfg
	cfg.Live.begin(&p.run)
	t := task{Workload: cfg.Workload.Name, Config: *cfg, Live: cfg.Live != nil}
	config := &t.Config
	config.Isolate = false
	config.Parallel = 1
	config.Strategies = nil
	config.Workload = nil
	config.Stores = nil
	config.Stream.Policy = nil
	var err error
	var report Report
	t.Strategy, err = isolate.Told(p.sel, &config.Policy)
	if err == nil {
		report, err = isolate.Run[news, Report](ctx, cfg.HistoryDir, isolatedKind, &t, func(n news) {
			if n.Live != nil {
				cfg.Live.told(n.Live)
			}
			cfg.Progress.set(p.number, n.Share)
		})
	}
	var died *guard.DiedError
	switch {
	case errors.As(err, &died) && died.Trail() != "":
		err = fmt.Errorf("%w, after %s of virtual time", err, died.Trail())
		fallthrough
	case err != nil:
		p.discard(err)
	case len(report.Runs) > 0: // else it was interrupted before it began
		p.run = report.Runs[0]
		p.series = report.Series[0]
		p.begun = true
	}
}
