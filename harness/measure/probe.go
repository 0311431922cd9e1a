package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// probeRequests is how many requests of each outcome a cost probe averages over.
const probeRequests = 16

// probeSubjects bounds how many unused subjects are tried: a filter may take one
// of them for another that has used up its quota, and reject it at once.
const probeSubjects = 8

// probeTimeouts is how many requests may get no answer in time before a probe is given
// up: each may take seconds.
const probeTimeouts = 2

// probe measures what one decision costs, exactly: one caller, one request at a
// time, no background jobs, scripts loaded and statements prepared, subjects of
// its own. Its figures are counts, the same on every machine. A subject whose
// first request is rejected tells what a rejection costs and nothing else, so
// another one is tried; if all are rejected, that is what the strategy does.
func (p *pass) probe(ctx context.Context) (*results.Probe, error) {
	policy := *p.policy
	cost := harness.LeastCost(&policy)
	policy.Limit = probeRequests * cost
	var out *results.Probe
	for n := range uint64(probeSubjects) {
		subject := quota.Subject(fmt.Sprintf("cost-probe-%d", n))
		grants := []strategies.Grant{{Subject: subject, Limit: policy.Limit}}
		if err := p.s.Provision(ctx, &policy, grants, 0); err != nil {
			return nil, err
		}
		probe, admitted, err := p.probeSubject(ctx, &policy, subject, cost, harness.ProbeID+n<<16)
		if err != nil || admitted {
			return probe, err
		}
		if probe != nil {
			out = probe
		}
	}
	if out == nil {
		return nil, errors.New("cost probe: the first request of every subject failed")
	}
	return out, nil
}

// probeSubject asks for one subject until it has been rejected often enough.
// admitted is set if its first request was. There is no probe if that one failed.
func (p *pass) probeSubject(ctx context.Context, policy *quota.Policy, subject quota.Subject, cost int64,
	id uint64) (out *results.Probe, admitted bool, err error) {
	out = &results.Probe{}
	var taken, rejected probeSum
	var failures harness.Failures
	for i := range uint64(4 * probeRequests) {
		before := p.s.traffic(mallocs())
		d, err := p.s.Instances[0].Take(ctx, quota.Request{ID: id + i, Subject: subject, Policy: policy, Units: cost})
		if err != nil && !strategies.IsPrescribed(err) {
			failures.Count(err)
			// A service that fails now and then is no broken store.
			if e := failures.Errors; e.TimeOuts > probeTimeouts || e.Store+e.Other > 0 && !p.run.Outside {
				return nil, false, fmt.Errorf("cost probe: %w", err)
			}
			if i == 0 { // of this subject there is no first decision
				return nil, false, nil
			}
			continue // no decision, and no cost of one
		}
		sent := p.s.traffic(mallocs()).sub(before)
		switch {
		case i == 0:
			out.First, admitted = sent.cost(1), d.Admitted
		case d.Admitted && taken.n < probeRequests:
			taken.add(sent)
		case !d.Admitted && rejected.n < probeRequests:
			rejected.add(sent)
		}
		if rejected.n == probeRequests {
			break
		}
	}
	out.Admitted, out.Rejected = taken.mean(), rejected.mean()
	return out, admitted, nil
}

// mallocs counts allocations so far, exactly: unlike reading the metric it stops
// the world, which a probe may.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// probeSum adds up requests of one outcome.
type probeSum struct {
	n    int
	sent traffic
}

func (s *probeSum) add(sent traffic) {
	s.n++
	s.sent = s.sent.add(sent)
}

// mean is nil if there was no request of the outcome.
func (s *probeSum) mean() *results.ProbeCost {
	if s.n == 0 {
		return nil
	}
	m := s.sent.cost(float64(s.n))
	return &m
}
