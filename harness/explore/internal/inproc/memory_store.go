package inproc

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/memredis"
	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/internal/witness"
)

// memoryStore is the store that searches run on: the simulator's, whose commands are
// answered within the hook that sees them.
type memoryStore struct {
	redis  memredis.Redis
	rdb    *redis.Client
	start  time.Time
	synced time.Time
	onSync func(now time.Time)
	buf    []memredis.Key
	listed []storedKey
	names  []string
	// through counts the commands that came by the client.
	through int64
}

func newMemoryStore(r memredis.Redis, start time.Time) *memoryStore {
	t := &memoryStore{redis: r, start: start}
	t.onSync = t.sync
	t.rdb = memredis.Client(r)
	return t
}

func (t *memoryStore) watch(w *Engine) {
	t.rdb.AddHook(sched.Hook{Pass: w.pass, Checked: !w.known})
	t.rdb.AddHook(direct{t})
}

// audit implements store. Whatever the client's hooks have not seen was sent over
// a connection of another client, made from the options of this one.
func (t *memoryStore) audit(w *witness.Witness) {
	if n := t.redis.Commands() - t.through; n > 0 {
		w.Note(witness.OtherClient, fmt.Sprintf("%d commands reached the store past the client that the strategy was given: by a "+
			"client of its own, by its WithTimeout, or to subscribe", n))
	}
}

func (t *memoryStore) client() redis.UniversalClient { return t.rdb }

func (t *memoryStore) prefix() string { return "" }

func (t *memoryStore) reset(s *sched.Scheduler) error {
	t.synced = t.start
	t.redis.Reset(t.start.UnixNano())
	s.OnSync(t.onSync)
	return nil
}

// sync moves the store's clock. A deadline is met to the moment, so that a key
// that shall live as long as a window is gone when the next one begins, as the
// search is in whole deadlines and not in milliseconds.
func (t *memoryStore) sync(now time.Time) {
	if now.Equal(t.synced) {
		return
	}
	t.synced = now
	t.redis.SetNow(now.UnixNano())
	t.redis.ExpireDue()
}

// keys is valid until it is called again.
func (t *memoryStore) keys(time.Time) ([]storedKey, error) {
	t.buf = t.redis.Keys(t.buf[:0])
	t.listed = t.listed[:0]
	for i := range t.buf {
		k := &t.buf[i]
		t.listed = append(t.listed, storedKey{name: k.Name, left: k.Left, content: k.Content, numeric: !k.Set})
	}
	return t.listed, nil
}

func (t *memoryStore) evict(key string) error {
	t.redis.Remove(key)
	return nil
}

func (t *memoryStore) copy() (restore func(), ok bool) {
	table, ok := t.redis.(*memredis.Table)
	if !ok {
		return nil, false
	}
	return table.Copy(), true
}

func (t *memoryStore) trace(into *memredis.Trace) (ok bool) {
	table, ok := t.redis.(*memredis.Table)
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

func (t *memoryStore) lacking() error { return memredis.Lacking(t.redis) }

// direct is the innermost hook: it has the store answer what it can without the
// protocol.
type direct struct{ t *memoryStore }

var _ redis.Hook = direct{}

// DialHook implements [redis.Hook].
func (direct) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (d direct) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		before := d.t.redis.Commands()
		err, ok := d.t.redis.Process(cmd)
		if !ok {
			err = next(ctx, cmd)
		}
		d.t.through += d.t.redis.Commands() - before
		return err
	}
}

// ProcessPipelineHook implements [redis.Hook]. Transactions are left to the
// connection, which knows MULTI.
func (d direct) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		before := d.t.redis.Commands()
		defer func() { d.t.through += d.t.redis.Commands() - before }()
		return memredis.Pipeline(ctx, d.t.redis, cmds, next)
	}
}
