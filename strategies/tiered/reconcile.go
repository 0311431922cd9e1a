package tiered

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// reconcile overwrites counts and limits that the cache holds with those of the table,
// agent by agent. The table is read once, and first: what is charged after that, and what
// still waits in a queue, is erased. The shared set of agents over quota stays as it is.
func (in *instance) reconcile(ctx context.Context) (changed bool, err error) {
	for i := range in.uses {
		if !in.seen[i].Load() {
			continue
		}
		u := &in.uses[i]
		agents, err := in.source.counts(ctx, u.real())
		if err != nil {
			return changed, fmt.Errorf("read all %s: %w", u.real().usedColumn, fromSource(err))
		}
		for _, g := range agents {
			count, err := in.overwrite(ctx, in.counts(g.Subject), u.field, g.Used)
			if err != nil {
				return changed, err
			}
			limit, err := in.overwrite(ctx, in.limits(g.Subject), u.limitField, g.Limit)
			if err != nil {
				return changed, err
			}
			changed = changed || count || limit
		}
	}
	return changed, nil
}

// overwrite sets a field of a hash that has another value. One that is missing stays so: of
// a count the next check asks the table, and a limit that is lost stays an error.
func (in *instance) overwrite(ctx context.Context, key, field string, n int64) (changed bool, err error) {
	text, err := in.redis.HGet(ctx, key, field).Result()
	if errors.Is(err, redis.Nil) || err == nil && text == strconv.FormatInt(n, 10) {
		return false, nil
	}
	if err == nil {
		err = in.redis.HSet(ctx, key, field, n).Err()
	}
	if err != nil {
		return false, fmt.Errorf("reconcile %s of %s: %w", field, key, err)
	}
	in.reconciled.Add(1)
	return true, nil
}
