package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/quota"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
)

// Replayed is a schedule that was run again.
type Replayed struct {
	Strategy string `json:"strategy"`
	Policy   string `json:"policy"`
	// Property that the token was issued for, and whether it broke again.
	Property Property `json:"property"`
	Broken   bool     `json:"broken"`
	Finding  *Finding `json:"finding"`
	// Leak in units, and what the store was.
	Leak  int64  `json:"leak_units"`
	Store string `json:"store"`
	// Same is set where every reply and every verdict was that of the embedded store.
	Same bool `json:"same_replies"`
	// Notes say in what this store differs from the one that was searched.
	Notes []string `json:"notes,omitempty"`
}

// Replay repeats the schedule of a token: on server where it is not nil, and
// otherwise in this process. On a server, time is moved for keys by taking it off
// the time they have left, and by deleting those that have none; scripts that
// ask for TIME see the server's own.
func Replay(ctx context.Context, token string, server *redisstore.Store) (*Replayed, error) {
	t, path, err := parseToken(token)
	if err != nil {
		return nil, err
	}
	sel, cfg, err := t.config(nil)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	var normal *normal
	here, err := explored(sel, cfg, func(w *world) (r *Replayed, err error) {
		if normal, err = w.baseline(); err != nil {
			return nil, err
		}
		return w.replay(path, t.Property, normal)
	})
	if err != nil {
		return nil, err
	}
	if server == nil {
		here.Store, here.Same = "the embedded Redis", true
		return here, nil
	}
	there, err := replayOn(ctx, server, t, sel, cfg, path, normal)
	if err != nil {
		return nil, err
	}
	there.Same = slices.EqualFunc(there.Finding.Steps, here.Finding.Steps, func(a, b Step) bool {
		return a.Reply == b.Reply && a.Outcome == b.Outcome && a.InUse == b.InUse
	})
	if !there.Same {
		there.Notes = append(there.Notes, "not every reply is the one that the embedded store gives")
	}
	return there, nil
}

func replayOn(ctx context.Context, server *redisstore.Store, t ticket, sel strategies.Selection, cfg Config, path []choice, normal *normal) (*Replayed, error) {
	// The server's clock cannot be moved, so virtual time begins now, and the
	// policy's own time where the search began.
	now := clock.Wall{}.Now().Round(0)
	cfg.Policy.Window.Timeline = quota.Timeline{Real: now, Policy: start}
	live := &live{
		ctx: ctx, server: server, name: fmt.Sprintf("explore:%d:", now.UnixNano()),
		rdb: server.Client(redisstore.ClientOptions{PoolSize: 2}),
	}
	live.rdb.AddHook(sched.Hook{})
	w := newWorld(sel, cfg, live, now)
	r, err := w.replay(path, t.Property, normal)
	if r != nil {
		r.Store = fmt.Sprintf("Redis %s (%s)", server.Info().Version, server.Info().Kind)
		if w.used.tick > 0 {
			r.Notes = append(r.Notes, "keys expire by being deleted when virtual time says so; the server's own TIME does not move")
		}
	}
	return r, errors.Join(err, live.close())
}

// replay runs a schedule twice and judges it.
func (w *world) replay(path []choice, p Property, n *normal) (*Replayed, error) {
	res := &Result{Findings: []Finding{{Property: p, path: path}}}
	if _, err := w.finish(res); err != nil {
		if errors.Is(err, errMisfit) {
			err = fmt.Errorf("%w: %w", ErrToken, errMisfit)
		}
		return nil, err
	}
	r := &Replayed{Strategy: w.sel.String(), Policy: w.cfg.Policy.Name, Property: p, Finding: &res.Findings[0]}
	if err := w.goTo(path); err != nil {
		return nil, err
	}
	defer w.end()
	r.Leak = w.truth.leak()
	found, err := w.check(n, map[Property]bool{p: true})
	for _, b := range found {
		r.Broken = true
		r.Finding.Detail, r.Finding.Units = b.detail, b.units
	}
	return r, err
}

// live is a Redis server, under a prefix of its own.
type live struct {
	ctx    context.Context //nolint:containedctx // of the one replay that it is made for
	server *redisstore.Store
	name   string
	rdb    *redis.Client
}

func (l *live) client() redis.UniversalClient { return l.rdb }

func (l *live) prefix() string { return l.name }

func (l *live) reset(*sched.Scheduler) error {
	_, err := l.server.WipePrefix(l.ctx, l.name)
	return err
}

func (l *live) evict(key string) error { return l.rdb.Del(l.ctx, l.name+key).Err() }

func (l *live) close() error {
	_, err := l.server.WipePrefix(context.WithoutCancel(l.ctx), l.name)
	return errors.Join(err, l.rdb.Close())
}

func (l *live) keys(time.Time) ([]storedKey, error) {
	var out []storedKey
	names := l.rdb.Scan(l.ctx, 0, l.name+"*", 1000).Iterator()
	for names.Next(l.ctx) {
		name := names.Val()
		left, err := l.rdb.PTTL(l.ctx, name).Result()
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", name, err)
		}
		// What has passed on the server's clock since the expiry was set is no
		// virtual time. Strategies set whole seconds, so rounding up restores them.
		left = (max(left, 0) + time.Second - 1).Truncate(time.Second)
		k := storedKey{name: strings.TrimPrefix(name, l.name), left: left}
		switch kind, err := l.rdb.Type(l.ctx, name).Result(); {
		case err != nil:
			return nil, fmt.Errorf("look at %s: %w", name, err)
		case kind == "string":
			v, err := l.rdb.Get(l.ctx, name).Result()
			if err != nil {
				return nil, fmt.Errorf("look at %s: %w", name, err)
			}
			k.content, k.numeric = []string{v}, true
		case kind == "hash":
			fields, err := l.rdb.HVals(l.ctx, name).Result()
			if err != nil {
				return nil, fmt.Errorf("look at %s: %w", name, err)
			}
			k.content, k.numeric = fields, true
		}
		out = append(out, k)
	}
	return out, names.Err()
}

// age takes d off the time that every key has left.
func (l *live) age(d time.Duration) error {
	keys, err := l.keys(time.Time{})
	if err != nil {
		return err
	}
	for _, k := range keys {
		switch {
		case k.left == 0:
		case k.left <= d:
			err = l.rdb.Del(l.ctx, l.name+k.name).Err()
		default:
			err = l.rdb.PExpire(l.ctx, l.name+k.name, k.left-d).Err()
		}
		if err != nil {
			return fmt.Errorf("age %s: %w", k.name, err)
		}
	}
	return nil
}
