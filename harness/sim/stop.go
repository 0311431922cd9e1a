package sim

import (
	"cmp"
	"context"
	"time"

	conditions "github.com/quotabench/quotabench/internal/network"
	"github.com/quotabench/quotabench/internal/stops"
)

// errRestarted is what a caller sees of a process that ends.
var errRestarted = conditions.Reset("planned restart")

// stopping lets virtual time pass up to a moment, and carries out what is planned until then.
func (p *pass) stopping(ctx context.Context, until time.Time) error {
	all, err := stops.Plan(p.cfg.Pauses, p.cfg.Restarts, p.cfg.Duration, p.cfg.Topology.total())
	for _, x := range all {
		if err = p.through(p.cfg.Start.Add(x.At)); err != nil || p.cut || p.st.s.Since() < x.At { // then nothing is left to do
			return err
		}
		if err = p.stop(ctx, x); err != nil {
			return err
		}
	}
	return cmp.Or(err, p.through(until))
}

// stop has instances stand still, or opens them anew and ends what they were doing.
func (p *pass) stop(ctx context.Context, x stops.Stop) error {
	for i, process := range p.st.process {
		switch {
		case !x.Of(i):
			continue
		case x.Pause > 0:
			p.paused = max(p.paused, process.Pause(x.Pause))
			continue
		}
		p.st.w.watching = false
		err := p.st.Reopen(context.WithoutCancel(ctx), p.st, i)
		p.st.w.watching = true
		if err != nil {
			return err
		}
		process.Crash(errRestarted)
		p.restarts = append(p.restarts, int64(x.At))
	}
	return nil
}
