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
}

// CanBreak implements [stores.Breakable]. The faults of a Redis of its own are "flushed" (FLUSHALL), "scripts-lost" (SCRIPT
// FLUSH) and "full" (its memory, so that writes are refused).
func (r *Store) CanBreak(ctx context.Context, fault string) error {
	_, known := faults[fault]
	switch {
	case known && !r.Owned():
		return server.ErrNotOurs
	case known && fault == "full" && r.model != nil:
		return errors.New("the memory of miniredis has no bound: use process")
	case known && fault == "full" && r.Info().Evicts:
		return errors.New("its memory has a bound of its own")
	case known:
		return nil
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
	if !known {
		return r.common.Break(ctx, fault, scope)
	}
	return func(ctx context.Context) error { return r.command(ctx, f.mend) }, r.command(ctx, f.inflict)
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
