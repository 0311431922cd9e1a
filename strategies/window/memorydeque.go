package window

import (
	"context"
	"sync"
	"time"
	"unsafe"

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
	About: strategies.About{Record: []quota.Clause{
		perProcess().From("ProjectEPU", "attempts within a rolling window, each process for itself"),
	}},
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
	return leak(nil, "instances x L", tolerates, func(params quota.Params) int64 {
		return (params.Instances - 1) * params.Limit
	})
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
func (s *memoryDeque) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	units, known := s.deques.used(subject, policy)
	return []quota.Reading{{Tier: quota.TierProcess, Units: units, Known: known, PerInstance: true}}, nil
}

// Provision implements [strategies.Provisioner]. Units used at the start were
// used in this process.
func (s *memoryDeque) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.deques.provision(policy, grants)
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

// deques are the moments of one process, by subject and policy. A subject that
// never comes back keeps its last ones, since they are trimmed when it does.
type deques struct {
	clock quota.Clock
	// mu is never held across anything that waits, so a scheduler need not know.
	mu sync.Mutex
	m  map[family.Account]*deque
}

// deque holds one moment per admitted unit, oldest first. Those of one request
// are equal and are stored once, with their number: a policy of bytes would need
// more memory than it has bytes to give otherwise.
type deque struct {
	moments []moment
	units   int64
}

type moment struct {
	at    time.Time
	units int64
}

func newDeques(clock quota.Clock) *deques {
	return &deques{clock: clock, m: map[family.Account]*deque{}}
}

// take admits what fits next to the units of the last window's length.
// Rejected requests leave no trace.
func (s *deques) take(req quota.Request) quota.Decision {
	policy := req.Policy
	s.mu.Lock()
	defer s.mu.Unlock()
	// The clock is read under the lock, so that moments are in order.
	now := s.clock.Now()
	length := realLength(policy)
	deque := s.of(req.Subject, policy)
	deque.trim(now, length)

	decision := quota.Decision{Tier: quota.TierProcess, Remaining: max(0, policy.Limit-deque.units)}
	if deque.units+req.Units > policy.Limit {
		decision.RetryAfter = deque.free(deque.units+req.Units-policy.Limit, now, length)
		return decision
	}
	deque.add(now, req.Units)
	decision.Admitted = true
	decision.Remaining -= req.Units
	return decision
}

// used is what a subject has in its deque; known is false if it has none.
func (s *deques) used(subject quota.Subject, policy *quota.Policy) (units int64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	deque, known := s.m[family.AccountOf(policy, subject)]
	if !known {
		return 0, false
	}
	deque.trim(s.clock.Now(), realLength(policy))
	return deque.units, true
}

// size is how many deques there are, and the bytes of their names and moments: at least
// what the process needs for them, since the map has an overhead of its own.
func (s *deques) size() (n, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, deque := range s.m {
		bytes += int64(unsafe.Sizeof(k)) + int64(len(k.Subject)) + int64(unsafe.Sizeof(deque)) + int64(unsafe.Sizeof(*deque))
		bytes += int64(cap(deque.moments)) * int64(unsafe.Sizeof(moment{}))
	}
	return int64(len(s.m)), bytes
}

// provision replaces the deques of the subjects: units used at the start were
// admitted at this moment.
func (s *deques) provision(policy *quota.Policy, grants []strategies.Grant) error {
	if err := family.OneLimit(policy, grants); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	for _, grant := range grants {
		q := &deque{}
		if grant.Used > 0 {
			q.add(now, grant.Used)
		}
		s.m[family.AccountOf(policy, grant.Subject)] = q
	}
	return nil
}

func (s *deques) of(subject quota.Subject, policy *quota.Policy) *deque {
	k := family.AccountOf(policy, subject)
	q := s.m[k]
	if q == nil {
		q = &deque{}
		s.m[k] = q
	}
	return q
}

func (q *deque) add(at time.Time, units int64) {
	q.moments = append(q.moments, moment{at, units})
	q.units += units
}

// realLength is how long a moment counts.
func realLength(policy *quota.Policy) time.Duration {
	return policy.Window.Timeline.Scale(length(policy.Window))
}

// trim drops what is one length old: a moment counts during [at, at+length).
func (q *deque) trim(now time.Time, length time.Duration) {
	gone := 0
	for gone < len(q.moments) && now.Sub(q.moments[gone].at) >= length {
		q.units -= q.moments[gone].units
		gone++
	}
	q.moments = q.moments[gone:]
}

// free is how long until that many units have been trimmed; 0 if they never
// will, since they are more than there are.
func (q *deque) free(units int64, now time.Time, length time.Duration) time.Duration {
	for _, moment := range q.moments {
		units -= moment.units
		if units <= 0 {
			return moment.at.Add(length).Sub(now)
		}
	}
	return 0
}
