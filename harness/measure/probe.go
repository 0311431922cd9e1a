package measure

import (
	"context"
	"fmt"
	"runtime"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// probeRequests is how many requests of each outcome a cost probe averages over.
const probeRequests = 16

// probe measures what one decision costs, exactly: one caller, one request at a
// time, no background jobs, scripts loaded and statements prepared, subjects of
// its own. Its figures are counts, the same on every machine.
func (p *pass) probe(ctx context.Context) (*results.Probe, error) {
	policy := p.policy
	unit := max(policy.Limit/probeRequests, 1)
	subject := quota.Subject("cost-probe")
	if err := p.s.provision(ctx, policy, []strategies.Grant{{Subject: subject, Limit: policy.Limit}}); err != nil {
		return nil, err
	}
	out := &results.Probe{}
	var admitted, rejected probeSum
	for i := range uint64(4 * probeRequests) {
		before, model, allocs := p.s.counted(), p.s.modelStatements.Load(), mallocs()
		req := quota.Request{ID: probeID + i, Subject: subject, Policy: policy, Units: unit}
		d, err := p.s.instances[0].Take(ctx, req)
		if err != nil {
			return nil, fmt.Errorf("cost probe: %w", err)
		}
		c := probeCost(p.s.counted().sub(before), p.s.modelStatements.Load()-model, mallocs()-allocs)
		switch {
		case i == 0:
			out.First = c
		case d.Admitted && admitted.n < probeRequests:
			admitted.add(c)
		case !d.Admitted && rejected.n < probeRequests:
			rejected.add(c)
		}
		if rejected.n == probeRequests {
			break
		}
	}
	out.Admitted, out.Rejected = admitted.mean(), rejected.mean()
	return out, nil
}

// mallocs counts allocations so far, exactly: unlike reading the metric it stops
// the world, which a probe may.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// probeID is the first request ID of cost probes.
const probeID = 1 << 60

func probeCost(c counted, model int64, allocs uint64) results.ProbeCost {
	return results.ProbeCost{
		Commands:   float64(c.redis.Commands),
		RoundTrips: float64(c.redis.RoundTrips + c.sql.RoundTrips),
		Bytes:      float64(c.redis.BytesIn + c.redis.BytesOut + c.sql.BytesIn + c.sql.BytesOut),
		SQL:        float64(c.sql.Commands), ModelSQL: float64(model), Allocs: float64(allocs),
	}
}

// probeSum adds up requests of one outcome.
type probeSum struct {
	n   int
	sum results.ProbeCost
}

func (s *probeSum) add(c results.ProbeCost) {
	s.n++
	s.sum.Commands += c.Commands
	s.sum.RoundTrips += c.RoundTrips
	s.sum.Bytes += c.Bytes
	s.sum.SQL += c.SQL
	s.sum.ModelSQL += c.ModelSQL
	s.sum.Allocs += c.Allocs
}

// mean is nil where there was no request of the outcome.
func (s *probeSum) mean() *results.ProbeCost {
	if s.n == 0 {
		return nil
	}
	m, n := s.sum, float64(s.n)
	m.Commands /= n
	m.RoundTrips /= n
	m.Bytes /= n
	m.SQL /= n
	m.ModelSQL /= n
	m.Allocs /= n
	return &m
}
