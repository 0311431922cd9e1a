package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const redisURLs = "redis://, rediss:// or unix://"

// go-redis prints a line for each dial that fails. Its caller gets the same as an
// error, and an outage that is part of a run must not fill the terminal.
func init() { redis.SetLogger(&logging.VoidLogger{}) }

// Redis is one open Redis server.
type Redis struct {
	base  redis.Options // to reach it; copied for each client
	info  Info
	own   ownServer // nil where somebody else runs it
	model *embedded
	admin *redis.Client

	closing sync.Once
	closed  error
}

// ClientOptions choose a client. Each has connections of its own.
type ClientOptions struct {
	// PoolSize is how many connections there may be, pipelines included; 0 means
	// go-redis' default.
	PoolSize int
	// MaxRetries is how often the client repeats a command by itself; 0 means never.
	MaxRetries int
	// Meter counts the client's traffic; nil counts nothing.
	Meter *Meter
	// DialWrap is put between the client (and its meter) and every connection,
	// e.g. to inject faults.
	DialWrap func(net.Conn) net.Conn
	// Timeout of a dial, a read and a write; 0 means go-redis' default of 5 s.
	Timeout time.Duration
}

// OpenRedis opens the Redis that spec names: "auto" (or empty), "process",
// "container", "embedded" or a URL. auto is process where a redis-server is found
// on this machine, else container where the image is here already, else embedded.
//
// Errors are of one line, say how to go on, and hold no password.
func OpenRedis(ctx context.Context, spec string, o Options) (*Redis, error) {
	removeLeftovers(ctx, o.dir())
	switch {
	case spec == "" || spec == "auto":
		return openRedisAuto(ctx, o)
	case spec == "process":
		bin, err := findRedis()
		if err != nil {
			return nil, err
		}
		return openRedisProcess(ctx, bin, o)
	case spec == "container":
		e, err := findEngine(ctx)
		if err != nil {
			return nil, err
		}
		return openRedisContainer(ctx, e, o)
	case spec == "embedded":
		return openRedisEmbedded("asked for")
	case isRedisURL(spec):
		return openRedisURL(ctx, spec)
	}
	return nil, badSpec("redis", spec, redisURLs)
}

func openRedisAuto(ctx context.Context, o Options) (*Redis, error) {
	bin, err := findRedis()
	if err != nil {
		return openRedisWithoutProcess(ctx, o, "no redis-server found on this machine")
	}
	r, err := openRedisProcess(ctx, bin, o)
	if err != nil && ctx.Err() == nil {
		return openRedisWithoutProcess(ctx, o, oneLine(err.Error()))
	}
	return r, err
}

func openRedisWithoutProcess(ctx context.Context, o Options, why string) (*Redis, error) {
	if e, err := findEngine(ctx); err == nil && e.hasImage(ctx, cmp.Or(o.Image, DefaultRedisImage)) {
		r, err := openRedisContainer(ctx, e, o)
		if err == nil || ctx.Err() != nil {
			return r, err
		}
		why += "; " + oneLine(err.Error())
	}
	return openRedisEmbedded(why)
}

// Info describes the server.
func (r *Redis) Info() Info { return r.info }

// Owned reports whether the server was started here and nobody else uses it.
func (r *Redis) Owned() bool { return r.own != nil || r.model != nil }

// PID is the server's process where it is a child of ours, and otherwise 0, also
// for a container.
func (r *Redis) PID() int {
	if r.own == nil {
		return 0
	}
	return r.own.pid()
}

// Admin is a client for the harness' own use. It is not metered, and is closed
// with r.
func (r *Redis) Admin() *redis.Client { return r.admin }

// Client makes a client. The caller closes it. Nothing is dialled yet.
func (r *Redis) Client(o ClientOptions) *redis.Client {
	opt := r.base // all that is shared is not written to
	opt.PoolSize = o.PoolSize
	opt.MaxRetries = o.MaxRetries
	if o.MaxRetries == 0 {
		opt.MaxRetries = -1
	}
	if o.Timeout > 0 {
		opt.DialTimeout, opt.ReadTimeout, opt.WriteTimeout = o.Timeout, o.Timeout, o.Timeout
	}
	dial := redis.NewDialer(&redis.Options{DialTimeout: dialTimeout(o.Timeout), TLSConfig: opt.TLSConfig})
	opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if o.DialWrap != nil {
			c = o.DialWrap(c)
		}
		if o.Meter != nil {
			c = newMeterConn(c, o.Meter, &respParser{})
		}
		return c, nil
	}
	return redis.NewClient(&opt)
}

func dialTimeout(d time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return 5 * time.Second
}

// connect finishes base, makes the admin client and asks the server who it is.
func (r *Redis) connect(ctx context.Context) error {
	r.base.DisableIdentity = true
	r.base.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	r.base.ContextTimeoutEnabled = true
	r.base.ConnMaxIdleTime = -1 // no dial in the middle of a run
	// One attempt: a server that cannot be reached is the caller's to see.
	r.base.DialerRetries = 1
	r.info.Addr = r.base.Addr
	r.admin = r.Client(ClientOptions{PoolSize: 4})
	if err := r.describe(ctx); err != nil {
		return errors.Join(err, r.admin.Close())
	}
	return nil
}

// Close ends the admin client and, where the server was started here, the server
// and its directory. Clients should be closed before. Only the first call does
// anything; all return its error.
func (r *Redis) Close() error {
	r.closing.Do(func() {
		errs := []error{r.admin.Close()}
		if r.own != nil {
			errs = append(errs, r.own.close())
		}
		if r.model != nil {
			r.model.close()
		}
		if err := errors.Join(errs...); err != nil {
			r.closed = fmt.Errorf("close redis: %w", err)
		}
	})
	return r.closed
}
