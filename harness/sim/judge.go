package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/verdict"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// judge turns a finished pass into its figures, until the context judging ends.
func (p *pass) judge(ctx, judging context.Context) error {
	drive := p.drive
	run := &p.run
	run.ElapsedNS = max(0, drive.lastEnd-drive.epoch)
	drive.series.finish()
	if p.cfg.Workload != nil && p.cfg.Workload.NeedsTrace {
		run.Limited = drive.truth.limited()
	}
	run.LostRequests = p.site.network.wrong.requests
	run.LostReplies = p.site.network.wrong.replies
	if err := p.latencies(); err != nil {
		return err
	}
	if err := p.costs(ctx); err != nil {
		return err
	}
	facts := &harness.Facts{
		Plan: &p.cfg.Plan, Selection: p.sel, Policy: &p.policy, Epoch: p.cfg.Start,
		Initial: func(s uint32) int64 { return drive.truth.subjects[s].initial },
		History: drive.history, Counts: drive.counts, Partial: ctx.Err() != nil || p.failed != nil,
		Instances: p.cfg.Topology.total(), StoresApart: p.cfg.Topology.apart() && needsRedis(p.sel),
		Outages:    append(p.site.network.sinceStart(drive.epoch), p.cfg.NetworkSpans(false, run.ElapsedNS)...),
		SyncPeriod: p.site.AchievedPeriod(), Tiers: format.Strings(drive.tiers), TiersFolded: drive.folded,
		LimitChanges: drive.changes, Overwritten: p.overwritten, Restarts: p.restarts, Pause: p.paused,
	}
	facts.Skews, facts.SkewFrom = p.cfg.Topology.skews()
	facts.FailedRounds, facts.JobError = p.site.FailedRounds()
	if err := p.settled(ctx, facts); err != nil {
		return err
	}
	v, err := harness.Judge(judging, run, facts)
	switch {
	case errors.Is(err, harness.ErrNotJudged):
		p.abandoned = true
		return nil
	case err != nil:
		return err
	}
	p.audit(&v)
	return nil
}

// atRest holds the counters as they are once nothing is in flight.
type atRest struct {
	subjects []harness.Subject
	list     []harness.Reading
	window   int64
	err      error
}

// rest reads the counters at the moment at which the last request is answered and the last
// session settled. Jobs may be behind, and the window is still the one that was counted. The
// reading takes no time, and is no part of the trace.
func (p *pass) rest(ctx context.Context) {
	if !p.site.Counts() {
		return
	}
	var touched []uint32
	for i := range p.drive.truth.subjects {
		if p.drive.truth.subjects[i].issued > 0 {
			touched = append(touched, uint32(i))
		}
	}
	rest := &atRest{window: p.window()}
	for _, n := range p.cfg.Sample(touched, 1) {
		rest.subjects = append(rest.subjects, harness.Subject{Number: n, Name: p.drive.truth.subjects[n].name})
	}
	watching := p.site.network.watching
	p.site.network.watching = false
	rest.list, rest.err = p.site.Read(context.WithoutCancel(ctx), p.site.howToRead(p.drive), rest.subjects)
	p.site.network.watching = watching
	p.resting = rest
}

// window is the number of the one that is in force; 0 if windows do not follow each other.
func (p *pass) window() int64 {
	if !p.policy.Window.Kind.Tumbling() {
		return 0
	}
	return p.policy.Window.At(p.drive.clock.Now()).Index
}

// settled adds the readings at rest, and those after all jobs have run until they are idle,
// unless the window has turned since: a counter of another window says nothing of this one.
func (p *pass) settled(ctx context.Context, facts *harness.Facts) error {
	if p.cut {
		return nil
	}
	if p.resting == nil { // sessions go on for longer than anybody waits
		p.rest(ctx)
	}
	rest := p.resting
	if rest == nil {
		return nil
	}
	if rest.err != nil {
		return rest.err
	}
	facts.Readings = append(facts.Readings, harness.Readings{At: harness.AtRest, List: rest.list})
	ctx = context.WithoutCancel(ctx)
	if len(p.site.Jobs) == 0 || !p.site.Settle(ctx) || p.window() != rest.window {
		return nil
	}
	list, err := p.site.Read(ctx, p.site.howToRead(p.drive), rest.subjects)
	if err != nil {
		return err
	}
	facts.Readings = append(facts.Readings, harness.Readings{At: harness.AfterJobs, List: list})
	return nil
}

// audit looks for reasons not to believe the run that only a simulation can have.
func (p *pass) audit(v *oracle.Verdict) {
	drive := p.drive
	discard := func(code, discards, format string, args ...any) {
		p.run.Audit.Discard(code, discards, fmt.Sprintf(format, args...))
	}
	if drive.inFlight > 0 {
		discard("unfinished", codes.DiscardsCorrectness, "%d requests were not answered within %v of virtual time",
			drive.inFlight, drain)
	}
	if drive.maxBack > 0 {
		discard("backlog", codes.DiscardsNothing, "up to %d requests waited because %d callers were busy", drive.maxBack,
			p.cfg.Workers)
	}
	if drive.history.Full() {
		discard("ended-early", codes.DiscardsNothing, "the run ended after %d requests, when its history was nearly full",
			p.run.Issued)
	}
	// The series is counted as the run goes on, the verdict from the history.
	simple := p.policy.Window.Kind.Tumbling() && !v.Touched.Crossed
	if u := drive.truth.leak; u > v.LeakUnits && simple {
		discard("oracles-disagree", codes.DiscardsCorrectness, "%d units leaked by the series, %d by the verdict", u,
			v.LeakUnits)
	}
}

// outcomeNames are those of the outcomes that latencies are told apart by.
var outcomeNames = [...]string{oracle.Admitted: "admitted", oracle.Rejected: "rejected", oracle.Failed: "error"}

func (p *pass) latencies() error {
	drive := p.drive
	run := &p.run
	var parts []results.Part
	for out := range drive.parts {
		for tier, histogram := range drive.parts[out] {
			if histogram != nil {
				parts = append(parts, results.Part{Outcome: outcomeNames[out], Tier: string(drive.tiers[tier]),
					Histogram: histogram})
			}
		}
	}
	latency, err := results.LatencyOf(parts)
	if err != nil {
		return err
	}
	run.Service = latency
	if p.openLoop() {
		run.Service, err = drive.service.Latency()
		if err != nil {
			return err
		}
		run.Response = &latency
	}
	if p.cfg.Workload.GivesBack {
		settlement := drive.settlement
		settlement.Service, err = drive.settled.Latency()
		if err != nil {
			return err
		}
		run.Settlement = &settlement
	}
	return nil
}

// costs are per decision.
func (p *pass) costs(ctx context.Context) error {
	cost := &p.run.Cost
	n := float64(p.drive.issued)
	usage, err := p.site.usage(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	cost.KeysAtEnd = usage.Keys
	cost.KeysWithoutTTL = usage.WithoutTTL
	if p.failed == nil {
		p.run.Meter = p.site.Meter()
	}
	if n == 0 {
		return nil
	}
	var commands int64
	for _, server := range p.site.redis {
		commands += server.served
	}
	cost.Commands = float64(commands) / n
	cost.ModelSQL = float64(p.site.postgres.served) / n
	cost.RoundTrips = float64(p.site.network.legs) / n
	return nil
}

// keep records what is in Redis when the last request was issued.
func (p *pass) keep(ctx context.Context) error {
	if !needsRedis(p.sel) {
		return nil
	}
	usage, err := p.site.usage(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	p.run.Stored = []results.Stored{results.NewStored(string(strategies.NeedRedis), p.subjects(), usage.Keys, usage.Bytes,
		p.overTime())}
	if extended := int64(0); len(p.site.tables) > 0 {
		for _, redis := range p.site.tables {
			table, ok := redis.(*fakeredis.Table)
			if !ok {
				return nil // miniredis does not count it
			}
			extended += table.Extended
		}
		p.run.Stored[0].Extended = &extended
	}
	return nil
}

// subjects is how many were set up or asked about.
func (p *pass) subjects() (n int64) {
	_, setUp := p.site.Instances[0].(strategies.Provisioner)
	for i := range p.drive.truth.subjects {
		if subject := &p.drive.truth.subjects[i]; setUp || subject.issued > 0 || subject.initial != 0 {
			n++
		}
	}
	return n
}

// overTime is what the samples found at the quarters of the run; nil if the series
// has too few.
func (p *pass) overTime() (out []results.StoredAt) {
	length := cmp.Or(int64(p.cfg.Duration), p.drive.lastEnd-p.drive.epoch)
	samples := p.series.Samples
	if len(samples) < 2*bounds.Quarters || !slices.ContainsFunc(samples, func(sample results.Sample) bool {
		return sample.Keys > 0
	}) {
		return nil
	}
	for q := range int64(bounds.Quarters - 1) {
		at := 0
		for i := range samples {
			if samples[i].AtNS <= length/bounds.Quarters*(q+1) {
				at = i
			}
		}
		sample := &samples[at]
		out = append(out, results.StoredAt{AtNS: sample.AtNS, Entries: sample.Keys, WithoutTTL: sample.KeysWithoutTTL,
			Bytes: sample.Bytes})
	}
	return out
}

// newWitness watches whether the strategy works where a simulation can see it.
// The wall clock's time is looked for if neither virtual time nor that of the policy's windows, which may be that of a
// recent trace, comes near it.
func (p *pass) newWitness() *witness.Witness {
	real := p.real
	start := p.cfg.Start
	length := p.cfg.Duration
	if p.info.Trace != nil {
		length = max(length, p.info.Trace.Span)
	}
	end := start.Add(length + drain)
	timeline := p.policy.Window.Timeline
	virtual := closestTo(real, start, end)
	ofWindows := closestTo(real, timeline.ToPolicy(start), timeline.ToPolicy(end))
	if ofWindows.Sub(real).Abs() < virtual.Sub(real).Abs() {
		virtual = ofWindows
	}
	return witness.New(witness.Config{
		NeedsStore: needsRedis(p.sel),
		Caller:     func(ctx context.Context) bool { return sched.From(ctx) != nil },
		Real:       real, Virtual: virtual,
		AllUntil: watchedCommands,
	})
}

// closestTo is the moment between two that is nearest to another one.
func closestTo(to, from, until time.Time) time.Time {
	switch {
	case to.Before(from):
		return from
	case to.After(until):
		return until
	}
	return to
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
	drive := p.drive
	window := p.policy.Window
	if drive.rejectedLast == "" || drive.counts.Admitted == 0 || p.sel.Reset != strategies.ResetsWindow ||
		window.Kind == quota.Standing ||
		ctx.Err() != nil {
		return nil
	}
	wait := probeWindows * verdict.Length(&p.policy, p.site.scheduler.Now())
	if wait <= 0 || wait > bounds.MaxVirtualDuration {
		return nil
	}
	for _, j := range p.site.Jobs {
		if j.Every > 0 && wait/j.Every > maxProbeRounds {
			return nil
		}
	}
	var admitted, answered bool
	p.site.scheduler.Go("probe", func(ctx context.Context) {
		if drive.clock.Sleep(ctx, wait) != nil {
			return
		}
		req := quota.Request{ID: bounds.ProbeID, Subject: drive.rejectedLast, Policy: &p.policy,
			Units: p.policy.LeastCost()}
		dec, err := p.site.Instances[0].Take(ctx, req)
		admitted = dec.Admitted
		answered = err == nil
	})
	if err := p.site.scheduler.Simulate(p.site.scheduler.Now().Add(wait+time.Hour), p.site.network.latency); err != nil {
		return err
	}
	if answered && !admitted {
		drive.witness.Note(witness.NeverAgain,
			"a subject that was rejected is still rejected after several windows have passed: the "+
				"strategy takes the time from elsewhere than its clock, or resets nothing and does not say so")
	}
	return nil
}
