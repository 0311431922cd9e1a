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

// ClientOptions choose a client. Each has connections of its own.
type ClientOptions struct {
	// PoolSize is how many connections there may be, pipelines included; 0 means
	// go-redis' default.
	PoolSize int
	// MaxRetries is how often the client repeats a command by itself; 0 means never.
	MaxRetries int
	// Redirected has the client of a cluster follow keys that move, as go-redis does by itself.
	Redirected bool
	// Cold closes each connection after one command or pipeline.
	Cold bool
	// Meter counts the client's traffic; nil counts nothing.
	Meter *stores.Meter
	// DialWrap is put between the client (and its meter) and every connection,
	// e.g. to inject faults.
	DialWrap func(net.Conn) net.Conn
	// Timeout of a dial, a read and a write; 0 means go-redis' default of 5 s, or
	// that of the client given to [FromClient].
	Timeout time.Duration
}

// maxIdle is how many connections may wait for their next command; 0 means any.
func (o ClientOptions) maxIdle() int {
	if o.Cold {
		return -1 // not even one
	}
	return 0
}

// Client makes a client of a single server. The caller closes it. Nothing is
// dialled yet. It panics on a store that has no single server: a cluster, a master
// that sentinels name, and what [FromClient] made of another client than a
// [*goredis.Client]. [Store.Connect] serves those too.
func (r *Store) Client(o ClientOptions) *goredis.Client {
	if r.base.Addr == "" {
		panic("stores/redis: Client of a store that has no single server")
	}
	opt := r.base // all that is shared is not written to
	opt.PoolSize = o.PoolSize
	opt.MinIdleConns, opt.MaxActiveConns = 0, 0
	opt.MaxIdleConns = o.maxIdle()
	opt.MaxRetries = o.retries()
	if o.Timeout > 0 {
		opt.DialTimeout, opt.ReadTimeout, opt.WriteTimeout = o.Timeout, o.Timeout, o.Timeout
	}
	opt.Dialer = r.redirect(o.dialer(opt.Dialer, opt.DialTimeout, opt.TLSConfig))
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

// retries is MaxRetries as go-redis takes it: 0 is its default.
func (o *ClientOptions) retries() int {
	if o.MaxRetries == 0 {
		return -1
	}
	return o.MaxRetries
}

// dialer opens connections by dial, or as go-redis does if that is nil, and puts
// what the options ask for around them.
func (o *ClientOptions) dialer(dial dialFunc, timeout time.Duration, tls *tls.Config) dialFunc {
	if dial == nil {
		dial = goredis.NewDialer(&goredis.Options{DialTimeout: cmp.Or(timeout, 5*time.Second), TLSConfig: tls})
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return stores.ConnOptions{Wrap: o.DialWrap, Meter: o.Meter}.Around(c, &respParser{}), nil
	}
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)
