package redis

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"slices"
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
		opt.DialTimeout = o.Timeout
		opt.ReadTimeout = o.Timeout
		opt.WriteTimeout = o.Timeout
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

// respParser counts Redis commands in what a client writes: arrays of bulk
// strings. It steps over payloads without looking at them, except the names of
// commands.
type respParser struct {
	begun []byte // a command that has not been written whole
}

// setup are the commands with which a client makes a connection ready, or finds
// out where servers are. No strategy has a use for them.
var setup = [][]byte{
	[]byte("hello"), []byte("auth"), []byte("select"), []byte("client"),
	[]byte("cluster"), []byte("command"), []byte("readonly"), []byte("sentinel"),
}

// Parse reads the next piece of what the client writes.
func (r *respParser) Parse(p []byte) (out stores.Parsed, ok bool) {
	if len(r.begun) > 0 {
		r.begun = append(r.begun, p...)
		p = r.begun
	}
	for len(p) > 0 {
		name, size, ok := command(p)
		if !ok {
			return out, false
		}
		if size == 0 {
			break
		}
		p = p[size:]
		switch {
		case name == nil: // an empty command is answered by nothing
		case slices.ContainsFunc(setup, func(s []byte) bool { return bytes.EqualFold(s, name) }):
			out.Setup++
		default:
			out.Commands++
		}
	}
	r.begun = append(r.begun[:0], p...)
	return out, true
}

// command reads a command from the beginning of p: its name, which is nil if it has no
// words, and how many bytes it has, 0 if there are not all of them.
func command(p []byte) (name []byte, size int, ok bool) {
	words, at, ok := number(p, '*')
	for i := range words {
		length, begin, ok := number(p[at:], '$')
		from := at + begin
		to := at + begin + length
		if !ok || begin == 0 || to+len("\r\n") > len(p) {
			return nil, 0, ok
		}
		if i == 0 {
			name = p[from:to]
		}
		at = to + len("\r\n")
	}
	return name, at, ok
}

// number reads a line such as "*3" of the kind. next is where what follows begins, 0 if the
// line has not been written whole.
func number(p []byte, kind byte) (n, next int, ok bool) {
	for i, b := range p {
		switch {
		case i == 0 && b == kind:
		case i > 0 && '0' <= b && b <= '9' && n <= 512<<20/10: // 512 MB is Redis' own limit for both
			n = n*10 + int(b-'0')
		case i > 1 && b == '\r' && i+1 == len(p):
			return 0, 0, true
		case i > 1 && b == '\r' && p[i+1] == '\n':
			return n, i + 2, true
		default:
			return 0, 0, false
		}
	}
	return 0, 0, true
}
