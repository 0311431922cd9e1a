package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// meetGrace is how long generators wait for each other after Ctrl-C.
const meetGrace = 10 * time.Second

// completeShared fills in what follows for a generator, and reports what does not go with one.
func (c *Config) completeShared() error {
	if !c.Shard.Shared {
		return nil
	}
	c.NoReference = true // it would be another's disturbance
	if c.Cores.Mode == "" || c.Cores.Mode == CoresAuto {
		c.Cores.Mode = CoresShared // others may be on this machine
	}
	switch {
	case c.Load.Loop == harness.Both:
		return errors.New("generators have one loop: give --loop closed, or open and a --rate")
	case c.Budget > 0 || c.Enough != nil:
		return errors.New("generators end at the same round: give --rounds, and no --budget or --spare-rounds")
	case len(c.Outages)+len(c.LimitChanges)+len(c.Overwrites)+len(c.Skew) > 0 || c.Second != nil:
		return errors.New("generators share no outages, overwrites, wrong clocks, changes of the limit or second quotas: leave them out")
	case c.Workload.Boundary && c.Duration == 0:
		return fmt.Errorf("the workload %s needs a --duration for generators to know when the window ends", c.Workload.Name)
	}
	return nil
}

// cannotShare returns why generators cannot share what a strategy counts in, or nil.
func (c *Config) cannotShare(s strategies.Selection) error {
	switch {
	case !c.Shard.Shared:
		return nil
	case s.Control == strategies.ControlExact && c.Shard.Of > 1:
		return errors.New("it is one lock in one process, and each generator would have its own: give a strategy that counts in a store")
	}
	for _, need := range s.Needs {
		name := need.Store()
		if st, ok := c.Stores.Get(name); ok && st.Owned() && c.Shard.Part > 0 { // and not their coordinator's, who tells them its URL
			return fmt.Errorf("generators share a server: give its URL by --%s", name)
		} else if !ok {
			return fmt.Errorf("generators share a server, and a model of %s is this process' own: give a URL by --%[1]s", name)
		}
	}
	return nil
}

// meet waits for the other generators, if there are any, at a step of the run under way.
// After Ctrl-C it waits for a while: they were stopped as well.
func (m *measurement) meet(ctx context.Context, step string) (time.Time, error) {
	if !m.cfg.Shard.Shared {
		return time.Time{}, nil
	}
	wait, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(meetGrace, cancel) })()
	at, err := m.cfg.Meet(wait, fmt.Sprintf("%s of run %d", step, m.n))
	if err != nil {
		err = fmt.Errorf("wait for the other generators: %w", err)
	}
	return at, err
}

// lose ends the measurement of a generator whose run has failed: the others go on at a
// step that this one would not come to.
func (m *measurement) lose(err error) {
	if m.cfg.Shard.Shared && m.end != nil {
		m.end(err)
	}
}

// begin waits for the moment at which all generators begin.
func (p *pass) begin(ctx context.Context) error {
	if p.began.IsZero() {
		return nil
	}
	return clock.Wall{}.Sleep(ctx, p.began.Add(p.m.ahead).Sub(p.m.tb.time(p.m.tb.nano())))
}

// lateAt is by how much later than the others a generator may begin without its timings
// being of another time than theirs.
const lateAt = 20 * time.Millisecond

// auditPart asks whether a generator began with the others.
func (p *pass) auditPart() {
	if p.began.IsZero() {
		return
	}
	if late := p.m.tb.time(p.d.epoch).Sub(p.began.Add(p.m.ahead)); late > lateAt {
		p.discard("generator-late", results.DiscardsTimings, "it began %v later than the others", late.Round(time.Millisecond))
	}
}

// bound is how far this process' clock counts as ahead, and by how much that may be wrong
// after all that was measured.
func (m *measurement) bound() (ahead, wrong time.Duration) {
	if !m.cfg.Shard.Shared {
		return 0, 0
	}
	now, wrong := m.cfg.ClockBound()
	return m.ahead, wrong + max(now-m.ahead, m.ahead-now)
}

// ours puts windows that go by the coordinator's clock on this process'.
func (m *measurement) ours(w *quota.Window) {
	if w.Timeline != (quota.Timeline{}) {
		w.Timeline.Real = w.Timeline.Real.Add(m.ahead)
	}
}
