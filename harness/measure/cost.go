package measure

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/guard"
	"github.com/quotabench/quotabench/internal/machine/cores"
	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// costs are per decision: what went over the connections in the pass, by the
// number of decisions.
func (p *pass) costs() {
	p.run.Meter = harness.MeterSince(p.meter, p.s.Meter()) // before the probe adds to it
	c := &p.run.Cost
	counts := &p.d.counts
	if n := float64(counts.Admitted + counts.Rejected + counts.Errors.Total()); n > 0 {
		c.ProbeCost = p.traffic.cost(n)
		c.ClientCPU = float64(p.own.used) / n
		c.RunQueue = float64(p.own.waiting) / n
		for _, st := range p.s.stores {
			used := float64(max(0, st.after.CPU-st.before.CPU)) / n
			if asksSQL(st) {
				c.PostgresCPU += used
			} else {
				c.RedisCPU += used
			}
		}
	}
}

// leftovers counts what the strategy keeps when it is over, and then measures what one
// decision costs.
func (p *pass) leftovers(ctx context.Context) error {
	c := &p.run.Cost
	if !p.d.part.First() {
		return nil // it would be told twice
	}
	if err := p.keep(ctx); err != nil {
		return err
	}
	// A store that has failed over has no replica any more. After a fault connections may be dead, and scripts forgotten.
	whole := !slices.ContainsFunc(p.s.outages, func(o *outage) bool { return o.Failover || o.Fault != "" })
	if whole && p.run.Repetition == 1 && !p.d.stop.Load() && !p.m.latencyOnly {
		probe, err := guard.Within(ctx, p.s.aside(), guard.Grace(p.s.Deadline), "the cost probe", p.probe)
		if err != nil {
			return err
		}
		c.Probe = probe
	}
	return nil
}

// ownCPU is what this process has used of the processors.
type ownCPU struct {
	used time.Duration
	// waiting is how long its threads were ready to run and were not running:
	// the run-queue delay. Zero if the system does not tell.
	waiting time.Duration
}

// readOwnCPU reads both. Threads that have ended are missing from waiting.
func readOwnCPU() ownCPU {
	c := ownCPU{used: clock.Processor()}
	_, c.waiting = cores.ThreadTimes(os.Getpid())
	return c
}

func (c ownCPU) sub(earlier ownCPU) ownCPU {
	return ownCPU{c.used - earlier.used, max(0, c.waiting-earlier.waiting)}
}

// countKeys counts the strategy's keys in all stores if that can be done.
func (p *pass) countKeys(ctx context.Context) map[string]results.StoredAt {
	keys := map[string]results.StoredAt{}
	for name, st := range p.s.stores {
		// In an outage of the server's own nothing is known.
		if c := monitor.Countable(st.Store); c != nil {
			if n, err := c.Count(ctx); err == nil {
				marks := p.stores.Marks(name) // which never expire
				keys[name] = results.StoredAt{Entries: max(0, n.Keys-st.others.Keys-marks),
					WithoutTTL: max(0, n.WithoutTTL-st.others.WithoutTTL-marks), Bytes: max(0, n.Bytes-st.others.Bytes)}
			}
		}
	}
	return keys
}

// keep counts what the strategy left in its stores.
func (p *pass) keep(ctx context.Context) error {
	c := &p.run.Cost
	subjects := p.subjects()
	for _, name := range slices.Sorted(maps.Keys(p.s.stores)) {
		st := p.s.stores[name]
		if monitor.Follows(st.Store) {
			continue // its primary's
		}
		u, err := st.Usage(ctx, p.s.scope)
		if err != nil {
			return fmt.Errorf("count keys: %w", err)
		}
		c.KeysAtEnd += u.Keys
		c.KeysWithoutTTL += u.WithoutTTL
		if p.m.latencyOnly {
			continue
		}
		over := p.keys.Over[name]
		if len(over) < results.Quarters-1 {
			over = nil // the run ended early
		}
		p.run.Stored = append(p.run.Stored, results.NewStored(name, subjects, u.Keys+u.Rows, u.Bytes, over))
	}
	return nil
}

// subjects is how many the strategy was asked about, in the warm-up and in the pass, or
// that were set up.
func (p *pass) subjects() (n int64) {
	if _, setUp := p.s.Instances[0].(strategies.Provisioner); setUp {
		return warmSubjects + int64(p.d.subjects.n)
	}
	for _, s := range p.d.subjects.all() {
		if s.initial != 0 || s.touched() {
			n++
		}
	}
	return p.warmed + n
}
