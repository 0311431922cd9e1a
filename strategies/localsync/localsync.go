// Package localsync holds the strategy "local-sync": each instance of the application decides
// by its own count and by what Redis said last, as Kong does with a sync_rate and gubernator
// with the behaviour GLOBAL. A job brings to Redis what was admitted.
//
// A window has one hash in Redis, and one script changes it.
package localsync

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

//go:embed notes.md *.lua
var files embed.FS

var script = family.Script(files, "sync.lua")

// What sync.lua answers first, if the limit does not forbid it.
const (
	added int64 = 1
	over  int64 = -1
)

// The values of options on which code depends.
const (
	lostDrop  = "drop"
	flushKong = "kong"
	coldFetch = "fetch"
	coldZero  = "zero"
)

const (
	// grace is how long a window's hash outlives the window and the last push, by Redis' clock.
	grace = 5 * time.Second
	// jobSync names the job.
	jobSync = "sync"
)

var meta = family.PerWindow(strategies.Meta{
	Name:   "local-sync",
	Counts: quota.CountsAdmitted, SharesMemory: true,
	Options: []quota.Option{
		{Name: "period", Type: "duration", Default: "1s", Min: "0s"},
		{Name: "lost", Default: "again", Values: []string{"again", lostDrop}},
		{Name: "flush", Default: "keep", Values: []string{"keep", flushKong}},
		{Name: "cold", Default: coldFetch, Values: []string{coldFetch, coldZero}},
	},
	Guarantee: []quota.Clause{
		{
			Property: quota.PropertyLeak, Tolerates: []quota.Fault{quota.FaultRetry, quota.FaultClock, quota.FaultLimit},
			Formula: "L + 2 periods to L x instances; zero: + L; kong: any; 0s: L",
			Bound: func(params quota.Params) int64 {
				others := params.Instances - 1
				if params.Options["cold"] == coldZero {
					others++ // what Redis had before nobody knows of
				}
				return bound(params, others, false)
			},
		},
		{
			// Who cannot ask Redis for the count begins at zero.
			Property: quota.PropertyLeak,
			Tolerates: []quota.Fault{
				quota.FaultRetry, quota.FaultClock, quota.FaultLimit, quota.FaultLostReply, quota.FaultOutage,
			},
			Formula: "L + L x instances; kong or drop: any; period=0s: L",
			Bound: func(params quota.Params) int64 {
				return bound(params, params.Instances, params.Options["lost"] == lostDrop)
			},
		},
		family.NoFalseReject(quota.FaultLimit),
	},
	Open: open,
})

// bound is that of a leak if so many instances know nothing of each other. If all have asked Redis
// before they decide, they know of all but what was admitted since the round before the last: a
// push has what came until its round began, and its reply serves until that of the next round. An
// instance that forgets what it has admitted admits that again, any number of times.
func bound(params quota.Params, others int64, forgets bool) int64 {
	switch period, err := time.ParseDuration(params.Options["period"]); {
	case err == nil && period == 0:
		return 0
	case forgets || params.Options["flush"] == flushKong:
		return params.Offered
	}
	most := others * params.Limit
	if others < params.Instances && params.Unsynced > 0 {
		most = min(most, params.Unsynced)
	}
	return most
}

func init() { family.Register(files, meta) }

// localSync is one instance.
type localSync struct {
	redis   redis.UniversalClient
	clock   quota.Clock
	windows *quota.Memo
	prefix  string
	period  time.Duration
	// drops, forgets and fetches are what the options say.
	drops, forgets, fetches bool
	*memory
	ring *family.Peers[*memory] // nil if every request asks Redis

	asks, pushes, repeats, dropped, forgotten, most strategies.Tally
}

func open(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
	options := env.Options
	sync := &localSync{
		redis: strategies.Redis(env), clock: env.Clock, windows: new(quota.Memo), prefix: env.Prefix + "local-sync:",
		period: options.Duration("period"), drops: options["lost"] == lostDrop, forgets: options["flush"] == flushKong,
		fetches: options["cold"] == coldFetch,
		memory:  &memory{counts: map[account]*count{}},
	}
	if sync.period > 0 {
		sync.name = strconv.FormatUint(env.Rand.Uint64(), 36)
		sync.ring = strategies.SharedValue(env.Shared, "localsync.ring", family.NewPeers[*memory])
		sync.ring.Put(env.Instance, sync.memory)
	}
	return sync, family.Load(ctx, sync.redis, script)
}

// Take implements [strategies.Strategy].
func (s *localSync) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	for range 2 {
		if err := ctx.Err(); err != nil {
			return quota.Decision{}, fmt.Errorf("take for %s: %w", req.Subject, err)
		}
		now := s.clock.Now()
		labelled := s.windows.At(&req.Policy.Window, now)
		if s.period == 0 {
			key := s.key(req.Subject, req.Policy, labelled.Label)
			verdict, used, err := s.run(ctx, key, labelled.End, charge{units: req.Units, limit: req.Policy.Limit})
			if err != nil {
				return family.Unanswered(ctx, s.clock, false, err)
			}
			if verdict == over { // it is asked once more, for the window that is current by then
				continue
			}
			return family.Decided(verdict == added, req.Policy.Limit-used, labelled.End, now), nil
		}
		a := account{req.Policy.Name, req.Subject, labelled.Index}
		decision, unknown := s.decide(a, &req, labelled.Label, labelled.End, now)
		if unknown == nil {
			return decision, nil
		}
		if err := s.fetch(ctx, unknown); err != nil {
			return quota.Decision{}, fmt.Errorf("ask Redis for %s: %w", req.Subject, err)
		}
		decision, unknown = s.decide(a, &req, labelled.Label, labelled.End, now)
		if unknown == nil {
			return decision, nil
		}
		s.begin(unknown, 0, false, false)
	}
	// Our clock is behind Redis' by more than the grace, so Redis will not say.
	return quota.Decision{Tier: quota.TierProcess, Degraded: true, Remaining: -1}, nil
}

// fetch asks Redis for the base of a count. Without Redis the count begins at zero. The error
// is that of a caller who has given up.
func (s *localSync) fetch(ctx context.Context, c *count) error {
	var used int64
	var known, blind bool
	defer func() { s.begin(c, used, known, blind) }()
	s.asks.Add(1)
	verdict, used, err := s.run(ctx, c.key, c.ends, charge{limit: -1})
	if err != nil && family.GaveUp(ctx, s.clock) {
		return err
	}
	known = err == nil && verdict != over
	blind = err != nil
	return nil
}

// charge is what sync.lua is asked for; a limit of -1 is none.
type charge struct{ units, limit, number int64 }

func (s *localSync) run(ctx context.Context, key string, ends time.Time, c charge) (verdict, used int64, err error) {
	got, err := family.Numbers(script.Run(ctx, s.redis, []string{key}, c.units, c.limit,
		ends.Add(grace+s.period).UnixMilli(),
		s.name, c.number), 2)
	if err != nil {
		return 0, 0, err
	}
	return got[0], got[1], nil
}

// Jobs implements [strategies.Jobber].
func (s *localSync) Jobs() []strategies.Job {
	if s.period == 0 {
		return nil
	}
	return []strategies.Job{{Name: jobSync, Every: s.period, Run: s.sync}}
}

// sync tells Redis what was admitted, and learns what others have told. The first error ends
// the round.
func (s *localSync) sync(ctx context.Context) (changed bool, err error) {
	list := s.depart()
	if s.forgets {
		defer func() { s.forgotten.Add(s.forget()) }()
	}
	for i, push := range list {
		verdict, used, err := s.run(ctx, push.count.key, push.count.ends, charge{push.units, -1, push.number})
		if err != nil {
			if s.drops {
				s.dropped.Add(s.drop(list[i:]))
			}
			return changed, fmt.Errorf("push to Redis, %d of %d: %w", i+1, len(list), err)
		}
		s.pushes.Add(1)
		s.land(push, used, verdict == over)
		changed = changed || push.units > 0
	}
	return changed, nil
}

// key is the hash of one subject and window. Neither names of policies nor labels hold a colon.
func (s *localSync) key(subject quota.Subject, policy *quota.Policy, label string) string {
	return s.prefix + policy.Name + ":" + label + ":" + string(subject)
}

// Used implements [strategies.Viewer]: what Redis has counted, and what instances have not
// told it yet.
func (s *localSync) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	labelled := s.windows.At(&policy.Window, s.clock.Now())
	hash, err := s.redis.HGetAll(ctx, s.key(subject, policy, labelled.Label)).Result()
	if err != nil {
		return nil, fmt.Errorf("read what %s has used: %w", subject, err)
	}
	reading := quota.Reading{Tier: quota.TierRedis}
	if text, ok := hash["used"]; ok {
		reading.Units, err = strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read what %s has used: %w", subject, err)
		}
		reading.Known = true
	}
	if s.ring != nil {
		a := account{policy.Name, subject, labelled.Index}
		reading.Units += s.ring.Sum(-1, func(m *memory) int64 { return m.unsynced(a, hash) })
	}
	reading.Known = reading.Known || reading.Units > 0
	return []quota.Reading{reading}, nil
}

// Provision implements [strategies.Provisioner].
func (s *localSync) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	labelled := s.windows.At(&policy.Window, s.clock.Now())
	for _, grant := range grants {
		s.remove(account{policy.Name, grant.Subject, labelled.Index})
	}
	return family.ProvisionCounters(ctx, s.redis, policy, grants, func(subject quota.Subject) string {
		return s.key(subject, policy, labelled.Label)
	},
		func(pipe redis.Pipeliner, key string, used int64) {
			pipe.Del(ctx, key)
			pipe.HSet(ctx, key, "used", used)
			pipe.PExpireAt(ctx, key, labelled.End.Add(grace+s.period))
		})
}

// Measures implements [strategies.Meter]. Units are unsynced from their admission to the answer
// of Redis to the push that has them.
func (s *localSync) Measures() []strategies.Measure {
	return []strategies.Measure{
		{Name: "asked when cold", Unit: "requests", Value: s.asks.Load()},
		{Name: "pushes", Unit: "pushes", Value: s.pushes.Load()},
		{Name: "repeated", Unit: "pushes", Value: s.repeats.Load()},
		{Name: "dropped", Unit: "units", Value: s.dropped.Load()},
		{Name: "forgotten", Unit: "units", Value: s.forgotten.Load()},
		{Name: "unsynced, most", Unit: "units", Value: s.most.Load(), Kind: strategies.MeasureMost},
	}
}

// Close implements [strategies.Strategy]: what was admitted goes to Redis.
func (s *localSync) Close(ctx context.Context) error {
	_, err := s.sync(ctx)
	if errors.Is(err, context.Canceled) {
		return nil // what nobody waits for is not told
	}
	return err
}
