package harness

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/cancel"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/workloads"
)

// The arrivals of an open loop.
const (
	poisson  = "poisson"
	constant = "constant"
	recorded = "recorded"
)

// NewStream makes the request stream of a round, counted from 1. The first round
// has the plan's own seed, so that a single round can be repeated by --seed.
func (p *Plan) NewStream(round int) (workloads.Stream, workloads.Info, error) {
	params := p.Stream
	params.Seed = roundSeed(p.Seed, round)
	params.Policy = &p.Policy
	params.Requests = p.Requests
	return p.Workload.New(params)
}

// NewStreamUnless is [Plan.NewStream], given up when ctx is done: a trace may come from
// a pipe that never ends, and a schedule may be long.
func (p *Plan) NewStreamUnless(ctx context.Context, round int) (workloads.Stream, workloads.Info, error) {
	type made struct {
		stream workloads.Stream
		info   workloads.Info
	}
	plan := *p // which is its caller's again afterwards
	m, err := cancel.Call(ctx, func() (made, error) {
		stream, info, err := plan.NewStream(round)
		return made{stream, info}, err
	})
	return m.stream, m.info, err
}

// roundSeed derives a round's seed.
func roundSeed(plan uint64, round int) uint64 { return plan + uint64(round-1)*seed.Golden }

// Load is how requests are issued. The zero value leaves that to the workload.
type Load struct {
	// Loop is closed, open or [Both]; "" is the workload's own.
	Loop workloads.Loop
	// PerSecond are the requests per second of the open loop. Only [Both] leaves it out: the
	// runner then chooses a rate that all strategies hold.
	PerSecond float64
	// From says where PerSecond comes from, for the record; "" if it was given.
	From string
}

// Both is a closed loop for throughput and leaks, and an open one next to it for
// latency. If the workload is open there is only the open loop.
const Both workloads.Loop = "both"

// OpenAt is an open loop at that many requests per second; 0 leaves the load to the workload.
func OpenAt(perSecond float64) Load {
	if perSecond == 0 {
		return Load{}
	}
	return Load{Loop: workloads.Open, PerSecond: perSecond}
}

// Closed is a closed loop, also if the workload's is open.
func Closed() Load { return Load{Loop: workloads.Closed} }

func (l Load) check() error {
	switch {
	case !(l.PerSecond <= bounds.MaxRate):
		return fmt.Errorf("a rate of %g requests per second: give at most %g", l.PerSecond, bounds.MaxRate)
	case l.Loop != "" && l.Loop != workloads.Closed && l.Loop != workloads.Open && l.Loop != Both:
		return fmt.Errorf("loop %q: one of closed, open, both", l.Loop)
	case l.Loop == workloads.Open && l.PerSecond == 0:
		return errors.New("an open loop needs a rate")
	case l.PerSecond > 0 && (l.Loop == "" || l.Loop == workloads.Closed):
		return fmt.Errorf("a rate of %g requests per second needs an open loop", l.PerSecond)
	}
	return nil
}

// Open reports whether the loop is open.
func (p *Plan) Open(info workloads.Info) bool {
	return p.Load.Loop == workloads.Open || p.Load.Loop != workloads.Closed && info.Loop == workloads.Open
}

// RateInForce is that of the arrivals in requests per second; 0 if a trace
// gives them.
func (p *Plan) RateInForce() float64 {
	switch {
	case p.Stream.Speed() > 0:
		return 0
	case p.Load.Loop == workloads.Open:
		return p.Load.PerSecond
	default:
		return p.Workload.Rate
	}
}

func (p *Plan) arrivals() string {
	switch {
	case p.Stream.Speed() > 0:
		return recorded
	case p.Arrivals == "":
		return poisson
	default:
		return p.Arrivals
	}
}

// NewArrivals makes the arrivals of an open loop for one round.
func (p *Plan) NewArrivals(stream workloads.Stream, round int) (all workloads.Arrivals, err error) {
	switch p.arrivals() {
	case recorded:
		all, err = workloads.FromTrace(stream, p.Stream.Speed())
	case constant:
		all, err = workloads.Constant(p.RateInForce())
	default:
		all, err = workloads.Poisson(p.RateInForce(), roundSeed(p.Seed, round))
	}
	return p.own(all), err
}

// Align returns the policy with its windows shifted if the workload needs them
// to meet its requests at a certain moment: recorded time begins with the first
// row, and a boundary comes half way through the expected duration. begin is the
// first moment of the run. Otherwise the windows stay as they are.
func (p *Plan) Align(info workloads.Info, begin time.Time, expected time.Duration) quota.Policy {
	policy := p.Policy
	switch window := &policy.Window; {
	case window.Kind == quota.Standing:
	case p.Stream.Speed() > 0:
		window.Timeline = quota.Timeline{Real: begin, Policy: info.Trace.First, Speed: p.Stream.Speed()}
	case p.Workload.Boundary && window.Kind.Tumbling():
		window.Timeline = quota.Timeline{Real: begin.Add(expected / 2), Policy: window.At(begin).End}
	}
	return policy
}

// maxTrials and unpacedTrials bound the subjects of a workload that has a fresh
// one for each trial, unpacedTrials if the rate is not known in advance: every
// subject costs memory and is set up before the run.
const (
	maxTrials     = 2_000_000
	unpacedTrials = 200_000
)

// Size is how many requests a run may issue, and of how many subjects. perSecond
// is the rate that is expected, or 0 if it is not known.
func (p *Plan) Size(stream workloads.Stream, perSecond float64) (requests int64, subjects int) {
	requests = math.MaxInt64
	if n := stream.Len(); n > 0 {
		requests = n
	}
	if p.Requests > 0 {
		requests = min(requests, p.Requests)
	}
	per := workloads.OpsPerCrossing(stream)
	if per == 0 {
		return requests, workloads.Subjects(stream)
	}
	if perSecond == 0 {
		requests = min(requests, unpacedTrials*per)
	}
	requests = min(requests, maxTrials*per)
	if p.Duration > 0 && perSecond > 0 {
		// Half as much again as expected; a faster run ends early.
		expect := int64(perSecond*p.Duration.Seconds()*1.5)/per + 8
		requests = min(requests, min(expect, maxTrials)*per)
	}
	return requests, int((requests + per - 1) / per)
}
