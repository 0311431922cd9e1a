package sliding

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// exactly is up to where every whole number is one of Lua's.
const exactly = 1 << 53

// servesFlow refuses what scripts cannot count without rounding.
func servesFlow(policy *quota.Policy) error {
	if n := micros(policy.Window.Length); n > 0 && policy.Limit > exactly/n {
		return strategies.Unserved(policy, "%d %s times %d microseconds is more than Lua counts exactly", policy.Limit,
			policy.Unit, n)
	}
	return nil
}

// flow is a bucket of some size into which units flow in per length.
type flow struct {
	size, refill int64
	length       time.Duration
}

func newFlow(policy *quota.Policy, burst int64) flow {
	f := flow{size: policy.Limit, refill: policy.Limit, length: policy.Window.RealLength()}
	if policy.Window.Kind == quota.Bucket {
		f.refill = policy.Window.Refill
	}
	if burst > 0 {
		f.size = burst
	}
	return f
}

// whole is how long an empty bucket takes to be full.
func (f flow) whole() time.Duration {
	window := quota.Window{Kind: quota.Bucket, Length: f.length, Refill: f.refill}
	return time.Duration(window.Flow().Until(quota.Level{Units: f.size}))
}

// burst is the size in force.
func burst(params quota.Params) int64 {
	if n := params.Options.Int("burst"); n > 0 {
		return n
	}
	return params.Limit
}

// flowGuarantee is what a bucket promises.
var flowGuarantee = []quota.Clause{
	{
		Property: quota.PropertyLeak, Kinds: []quota.Kind{quota.Bucket}, Clock: byRedis, Tolerates: counted,
		Formula: "L, or burst where it is larger",
		Bound:   func(params quota.Params) int64 { return max(0, burst(params)-params.Limit) },
	},
	{
		// All that the bucket holds, and all that flows in.
		Property: quota.PropertyLeak, Kinds: []quota.Kind{quota.Rolling, quota.Fixed}, Clock: byRedis, Tolerates: counted,
		Formula: "L + burst", Bound: burst,
	},
	{
		// What is missing from a bucket of the limit's size is never more than what the
		// last length of time holds. What a caller was told to have failed may be missing.
		// A clock that passes a whole length before a reply comes is not tolerated: the
		// units may then count as taken later than Redis took them.
		Property: quota.PropertyFalseReject, Kinds: []quota.Kind{quota.Bucket, quota.Rolling}, Clock: byRedis,
		Formula: "0", Condition: "while burst is not below L",
		Bound: func(params quota.Params) int64 {
			if burst(params) < params.Limit {
				return quota.Unbounded
			}
			return 0
		},
	},
	{
		// A new window finds the bucket as the one before has left it.
		Property: quota.PropertyFalseReject, Kinds: []quota.Kind{quota.Fixed}, Clock: byRedis, Tolerates: counted,
		Formula: "any", Bound: func(quota.Params) int64 { return quota.Unbounded },
	},
}

// bucket is one instance of a strategy whose scripts keep a bucket per subject. One that
// is not there is full.
type bucket struct {
	base
	burst int64
	// take and used are the scripts, each with what it is given.
	take, used *redis.Script
	takeArgs   func(f flow, units int64) []any
	usedArgs   func(f flow) []any
}

// meta completes the Meta of a strategy with the scripts of b. A bucket serves its own kind of policy, and limits per
// length of time, which it keeps by letting the limit flow in over that length.
func (b bucket) meta(meta strategies.Meta) strategies.Meta {
	meta.Needs = []strategies.Need{strategies.NeedRedis}
	meta.Counts = quota.CountsAdmitted
	meta.Kinds = []quota.Kind{quota.Bucket, quota.Rolling, quota.Fixed}
	meta.Serves = servesFlow
	meta.Options = []quota.Option{{Name: "burst", Type: "int", Default: "0", Min: "0"}}
	meta.Guarantee = flowGuarantee
	meta.Open = b.open
	return meta
}

// open is [strategies.Meta.Open] of a strategy with the scripts of b.
func (b bucket) open(ctx context.Context, env strategies.Env) (_ strategies.Strategy, err error) {
	b.burst = env.Options.Int("burst")
	b.base, err = openBase(ctx, env, b.take, b.used)
	return &b, err
}

// Take implements [strategies.Strategy].
func (b *bucket) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	flow := newFlow(req.Policy, b.burst)
	return b.answer(ctx, b.take, []string{b.key(req.Subject, req.Policy)}, b.takeArgs(flow, req.Units)...)
}

// Used implements [strategies.Viewer]: what is missing from the bucket.
func (b *bucket) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	return b.reading(ctx, b.used, []string{b.key(subject, policy)}, b.usedArgs(newFlow(policy, b.burst))...)
}

// Provision implements [strategies.Provisioner]: it fills the bucket, and takes out
// what was used.
func (b *bucket) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	flow := newFlow(policy, b.burst)
	return family.ProvisionAlike(ctx, b.redis, policy, grants, func(pipe redis.Pipeliner, grant strategies.Grant) {
		key := b.key(grant.Subject, policy)
		pipe.Del(ctx, key)
		if grant.Used > 0 {
			b.take.EvalSha(ctx, pipe, []string{key}, b.takeArgs(flow, min(grant.Used, flow.size))...)
		}
	})
}

var tokenBucketMeta = bucket{
	take: family.Script(files, "bucket.lua"),
	takeArgs: func(f flow, units int64) []any {
		return []any{f.size, units, f.refill, micros(f.length), lifetime(f.whole())}
	},
	used:     family.Script(files, "bucket_used.lua"),
	usedArgs: func(f flow) []any { return []any{f.size, f.refill, micros(f.length)} },
}.meta(strategies.Meta{Name: "token-bucket"})

// gcraMeta: one moment per subject is kept.
var gcraMeta = bucket{
	take:     family.Script(files, "gcra.lua"),
	takeArgs: func(f flow, units int64) []any { return []any{f.size, units, f.refill, micros(f.length)} },
	used:     family.Script(files, "gcra_used.lua"),
	usedArgs: func(f flow) []any { return []any{f.refill, micros(f.length)} },
}.meta(strategies.Meta{Name: "gcra", About: strategies.About{Core: true}})
