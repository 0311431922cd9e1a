package httpstore

import (
	"bytes"
	"cmp"
	"context"
	"net"
	"net/http"
	"time"

	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/stores"
)

// dialTimeout bounds how long a client waits for a connection.
const dialTimeout = 5 * time.Second

// Reach opens a connection to a service, and sends nothing.
func Reach(ctx context.Context, addr string) error {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// NewClient makes a client whose connections are as options says. They are opened by the
// first requests: opening one beforehand would be a request that the service counts.
// It follows no redirects, takes no proxy from the environment, and speaks HTTP/1.1.
func NewClient(options stores.ConnOptions, encrypted bool) *http.Client {
	dialer := net.Dialer{Timeout: cmp.Or(options.Timeout, dialTimeout)}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return options.Around(conn, parserOf(encrypted)), nil
	}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dial, DisableKeepAlives: options.Cold, DisableCompression: true,
			MaxConnsPerHost: options.Pool, MaxIdleConnsPerHost: max(options.Pool, 1),
		},
	}
}

func parserOf(encrypted bool) stores.Parser {
	if encrypted {
		return sealed{}
	}
	return &parser{}
}

// NewConn is a connection of a store for what a strategy is given, which asks by h.
func NewConn(client any, h *http.Client) stores.Conn {
	return leases.Conn{Of: client, End: func() error {
		h.CloseIdleConnections()
		return nil
	}}
}

// Uncounted has methods of stores in which nothing can be prepared, seen or removed: a
// scope begins the names of subjects, and what is counted for them ends by itself.
type Uncounted struct{}

// Prepare does nothing.
func (Uncounted) Prepare(context.Context, stores.Scope) (int64, error) { return 0, nil }

// Stats are unknown.
func (Uncounted) Stats(context.Context) (stores.Stats, error) { return stores.Stats{}, nil }

// Usage is nothing that could be seen.
func (Uncounted) Usage(context.Context, stores.Scope) (stores.Usage, error) {
	return stores.Usage{}, nil
}

// Wipe does nothing.
func (Uncounted) Wipe(context.Context, stores.Scope) error { return nil }

// end of a request without a body.
var end = []byte("\r\n\r\n")

// parser counts the requests in what a client of HTTP/1.1 writes. None has a body.
type parser struct {
	matched int // bytes of end that were seen last
}

// Parse implements [stores.Parser].
func (p *parser) Parse(data []byte) (out stores.Parsed, ok bool) {
	for _, c := range data {
		switch c {
		case end[p.matched]:
			p.matched++
		case end[0]:
			p.matched = 1
		default:
			p.matched = 0
		}
		if p.matched == len(end) {
			out.Commands++
			p.matched = 0
		}
	}
	return out, !bytes.HasPrefix(data, preface)
}

// preface begins a connection of HTTP/2, which this parser does not read.
var preface = []byte("PRI * HTTP/2.0")

// sealed is a connection whose traffic is encrypted.
type sealed struct{}

// Parse gives up at once.
func (sealed) Parse([]byte) (stores.Parsed, bool) { return stores.Parsed{}, false }
