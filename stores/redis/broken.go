package redis

import (
	"context"
	"errors"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/stores/keep"
	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

var _ stores.Breakable = (*Store)(nil)

// faults are the commands that inflict one on each master, and that end it.
var faults = map[string]struct{ inflict, mend []any }{
	"flushed":      {inflict: []any{"FLUSHALL"}},
	"scripts-lost": {inflict: []any{"SCRIPT", "FLUSH"}},
	"full":         {inflict: []any{"CONFIG", "SET", "maxmemory", 1}, mend: []any{"CONFIG", "SET", "maxmemory", 0}},
	evicting:       {},
}

const evicting = "evicting"

// CanBreak implements [stores.Breakable]. The faults of a Redis of its own are "flushed" (FLUSHALL), "scripts-lost" (SCRIPT
// FLUSH), "full" (its memory, so that writes are refused) and "evicting" (nine of ten keys, by another client that fills the memory).
// Those of a cluster are "slot-moved" (one with keys, to another master) and "node-killed" (a master with keys, whose replica takes
// over).
func (r *Store) CanBreak(ctx context.Context, fault string) error {
	_, known := faults[fault]
	c, cluster := r.admin.(*goredis.ClusterClient)
	memory := fault == "full" || fault == evicting
	switch {
	case known && !r.Owned():
		return server.ErrNotOurs
	case known && memory && r.model != nil:
		return errors.New("the memory of miniredis has no bound: use process")
	case known && memory && r.Info().Evicts:
		return errors.New("its memory has a bound of its own")
	case known && fault == evicting && cluster:
		return errors.New("a cluster cannot be filled evenly: use process")
	case known, fault == "slot-moved" && cluster && r.Owned():
		return nil
	case fault == "node-killed" && cluster && r.Owned():
		_, _, err := r.pairOf(ctx, c.Options().Password, "")
		return err
	case fault == keep.Restarted && r.model == nil && r.self.Own != nil:
		set, err := r.admin.ConfigGet(ctx, "appendonly").Result()
		if err == nil && set["appendonly"] != "yes" {
			err = errors.New("it keeps nothing on a disk: use process:durable, or :empty for one that comes back without its data")
		}
		if err != nil {
			return err
		}
	}
	return r.common.CanBreak(ctx, fault)
}

// Break implements [stores.Breakable].
func (r *Store) Break(ctx context.Context, fault string, scope stores.Scope) (mend func(context.Context) error, err error) {
	f, known := faults[fault]
	c, cluster := r.admin.(*goredis.ClusterClient)
	switch {
	case fault == "slot-moved" && cluster:
		return r.moveSlot(ctx, c, scope)
	case fault == "node-killed" && cluster:
		return r.killNode(ctx, c, scope)
	case !known:
		return r.common.Break(ctx, fault, scope)
	case fault == evicting:
		return r.evict(ctx)
	}
	return func(ctx context.Context) error { return r.command(ctx, f.mend) }, r.command(ctx, f.inflict)
}

// evict has another client fill the memory, and then bounds it so that a tenth of that fits.
func (r *Store) evict(ctx context.Context) (mend func(context.Context) error, err error) {
	before, err1 := r.Stats(ctx)
	_, err2 := r.admin.Eval(ctx, "for i = 1, 8000 do redis.call('SET', 'filling:' .. i, string.rep('x', 1000)) end return 1", nil).Result()
	full, err3 := r.Stats(ctx)
	bound := (before.Memory + (full.Memory-before.Memory)/10) / int64(1+len(r.nodes)) // of which each has all keys
	mend = func(ctx context.Context) error {
		return errors.Join(r.command(ctx, []any{"CONFIG", "SET", "maxmemory", 0}),
			r.command(ctx, []any{"CONFIG", "SET", "maxmemory-policy", noEviction}),
			r.admin.Eval(ctx, "for i = 1, 8000 do redis.call('UNLINK', 'filling:' .. i) end return 1", nil).Err())
	}
	return mend, errors.Join(err1, err2, err3, r.command(ctx, []any{"CONFIG", "SET", "maxmemory-policy", "allkeys-random"}),
		r.command(ctx, []any{"CONFIG", "SET", "maxmemory", bound}))
}

// command sends a command to each master; none if it is empty.
func (r *Store) command(ctx context.Context, args []any) (err error) {
	c, cluster := r.admin.(*goredis.ClusterClient)
	switch {
	case len(args) == 0:
		return nil
	case cluster:
		err = c.ForEachMaster(ctx, func(ctx context.Context, c *goredis.Client) error { return c.Do(ctx, args...).Err() })
	default:
		err = r.admin.Do(ctx, args...).Err()
	}
	return format.Wrapf(err, "%v", args[0])
}
