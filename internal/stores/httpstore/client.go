package httpstore

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/quotabench/quotabench/stores"
)

// dialTimeout bounds how long a client waits for a connection.
const dialTimeout = 5 * time.Second

// Dial opens a connection to a service.
func Dial(ctx context.Context, addr string) (net.Conn, error) {
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", addr)
}

// NewClient makes a client whose connections are as o says. They are opened by the
// first requests: opening one beforehand would be a request that the service counts.
// It follows no redirects, takes no proxy from the environment, and speaks HTTP/1.1.
func NewClient(o stores.ConnOptions, encrypted bool) *http.Client {
	timeout := o.Timeout
	if timeout == 0 {
		timeout = dialTimeout
	}
	dialer := net.Dialer{Timeout: timeout}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if o.Wrap != nil {
			c = o.Wrap(c)
		}
		if o.Meter != nil {
			c = o.Meter.Conn(c, parserOf(encrypted))
		}
		return c, nil
	}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dial, DisableKeepAlives: o.Cold, DisableCompression: true,
			MaxConnsPerHost: o.Pool, MaxIdleConnsPerHost: max(o.Pool, 1),
		},
	}
}

func parserOf(encrypted bool) stores.Parser {
	if encrypted {
		return sealed{}
	}
	return &parser{}
}
