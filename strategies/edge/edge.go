// Package edge holds the alternative of ADR-005 that caches at the edge of a
// network. Its store is a model in this process: nothing that is measured on it says
// how fast such a service is, and what it admits follows from the two figures that
// the record gives, a millisecond for a read and 60 seconds until a write is seen
// elsewhere.
package edge

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

//go:embed notes.md
var files embed.FS

func init() {
	family.Register(files, family.GivingBack(strategies.Meta{
		Name: "edge-kv",
		Options: []quota.Option{
			{Name: "lag", Type: "duration", Default: "60s", Min: "0s"},
			{Name: "read", Type: "duration", Default: "1ms", Min: "0s"},
			{Name: "write", Type: "duration", Default: "1ms", Min: "0s"},
		},
		// No leak clause: a PUT erases whatever was admitted since its GET, in this
		// region or in others. What was given back elsewhere is not known either.
		Guarantee: []quota.Clause{quota.MayReject(quota.FaultCrash, quota.FaultClock)},
		Open:      open,
	}))
}

// store is one instance of edge-kv.
type store struct {
	clock       quota.Clock
	replicas    *replicas
	region      string
	read, write time.Duration
	stale, lost strategies.Tally
}

func open(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
	lag := env.Options.Duration("lag")
	region := cmp.Or(env.Region, fmt.Sprintf("instance-%d", env.Instance))
	return &store{
		clock: env.Clock, region: region,
		replicas: strategies.SharedValue(env.Shared, "edge.kv", func() *replicas { return &replicas{lag: lag} }),
		read:     env.Options.Duration("read"), write: env.Options.Duration("write"),
	}, nil
}

// tier names the replica.
func (s *store) tier() quota.Tier { return quota.Tier("edge model " + s.region) }

func key(subject quota.Subject, policy *quota.Policy, index int64) string {
	return policy.Name + ":" + policy.Window.Label(index) + ":" + string(subject)
}

// Take implements [strategies.Strategy].
func (s *store) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	now := s.clock.Now()
	span := req.Policy.Window.At(now)
	k := key(req.Subject, req.Policy, span.Index)
	write, err := s.get(ctx, k)
	if err != nil {
		return quota.Decision{}, err
	}
	decision := quota.Decision{Tier: s.tier(), Remaining: max(req.Policy.Limit-write.units, 0)}
	if req.Units > req.Policy.Limit-write.units {
		if req.Policy.Window.Kind.Tumbling() {
			decision.RetryAfter = span.End.Sub(now)
		}
		return decision, nil
	}
	if err := s.put(ctx, k, write.units+req.Units, write.number); err != nil {
		return quota.Decision{}, err
	}
	return family.Admit(decision, req, span.Index), nil
}

// Refund implements [strategies.Refunder]: another GET and PUT.
func (s *store) Refund(ctx context.Context, reservation quota.Reservation) error {
	req := reservation.Request
	if req.Policy == nil {
		return family.ErrNoReservation
	}
	k := key(req.Subject, req.Policy, reservation.Window)
	write, err := s.get(ctx, k)
	if err != nil {
		return err
	}
	return s.put(ctx, k, max(write.units-req.Units, 0), write.number)
}

func (s *store) get(ctx context.Context, k string) (write, error) {
	if err := s.wait(ctx, s.read); err != nil {
		return write{}, err
	}
	w, stale := s.replicas.get(k, s.region, s.clock.Now())
	if stale {
		s.stale.Add(1)
	}
	return w, nil
}

func (s *store) put(ctx context.Context, k string, units, read int64) error {
	if err := s.wait(ctx, s.write); err != nil {
		return err
	}
	if s.replicas.put(k, s.region, s.clock.Now(), units, read) {
		s.lost.Add(1)
	}
	return nil
}

// wait takes the time of a call. Callers that have given up do not call.
func (s *store) wait(ctx context.Context, duration time.Duration) error {
	if duration > 0 {
		return s.clock.Sleep(ctx, duration)
	}
	return ctx.Err()
}

// Used implements [strategies.Viewer]: what the replica of this region says.
func (s *store) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	now := s.clock.Now()
	write, _ := s.replicas.get(key(subject, policy, policy.Window.At(now).Index), s.region, now)
	return []quota.Reading{{Tier: s.tier(), Units: write.units, Known: write.number != 0}}, ctx.Err()
}

// Provision writes the counters of the window in force, long enough ago for all
// regions to see them.
func (s *store) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	if err := family.OneLimit(policy, grants); err != nil {
		return err
	}
	now := s.clock.Now()
	index := policy.Window.At(now).Index
	for _, grant := range grants {
		s.replicas.reset(key(grant.Subject, policy, index), s.region, now.Add(-s.replicas.lag), grant.Used)
	}
	return ctx.Err()
}

// Measures implements [strategies.Meter].
func (s *store) Measures() []strategies.Measure {
	return []strategies.Measure{
		{Name: "stale reads", Unit: "reads", Value: s.stale.Load()},
		{Name: "lost updates", Unit: "writes", Value: s.lost.Load()},
	}
}

// Close implements [strategies.Strategy]. There is nothing to release.
func (s *store) Close(context.Context) error { return nil }

// replicas is a model of a key-value store with a replica in each region. A write
// is seen at once where it was made, and everywhere else after the lag. Of two
// writes the later one wins.
type replicas struct {
	lag time.Duration
	// mu is never held across anything that waits, so a scheduler need not know.
	mu   sync.Mutex
	keys map[string]*history
	made int64
}

// write is one version of a key.
type write struct {
	at     time.Time
	number int64 // in the order of writing, for writes of one moment
	region string
	units  int64
}

func (w write) compare(o write) int {
	return cmp.Or(w.at.Compare(o.at), cmp.Compare(w.number, o.number))
}

// history is a key's writes that not everyone has seen, in their order, after the
// last one that everyone has.
type history struct {
	writes []write
	own    map[string]write // the last one of each region
}

// get reads a key in a region. The number of the version is 0 if there is none.
// stale is set if another region has written since.
func (r *replicas) get(key, region string, now time.Time) (w write, stale bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	history := r.keys[key]
	if history == nil {
		return write{}, false
	}
	// The first write that is not seen everywhere yet.
	i, _ := slices.BinarySearchFunc(history.writes, now.Add(-r.lag), func(w write, seen time.Time) int {
		if w.at.After(seen) {
			return 1
		}
		return -1
	})
	if i > 0 {
		w = history.writes[i-1]
		history.writes = slices.Delete(history.writes, 0, i-1)
	}
	if own, ok := history.own[region]; ok && own.compare(w) > 0 {
		w = own
	}
	return w, history.writes[len(history.writes)-1].number != w.number
}

// put writes a key in a region. lost is set if that overwrites a version that its
// writer, who had read the version with the number, has not seen.
func (r *replicas) put(key, region string, now time.Time, units, read int64) (lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil {
		r.keys = map[string]*history{}
	}
	h := r.keys[key]
	if h == nil {
		h = &history{own: map[string]write{}}
		r.keys[key] = h
	} else {
		lost = h.writes[len(h.writes)-1].number != read
	}
	r.made++
	w := write{now, r.made, region, units}
	// Clocks of instances may differ: the order is that of their times.
	i, _ := slices.BinarySearchFunc(h.writes, w, write.compare)
	h.writes = slices.Insert(h.writes, i, w)
	if w.compare(h.own[region]) > 0 {
		h.own[region] = w
	}
	return lost
}

// reset makes a write the only one of a key.
func (r *replicas) reset(key, region string, at time.Time, units int64) {
	r.mu.Lock()
	delete(r.keys, key)
	r.mu.Unlock()
	r.put(key, region, at, units, 0)
}
