package inproc

import (
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/memredis"
	"github.com/quotabench/quotabench/internal/sched"
)

// store is the Redis of an exploration, looked at from outside of all actors.
type store interface {
	client() redis.UniversalClient
	// prefix begins every key of the strategy's.
	prefix() string
	// reset empties the store for a fresh run of s.
	reset(s *sched.Scheduler) error
	// keys lists what is stored, by name without the prefix, valid until it is called again.
	keys() ([]memredis.Key, error)
	evict(key string) error
	// copy notes what is stored; the function that it returns puts that back. ok is false
	// if it cannot.
	copy() (restore func(), ok bool)
	// trace has commands note what they read and change, until it is called with nil. ok is
	// false if they cannot.
	trace(into *memredis.Trace) (ok bool)
	// keep has every reset leave the scripts loaded that are loaded now, and no others.
	keep()
	// fresh are the scripts beyond these that are loaded, in an order of their own.
	fresh() []string
	// watch makes the client, whose commands go by the engine.
	watch(w *Engine)
	// lacking is an error once the store has met a command that it does not have.
	lacking() error
	close() error
}
