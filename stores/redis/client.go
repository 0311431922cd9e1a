package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/stores"
)

// ClientOptions choose a client, which has connections of its own, opened as they are needed. A Pool of 0 is go-redis' default,
// and a Timeout of 0 its 5 s, or that of the client given to [FromClient].
type ClientOptions = stores.ConnOptions

// Client makes a client of a single server. The caller closes it. Nothing is
// dialled yet. It panics on a store that has no single server: a cluster, a master
// that sentinels name, and what [FromClient] made of another client than a
// [*goredis.Client]. [Store.Connect] serves those too.
func (r *Store) Client(o ClientOptions) *goredis.Client {
	if r.base.Addr == "" {
		panic("stores/redis: Client of a store that has no single server")
	}
	opt := r.base // all that is shared is not written to
	opt.PoolSize, opt.MaxRetries = o.Pool, retries(o)
	opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = 0, maxIdle(o), 0
	if o.Timeout > 0 {
		opt.DialTimeout, opt.ReadTimeout, opt.WriteTimeout = o.Timeout, o.Timeout, o.Timeout
	}
	opt.Dialer = r.redirect(dialer(o, opt.Dialer, opt.DialTimeout, opt.TLSConfig))
	return goredis.NewClient(&opt)
}

// URL leads other processes of this machine to a single server that was started here, and has its
// password; "" for any other store.
func (r *Store) URL() string {
	if r.base.Addr == "" || r.watched != nil || r.self.Own == nil && r.model == nil {
		return ""
	}
	u := url.URL{Scheme: "redis", Host: r.base.Addr}
	if r.base.Password != "" {
		u.User = url.UserPassword("", r.base.Password)
	}
	return u.String()
}

// maxIdle is how many connections may wait for their next command; 0 means any.
func maxIdle(o ClientOptions) int {
	if o.Cold {
		return -1 // not even one
	}
	return 0
}

// retries are those of the options as go-redis takes them: 0 is its default.
func retries(o ClientOptions) int { return cmp.Or(o.Retries, -1) }

// dialer opens connections by dial, or as go-redis does if that is nil, and puts
// what the options ask for around them.
func dialer(o ClientOptions, dial dialFunc, timeout time.Duration, tls *tls.Config) dialFunc {
	if dial == nil {
		dial = goredis.NewDialer(&goredis.Options{DialTimeout: cmp.Or(timeout, 5*time.Second), TLSConfig: tls})
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return o.Around(c, &respParser{}), nil
	}
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)
