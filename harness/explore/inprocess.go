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

// inProcess is the store that searches run on: the simulator's, whose commands are
// answered within the hook that sees them.
type inProcess struct {
	redis  memredis.Redis
	rdb    *redis.Client
	start  time.Time
	synced time.Time
	onSync func(now time.Time)
	buf    []memredis.Key
	listed []storedKey
}

func newInProcess(r memredis.Redis, start time.Time) *inProcess {
	t := &inProcess{redis: r, start: start}
	t.onSync = t.sync
	t.rdb = memredis.Client(r)
	t.rdb.AddHook(sched.Hook{})
	t.rdb.AddHook(direct{r})
	return t
}

func (t *inProcess) client() redis.UniversalClient { return t.rdb }

func (t *inProcess) prefix() string { return "" }

func (t *inProcess) reset(s *sched.Scheduler) error {
	t.synced = t.start
	t.redis.Reset(t.start.UnixNano())
	s.OnSync(t.onSync)
	return nil
}

// sync moves the store's clock. A deadline is met to the moment, so that a key
// that shall live as long as a window is gone when the next one begins, as the
// search is in whole deadlines and not in milliseconds.
func (t *inProcess) sync(now time.Time) {
	if now.Equal(t.synced) {
		return
	}
	t.synced = now
	t.redis.SetNow(now.UnixNano())
	t.redis.ExpireDue()
}

// keys is valid until it is called again.
func (t *inProcess) keys(time.Time) ([]storedKey, error) {
	t.buf = t.redis.Keys(t.buf[:0])
	t.listed = t.listed[:0]
	for i := range t.buf {
		k := &t.buf[i]
		t.listed = append(t.listed, storedKey{name: k.Name, left: k.Left, content: k.Content, numeric: !k.Set})
	}
	return t.listed, nil
}

func (t *inProcess) evict(key string) error {
	t.redis.Remove(key)
	return nil
}

func (t *inProcess) close() error { return t.rdb.Close() }

// errLacking ends a search over a store that lacks a command of the strategy's.
var errLacking = errors.New("the strategy sends a command that the store does not have")

func (t *inProcess) lacking() error {
	if name := t.redis.Unknown(); name != "" {
		return fmt.Errorf("%w: %s", errLacking, name)
	}
	return nil
}

// direct is a hook that has the store answer what it can without the protocol.
type direct struct{ t memredis.Redis }

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
	return memredis.WithFallback(func(open func() (memredis.Redis, error)) (res T, err error) {
		r, err := open()
		if err != nil {
			return res, err
		}
		st := newInProcess(r, start)
		w := newWorld(sel, cfg, st, start)
		w.lacking = st.lacking
		res, err = f(w)
		w.close()
		return res, errors.Join(err, st.close())
	})
}
