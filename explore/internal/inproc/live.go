package inproc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// live is a Redis server, under a prefix of its own.
type live struct {
	ctx   context.Context // of the one replay that it is made for
	admin *redis.Client   // the caller's
	name  string
	rdb   *redis.Client // the strategy's
}

// Live makes an engine over a Redis server, to repeat a schedule on it under a prefix
// that no one else uses. The client stays the caller's. The server's clock cannot be moved, so virtual time begins
// now, and the policy's own time where searches begin.
func Live(ctx context.Context, sel strategies.Selection, setup engine.Setup, client *redis.Client,
	prefix string) *Engine {
	now := clock.Wall{}.Now().Round(0)
	setup.Policy.Window.Timeline = quota.Timeline{Real: now, Policy: engine.Start}
	options := *client.Options()
	options.PoolSize = 2
	options.MinIdleConns = 0
	options.MaxRetries = -1
	l := &live{ctx: ctx, admin: client, name: prefix, rdb: redis.NewClient(&options)}
	return newEngine(sel, setup, l, now)
}

// ServerName names a Redis server by its version.
func ServerName(ctx context.Context, client *redis.Client) (string, error) {
	info, err := client.InfoMap(ctx, "server").Result()
	if err != nil {
		return "", fmt.Errorf("ask Redis for its version: %w", err)
	}
	return "Redis " + info["Server"]["redis_version"], nil
}

func (l *live) client() redis.UniversalClient { return l.rdb }

func (l *live) prefix() string { return l.name }

func (l *live) reset(*sched.Scheduler) error { return l.wipe(l.ctx) }

func (l *live) wipe(ctx context.Context) error {
	names := l.admin.Scan(ctx, 0, l.name+"*", 1000).Iterator()
	for names.Next(ctx) {
		if err := l.admin.Del(ctx, names.Val()).Err(); err != nil {
			return fmt.Errorf("remove %s: %w", names.Val(), err)
		}
	}
	return format.Wrapf(names.Err(), "look for keys")
}

func (l *live) evict(key string) error { return l.admin.Del(l.ctx, l.name+key).Err() }

func (l *live) watch(w *Engine) {
	l.rdb.AddHook(sched.Hook{Pass: w.pass})
}

// A server's scripts are loaded for all of its clients.
func (l *live) keep()           {}
func (l *live) fresh() []string { return nil }

func (l *live) copy() (restore func(), ok bool) { return nil, false }

func (l *live) trace(*fakeredis.Touched) (ok bool) { return false }

func (l *live) lacking() error { return nil }

func (l *live) close() error {
	return errors.Join(l.wipe(context.WithoutCancel(l.ctx)), l.rdb.Close())
}

func (l *live) keys() ([]fakeredis.Key, error) {
	var out []fakeredis.Key
	names := l.admin.Scan(l.ctx, 0, l.name+"*", 1000).Iterator()
	for names.Next(l.ctx) {
		name := names.Val()
		left, err := l.admin.PTTL(l.ctx, name).Result()
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", name, err)
		}
		// What has passed on the server's clock since the expiry was set is no
		// virtual time. Strategies set whole seconds, so rounding up restores them.
		left = (max(left, 0) + time.Second - 1).Truncate(time.Second)
		k := fakeredis.Key{Name: strings.TrimPrefix(name, l.name), Left: left}
		k.Content, k.Members, k.Set, err = l.content(name)
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", name, err)
		}
		out = append(out, k)
	}
	return out, names.Err()
}

// content is what a key holds, as far as it may be a count, and how many members or fields it has; set says that it is
// no count.
func (l *live) content(name string) (content []string, members int, set bool, err error) {
	kind, err := l.admin.Type(l.ctx, name).Result()
	if err != nil {
		return nil, 0, false, err
	}
	var count int64
	switch kind {
	case "string":
		text, err := l.admin.Get(l.ctx, name).Result()
		return []string{text}, 0, false, err
	case "hash":
		fields, err := l.admin.HVals(l.ctx, name).Result()
		return fields, len(fields), false, err
	case "set":
		count, err = l.admin.SCard(l.ctx, name).Result()
	case "zset":
		count, err = l.admin.ZCard(l.ctx, name).Result()
	}
	return nil, int(count), true, err
}

// age takes duration off the time that every key has left.
func (l *live) age(duration time.Duration) error {
	keys, err := l.keys()
	if err != nil {
		return err
	}
	for _, k := range keys {
		switch {
		case k.Left == 0:
		case k.Left <= duration:
			err = l.admin.Del(l.ctx, l.name+k.Name).Err()
		default:
			err = l.admin.PExpire(l.ctx, l.name+k.Name, k.Left-duration).Err()
		}
		if err != nil {
			return fmt.Errorf("age %s: %w", k.Name, err)
		}
	}
	return nil
}
