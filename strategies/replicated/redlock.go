package replicated

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// notParked is why a strategy that leaves its locks to redsync is only measured.
const notParked = "redsync sleeps by the wall clock and asks its servers from goroutines of its own, which cannot " +
	"be held at a command"

// The pause between two tries that redsync itself makes, at random.
const (
	leastDelay = 50 * time.Millisecond
	mostDelay  = 250 * time.Millisecond
)

var redlockMeta = meta(strategies.Meta{
	Name:  "redlock",
	Needs: []strategies.Need{strategies.NeedRedis},
	Setup: strategies.Setup{NeedsToo: func(options quota.Options) (more []strategies.Need) {
		return others(options.Int("n"))
	}},
	Excluded: map[strategies.Mode]string{
		strategies.ModeSimulate: notParked, strategies.ModeExplore: notParked,
	},
	Reset: strategies.ResetsNever,
	Options: []quota.Option{
		{Name: "n", Default: "5", Values: []string{"1", "3", "5"}},
		{Name: "expiry", Default: "8s", Type: "duration", Min: "10ms", Max: "1h"},
		{Name: "tries", Default: "32", Type: "int", Min: "1", Max: "10000"},
		{Name: "delay", Default: "0s", Type: "duration", Min: "0s", Max: "10s"},
	},
	Guarantee: []quota.Clause{{
		// Nothing fences a write off: one that comes after the lock's expiry, or after its
		// caller gave up, erases what others have counted since.
		Property:  quota.PropertyLeak,
		Tolerates: []quota.Fault{quota.FaultCrash, quota.FaultLimit},
		Formula:   "L",
		Condition: "while no holder outlives its lock",
		Bound:     family.None,
	}},
	Open: openRedlock,
})

// others are the Redis other than the main one, of n.
func others(n int64) (more []strategies.Need) {
	for i := int64(2); i <= n; i++ {
		more = append(more, strategies.NeedRedis+"."+strategies.Need(strconv.FormatInt(i, 10)))
	}
	return more
}

// redlock is a read, a check and a write under a distributed lock.
type redlock struct {
	family.Locked
	clock  quota.Clock
	rand   *rand.Rand
	locks  *redsync.Redsync
	prefix string
	expiry time.Duration
	delay  time.Duration
	tries  int

	retries, waited, unlocked, late strategies.Tally
}

func openRedlock(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
	pools := []redsyncredis.Pool{goredis.NewPool(strategies.Redis(env))}
	for _, need := range others(env.Options.Int("n")) {
		client, ok := env.Clients[string(need)].(redis.UniversalClient)
		if !ok {
			return nil, fmt.Errorf("redlock needs the Redis %s", need)
		}
		pools = append(pools, goredis.NewPool(client))
	}
	s := &redlock{
		clock: env.Clock, rand: env.Rand, locks: redsync.New(pools...), prefix: env.Prefix,
		expiry: env.Options.Duration("expiry"), delay: env.Options.Duration("delay"), tries: int(env.Options.Int("tries")),
	}
	s.Locked = family.Locked{CheckThenSet: family.CheckThenSet{Redis: strategies.Redis(env), Key: s.key}, Lock: s.lock}
	return s, nil
}

// lock waits for the lock of a subject, and returns what gives it back.
func (s *redlock) lock(ctx context.Context, policy *quota.Policy, subject quota.Subject) (unlock func(), err error) {
	mutex := s.locks.NewMutex(s.prefix+"lock:"+policy.Name+":"+string(subject),
		redsync.WithExpiry(s.expiry), redsync.WithTries(s.tries), redsync.WithRetryDelayFunc(s.pause))
	began := s.clock.Now()
	err = mutex.LockContext(ctx)
	s.waited.Since(began, s.clock)
	var taken *redsync.ErrTaken
	switch {
	case err == nil:
	case ctx.Err() != nil: // which the library calls a failure to get the lock
		return nil, fmt.Errorf("wait for the lock of %s: %w", subject, ctx.Err())
	case errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed):
		s.unlocked.Add(1)
		return nil, fmt.Errorf("no lock for %s in %d tries: %w", subject, s.tries, strategies.ErrContention)
	default:
		return nil, fmt.Errorf("lock %s: %w", subject, err)
	}
	return func() {
		// Also if the caller has given up meanwhile. What fails here expires by itself.
		if ok, err := mutex.UnlockContext(context.WithoutCancel(ctx)); !ok && errors.Is(err, redsync.ErrLockAlreadyExpired) {
			s.late.Add(1)
		}
	}, nil
}

// pause is called before each try but the first.
func (s *redlock) pause(int) time.Duration {
	s.retries.Add(1)
	if s.delay > 0 {
		return s.delay
	}
	return leastDelay + time.Duration(s.rand.Int64N(int64(mostDelay-leastDelay)))
}

func (s *redlock) key(policy string, subject quota.Subject) string {
	return s.prefix + "quota:" + policy + ":" + string(subject) + ":used"
}

// Measures implements [strategies.Meter].
func (s *redlock) Measures() []strategies.Measure {
	return []strategies.Measure{
		{Name: "lock-retries", Unit: "retries", Value: s.retries.Load()},
		{Name: "lock-wait", Unit: "µs", Value: time.Duration(s.waited.Load()).Microseconds()},
		{Name: "no-lock", Unit: "requests", Value: s.unlocked.Load()},
		{Name: "late-unlocks", Unit: "locks", Value: s.late.Load()},
	}
}
