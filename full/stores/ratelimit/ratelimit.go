// Package ratelimit opens servers of Envoy's rate-limit protocol
// (envoy.service.ratelimit.v3 over gRPC): those of a user's own by URL, and
// github.com/envoyproxy/ratelimit, which is started for a run with a Redis of its own. It
// is a driver of package stores, which registers itself when it is imported.
//
// A strategy is given a [*Client]. Its settings are unit (second, minute, hour or day),
// limit (requests per unit), cache (bytes of the local cache, 0 for none) and servers.
package ratelimit

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/quotabench/quotabench/full/stores/internal/cluster"
	"github.com/quotabench/quotabench/full/stores/internal/grpcstore"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/programs"
	"github.com/quotabench/quotabench/internal/stores/httpstore"
	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

const urls = "grpc:// or grpcs://, further servers after commas"

// driverName is what stores of this kind are named after.
const driverName = "ratelimit"

func init() {
	stores.Register(stores.Driver{
		Name: driverName, Title: "Envoy's ratelimit", Clients: []string{"google.golang.org/"},
		Choices: []stores.Choice{
			{Word: "auto", Doc: "processes if ratelimit and redis-server are installed, else none; the default"},
			{Word: "process", Doc: "ratelimit of this machine with a Redis of its own, started as children and removed " +
				"afterwards"},
			{Word: "grpc://", Doc: "a service of yours that speaks the protocol, also grpcs://, e.g. grpc://localhost:8081; " +
				"it is asked as often as the run has requests"},
		},
		URLs: urls, Default: "auto", Survey: survey, Open: stores.Opener(Open),
		ErrorKind: func(err error) quota.ErrorKind {
			if s, ok := status.FromError(err); ok {
				return grpcstore.ErrorKind(s.Code())
			}
			return ""
		},
	})
}

// Store is one service, or servers that are started here.
type Store struct {
	httpstore.Uncounted
	server.Fleet[*group]

	info      stores.Info
	addrs     []string // of a service that was running already
	encrypted bool

	bin     string
	options stores.Options
	redis   *redis.Store // nil if nothing is started here
	// password of redis.
	password string
}

var (
	_ stores.Store  = (*Store)(nil)
	_ stores.Placed = (*Store)(nil)
)

// Open opens what spec names: "auto", "process" or URLs. auto is process if the
// programs are found on this machine, and otherwise an [stores.AbsentError]. A service
// of a user's own is sent no request, which it would count.
func Open(ctx context.Context, spec string, options stores.Options) (*Store, error) {
	switch {
	case spec == "auto" || spec == "process":
		bin, err := find()
		if err == nil {
			var store *Store
			store, err = openProcess(ctx, bin, options)
			if err == nil {
				return store, nil
			}
		}
		if spec == "auto" && ctx.Err() == nil {
			return nil, &stores.AbsentError{Reason: stores.Info{Kind: stores.KindNone, Detail: format.OneLine(err.Error())}}
		}
		return nil, err
	case strings.HasPrefix(spec, "grpc://"), strings.HasPrefix(spec, "grpcs://"):
		return openURL(ctx, spec)
	}
	return nil, stores.Refuse(driverName, spec)
}

// openURL looks whether something listens at each address.
func openURL(ctx context.Context, spec string) (*Store, error) {
	members, ok := cluster.Parse(spec, "")
	if !ok || members.User != "" {
		return nil, errors.New("--store ratelimit= is not a valid URL: write grpc://host:port, further servers as " +
			"host:port after commas; there is no user or password")
	}
	store := &Store{addrs: members.Addrs, encrypted: members.Scheme == "grpcs", info: stores.Info{
		Kind: stores.KindURL, Detail: "a service that was already running, measured from outside; it may serve others too",
		Durability: "unknown", Addr: members.Addrs[0],
	}}
	for _, addr := range store.addrs {
		conn, err := (&net.Dialer{Timeout: grpcstore.DialTimeout}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("no service reached at %s (%s): start it, or correct --store ratelimit=URL", addr,
				format.OneLine(err.Error()))
		}
		if err := conn.Close(); err != nil {
			return nil, err
		}
	}
	return store, nil
}

// program is the server's. Its container image and go install name it differently.
func program() programs.Program { return programs.Named(driverName) }

func find() (string, error) {
	return server.Find(program(), "give the URL of one by --store ratelimit=URL ("+urls+")")
}

func survey(context.Context) []stores.Finding {
	return []stores.Finding{server.Survey(program(), "give the URL of one by --store ratelimit=URL")}
}

// Driver is "ratelimit".
func (s *Store) Driver() string { return driverName }

// Info describes the service.
func (s *Store) Info() stores.Info { return s.info }

// Owned reports whether the servers are started here.
func (s *Store) Owned() bool { return s.redis != nil }

// Place is where the service runs. What a URL leads to is on this host by its address
// alone.
func (s *Store) Place() stores.Place {
	switch {
	case s.redis != nil:
		return stores.StartedHere
	case server.AllOnThisHost(s.addrs):
		return stores.OnThisHost
	}
	return stores.Elsewhere
}

// Processes are those of all servers that were started here, and of their Redis.
func (s *Store) Processes(ctx context.Context) ([]int, error) {
	all, err := s.Fleet.Processes(ctx)
	if err != nil {
		return nil, err
	}
	counting, err := s.redis.Processes(ctx)
	return append(counting, all...), err
}

// Confine lets all servers run on some cores alone, and those that are started later.
func (s *Store) Confine(ctx context.Context, cores []int) error {
	if s.redis == nil {
		return server.ErrNotOurs
	}
	return errors.Join(s.redis.Confine(ctx, cores), s.Fleet.Confine(ctx, cores))
}

// Close ends all servers that were started here. Only the first call does anything; all
// return its error.
func (s *Store) Close() error {
	if s.redis == nil {
		return nil
	}
	return errors.Join(s.Fleet.Close(), s.redis.Close())
}

// Connect makes a client, whose connections are opened by its first requests.
func (s *Store) Connect(_ context.Context, _ stores.Scope, options stores.ConnOptions) (stores.Conn, error) {
	client := &Client{store: s, options: options, conns: map[string]*grpc.ClientConn{}}
	return leases.Conn{Of: client, End: client.close}, nil
}

func (c *Client) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, conn := range c.conns {
		errs = append(errs, conn.Close())
	}
	c.conns = nil
	return errors.Join(errs...)
}

// Client asks one service. Calls share a connection to each server.
type Client struct {
	store   *Store
	options stores.ConnOptions

	mu    sync.Mutex
	conns map[string]*grpc.ClientConn // by address; nil when closed
}

// Started reports whether the servers are started here.
func (c *Client) Started() bool { return c.store.redis != nil }

// Locate returns what calls of an instance are made by. Servers that are started here
// have these settings, nil for no limit, and a domain of their own, in which the key has
// the limit; domain and key of another service are not known, and "".
func (c *Client) Locate(
	ctx context.Context, settings map[string]string, instance int,
) (clientConnInterface grpc.ClientConnInterface, domain, key string, err error) {
	addrs := c.store.addrs
	if c.store.redis != nil {
		group, err := c.store.serve(ctx, settings)
		if err != nil {
			return nil, "", "", err
		}
		addrs = group.addrs
		domain = group.domain
		key = Key
	}
	addr := addrs[instance%len(addrs)]
	if c.options.Cold {
		return cold{func() (*grpc.ClientConn, error) { return c.store.dial(addr, c.options) }}, domain, key, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conns == nil {
		return nil, "", "", errors.New("ratelimit: the client is closed")
	}
	own, ok := c.conns[addr]
	if !ok {
		own, err = c.store.dial(addr, c.options)
		if err != nil {
			return nil, "", "", err
		}
		c.conns[addr] = own
	}
	return own, domain, key, nil
}

func (s *Store) dial(addr string, options stores.ConnOptions) (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if s.encrypted {
		creds = credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12})
	}
	how := append(grpcstore.Options(options, s.encrypted), grpc.WithTransportCredentials(creds), grpc.WithNoProxy(),
		grpc.WithDisableRetry())
	return grpc.NewClient("passthrough:///"+addr, how...)
}

// cold opens a connection for each call.
type cold struct {
	dial func() (*grpc.ClientConn, error)
}

// Invoke implements [grpc.ClientConnInterface].
func (c cold) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	conn, err := c.dial()
	if err != nil {
		return err
	}
	err = conn.Invoke(ctx, method, args, reply, opts...)
	if cerr := conn.Close(); err == nil {
		err = cerr
	}
	return err
}

// NewStream implements [grpc.ClientConnInterface]. The protocol has no streams.
func (c cold) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("there are no streams where each call has a connection of its own")
}
