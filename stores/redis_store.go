package stores

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

var _ Store = (*Redis)(nil)

// Driver is "redis".
func (r *Redis) Driver() string { return "redis" }

// Prepare counts the keys that exist under scope already. Redis needs no room made.
func (r *Redis) Prepare(ctx context.Context, scope Scope) (strays int64, err error) {
	u, err := r.Usage(ctx, scope)
	return u.Keys, err
}

// Connect opens a client whose [Conn.Client] is a [*redis.Client], and all
// connections of its pool.
func (r *Redis) Connect(ctx context.Context, _ Scope, o ConnOptions) (Conn, error) {
	c := r.Client(ClientOptions{PoolSize: o.Pool, MaxRetries: o.Retries, Meter: o.Meter, DialWrap: o.Wrap, Timeout: o.Timeout})
	held := make([]*redis.Conn, o.Pool)
	for i := range held {
		held[i] = c.Conn()
	}
	err := together(len(held), func(i int) error { return held[i].Ping(ctx).Err() })
	for _, h := range held {
		err = errors.Join(err, h.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to redis: %w", err), c.Close())
	}
	return redisConn{c}, nil
}

// Usage counts the keys of scope.
func (r *Redis) Usage(ctx context.Context, scope Scope) (Usage, error) {
	keys, without, err := r.KeysUnder(ctx, scope.Prefix())
	return Usage{Keys: keys, WithoutTTL: without}, err
}

// Wipe removes the keys of scope, and no others. Keys that are made meanwhile may
// stay.
func (r *Redis) Wipe(ctx context.Context, scope Scope) error {
	_, err := r.WipePrefix(ctx, scope.Prefix())
	return err
}

type redisConn struct{ c *redis.Client }

func (c redisConn) Client() any  { return c.c }
func (c redisConn) Close() error { return c.c.Close() }
