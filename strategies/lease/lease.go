// Package lease holds the strategy "lease": an instance of the application draws a block
// of units from Redis and spends it in its own memory.
//
// Redis counts a block as used when it is drawn, so what all instances admit is never more
// than what Redis has counted. What is not spent goes back by the number of the block, once.
// A window has one hash in Redis, and one script changes it.
package lease

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

//go:embed notes.md *.lua
var files embed.FS

var script = family.Script(files, "lease.lua")

// What lease.lua answers first, if it is not a plain rejection.
const (
	admitted int64 = 1
	over     int64 = -1
	final    int64 = -2 // rejected, and no unit can come back in the window
)

const (
	expiredFree = "free"
	// grace is how long a window's hash outlives the window, by Redis' clock.
	grace = 5 * time.Second
	// least is the smallest block that is drawn, in units: below it every request asks Redis.
	least = 2
	// turns is for how many blocks a caller waits. If there are more callers than that many blocks have
	// units, the others ask Redis at the same time, and not one after the other.
	turns = 4
)

var meta = family.PerWindow(strategies.Meta{
	Name:   "lease",
	Counts: quota.CountsAdmitted, SharesMemory: true,
	Options: []quota.Option{
		{Name: "block", Type: "int", Default: "100", Min: "1", Max: "1000000000"},
		{Name: "share", Type: "float", Default: "1", Min: "0", Max: "1"},
		{Name: "ttl", Type: "duration", Default: "10s", Min: "10ms"},
		{Name: "margin", Type: "duration", Default: "1s", Min: "0s"},
		{Name: "prefetch", Type: "float", Default: "0", Min: "0", Max: "1"},
		{Name: "expired", Default: "spent", Values: []string{"spent", expiredFree}},
		family.Down,
	},
	Setup: strategies.Setup{Check: func(options quota.Options) error {
		if ttl, margin := options.Duration("ttl"), options.Duration("margin"); margin >= ttl {
			return fmt.Errorf("a margin of %v leaves nothing of a ttl of %v: give a smaller one", margin, ttl)
		}
		return nil
	}},
	Guarantee: []quota.Clause{
		family.ExactlyUnless("L; expired=free or down=open: any", func(params quota.Params) bool {
			return params.Options["expired"] == expiredFree || family.FailsOpen(params.Options)
		}, quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry, quota.FaultClock, quota.FaultOutage, quota.FaultLimit),
		// What was spent is told to Redis within the margin, unless the process ends or Redis is gone.
		family.ExactlyUnless("L", func(params quota.Params) bool {
			late := params.Options["expired"] == expiredFree && params.Pause+params.Skew >= params.Options.Duration("margin")
			return late || family.FailsOpen(params.Options)
		}, quota.FaultLostReply, quota.FaultRetry, quota.FaultClock, quota.FaultLimit).
			Under("while pause + skew < margin; down=open: any"),
		// What other instances hold is not there for a request, for as long as they hold it.
		quota.MayReject(quota.Faults()...),
	},
	Down: family.WhenDown,
	Open: open,
})

func init() { family.Register(files, meta) }

// lease is one instance.
type lease struct {
	redis            redis.UniversalClient
	clock            quota.Clock
	windows          *quota.Memo
	prefix           string
	name             string // tells its blocks from those of others, and of its earlier lives
	self             int
	peers            *family.Peers[portion]
	instances, block int64
	share            float64
	prefetch         float64
	wake             func(job string)
	ttl              time.Duration
	// valid is how long a block is spent, from the moment at which the request for it was sent.
	valid, every time.Duration
	free, open   bool

	// mu is never held across anything that waits, so a scheduler need not know.
	mu   sync.Mutex
	held map[family.Account]*holding
	owed []debt
	// number is that of the last block that was asked for. Redis would begin anew when it loses its data,
	// and the debt of a block that went with them would give back units of another.
	number atomic.Int64

	blocks, drawn, returned, falseRejects, stranded, strandedMost strategies.Tally
}

func open(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
	options := env.Options
	s := &lease{
		redis: strategies.Redis(env), clock: env.Clock, windows: new(quota.Memo), prefix: env.Prefix + "lease:",
		name: strconv.FormatUint(env.Rand.Uint64(), 36), self: env.Instance, instances: int64(max(1, env.Instances)),
		peers: strategies.SharedValue(env.Shared, "lease.peers", family.NewPeers[portion]),
		block: options.Int("block"), share: options.Float("share"), ttl: options.Duration("ttl"),
		valid: options.Duration("ttl") - options.Duration("margin"),
		every: options.Duration("ttl") / 2, free: options["expired"] == expiredFree, open: family.FailsOpen(options),
		prefetch: options.Float("prefetch"), wake: env.Wake,
		held: map[family.Account]*holding{},
	}
	if s.free { // a block is settled within the margin
		s.every = min(s.every, max(options.Duration("margin")/2, time.Millisecond))
	}
	s.peers.Put(s.self, s.holds)
	return s, family.Load(ctx, s.redis, script)
}

// Take implements [strategies.Strategy].
func (s *lease) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	waited := 0
	for asked := 0; asked < 2; {
		if err := ctx.Err(); err != nil {
			return quota.Decision{}, fmt.Errorf("take for %s: %w", req.Subject, err)
		}
		now := s.clock.Now()
		labelled := s.windows.At(&req.Policy.Window, now)
		plan := s.plan(req, &labelled.Span, now, waited)
		switch {
		case plan.spent:
			return quota.Decision{Admitted: true, Tier: quota.TierProcess, Remaining: plan.remaining}, nil
		case plan.rejected:
			return quota.Decision{Tier: quota.TierProcess, Remaining: plan.remaining, RetryAfter: labelled.End.Sub(now)}, nil
		case plan.turn != nil:
			waited++
			err := plan.turn.Wait(ctx)
			if s.served(plan.waiter) {
				return quota.Decision{Admitted: true, Tier: quota.TierProcess, Remaining: plan.waiter.remaining}, nil
			}
			if err != nil {
				return quota.Decision{}, fmt.Errorf("wait for a block of %s: %w", req.Subject, err)
			}
			continue
		}
		plan.sent = now
		plan.key = s.key(req.Subject, req.Policy, labelled.Label)
		reply, err := s.ask(ctx, req, plan)
		if err != nil {
			return family.Unanswered(ctx, s.clock, s.open, err)
		}
		if reply.verdict == over { // it is asked once more, for the window that is current by then
			asked++
			continue
		}
		if reply.verdict != admitted {
			s.rejected(req, labelled.Index, reply.left)
		}
		return family.Decided(reply.verdict == admitted, reply.left+reply.units, labelled.End, now), nil
	}
	// Our clock is behind Redis' by more than the grace, so Redis will not say.
	return quota.Decision{Tier: quota.TierProcess, Degraded: true, Remaining: -1}, nil
}

// rejected counts what others hold if a request would have been admitted with it. left are
// the units that Redis had left.
func (s *lease) rejected(req quota.Request, window, left int64) {
	elsewhere := s.heldBy(s.self, family.AccountOf(req.Policy, req.Subject), window)
	if elsewhere == 0 || left+elsewhere < req.Units {
		return
	}
	s.falseRejects.Add(1)
	s.stranded.Add(elsewhere)
	s.strandedMost.Most(elsewhere)
}

// errEnded is what became of a request to Redis whose caller ends within it.
var errEnded = errors.New("the caller ended before Redis had answered")

// ask charges a request in Redis, with a block if it is the turn of its caller.
func (s *lease) ask(ctx context.Context, req quota.Request, p plan) (r reply, err error) {
	err = errEnded
	defer func() { s.answered(p, req.Policy.Limit, r, err) }()
	r, err = s.run(ctx, p.key, charge{units: req.Units, limit: req.Policy.Limit, draws: p.draws}, debt{
		number: p.old.number, unused: p.old.left, ends: p.ends,
	})
	return r, err
}

// charge is what a request asks for.
type charge struct {
	units, limit int64
	draws        bool // a block, too
}

// reply is what the script answers: units left in Redis, and the new block.
type reply struct{ verdict, left, number, units int64 }

func (s *lease) run(ctx context.Context, key string, c charge, d debt) (reply, error) {
	free := 0
	block := int64(0)
	number := int64(0)
	if s.free {
		free = 1
	}
	if c.draws {
		block = s.block
		number = s.number.Add(1)
	}
	got, err := family.Numbers(script.Run(ctx, s.redis, []string{key}, c.units, c.limit, block, s.share, s.instances,
		s.ttl.Milliseconds(), d.ends.Add(grace).UnixMilli(), free, s.name, d.number, d.unused, number), 3)
	if err != nil {
		return reply{}, err
	}
	if d.number > 0 && got[0] != over {
		s.returned.Add(d.unused)
	}
	if got[2] == 0 {
		return reply{verdict: got[0], left: got[1]}, nil
	}
	s.blocks.Add(1)
	s.drawn.Add(got[2])
	return reply{got[0], got[1], number, got[2]}, nil
}

// key is the hash of one subject and window. Neither names of policies nor labels hold a colon.
func (s *lease) key(subject quota.Subject, policy *quota.Policy, label string) string {
	return s.prefix + policy.Name + ":" + label + ":" + string(subject)
}

// Used implements [strategies.Viewer]: what Redis has counted, except what instances hold.
func (s *lease) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	labelled := s.windows.At(&policy.Window, s.clock.Now())
	n, err := s.redis.HGet(ctx, s.key(subject, policy, labelled.Label), "used").Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read what %s has used: %w", subject, err)
	}
	reading := quota.Reading{Tier: quota.TierRedis, Known: err == nil}
	if reading.Known {
		reading.Units = n - s.heldBy(-1, family.AccountOf(policy, subject), labelled.Index)
	}
	return []quota.Reading{reading}, nil
}

// Provision implements [strategies.Provisioner].
func (s *lease) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	labelled := s.windows.At(&policy.Window, s.clock.Now())
	return family.ProvisionCounters(ctx, s.redis, policy, grants, func(subject quota.Subject) string {
		return s.key(subject, policy, labelled.Label)
	},
		func(pipe redis.Pipeliner, key string, used int64) {
			pipe.Del(ctx, key)
			pipe.HSet(ctx, key, "used", used)
			pipe.PExpireAt(ctx, key, labelled.End.Add(grace))
		})
}

// Measures implements [strategies.Meter]. Units are stranded if others hold them when a
// request is rejected that would have been admitted with them.
func (s *lease) Measures() []strategies.Measure {
	return []strategies.Measure{
		{Name: "blocks", Unit: "blocks", Value: s.blocks.Load()},
		{Name: "drawn in blocks", Unit: "units", Value: s.drawn.Load()},
		{Name: "given back", Unit: "units", Value: s.returned.Load()},
		{Name: "false rejects", Unit: "requests", Value: s.falseRejects.Load()},
		{Name: "stranded, sum", Unit: "units", Value: s.stranded.Load()},
		{Name: "stranded, most", Unit: "units", Value: s.strandedMost.Load(), Kind: strategies.MeasureMost},
	}
}
