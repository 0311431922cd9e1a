// Package natslink lets the generators of a run reach their coordinator by NATS. A program has
// it by an import:
//
//	import _ "github.com/quotabench/quotabench/full/internal/natslink"
//
// A coordinator at nats://HOST:PORT/NAME uses a server that is there, whose other users it does
// not disturb: all its subjects begin with quotabench.NAME, and nothing is kept in the server. On
// an address alone it starts a server in this process.
package natslink

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/coordinate"
)

func init() {
	coordinate.Register("nats", coordinate.Transport{Listen: listen, Dial: dial, Serve: serve})
}

const (
	// patience is how long a server has to start, or to answer.
	patience = 5 * time.Second
	// joining is how long a coordinator has to answer, to which a thousand may come at once.
	joining = 30 * time.Second
)

// connect makes a client that never connects again: what was lost in between would be missed.
func connect(at *url.URL) (*nats.Conn, error) {
	o := []nats.Option{nats.NoReconnect(), nats.Timeout(patience), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})}
	if password, both := at.User.Password(); both {
		o = append(o, nats.UserInfo(at.User.Username(), password))
	} else if at.User != nil {
		o = append(o, nats.Token(at.User.Username()))
	}
	return nats.Connect("nats://"+at.Host, o...)
}

// subscribe returns a subscription that drops nothing. The server has it before it sees what the
// same client publishes afterwards.
func subscribe(c *nats.Conn, subject string) (*nats.Subscription, error) {
	s, err := c.SubscribeSync(subject)
	if err != nil {
		return nil, err
	}
	return s, s.SetPendingLimits(-1, -1)
}

var name = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// root begins the subjects of a coordinator.
func root(at *url.URL) (string, error) {
	n := strings.TrimPrefix(at.Path, "/")
	if !name.MatchString(n) {
		return "", errors.New("give the URL of a coordinator as nats://HOST:PORT/NAME, its name of letters, digits, _ and -")
	}
	return "quotabench." + n + ".", nil
}

// listener takes generators that join.
type listener struct {
	root string
	conn *nats.Conn
	join *nats.Subscription
	ctx  context.Context // ends with Close
	end  context.CancelFunc
}

func listen(_ context.Context, at *url.URL) (net.Listener, error) {
	if at.Path == "" || at.Path == "/" {
		at.Path = "/" + nats.NewInbox()[len(nats.InboxPrefix):]
	}
	l := &listener{}
	var err error
	if l.root, err = root(at); err != nil {
		return nil, err
	}
	if l.conn, err = connect(at); err != nil {
		return nil, err
	}
	if l.join, err = subscribe(l.conn, l.root+"join"); err != nil {
		l.conn.Close()
		return nil, err
	}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l, nil
}

// Accept implements [net.Listener]. A generator names the subject that leads to it.
func (l *listener) Accept() (net.Conn, error) {
	for {
		m, err := l.join.NextMsgWithContext(l.ctx)
		if l.ctx.Err() != nil {
			return nil, net.ErrClosed
		}
		if err != nil {
			return nil, err
		}
		id := string(m.Data)
		if !name.MatchString(id) {
			continue
		}
		s, err := subscribe(l.conn, l.root+id+".up")
		if err != nil {
			return nil, err
		}
		if err := m.Respond(nil); err == nil { // otherwise nobody waits
			return &link{conn: l.conn, in: s, to: l.root + id + ".down"}, nil
		}
	}
}

func (l *listener) Close() error {
	l.end()
	l.conn.Close()
	return nil
}

func (l *listener) Addr() net.Addr { return address(l.root) }

// dial joins a coordinator.
func dial(ctx context.Context, at *url.URL) (_ net.Conn, err error) {
	root, err := root(at)
	if err != nil {
		return nil, err
	}
	c, err := connect(at)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	id := nats.NewInbox()[len(nats.InboxPrefix):]
	s, err := subscribe(c, root+id+".down")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, joining)
	defer cancel()
	if _, err := c.RequestWithContext(ctx, root+"join", []byte(id)); err != nil {
		return nil, err
	}
	return &link{conn: c, in: s, to: root + id + ".up", own: true}, nil
}

// link is a connection of two subjects, one for each direction. An empty message ends it.
type link struct {
	conn  *nats.Conn
	own   bool // conn serves this link alone
	in    *nats.Subscription
	to    string
	rest  []byte // read and not yet taken
	until time.Time
}

// Read implements [net.Conn]. One goroutine reads, which also sets the deadline.
func (k *link) Read(b []byte) (int, error) {
	if len(k.rest) == 0 {
		m, err := k.in.NextMsg(k.until.Sub(clock.Wall{}.Now()))
		switch {
		case errors.Is(err, nats.ErrTimeout):
			return 0, os.ErrDeadlineExceeded
		case err != nil:
			return 0, err
		case len(m.Data) == 0:
			return 0, io.EOF
		}
		k.rest = m.Data
	}
	n := copy(b, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

func (k *link) Write(b []byte) (int, error) { return len(b), k.conn.Publish(k.to, b) }

func (k *link) Close() error {
	if !k.conn.IsClosed() {
		_ = k.conn.Publish(k.to, nil) // a server that is gone tells the other side, too
		_ = k.conn.FlushTimeout(patience)
	}
	if k.own {
		k.conn.Close()
		return nil
	}
	return k.in.Unsubscribe()
}

func (k *link) LocalAddr() net.Addr                { return address(k.in.Subject) }
func (k *link) RemoteAddr() net.Addr               { return address(k.to) }
func (k *link) SetDeadline(t time.Time) error      { return k.SetReadDeadline(t) }
func (k *link) SetReadDeadline(t time.Time) error  { k.until = t; return nil }
func (k *link) SetWriteDeadline(_ time.Time) error { return nil } // the client writes in the background

// address is a subject.
type address string

func (address) Network() string  { return "nats" }
func (a address) String() string { return string(a) }

// serve starts a server in this process.
func serve(addr, token string) (*url.URL, func(), error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, nil, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, nil, err
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{Host: host, Port: port, Authorization: token, NoSigs: true, NoLog: true})
	if err != nil {
		return nil, nil, err
	}
	s.Start()
	stop := func() { s.Shutdown(); s.WaitForShutdown() }
	if !s.ReadyForConnections(patience) {
		stop()
		return nil, nil, errors.New("it does not listen on " + addr)
	}
	return &url.URL{Scheme: "nats", User: url.User(token), Host: s.Addr().String()}, stop, nil
}
