// Package coordinate has the generators of one run agree on its plan, begin each step at
// one instant, and end together. A [Coordinator] serves them; each generator is a [Member].
//
// A generator calls its coordinator by JSON-RPC over a connection of its own. Which network carries it is a
// [Transport]'s concern: tcp is built in, and others register themselves.
package coordinate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
)

const (
	// Silence is how long either side waits for a word of the other until it takes it for lost.
	Silence = 10 * time.Second
	// beat is how often a generator asks the coordinator for its time, which shows that it lives.
	beat = 2 * time.Second
)

// Hello is what a generator says of itself.
type Hello struct {
	// Index of the generator, from 1, of so many.
	Index, Of int
	// Fingerprint of its plan.
	Fingerprint string
	// Place names its process for people.
	Place string
	// Token that the coordinator was given or made.
	Token string `json:",omitempty"`
}

// Welcome is what all generators of a run have in common.
type Welcome struct {
	// RunID names the run, and what it keeps in stores.
	RunID string
	// Stores are the stores to use by name, if the coordinator has opened them.
	Stores map[string]string `json:",omitempty"`
	// Collect is set if the coordinator wants the files of a generator.
	Collect bool `json:",omitempty"`
}

// limited is a connection on which neither side may be silent.
type limited struct{ net.Conn }

// Write fails if the other side does not take in time what is said.
func (l limited) Write(b []byte) (int, error) {
	if err := l.SetWriteDeadline(clock.Wall{}.Now().Add(Silence)); err != nil {
		return 0, err
	}
	return l.Conn.Write(b)
}

// Read fails if nothing comes in time.
func (l limited) Read(b []byte) (int, error) {
	if err := l.SetReadDeadline(clock.Wall{}.Now().Add(Silence)); err != nil {
		return 0, err
	}
	return l.Conn.Read(b)
}

// ended is why the other side of a connection counts as lost.
func ended(err error) string {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return fmt.Sprintf("nothing came from it for %v: a process is stopped or has no processor, or they are cut off", Silence)
	}
	return "its process or its connection has ended"
}

// Transport is a network that carries calls. Its connections keep the order of what is
// written, and lose nothing before they fail.
type Transport struct {
	// Listen serves at a URL. Its user is the token.
	Listen func(ctx context.Context, at *url.URL) (net.Listener, error)
	// Dial reaches a coordinator that listens at the URL.
	Dial func(ctx context.Context, at *url.URL) (net.Conn, error)
	// Serve starts a server on an address, for which the token is asked, and returns its URL;
	// nil if the transport needs none.
	Serve func(address, token string) (at *url.URL, stop func(), err error)
}

var transports = map[string]Transport{"tcp": {
	Listen: func(ctx context.Context, at *url.URL) (net.Listener, error) {
		return new(net.ListenConfig).Listen(ctx, "tcp", at.Host)
	},
	Dial: func(ctx context.Context, at *url.URL) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", at.Host)
	},
}}

// Register adds a transport for URLs with the scheme.
func Register(scheme string, t Transport) { transports[scheme] = t }

// NewToken makes a token.
func NewToken() string { return strings.ToLower(rand.Text()) }

// Parse reads the URL of a coordinator. Its error holds no token.
func Parse(text string) (*url.URL, Transport, error) {
	at, err := url.Parse(text)
	if err != nil || at.Host == "" {
		return nil, Transport{}, fmt.Errorf("give a URL such as tcp://TOKEN@host:7600")
	}
	t, ok := transports[at.Scheme]
	if !ok {
		return nil, t, fmt.Errorf("this program reaches a coordinator by %s, not by %s: the command of module full has nats, too",
			strings.Join(slices.Sorted(maps.Keys(transports)), " or "), at.Scheme)
	}
	return at, t, nil
}

// Listen serves at a URL, or on an address HOST:PORT with the token: by a server of a
// transport that has one, or else by tcp. It returns the URL by which generators join.
func Listen(ctx context.Context, text, token string) (l net.Listener, join string, err error) {
	if strings.Contains(text, "://") {
		at, t, err := Parse(text)
		if err != nil {
			return nil, "", err
		}
		l, err := t.Listen(ctx, at)
		return l, at.String(), err
	}
	for scheme, t := range transports {
		if t.Serve == nil {
			continue
		}
		at, stop, err := t.Serve(text, token)
		if err != nil {
			return nil, "", fmt.Errorf("start a server of %s: %w", scheme, err)
		}
		l, err := t.Listen(ctx, at)
		if err != nil {
			stop()
			return nil, "", err
		}
		return served{l, stop}, at.String(), nil
	}
	return ListenTCP(ctx, text, token)
}

// ListenTCP is [Listen] on an address without a server.
func ListenTCP(ctx context.Context, address, token string) (net.Listener, string, error) {
	at := &url.URL{Scheme: "tcp", User: url.User(token), Host: address}
	l, err := transports["tcp"].Listen(ctx, at)
	if err != nil {
		return nil, "", err
	}
	at.Host = l.Addr().String()
	return l, at.String(), nil
}

// served is a listener on a server of its own.
type served struct {
	net.Listener
	stop func()
}

func (s served) Close() error {
	err := s.Listener.Close()
	s.stop()
	return err
}
