package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// The values of the option cache.
const (
	cacheShared   = "shared"
	cacheInstance = "instance"
	cacheRedis    = "redis"
)

// tierCache is the tier of a decision by a result that was kept.
const tierCache quota.Tier = "query-cache"

func init() {
	family.Register(files, meta(strategies.Meta{
		Name:  "pg-query-cache",
		Reset: strategies.ResetsMissing,
		Options: []quota.Option{{Name: "cache", Values: []string{cacheShared, cacheRedis, cacheInstance},
			Default: cacheShared}},
		Setup: strategies.Setup{NeedsToo: func(options quota.Options) []strategies.Need {
			if options["cache"] == cacheRedis {
				return []strategies.Need{strategies.NeedRedis}
			}
			return nil
		}},
		// A result that lacks a charge is kept no longer than until that charge's
		// request ends, so the bound is that of pg-check. With a cache for each
		// instance one result of each may be older, and the requests that it serves are
		// in flight together: the first to end empties the cache.
		Guarantee: []quota.Clause{{
			Property: quota.PropertyLeak,
			Formula:  "L + (in flight - 1, instance: all of each) x largest cost",
			Bound: func(params quota.Params) int64 {
				n := max(params.Deciding-1, 0)
				if params.Options["cache"] == cacheInstance {
					n += params.Deciding * params.Instances
				}
				return n * params.MaxCost
			},
		}},
		Open: openQueryCache,
	}))
}

// queryCache is one instance of pg-query-cache.
type queryCache struct {
	usage
	results               resultCache
	hits, misses, emptied atomic.Int64
}

func openQueryCache(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
	usage, err := openUsage(ctx, env)
	if err != nil {
		return nil, err
	}
	cache := &queryCache{usage: usage}
	switch env.Options["cache"] {
	case cacheInstance:
		cache.results = newMemoryCache()
	case cacheRedis:
		if strategies.Redis(env) == nil {
			return nil, errors.New("pg-query-cache needs Redis for a cache in Redis")
		}
		cache.results = newRedisCache(strategies.Redis(env), env.Prefix)
	default:
		cache.results = strategies.SharedValue(env.Shared, "query-cache", newMemoryCache)
	}
	return cache, nil
}

// Take implements strategies.Strategy: no statement for a rejection by the cache,
// and one more than that for an admission.
func (q *queryCache) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	if err := ctx.Err(); err != nil {
		return quota.Decision{}, err
	}
	policy := req.Policy
	index := q.now(req.Policy)
	remaining, tier, err := q.look(ctx, req, index)
	if err != nil {
		return quota.Decision{}, err
	}
	decision := quota.Decision{Tier: tier, Remaining: max(remaining, 0)}
	if req.Units > remaining {
		return decision, nil
	}
	if err := q.write(ctx, func() error {
		return q.charge(ctx, req.Subject, policy, q.row(index), req.Units)
	}); err != nil {
		return quota.Decision{}, fmt.Errorf("charge: %w", err)
	}
	return family.Admit(decision, req, index), nil
}

// look returns what remains, and where that is known from.
func (q *queryCache) look(ctx context.Context, req quota.Request, index int64) (int64, quota.Tier, error) {
	policy := req.Policy
	key := query{req.Subject, req.Policy.Name}
	remaining, generation, hit, err := q.results.get(ctx, key)
	switch {
	case err != nil:
		return 0, "", err
	case hit:
		q.hits.Add(1)
		return remaining, tierCache, nil
	}
	q.misses.Add(1)
	remaining, known, err := q.remaining(ctx, req.Subject, policy, q.row(index))
	switch {
	case err != nil:
		return 0, "", err
	case !known: // an empty result is not kept: it is about to be another
		return policy.Limit, quota.TierPostgres, q.write(ctx, func() error {
			return q.firstUse(ctx, req.Subject, policy, q.row(index))
		})
	}
	return remaining, quota.TierPostgres, q.results.put(ctx, key, remaining, generation)
}

// write changes the table and empties the cache, also if it is not known
// whether the table has changed, and by a caller that gives up meanwhile.
func (q *queryCache) write(ctx context.Context, change func() error) error {
	err := change()
	q.emptied.Add(1)
	return errors.Join(err, q.results.empty(context.WithoutCancel(ctx)))
}

// Refund implements strategies.Refunder as [usage.Refund] does.
func (q *queryCache) Refund(ctx context.Context, reservation quota.Reservation) error {
	return q.write(ctx, func() error { return q.usage.Refund(ctx, reservation) })
}

// Provision implements strategies.Provisioner as [usage.Provision] does.
func (q *queryCache) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	return q.write(ctx, func() error { return q.usage.Provision(ctx, policy, grants) })
}

// SetLimit implements [strategies.LimitSetter] as [usage.SetLimit] does.
func (q *queryCache) SetLimit(ctx context.Context, policy *quota.Policy, subjects []quota.Subject) error {
	return q.write(ctx, func() error { return q.usage.SetLimit(ctx, policy, subjects) })
}

// Measures implements strategies.Meter.
func (q *queryCache) Measures() []strategies.Measure {
	return []strategies.Measure{
		{Name: "cache hits", Unit: "hits", Value: q.hits.Load()},
		{Name: "cache misses", Unit: "misses", Value: q.misses.Load()},
		{Name: "cache emptied", Unit: "times", Value: q.emptied.Load()},
	}
}

// query is the key of a kept result: the arguments of the one statement that is
// cached.
type query struct {
	subject quota.Subject
	policy  string
}

// resultCache keeps results of queries on one table, until any write to it.
//
// A generation ends whenever the cache is emptied. A result that was asked for in
// an earlier one may be older than a write, and is not kept.
type resultCache interface {
	// get returns a result that is kept, or the generation to put one in.
	get(ctx context.Context, q query) (remaining, generation int64, hit bool, err error)
	put(ctx context.Context, q query, remaining, generation int64) error
	empty(ctx context.Context) error
}

// memoryCache is a resultCache in this process.
type memoryCache struct {
	// mu is never held across anything that waits.
	mu         sync.Mutex
	kept       map[query]int64
	generation int64
}

func newMemoryCache() *memoryCache { return &memoryCache{kept: map[query]int64{}} }

func (m *memoryCache) get(_ context.Context, q query) (remaining, generation int64, hit bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	remaining, hit = m.kept[q]
	return remaining, m.generation, hit, nil
}

func (m *memoryCache) put(_ context.Context, q query, remaining, generation int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if generation == m.generation {
		m.kept[q] = remaining
	}
	return nil
}

func (m *memoryCache) empty(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.generation++
	clear(m.kept)
	return nil
}

var cachePut = family.Script(files, "cache_put.lua")

// redisCache is a resultCache in Redis: a hash of results, and the generation.
type redisCache struct {
	client           redis.UniversalClient
	kept, generation string // keys
}

func newRedisCache(client redis.UniversalClient, prefix string) *redisCache {
	// Both keys are in one slot of a cluster.
	return &redisCache{client: client, kept: prefix + "{query-cache}:results", generation: prefix +
		"{query-cache}:generation"}
}

func field(q query) string { return q.policy + ":" + string(q.subject) }

// get reads the generation first: a result that is asked for after it is at least
// as new.
func (r *redisCache) get(ctx context.Context, q query) (remaining, generation int64, hit bool, err error) {
	pipe := r.client.Pipeline()
	at := pipe.Get(ctx, r.generation)
	kept := pipe.HGet(ctx, r.kept, field(q))
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return 0, 0, false, fmt.Errorf("ask the cache: %w", err)
	}
	generation, err = at.Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, 0, false, fmt.Errorf("ask the cache for its generation: %w", err)
	}
	remaining, err = kept.Int64()
	if errors.Is(err, redis.Nil) {
		return 0, generation, false, nil
	}
	return remaining, generation, err == nil, family.Wrapf(err, "ask the cache")
}

func (r *redisCache) put(ctx context.Context, q query, remaining, generation int64) error {
	err := cachePut.Run(ctx, r.client, []string{r.kept, r.generation}, field(q), remaining,
		strconv.FormatInt(generation, 10)).Err()
	return family.Wrapf(err, "fill the cache")
}

func (r *redisCache) empty(ctx context.Context) error {
	_, err := r.client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Incr(ctx, r.generation)
		pipe.Del(ctx, r.kept)
		return nil
	})
	return family.Wrapf(err, "empty the cache")
}
