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

// ClientOptions choose a client, which has connections of its own, opened as they are needed. A Pool of 0 is go-redis'
// default, and a Timeout of 0 its 5 s, or that of the client given to [FromClient].
type ClientOptions = stores.ConnOptions

// Client makes a client of a single server. The caller closes it. Nothing is
// dialled yet. It panics on a store that has no single server: a cluster, a master
// that sentinels name, and what [FromClient] made of another client than a
// [*goredis.Client]. [Store.Connect] serves those too.
func (r *Store) Client(options ClientOptions) *goredis.Client {
	if r.base.Addr == "" {
		panic("stores/redis: Client of a store that has no single server")
	}
	opt := r.base // all that is shared is not written to
	opt.PoolSize, opt.MaxRetries = options.Pool, retries(options)
	opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = 0, maxIdle(options), 0
	if options.Timeout > 0 {
		opt.DialTimeout = options.Timeout
		opt.ReadTimeout = options.Timeout
		opt.WriteTimeout = options.Timeout
	}
	opt.Dialer = r.redirect(dialer(options, opt.Dialer, opt.DialTimeout, opt.TLSConfig))
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
func maxIdle(options ClientOptions) int {
	if options.Cold {
		return -1 // not even one
	}
	return 0
}

// retries are those of the options as go-redis takes them: 0 is its default.
func retries(options ClientOptions) int { return cmp.Or(options.Retries, -1) }

// dialer opens connections by dial, or as go-redis does if that is nil, and puts
// what the options ask for around them.
func dialer(options ClientOptions, dial dialFunc, timeout time.Duration, tls *tls.Config) dialFunc {
	if dial == nil {
		dial = goredis.NewDialer(&goredis.Options{DialTimeout: cmp.Or(timeout, 5*time.Second), TLSConfig: tls})
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return options.Around(bounded(conn), &respParser{}), nil
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
func (r *respParser) Parse(data []byte) (out stores.Parsed, ok bool) {
	if len(r.begun) > 0 {
		r.begun = append(r.begun, data...)
		data = r.begun
	}
	for len(data) > 0 {
		name, size, ok := command(data)
		if !ok {
			return out, false
		}
		if size == 0 {
			break
		}
		data = data[size:]
		switch {
		case name == nil: // an empty command is answered by nothing
		case slices.ContainsFunc(setup, func(s []byte) bool { return bytes.EqualFold(s, name) }):
			out.Setup++
		default:
			out.Commands++
		}
	}
	r.begun = append(r.begun[:0], data...)
	return out, true
}

// command reads a command from the beginning of data: its name, which is nil if it has no
// words, and how many bytes it has, 0 if there are not all of them.
func command(data []byte) (name []byte, size int, ok bool) {
	words, at, ok := number(data, '*')
	for i := range words {
		length, begin, ok := number(data[at:], '$')
		from := at + begin
		to := at + begin + length
		if !ok || begin == 0 || to+len("\r\n") > len(data) {
			return nil, 0, ok
		}
		if i == 0 {
			name = data[from:to]
		}
		at = to + len("\r\n")
	}
	return name, at, ok
}

// number reads a line such as "*3" of the kind. next is where what follows begins, 0 if the
// line has not been written whole.
func number(data []byte, kind byte) (n, next int, ok bool) {
	for i, b := range data {
		switch {
		case i == 0 && b == kind:
		case i > 0 && '0' <= b && b <= '9' && n <= 512<<20/10: // 512 MB is Redis' own limit for both
			n = n*10 + int(b-'0')
		case i > 1 && b == '\r' && i+1 == len(data):
			return 0, 0, true
		case i > 1 && b == '\r' && data[i+1] == '\n':
			return n, i + 2, true
		default:
			return 0, 0, false
		}
	}
	return 0, 0, true
}
