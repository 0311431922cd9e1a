package adapters

import (
	"context"
	_ "embed"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

//go:embed gateway_kong_sync.lua
var kongSyncScript string

// kongSyncRate is how long after a request the gateway brings its counts to Redis.
const kongSyncRate = 100 * time.Millisecond

func init() {
	library(strategies.Meta{
		Name: "gw-kong-sync",
		About: strategies.About{
			Source: "Kong, plugin rate-limiting, policy redis, sync_rate 0.1",
			Notes: strategies.Notes{How: []string{
				"The first request of a window that an instance gets raises the counter on Redis, and tells the instance what " +
					"was counted before.",
				"Further ones are compared with that and with what the instance has counted since.",
				"A timer that a request starts adds what was counted to Redis, and then forgets all that the instance knows.",
			}, Deviations: []string{"Policies of several periods at once are left out, and so are failures of Redis."}},
		},
		Form: strategies.Reference,
		Doc:  "counters of numbered windows that each instance raises in its memory and brings to Redis later",
		// The source calls the counters less accurate, and gives no bound for what is over the limit.
		Needs: []strategies.Need{strategies.NeedRedis}, Kinds: []quota.Kind{quota.Fixed},
		Serves: wholeSeconds, Foreign: true,
		Guarantee: []quota.Clause{quota.MayReject(quota.FaultClock)},
	}, func(env strategies.Env, policy *quota.Policy) (limiter, error) {
		return &kongSync{redis: strategies.Redis(env), policy: policy, counts: map[string]*kongCount{}}, nil
	})
}

// kongCount is what an instance knows of one window of a subject: what Redis said, and
// what was counted since.
type kongCount struct{ read, since int64 }

type kongSync struct {
	redis  redis.UniversalClient
	policy *quota.Policy

	mu     sync.Mutex // held across no command: the gateway has coroutines that change at commands
	counts map[string]*kongCount
	timer  *time.Timer // nil if none is waiting
	closed bool
}

func (k *kongSync) lives() int64 { return int64(k.policy.Window.RealLength() / time.Second) }

func (k *kongSync) take(ctx context.Context, key string, units int64) (int64, error) {
	key = fmt.Sprintf("%s:%d", key, k.policy.Window.At(time.Now()).Index) //nolint:forbidigo // the gateway's own clock
	k.mu.Lock()
	count := k.counts[key]
	var counted int64
	if count != nil {
		counted = count.read + count.since
	}
	k.mu.Unlock()
	if count == nil {
		before, err := k.redis.Eval(ctx, kongScript, []string{key}, k.lives()).Int64()
		if err != nil {
			return 0, err
		}
		k.mu.Lock()
		k.counts[key] = &kongCount{before, -1} // Redis has counted this request already
		k.mu.Unlock()
		counted = before
	}
	if counted >= k.policy.Limit {
		return 0, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.counts[key] == nil { // forgotten meanwhile
		k.counts[key] = &kongCount{}
	}
	k.counts[key].since += units
	if k.timer == nil && !k.closed {
		k.timer = time.AfterFunc(kongSyncRate, k.flush)
	}
	return units, nil
}

// flush brings to Redis what was counted, and forgets it together with what was counted
// while it did so.
func (k *kongSync) flush() {
	k.mu.Lock()
	k.timer = nil
	since := map[string]int64{}
	for key, count := range k.counts {
		since[key] = count.since
	}
	k.mu.Unlock()
	for key, n := range since {
		if err := k.redis.Eval(context.Background(), kongSyncScript, []string{key}, n, k.lives()).Err(); err != nil {
			break // all is forgotten then, too
		}
	}
	k.mu.Lock()
	clear(k.counts)
	k.mu.Unlock()
}

func (k *kongSync) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	if k.timer != nil {
		k.timer.Stop()
	}
	return nil
}
