package strategies

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
)

// Env is what one application instance of a strategy lives in. Fields for stores
// that the strategy's [Meta] does not need are nil.
type Env struct {
	Clock quota.Clock
	// TrueClock is the one that the run is judged by, if the clocks of instances differ; otherwise
	// nil. It is for controls: no instance of a real system has it.
	TrueClock quota.Clock
	// Rand is seeded from the run's seed, the round and the instance, and anew for each life of
	// the instance. It is safe for concurrent use.
	Rand *rand.Rand

	// Clients are those of all stores that the strategy needs, by the store's name, e.g.
	// "redis.replica". The driver of a store says of which type they are: [Redis] and
	// [Postgres] return the clients of the stores named "redis" and "postgres".
	Clients map[string]any
	// Model stands in for PostgreSQL if a strategy needs [NeedSource] and no
	// server is there. It is nil if there is a client of PostgreSQL.
	Model *Model
	// Shared is memory that all instances of one run see: what a single process
	// holds however many instances it serves.
	Shared *Shared

	// Prefix begins every Redis key of this run. PostgreSQL connections have
	// the run's own schema as their search path.
	Prefix string
	// Instance counts from 0 to Instances-1. In the strategies of this module it names things and decides nothing:
	// searches of these, and of no others, take instances that have done nothing yet for interchangeable.
	Instance, Instances int
	Region              string
	// Subjects is how many subjects the run has, if these are known to be few;
	// otherwise 0. It may bound memory that is made for many, and nothing else.
	Subjects int
	// Options are complete: every option of the strategy's Meta has a value.
	Options quota.Options
	// Wake asks for a round of the named job as soon as the clock in force
	// allows. It never blocks.
	Wake func(job string)
}

// Statement runs one statement of a [Model]. A runner may delay it, count it or
// fail it instead.
type Statement func(ctx context.Context, sql string, run func() error) error

// Model is an in-process stand-in for the database of record of a tiered
// strategy. Statements run one at a time and are atomic. It is a model: nothing
// measured over it says anything about PostgreSQL.
type Model struct {
	mu  sync.Mutex
	via Statement
}

// NewModel makes a model whose statements run through via; nil runs them as they
// come.
func NewModel(via Statement) *Model {
	if via == nil {
		via = func(_ context.Context, _ string, run func() error) error { return run() }
	}
	return &Model{via: via}
}

// Do runs f as the one statement sql, which is only a label.
func (m *Model) Do(ctx context.Context, sql string, f func() error) error {
	return m.via(ctx, sql, func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		return f()
	})
}

// Shared is a set of named values that all instances of one run see.
type Shared struct {
	mu sync.Mutex
	m  map[string]any
}

// Len is how many values there are.
func (s *Shared) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.m)
}

// All passes every value to f.
func (s *Shared) All(f func(value any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, value := range s.m {
		f(value)
	}
}

// SharedValue returns the value of that name, made by the first instance to ask
// for it. Every caller must ask for the same type.
func SharedValue[T any](shared *Shared, name string, make func() T) T {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if value, ok := shared.m[name]; ok {
		return value.(T)
	}
	if shared.m == nil {
		shared.m = map[string]any{}
	}
	v := make()
	shared.m[name] = v
	return v
}

// Redis is the client of the store "redis" among those of env; nil if it has none.
//
// It is a function, and no field of [Env], for the time that builds take: a package in whose types a client of
// go-redis is found compiles some 1,700 functions of it again, in about 2 s.
func Redis(env Env) redis.UniversalClient {
	client, _ := env.Clients[string(NeedRedis)].(redis.UniversalClient)
	return client
}

// Postgres is the pool of connections of the store "postgres" among those of env; nil if it has none.
func Postgres(env Env) *pgxpool.Pool {
	pool, _ := env.Clients[string(NeedPostgres)].(*pgxpool.Pool)
	return pool
}
