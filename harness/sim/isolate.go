package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/quotabench/quotabench/internal/guard"
	"github.com/quotabench/quotabench/internal/isolate"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

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
	if cfg.Workload, err = workloads.Lookup(t.Workload); err != nil {
		return nil, err
	}
	cfg.Strategies, cfg.HistoryDir, cfg.Progress = []strategies.Selection{sel}, isolate.Dir(), new(Progress)
	if t.Live {
		cfg.Live = new(Live)
	}
	end := isolate.Every(func() error {
		n := news{Share: cfg.Progress.Share()}
		if cfg.Live != nil {
			for _, f := range cfg.Live.Figures() {
				n.Live = &f
			}
		}
		return tell(&n)
	})
	defer end()
	if report, err = Run(ctx, cfg); report != nil {
		err = nil // it is in the run's audit
	}
	return report, err
}

// isolated simulates one strategy in a process of its own.
func isolated(ctx context.Context, p *pass) {
	cfg := p.cfg
	cfg.Live.begin(&p.run)
	t := task{Workload: cfg.Workload.Name, Config: *cfg, Live: cfg.Live != nil}
	c := &t.Config
	c.Isolate = false
	c.Parallel = 1
	c.Strategies = nil
	c.Workload = nil
	c.Stores = nil
	c.Stream.Policy = nil
	var err error
	var report Report
	if t.Strategy, err = isolate.Told(p.sel, &c.Policy); err == nil {
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
