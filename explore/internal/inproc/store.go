package inproc

import (
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/virtual/sched"
)

// store is the Redis of an exploration, looked at from outside of all actors.
type store interface {
	client() redis.UniversalClient
	// prefix begins every key of the strategy's.
	prefix() string
	// reset empties the store for a fresh run of s.
	reset(scheduler *sched.Scheduler) error
	// keys lists what is stored, by name without the prefix, valid until it is called again.
	keys() ([]fakeredis.Key, error)
	evict(key string) error
	// copy notes what is stored; the function that it returns puts that back. ok is false
	// if it cannot.
	copy() (restore func(), ok bool)
	// trace has commands note what they read and change, until it is called with nil. ok is
	// false if they cannot.
	trace(into *fakeredis.Touched) (ok bool)
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

// memoryStore is the store that searches run on: the simulator's, whose commands are
// answered within the hook that sees them.
type memoryStore struct {
	redis   fakeredis.Redis
	rdb     *redis.Client
	connect func() *redis.Client
	start   time.Time
	synced  time.Time
	lingers time.Time // keys whose deadline is this moment are still there
	onSync  func(now time.Time)
	buf     []fakeredis.Key
	names   []string
	dialed  atomic.Bool // since the pool was looked at
	// inside is set while the client carries out what came by its hooks.
	inside atomic.Bool
}

func newMemoryStore(redis fakeredis.Redis, start time.Time) *memoryStore {
	store := &memoryStore{redis: redis, start: start}
	store.onSync = store.sync
	return store
}

func (t *memoryStore) watch(w *Engine) {
	t.connect = func() *redis.Client { return t.watched(w) }
	t.rdb = t.connect()
}

func (t *memoryStore) watched(w *Engine) *redis.Client {
	rdb := fakeredis.Watched(t.redis, mostConnections, func(first bool) error {
		t.dialed.Store(true)
		if !t.inside.Load() || first && !w.known && w.scheduler.OnOwn() {
			return w.Witness.Past()
		}
		return nil
	})
	rdb.AddHook(sched.Hook{Pass: w.pass})
	rdb.AddHook(engine.Direct{Redis: t.redis, Enter: t.enter})
	return rdb
}

func (t *memoryStore) client() redis.UniversalClient { return t.rdb }

func (t *memoryStore) prefix() string { return "" }

// mostConnections are enough for all callers, and for half as many that were left within a call.
const mostConnections = 512

func (t *memoryStore) reset(scheduler *sched.Scheduler) error {
	if t.dialed.Swap(false) && t.rdb.PoolStats().TotalConns > mostConnections/2 {
		_ = t.rdb.Close() // nobody waits for what it has to say
		t.rdb = t.connect()
	}
	t.synced = t.start
	t.lingers = time.Time{}
	t.redis.Reset(t.start.UnixNano())
	scheduler.OnSync(t.onSync)
	return nil
}

// sync moves the store's clock. A deadline is met to the moment, so a key
// that shall live as long as a window is gone when the next one begins, as the
// search is in whole deadlines and not in milliseconds.
func (t *memoryStore) sync(now time.Time) {
	if now.Equal(t.synced) {
		return
	}
	t.synced = now
	t.redis.SetNow(now.UnixNano())
	if !now.Equal(t.lingers) {
		t.redis.ExpireDue()
	}
}

// linger implements [lingerer].
func (t *memoryStore) linger(at time.Time) { t.lingers = at }

func (t *memoryStore) keys() ([]fakeredis.Key, error) {
	t.buf = t.redis.Keys(t.buf[:0])
	return t.buf, nil
}

func (t *memoryStore) evict(key string) error {
	t.redis.Remove(key)
	return nil
}

func (t *memoryStore) copy() (restore func(), ok bool) {
	table, ok := t.redis.(*fakeredis.Table)
	if !ok {
		return nil, false
	}
	return table.Copy(), true
}

func (t *memoryStore) trace(into *fakeredis.Touched) (ok bool) {
	table, ok := t.redis.(*fakeredis.Table)
	if ok {
		table.Trace(into)
	}
	return ok
}

func (t *memoryStore) keep() { t.redis.Keep() }

func (t *memoryStore) fresh() []string {
	t.names = t.redis.Fresh(t.names[:0])
	return t.names
}

func (t *memoryStore) close() error { return t.rdb.Close() }

func (t *memoryStore) lacking() error { return fakeredis.Lacking(t.redis) }

// enter has what the client sends come by its hooks, until what it returns is called.
func (t *memoryStore) enter() func() {
	before := t.inside.Swap(true) // a connection is greeted within a command
	return func() { t.inside.Store(before) }
}
