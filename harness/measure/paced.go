package measure

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// The bounds of [CommonRate], in requests per second.
const (
	leastAutoRate = 500
	mostAutoRate  = 10_000
)

// pacedSamples are the requests that the open loops of a strategy have together at least, in the
// rounds that an interval needs: enough for the 99th percentile.
const pacedSamples = 500

// paced is a measurement that gives latency alone: each strategy in an open loop at
// a rate that all share. Nothing is probed and no counter is read.
func (m *measurement) paced(load harness.Load) *measurement {
	cfg := *m.cfg
	cfg.Load = load
	cfg.Load.Loop = workloads.Open
	perRound := pacedSamples / float64(min(cfg.Rounds, bounds.LeastRounds))
	cfg.Duration = max(cfg.Duration, time.Duration(perRound/load.PerSecond*float64(time.Second)))
	cfg.Timer = nil
	cfg.Archive = ""
	return &measurement{cfg: &cfg, timebase: m.timebase, obs: m.obs, id: m.id + "_paced", across: newCrossRunAudit(),
		places: m.places, leftOut: m.leftOut, latencyOnly: true}
}

// atRate gives every run of a round its open loop at the common rate.
func (m *measurement) atRate(ctx context.Context, round *round, runs []results.Run) {
	if m.cfg.Load.Loop != harness.Both || m.cfg.Open(round.info) || ctx.Err() != nil {
		return
	}
	if m.open == nil {
		load := m.cfg.Load
		if load.PerSecond == 0 {
			load.PerSecond, load.From = CommonRate(runs, round.selected)
		}
		m.open = m.paced(load)
	}
	reference := m.open.openReference(ctx, round)
	rng := rand.New(seed.NewSource(m.cfg.Seed, seed.PacedOrder, uint64(round.number)))
	for _, i := range rng.Perm(len(runs)) {
		if ctx.Err() != nil {
			break
		}
		run := &runs[i]
		sel, ok := selectionOf(round.selected, run.Params.Label)
		if !ok || m.leftOut.needs(sel) != "" {
			continue
		}
		m.open.begun++
		label := fmt.Sprintf("%s at %g/s%s", sel, m.open.cfg.Load.PerSecond, m.cfg.at())
		m.obs.Running(label, round.number, m.cfg.last())
		paced, begun := m.open.attempt(ctx, sel, round)
		if !begun {
			break
		}
		paced.Reference = reference
		run.Paced = &paced
		m.obs.SoFar(runs)
	}
}

func selectionOf(selected []strategies.Selection, label string) (strategies.Selection, bool) {
	for _, selection := range selected {
		if selection.String() == label {
			return selection, true
		}
	}
	return strategies.Selection{}, false
}

// CommonRate is the rate that follows from the throughput of closed loops, in requests per
// second, with two digits, and where it comes from.
func CommonRate(runs []results.Run, selected []strategies.Selection) (rate float64, from string) {
	label := ""
	slowest := func(counts func(strategies.Selection) bool) float64 {
		least := math.Inf(1)
		for i := range runs {
			sel, ok := selectionOf(selected, runs[i].Params.Label)
			if t := runs[i].ThroughputPerS; ok && t > 0 && t < least && counts(sel) {
				least = t
				label = sel.String()
			}
		}
		return least
	}
	least := slowest(func(selection strategies.Selection) bool { return len(selection.Needs) > 0 })
	if math.IsInf(least, 1) {
		least = slowest(func(strategies.Selection) bool { return true })
	}
	rate = min(max(least/2, leastAutoRate), mostAutoRate)
	switch {
	case label == "":
		from = "the highest automatic rate"
	case least/2 < leastAutoRate:
		from = "the lowest automatic rate, since " + label + " held less than twice as much"
	case least/2 > mostAutoRate:
		from = "the highest automatic rate, since " + label + " held more than twice as much"
	default:
		from = "half of what " + label + " held in the first round"
	}
	step := math.Pow(10, math.Floor(math.Log10(rate))-1)
	return math.Floor(rate/step) * step, from // two digits, so that runs of one machine agree more often
}

// openReference measures what a bare client's INCR takes in an open loop: from the
// intended start, at the rate of the plan. It is nil if there is no Redis, or
// if that failed.
func (m *measurement) openReference(ctx context.Context, round *round) *results.Distribution {
	if _, ok := m.cfg.Stores.Get(string(strategies.NeedRedis)); !ok || m.cfg.NoReference ||
		m.leftOut.needs(bareClient) != "" || ctx.Err() != nil {
		return nil
	}
	m.begun++
	run, begun := m.attempt(ctx, bareClient, round)
	if !begun || !run.Audit.Valid || run.Response == nil {
		return nil
	}
	all, err := run.Response.Decode()
	if err != nil || all == nil {
		return &run.Response.Distribution
	}
	whole, err := all.Latency() // with its histogram: rounds are pooled
	if err != nil {
		return &run.Response.Distribution
	}
	return &whole.Distribution
}

// bareClient is the client library alone: one INCR of one key for each request. It
// holds no quota.
var bareClient = strategies.Selection{Meta: &strategies.Meta{
	Name: "bare-client", Doc: "one INCR of one key, and nothing else", Form: strategies.Baseline,
	Kinds: quota.Kinds(), Needs: []strategies.Need{strategies.NeedRedis}, GivesBack: true,
	Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		return &bareStrategy{strategies.Redis(env), env.Prefix + "reference"}, nil
	},
}}

type bareStrategy struct {
	redis redis.UniversalClient
	key   string
}

func (b *bareStrategy) Take(ctx context.Context, request quota.Request) (quota.Decision, error) {
	err := b.redis.Incr(ctx, b.key).Err()
	return quota.Decision{Admitted: err == nil, Tier: quota.TierRedis, Remaining: -1,
		Reservation: quota.Reservation{Request: request}}, err
}

// Provision leaves its key alone, which stands for all subjects.
func (b *bareStrategy) Provision(context.Context, *quota.Policy, []strategies.Grant) error {
	return nil
}

func (b *bareStrategy) Close(context.Context) error { return nil }

func (b *bareStrategy) Refund(context.Context, quota.Reservation) error { return nil }

func (b *bareStrategy) Commit(context.Context, quota.Reservation, int64) error { return nil }
