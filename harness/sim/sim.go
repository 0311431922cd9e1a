package sim

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/parallel"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// Report is what a simulation found.
type Report struct {
	Runs   []results.Run
	Series []results.Series // one per run
	// Info describes the workload's stream.
	Info workloads.Info
	// Interrupted is set if the context ended before the last strategy.
	Interrupted bool
}

// Err is the first reason for which a run's correctness figures do not count, or
// nil.
func (r *Report) Err() error { return results.Invalid(r.Runs) }

// Run simulates every strategy of cfg that can take part, each from the same seed. A strategy that fails, or whose run
// is invalid, is reported with an audit that says so, and the others go on.
//
// When ctx ends, the runs under way are judged as far as they came and marked partial.
//
// An error without a report means that nothing could be simulated. A report with an error, a [*results.InvalidError],
// means that the figures of at least one run do not count: a test that only looks at its leak would pass for a limiter
// that never ran.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if err := cfg.Complete(); err != nil {
		return nil, err
	}
	stream, info, err := cfg.NewStreamUnless(ctx, 1)
	if err == nil {
		err = cfg.CheckStream(info)
	}
	if err != nil {
		return nil, err
	}
	report := &Report{Info: info}
	selected, _ := cfg.Split()
	cfg.Progress.begin(len(selected))
	for _, r := range parallel.Do(cfg.parallel(), len(selected), func(i int) *pass {
		if ctx.Err() != nil {
			return nil
		}
		p := newPass(&cfg, selected[i], stream, info)
		p.number = i
		p = simulated(ctx, p)
		for n := 1; cfg.CPU && n < repeats; n++ {
			p.leastOf(simulated(ctx, newPass(&cfg, selected[i], stream, info)))
		}
		cfg.Progress.set(i, 1)
		return p
	}) {
		if r == nil || !r.begun && ctx.Err() != nil {
			continue // another one may have begun before
		}
		report.Runs = append(report.Runs, r.run)
		report.Series = append(report.Series, r.series)
		if cfg.SoFar != nil {
			cfg.SoFar(report.Runs)
		}
	}
	report.Interrupted = ctx.Err() != nil
	return report, report.Err()
}

// parallel is how many strategies are simulated at the same time: on a real server one,
// since all of them have the same keys there, and one if their processor time is told apart.
func (c *Config) parallel() int {
	if _, real := c.Stores.Get(string(strategies.NeedRedis)); real || c.CPU {
		return 1
	}
	return cmp.Or(c.Parallel, runtime.GOMAXPROCS(0))
}

// repeats is how often a simulation whose processor time is recorded is made.
const repeats = 4

// leastOf takes the processor time of another simulation of the same requests if it is less. Both did the same work, to
// which other programs can only have added.
func (p *pass) leastOf(again *pass) {
	if again.run.Trace == p.run.Trace && again.run.Audit.Valid && again.run.Cost.ClientCPU > 0 {
		p.run.Cost.ClientCPU = min(p.run.Cost.ClientCPU, again.run.Cost.ClientCPU)
	}
}

// simulated runs one strategy, on a table of keys if that has all commands
// that it sends, and otherwise on miniredis.
func simulated(ctx context.Context, p *pass) *pass {
	cfg := p.cfg
	if cfg.Isolate && p.sel.Foreign && cfg.outOfBubbles(p.sel) == nil {
		isolated(ctx, p)
		cfg.Live.judged(&p.run)
		return p
	}
	watchdog := guard.Watchdog{
		Driver:   new(atomic.Uint64),
		Patience: cfg.DecisionTimeout, Beat: new(sched.Beat),
		Callers: []string{"sim.(*drive).do", "sim.(*drive).event", "sim.(*pass).probe.func1", "sched.runJob"},
		Around:  []string{"guard.Ask[...]", "harness.(*Session).SetLimit"},
	}
	own, err := guard.Watched(ctx, watchdog, func() *pass { return driven(ctx, p, &watchdog) })
	if err == nil {
		p = own
	} else {
		p.discard(errors.Join(err, leftBehind(ctx, cfg)))
	}
	cfg.Live.judged(&p.run)
	return p
}

// leftBehind removes what a strategy that was given up keeps on a real server.
func leftBehind(ctx context.Context, cfg *Config) error {
	real, ok := cfg.Stores.Get(string(strategies.NeedRedis))
	if !ok {
		return nil
	}
	return real.Wipe(context.WithoutCancel(ctx), scope)
}

// driven runs one strategy on the caller's goroutine. What it returns is a pass of its own.
func driven(ctx context.Context, p *pass, watchdog *guard.Watchdog) *pass {
	var last *pass
	_, err := fakeredis.WithFallback(func(open func() (fakeredis.Redis, error)) (struct{}, error) {
		lacked := last != nil
		last = newPass(p.cfg, p.sel, p.stream, p.info)
		last.open = open
		last.beat = watchdog.Beat
		last.number = p.number
		last.real = clock.Wall{}.Now()
		if lacked {
			last.run.Audit.Discard("miniredis", codes.DiscardsNothing,
				"its commands are answered by miniredis in this process, since "+
					"the faster table of keys does not have all of them")
		}
		if p.sel.Foreign {
			return struct{}{}, last.inBubble(ctx, watchdog)
		}
		return struct{}{}, last.simulate(ctx)
	})
	if err != nil {
		harness.DiscardFailed(&last.run, err)
	}
	return last
}
