package window

import (
	"context"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

var dequeMeta = strategies.Meta{
	Name:  "memory-deque",
	Kinds: kinds,
	// Moments grow old one by one. Nothing happens when a fixed window ends,
	// so the next one may begin with less than its limit.
	Reset:      strategies.ResetsMissing,
	Counts:     quota.CountsAdmitted,
	PerProcess: true, SharesMemory: true,
	Record: []quota.Clause{perProcess().From("ProjectEPU: attempts within a rolling window, each process for itself")},
	Guarantee: []quota.Clause{
		perProcess(everyFault[1:]...), // a crash forgets what was admitted
		{
			// A process that rejects has itself admitted all that does not fit.
			Property: quota.PropertyFalseReject, Kinds: []quota.Kind{quota.Rolling}, Tolerates: everyFault,
			Formula: "0",
			Bound:   family.None,
		},
	},
	Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		return &memoryDeque{newDeques(env.Clock)}, nil
	},
}

// perProcess is the clause of limits that each instance keeps for itself.
func perProcess(tolerates ...quota.Fault) quota.Clause {
	return leak(nil, "instances x L", tolerates, func(p quota.Params) int64 { return (p.Instances - 1) * p.Limit })
}

// everyFault: there is no store that could fail, and each decision is made at one
// moment.
var everyFault = quota.Faults()

// memoryDeque is the record's login limiter. Each instance knows what it has
// admitted itself.
type memoryDeque struct{ deques *deques }

// Take implements [strategies.Strategy].
func (s *memoryDeque) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	if err := ctx.Err(); err != nil {
		return quota.Decision{}, err
	}
	return s.deques.take(req), nil
}

// Used implements [strategies.Viewer]. It is what this process has admitted.
func (s *memoryDeque) Used(ctx context.Context, subject quota.Subject, p *quota.Policy) ([]quota.Reading, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	units, known := s.deques.used(subject, p)
	return []quota.Reading{{Tier: quota.TierProcess, Units: units, Known: known, PerInstance: true}}, nil
}

// Provision implements [strategies.Provisioner]. Units used at the start were
// used in this process.
func (s *memoryDeque) Provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.deques.provision(p, grants)
}

// Measures implements [strategies.Meter]: the deques that there are, those that have
// become empty among them, and the memory of their names and moments.
func (s *memoryDeque) Measures() []strategies.Measure {
	n, bytes := s.deques.size()
	return []strategies.Measure{
		{Name: "deques kept", Unit: "deques", Value: n, Kind: strategies.MeasureLevel},
		{Name: "memory of deques", Unit: "bytes", Value: bytes, Kind: strategies.MeasureLevel},
	}
}

// Close implements [strategies.Strategy]. The memory goes with the instance.
func (s *memoryDeque) Close(context.Context) error { return nil }
