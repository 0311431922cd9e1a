package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

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
	return &redisCache{client: client, kept: prefix + "{query-cache}:results", generation: prefix + "{query-cache}:generation"}
}

func field(q query) string { return q.policy + ":" + string(q.subject) }

// get reads the generation first: a result that is asked for after it is at least
// as new.
func (r *redisCache) get(ctx context.Context, q query) (remaining, generation int64, hit bool, err error) {
	pipe := r.client.Pipeline()
	at, kept := pipe.Get(ctx, r.generation), pipe.HGet(ctx, r.kept, field(q))
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return 0, 0, false, fmt.Errorf("ask the cache: %w", err)
	}
	if generation, err = at.Int64(); err != nil && !errors.Is(err, redis.Nil) {
		return 0, 0, false, fmt.Errorf("ask the cache for its generation: %w", err)
	}
	remaining, err = kept.Int64()
	if errors.Is(err, redis.Nil) {
		return 0, generation, false, nil
	}
	return remaining, generation, err == nil, family.Wrapf(err, "ask the cache")
}

func (r *redisCache) put(ctx context.Context, q query, remaining, generation int64) error {
	err := cachePut.Run(ctx, r.client, []string{r.kept, r.generation}, field(q), remaining, strconv.FormatInt(generation, 10)).Err()
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
