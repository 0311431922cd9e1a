package sim

import (
	"context"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/promise"
	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/internal/witness"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// newWitness watches whether the strategy works where a simulation can see it.
// The wall clock's time is looked for if virtual time never comes near it.
func (p *pass) newWitness() *witness.Witness {
	real, virtual := p.real, p.cfg.Start
	if end := virtual.Add(p.cfg.Duration + drain); !end.Before(real) && virtual.Before(real) {
		virtual = real
	} else if end.Before(real) {
		virtual = end
	}
	return witness.New(witness.Config{
		NeedsStore: needsRedis(p.sel),
		Caller:     func(ctx context.Context) bool { return sched.From(ctx) != nil },
		Real:       real, Virtual: virtual,
		AllUntil: watchedCommands,
	})
}

// watchedCommands are looked at one by one for the wall clock's time; of later ones
// a sample is, since a strategy that uses it does so in every decision.
const watchedCommands = 20_000

// probeWindows is how many windows pass before a strategy that rejected must
// admit again.
const probeWindows = 3

// maxProbeRounds bounds the rounds of periodic jobs for which the probe waits.
const maxProbeRounds = 10_000

// probe asks once more for a subject that was rejected, after several windows have
// passed at rest. A strategy that still rejects does not take the time from its
// clock. It is no part of the trace or of any figure.
func (p *pass) probe(ctx context.Context) error {
	d, w := p.d, p.policy.Window
	if d.rejectedLast == "" || d.counts.Admitted == 0 || p.sel.Reset != strategies.ResetsWindow || w.Kind == quota.Standing ||
		ctx.Err() != nil {
		return nil
	}
	wait := probeWindows * promise.Length(&p.policy, p.st.s.Now())
	if wait <= 0 || wait > MaxDuration {
		return nil
	}
	for _, j := range p.st.Jobs {
		if j.Every > 0 && wait/j.Every > maxProbeRounds {
			return nil
		}
	}
	var admitted, answered bool
	p.st.s.Go("probe", func(ctx context.Context) {
		if d.clock.Sleep(ctx, wait) != nil {
			return
		}
		req := quota.Request{ID: harness.ProbeID, Subject: d.rejectedLast, Policy: &p.policy, Units: harness.LeastCost(&p.policy)}
		dec, err := p.st.Instances[0].Take(ctx, req)
		admitted, answered = dec.Admitted, err == nil
	})
	if err := p.st.s.Simulate(p.st.s.Now().Add(wait+time.Hour), p.st.w.latency); err != nil {
		return err
	}
	if answered && !admitted {
		d.witness.Note(witness.NeverAgain, "a subject that was rejected is still rejected after several windows have passed: the "+
			"strategy takes the time from elsewhere than its clock, or resets nothing and does not say so")
	}
	return nil
}
