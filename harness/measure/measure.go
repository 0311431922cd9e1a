package measure

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/quotabench/quotabench/harness/internal/figures"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// Report is what a measurement found.
type Report struct {
	Runs []results.Run
	// Info describes the workload's stream.
	Info workloads.Info
	// Interrupted is set where the context ended before the last round.
	Interrupted bool
}

// measurement is a measurement under way.
type measurement struct {
	cfg *Config
	tb  *timebase
	obs Observer
	id  string // of this measurement, in key prefixes and schema names
	n   int    // runs begun
	// across remembers what the audit compares between runs.
	across *across
}

// Measure runs every strategy of cfg that can take part, round by round. When ctx
// ends, the run under way is judged as far as it came and marked partial, and
// what was measured is returned without an error. A run that fails is reported
// with an audit that says so, and the others go on.
//
// An error means that nothing could be measured: the configuration or its trace
// is wrong.
func Measure(ctx context.Context, cfg Config) (*Report, error) {
	if err := cfg.Complete(); err != nil {
		return nil, err
	}
	// The name is not derived from the seed: two runs of one seed may share a store.
	id := strings.ToLower(crand.Text()[:12])
	m := &measurement{cfg: &cfg, tb: cfg.base, obs: cfg.Observer, id: id, across: newAcross()}
	if m.tb == nil {
		m.tb = wallTime
	}
	if m.obs == nil {
		m.obs = silent{}
	}
	selected, _ := cfg.Split()
	report := &Report{}
	m.obs.Begin(len(selected) * cfg.Rounds)
	var traceStream workloads.Stream
	for round := 1; round <= cfg.Rounds && ctx.Err() == nil; round++ {
		// A trace is the same in every round; what is generated is not, so that
		// rounds are not the same sample over and over.
		stream, info := traceStream, report.Info
		if stream == nil {
			var err error
			if stream, info, err = m.newStream(round); err != nil {
				return nil, err
			}
			report.Info = info
			if info.Trace != nil {
				traceStream = stream
			}
		}
		report.Runs = append(report.Runs, m.round(ctx, round, selected, stream, info)...)
	}
	m.across.trends(report.Runs)
	report.Interrupted = ctx.Err() != nil
	return report, nil
}

// newStream makes the request stream of one round.
func (m *measurement) newStream(round int) (workloads.Stream, workloads.Info, error) {
	p := m.cfg.Stream
	p.Seed = roundSeed(m.cfg.Seed, round)
	p.Policy = &m.cfg.Policy
	p.Requests = m.cfg.Requests
	return m.cfg.Workload.New(p)
}

// roundSeed derives a round's seed. The first round has the run's own, so that a
// single round can be repeated by --seed.
func roundSeed(seed uint64, round int) uint64 { return seed + uint64(round-1)*0x9E3779B97F4A7C15 }

// round runs every strategy once, in an order of the round's own.
func (m *measurement) round(ctx context.Context, round int, selected []strategies.Selection, stream workloads.Stream, info workloads.Info) []results.Run {
	rng := rand.New(rand.NewPCG(m.cfg.Seed, uint64(round)))
	before, refErr := m.reference(ctx)
	var runs []results.Run
	for _, i := range rng.Perm(len(selected)) {
		if ctx.Err() != nil {
			break
		}
		sel := selected[i]
		m.n++
		m.obs.Running(sel.String(), round, m.cfg.Rounds)
		r := m.attempt(ctx, sel, round, stream, info)
		r.ReferencePerS = before.perS
		if refErr != nil {
			r.Audit.Strike("reference-failed", results.StrikesTimings, refErr.Error())
		}
		runs = append(runs, r)
	}
	m.finishRound(ctx, runs, before)
	m.checkRacyControl(runs, selected)
	for _, r := range runs {
		m.obs.Done(r)
	}
	m.obs.EndRound()
	return runs
}

// finishRound measures the reference once more and gives every run of the round
// the mean of both. A reference that moved by more than a tenth in between makes
// the round's timings worthless: the machine was busy with something else.
func (m *measurement) finishRound(ctx context.Context, runs []results.Run, before loop) {
	if before.perS == 0 || ctx.Err() != nil {
		return
	}
	after, err := m.reference(ctx)
	for i := range runs {
		r := &runs[i]
		if err != nil {
			r.Audit.Strike("reference-failed", results.StrikesTimings, err.Error())
			continue
		}
		r.ReferencePerS = (before.perS + after.perS) / 2
		if after.perS < before.perS*(1-maxReferenceDrift) || after.perS > before.perS/(1-maxReferenceDrift) {
			r.Audit.Strike("reference-drift", results.StrikesTimings, fmt.Sprintf(
				"the reference loop went from %.0f to %.0f commands/s within the round: the machine was not quiet", before.perS, after.perS))
		}
		if share := max(before.foreign, after.foreign); share > maxForeign {
			r.Audit.Strike("redis-shared", results.StrikesTimings, fmt.Sprintf(
				"Redis processed commands of others while the reference loop ran, %.1f %% of the loop's own: it was not ours alone", 100*share))
		}
	}
}

// checkRacyControl strikes conclusions that the round's racy control shows to be
// unfounded.
func (m *measurement) checkRacyControl(runs []results.Run, selected []strategies.Selection) {
	for _, s := range selected {
		if s.Control != strategies.ControlRacy || !m.cfg.Workload.Crosses {
			continue
		}
		for _, r := range runs {
			if r.Params.Label == s.String() && r.Leak.Trials > 0 && r.Leak.Units == 0 {
				strikeZeroLeaks(runs, s.String())
			}
		}
	}
}

func (m *measurement) reference(ctx context.Context) (loop, error) {
	if m.cfg.Redis == nil || m.cfg.NoReference {
		return loop{}, nil
	}
	return referenceFor(ctx, m.cfg, m.tb, m.siteName("ref"), referenceDuration)
}

// siteName is unique among all runs of all processes that share a store.
func (m *measurement) siteName(suffix string) string { return m.id + "_" + suffix }

// attempt runs one strategy and turns a failure into a run that says so.
func (m *measurement) attempt(ctx context.Context, sel strategies.Selection, round int, stream workloads.Stream, info workloads.Info) results.Run {
	run := m.blank(sel, round, stream, info)
	if err := m.runOne(ctx, sel, stream, info, &run); err != nil {
		run.Audit.Strike("run-failed", results.StrikesCorrectness, err.Error())
		run.Audit.TimingsValid = false
	}
	return run
}

// blank is a run with everything that is known before it starts.
func (m *measurement) blank(sel strategies.Selection, round int, stream workloads.Stream, info workloads.Info) results.Run {
	c := m.cfg
	p := results.Params{
		Label: sel.String(), Limit: c.Policy.Limit, Unit: c.Policy.Unit, Window: windowText(c.Policy.Window),
		Loop: results.ClosedLoop, Workers: c.Workers, Instances: c.Instances,
		Subjects: workloads.Subjects(stream), Pool: c.Pool, Retries: c.ClientRetries,
		Requests: c.Requests, DurationNS: int64(c.Duration), Speed: c.Stream.Speed,
		Workload: figures.Workload(c.Stream),
		Stream:   workloads.Fingerprint(stream, fingerprintOps(stream)),
	}
	for _, o := range c.Outages {
		p.Outages = append(p.Outages, o.String())
	}
	if m.open(info) {
		p.Loop, p.RatePerS, p.Arrivals = results.OpenLoop, m.rate(), c.arrivals()
	}
	return results.Run{
		Strategy: sel.Name, Form: string(sel.Form), Options: sel.Options, Policy: c.Policy.Name,
		Workload: c.Workload.Name, Params: p, Repetition: round, Guarantee: []results.Clause{},
		Audit: results.Audit{Valid: true, TimingsValid: true, Reasons: []results.Reason{}},
	}
}

// random reports whether a stream is generated with chance in it: it has several
// subjects to choose from.
func (m *measurement) random(s workloads.Stream) bool {
	return !m.cfg.Workload.NeedsTrace && workloads.Subjects(s) > 1
}

// fingerprintOps is how much of a stream its fingerprint covers.
func fingerprintOps(s workloads.Stream) int64 {
	const most = 4096
	if n := s.Len(); n > 0 {
		return min(n, most)
	}
	return most
}

// open reports whether the loop is open: because the workload is, or because a
// rate was asked for.
func (m *measurement) open(info workloads.Info) bool {
	return !m.cfg.Closed && (info.Loop == workloads.Open || m.cfg.Rate > 0)
}

// rate is that of the arrivals in requests per second; 0 where a trace gives them.
func (m *measurement) rate() float64 {
	switch {
	case m.cfg.Stream.Speed > 0:
		return 0
	case m.cfg.Rate > 0:
		return m.cfg.Rate
	default:
		return m.cfg.Workload.Rate
	}
}

// arrivals names what starts requests in an open loop.
func (c *Config) arrivals() string {
	switch {
	case c.Stream.Speed > 0:
		return "recorded"
	case c.Arrivals == "":
		return "poisson"
	default:
		return c.Arrivals
	}
}

func (m *measurement) newArrivals(stream workloads.Stream, seed uint64) (workloads.Arrivals, error) {
	switch m.cfg.arrivals() {
	case "recorded":
		return workloads.FromTrace(stream, m.cfg.Stream.Speed)
	case "constant":
		return workloads.Constant(m.rate())
	default:
		return workloads.Poisson(m.rate(), seed)
	}
}

// aligned is the policy with its windows shifted so that one begins now.
func (m *measurement) aligned(p quota.Policy) quota.Policy {
	if p.Window.Kind.Tumbling() {
		now := m.tb.time(m.tb.nano())
		p.Window.Timeline = quota.Timeline{Real: now, Policy: p.Window.At(now).Start}
	}
	return p
}

// realign shifts the windows once more, at the moment when the measured pass
// begins, where a workload needs them to meet its requests at a certain moment: recorded time
// begins with the first row, and a boundary comes half way through the expected
// duration.
func (m *measurement) realign(p *quota.Policy, info workloads.Info, now time.Time, expected time.Duration) {
	if !p.Window.Kind.Tumbling() {
		return
	}
	switch {
	case m.cfg.Stream.Speed > 0:
		p.Window.Timeline = quota.Timeline{Real: now, Policy: info.Trace.First, Speed: m.cfg.Stream.Speed}
	case m.cfg.Workload.Boundary:
		half := now.Add(expected / 2)
		p.Window.Timeline = quota.Timeline{Real: half, Policy: m.cfg.Policy.Window.At(now).End}
	}
}
