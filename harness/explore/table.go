package explore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/memredis"
	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/strategies"
)

// errBeyondTable says that a strategy sends a command that the table does not have.
var errBeyondTable = errors.New("a command that the table of keys does not have")

// table is the store that searches run on first: the simulator's, whose commands
// are answered within the hook that sees them, several times as fast as miniredis
// answers its protocol. It knows the commands that most strategies use.
type table struct {
	keysOf *memredis.Table
	rdb    *redis.Client
	start  time.Time
	synced time.Time
	onSync func(now time.Time)
	buf    []memredis.Key
	listed []storedKey
}

func newTable(start time.Time) *table {
	t := &table{keysOf: memredis.New(), start: start}
	t.onSync = t.sync
	t.rdb = memredis.Client(t.keysOf)
	t.rdb.AddHook(sched.Hook{})
	t.rdb.AddHook(direct{t.keysOf})
	return t
}

func (t *table) client() redis.UniversalClient { return t.rdb }

func (t *table) prefix() string { return "" }

func (t *table) reset(s *sched.Scheduler) error {
	t.synced = t.start
	t.keysOf.Reset(t.start.UnixNano())
	s.OnSync(t.onSync)
	return nil
}

// sync moves the table's clock. A deadline is met to the moment, so that a key
// that shall live as long as a window is gone when the next one begins, as the
// search is in whole deadlines and not in milliseconds.
func (t *table) sync(now time.Time) {
	if now.Equal(t.synced) {
		return
	}
	t.synced = now
	t.keysOf.SetNow(now.UnixNano())
	t.keysOf.ExpireDue()
}

// keys is valid until it is called again.
func (t *table) keys(time.Time) ([]storedKey, error) {
	t.buf = t.keysOf.Keys(t.buf[:0])
	t.listed = t.listed[:0]
	for i := range t.buf {
		k := &t.buf[i]
		t.listed = append(t.listed, storedKey{name: k.Name, left: t.keysOf.Left(k), content: k.Content, numeric: !k.Set})
	}
	return t.listed, nil
}

func (t *table) evict(key string) error {
	t.keysOf.Remove(key)
	return nil
}

func (t *table) close() error {
	err := t.rdb.Close()
	t.keysOf.Close()
	return err
}

// lacking is an error once the strategy has sent a command that is not there.
func (t *table) lacking() error {
	if name := t.keysOf.Unknown(); name != "" {
		return fmt.Errorf("%w: %s", errBeyondTable, name)
	}
	return nil
}

// direct is a hook that has the table answer what it can without the protocol.
type direct struct{ t *memredis.Table }

var _ redis.Hook = direct{}

// DialHook implements [redis.Hook].
func (direct) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (d direct) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err, ok := d.t.Process(cmd); ok {
			return err
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements [redis.Hook]. Transactions are left to the
// connection, which knows MULTI.
func (d direct) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if len(cmds) == 0 || cmds[0].Name() == "multi" {
			return next(ctx, cmds)
		}
		var first error
		for i, cmd := range cmds {
			err, ok := d.t.Process(cmd)
			if !ok {
				err = next(ctx, cmds[i:i+1:i+1])
			}
			if first == nil {
				first = err
			}
		}
		return first
	}
}

// explored runs f in a world over the table, and anew over miniredis where the
// strategy has a command that the table lacks.
func explored[T any](sel strategies.Selection, cfg Config, f func(*world) (T, error)) (T, error) {
	t := newTable(start)
	w := newWorld(sel, cfg, t, start)
	w.lacking = t.lacking
	res, err := f(w)
	w.close()
	// Whatever went wrong, the command that is missing may be the reason.
	if lack := t.lacking(); lack == nil {
		return res, errors.Join(err, t.close())
	}
	if err := t.close(); err != nil {
		return res, err
	}
	e, err := newEmbedded(start)
	if err != nil {
		return res, err
	}
	w = newWorld(sel, cfg, e, start)
	res, err = f(w)
	w.close()
	return res, errors.Join(err, e.close())
}
