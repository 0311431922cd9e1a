package redis

import (
	"context"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quotabench/quotabench/stores"
)

// useCluster makes clients of a cluster.
func (r *Store) useCluster(base *goredis.ClusterOptions) {
	r.dial = func(o ClientOptions) goredis.UniversalClient {
		opt := *base // all that is shared is not written to
		opt.PoolSize, opt.MaxRetries = o.PoolSize, o.retries()
		opt.MinIdleConns, opt.MaxActiveConns, opt.PipelinePoolSize = 0, 0, -1
		// A redirection repeats a command, as does what else the client takes for a
		// passing fault. Slots do not move in a run.
		opt.MaxRedirects = o.retries()
		opt.DisableIdentity, opt.ContextTimeoutEnabled = true, true
		opt.ConnMaxIdleTime, opt.DialerRetries = -1, 1
		opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		if o.Timeout > 0 {
			opt.DialTimeout, opt.ReadTimeout, opt.WriteTimeout = o.Timeout, o.Timeout, o.Timeout
		}
		opt.Dialer = o.dialer(base.Dialer, opt.DialTimeout, opt.TLSConfig)
		return goredis.NewClusterClient(&opt)
	}
}

// useSentinel makes clients of the master that sentinels name.
func (r *Store) useSentinel(base *goredis.FailoverOptions) {
	r.dial = func(o ClientOptions) goredis.UniversalClient {
		opt := *base
		opt.PoolSize, opt.MaxRetries = o.PoolSize, o.retries()
		opt.MinIdleConns, opt.MaxActiveConns, opt.PipelinePoolSize = 0, 0, -1
		opt.DisableIdentity, opt.ContextTimeoutEnabled = true, true
		opt.ConnMaxIdleTime, opt.DialerRetries = -1, 1
		if o.Timeout > 0 {
			opt.DialTimeout, opt.ReadTimeout, opt.WriteTimeout = o.Timeout, o.Timeout, o.Timeout
		}
		opt.Dialer = o.dialer(base.Dialer, opt.DialTimeout, opt.TLSConfig)
		return goredis.NewFailoverClient(&opt)
	}
}

// connectAll makes the admin client of what is not a single server, and asks who it
// is.
func (r *Store) connectAll(ctx context.Context) error {
	r.admin = r.dial(ClientOptions{PoolSize: adminPool})
	err := r.describe(ctx)
	if err == nil {
		if c, ok := r.admin.(*goredis.ClusterClient); ok {
			err = c.ForEachMaster(ctx, func(ctx context.Context, c *goredis.Client) error { return c.ClusterInfo(ctx).Err() })
		}
	}
	if err != nil {
		err = errors.Join(err, r.admin.Close())
		r.admin = nil
	}
	return err
}

// connectSeveral opens a client of what is not a single server, and all connections
// of its pools: a cluster has one for each server.
func (r *Store) connectSeveral(ctx context.Context, o stores.ConnOptions) (stores.Conn, error) {
	c := r.dial(clientOptions(o))
	var err error
	switch c := c.(type) {
	case *goredis.ClusterClient:
		err = c.ForEachMaster(ctx, func(ctx context.Context, c *goredis.Client) error { return establish(ctx, c, first(o)) })
	case *goredis.Client:
		err = establish(ctx, c, first(o))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to redis: %w", err), c.Close())
	}
	return connOf(c, o)
}
