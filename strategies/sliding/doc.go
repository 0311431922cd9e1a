// Package sliding holds the limiters without a boundary that twice the limit passes
// at: "sliding-log" remembers the moment of every unit, "sliding-counter" weighs two
// numbered windows, and "token-bucket" and "gcra" keep a bucket that is refilled at
// an even rate. ProjectEPU names the first three as what could follow its fixed
// window, without describing them; the fourth is a bucket in one timestamp.
//
// Each decides in one script. All but the sliding counter go by the server's clock,
// so that application instances need no common one. Scripts count time in whole
// microseconds; a window of a finer length is rounded up.
package sliding

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

//go:embed notes.md *.lua
var files embed.FS

func init() {
	quota.RegisterPolicy(quota.Policy{
		Name: "burst-calls", Limit: 20, Unit: "calls",
		Window: quota.Window{Kind: quota.Bucket, Length: time.Second, Refill: 10},
		Doc:    "calls of a client, 20 at once and 10 a second in the long run",
	})
	family.Register(files, logMeta, counterMeta, tokenBucketMeta, gcraMeta)
}

// The faults that leave Redis' own count as high as it should be or higher. A key
// that is lost begins anew: eviction is not tolerated.
var counted = []quota.Fault{quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry, quota.FaultClock,
	quota.FaultOutage}

// byRedis is the clock of the strategies that ask the server for the time.
const byRedis = "redis"

// base is what the strategies of this package share.
type base struct {
	redis  redis.UniversalClient
	prefix string
}

// openBase loads the scripts, so that every instance asks by digest from its first
// call on.
func openBase(ctx context.Context, env strategies.Env, scripts ...*redis.Script) (base, error) {
	return base{redis: strategies.Redis(env), prefix: env.Prefix}, family.Load(ctx, strategies.Redis(env), scripts...)
}

// key names a subject's state. Names of policies hold no colon, which keeps keys
// unambiguous for any subject.
func (b *base) key(subject quota.Subject, policy *quota.Policy) string {
	return b.prefix + policy.Name + ":" + string(subject)
}

// Close implements [strategies.Strategy]. There is nothing to release.
func (*base) Close(context.Context) error { return nil }

// answer runs a script that answers three numbers: whether the request is admitted, or -1 if its second quota rejects
// it, how many units remain, and for how many microseconds a rejected caller should wait.
func (b *base) answer(ctx context.Context, script *redis.Script, keys []string, args ...any) (quota.Decision, error) {
	res, err := family.Numbers(script.Run(ctx, b.redis, keys, args...), 3)
	if err != nil {
		return quota.Decision{}, fmt.Errorf("asking redis: %w", err)
	}
	decision := quota.Decision{Admitted: res[0] == 1, BySecond: res[0] == -1, Tier: quota.TierRedis,
		Remaining: max(0, res[1])}
	if !decision.Admitted {
		decision.RetryAfter = time.Duration(res[2]) * time.Microsecond
	}
	return decision, nil
}

// reading runs a script that answers two numbers: whether there is a record, and how
// many units it says are used.
func (b *base) reading(ctx context.Context, script *redis.Script, keys []string, args ...any) ([]quota.Reading, error) {
	res, err := family.Numbers(script.Run(ctx, b.redis, keys, args...), 2)
	if err != nil {
		return nil, fmt.Errorf("reading what is used: %w", err)
	}
	return []quota.Reading{{Tier: quota.TierRedis, Units: res[1], Known: res[0] == 1}}, nil
}

// micros is a length in whole microseconds, rounded up.
func micros(duration time.Duration) int64 {
	return int64((duration + time.Microsecond - 1) / time.Microsecond)
}

// grace is how much longer a key lives than it is needed. What it holds says by itself
// when it is over.
const grace = time.Second

// lifetime is that of a key which must outlive a length of real time, in whole
// milliseconds.
func lifetime(duration time.Duration) int64 { return int64((duration + grace) / time.Millisecond) }
