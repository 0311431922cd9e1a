package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/programs"
	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/internal/trouble/network"
	"github.com/quotabench/quotabench/stores"
)

// defaultImage is the container image that is used if options name none.
const defaultImage = "redis:7.4.11-alpine"

const urls = "redis://, rediss://, unix://, cluster:URL or sentinel:URL"

// driverName is what stores of this kind are named after.
const driverName = "redis"

func init() {
	stores.Register(stores.Driver{
		Name: driverName, Title: "Redis", Class: stores.ClassRedis, Volatile: true, Pool: 64,
		Get: "start one and give its URL by --redis, or use --redis process or --redis embedded",
		Choices: []stores.Choice{
			{Word: "auto", Doc: "a process if redis-server is installed, else a container if its image is here, else " +
				"embedded; the default"},
			{Word: "process", Doc: "redis-server of this machine, started as a child and removed afterwards"},
			{Word: "container", Doc: "the official image in Docker or Podman, removed afterwards"},
			{Word: "container:image=redis:8", Doc: "another image, made as the official ones are"},
			{Word: "embedded", Doc: "miniredis inside this process: no server, and timings that say nothing about one"},
			{Word: "process:replicas=1", Doc: "a redis-server and replicas that follow it"},
			{Word: "process:cluster=3", Doc: "a Redis Cluster of so many masters, on loopback ports; with ,replicas=1 each " +
				"has a replica"},
			{Word: "process:sentinel=3", Doc: "a redis-server with a replica, or ,replicas=N, and sentinels that let one " +
				"take its place if it dies"},
			{Word: "process:durable", Doc: "a redis-server that appends each write to its log and flushes that to disk " +
				"before it answers"},
			{Word: "process:maxmemory=8mb,policy=allkeys-lru",
				Doc: "a redis-server that evicts keys, or as its policy says, when that is full"},
			{Word: "redis://", Doc: "a server of yours by URL, also rediss:// and unix://; only keys under the run's prefix " +
				"are touched"},
			{Word: "cluster:redis://", Doc: "a Redis Cluster of yours, by the URL of a node, and of further ones behind commas"},
			{Word: "sentinel:redis://", Doc: "the master that your sentinels name: their URLs with commas between them, " +
				"the first with ?master_name=NAME"},
		},
		URLs: urls, Default: "auto", Image: defaultImage, PasswordEnv: "REDISCLI_AUTH",
		Survey: survey, ErrorKind: errorKind, Open: stores.Opener(Open), Further: openFurther,
	})
	// go-redis prints a line for each dial that fails. Its caller gets the same as
	// an error, and an outage that is part of a run must not fill the terminal.
	goredis.SetLogger(&logging.VoidLogger{})
}

// Store is one open Redis: a server, with its replicas if it was started with
// some, or a cluster.
type Store struct {
	common
	self  *leases.Self
	base  goredis.Options // to reach a single server; copied for each client
	model *embedded
	admin goredis.UniversalClient
	// lent is set if admin is the caller's, who closes it.
	lent bool
	// dial makes a client of what is not a single server; nil otherwise.
	dial func(ClientOptions) goredis.UniversalClient
	// nodes were started for this store, in addition to own: replicas of it.
	nodes []*Store
	// watched are a master, which is the first, and its replicas, all started here with the sentinels; both nil
	// if there are none.
	watched, sentinels []*Store
	// moved is the address of the server that has taken this one's place; nil if none
	// has. options are those that both were started with.
	moved   atomic.Pointer[string]
	options stores.Options
	// relays are between the server and its replicas if these follow it later than they could.
	relays []*network.Relay
	// asked counts how often the servers of a cluster were asked for their statistics.
	asked atomic.Int64
	// marks are the names of the marks of scopes.
	marks sync.Map
	// leased counts the commands for leases on a server that others use too.
	leased atomic.Int64
}

// common has the methods that stores of every kind share.
type common = leases.Common

func newStore(own server.Server, about stores.Info) *Store {
	store := &Store{self: &leases.Self{Kind: driverName, About: about, Own: own}}
	store.common = store.self.Common()
	store.self.Remove = store.remove
	store.self.Usage = store.Usage
	store.self.Answers = func(ctx context.Context) error { return store.admin.Ping(ctx).Err() }
	return store
}

// Open opens the Redis that spec names: "auto", "process", "container", "embedded"
// or a URL. auto is process if a redis-server is found on this machine, else
// container if the image is here already, else embedded. Containers need an
// import of package stores/container.
//
// "process:replicas=1" is a server with a replica, "process:cluster=3" a Redis Cluster
// of three masters, whose client is a [*goredis.ClusterClient], and with ",replicas=1"
// behind it one of six servers. "process:sentinel=3" is a server with a replica and three
// sentinels, whom clients ask for the master. "process:durable" and "container:durable" flush each
// write to disk, and "process:maxmemory=8mb,policy=allkeys-lru" is a server with these
// settings. "container:image=redis:8" is another image. auto takes the same words, but for
// the image, and is then never embedded. "cluster:URL" and "sentinel:URL" lead to servers
// that are running; further URLs stand behind commas.
//
// Errors are of one line, say how to go on, and hold no password.
func Open(ctx context.Context, spec string, options stores.Options) (*Store, error) {
	if !options.KeepLeftovers {
		server.RemoveLeftovers(ctx, options.Dir)
	}
	if isURL(spec) {
		return openURL(ctx, spec, options)
	}
	if list, ok := strings.CutPrefix(spec, "cluster:"); ok {
		return openClusterURL(ctx, list, options)
	}
	if list, ok := strings.CutPrefix(spec, "sentinel:"); ok {
		return openSentinelURL(ctx, list, options)
	}
	word, _, _ := strings.Cut(spec, ":")
	switch word {
	case "auto", "process", "container":
	case "embedded":
		if spec == word {
			return openEmbedded("asked for")
		}
		return nil, stores.WrongSpec(driverName, "embedded is one server that keeps nothing: use process for replicas, a "+
			"cluster or durable writes")
	default:
		return nil, stores.Refuse(driverName, spec)
	}
	word, shape, err := takeApart(spec)
	if err != nil {
		return nil, err
	}
	switch word {
	case "auto":
		return openAuto(ctx, shape, options)
	case "container":
		return openContainers(ctx, shape, options)
	}
	return openProcesses(ctx, shape, options)
}

func openProcesses(ctx context.Context, s shape, options stores.Options) (*Store, error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	return s.open(ctx, options, func(o stores.Options) (*Store, error) { return openProcess(ctx, bin, s.masters > 0, o) })
}

func openContainers(ctx context.Context, s shape, options stores.Options) (*Store, error) {
	if s.several() {
		return nil, errSeveral
	}
	engine, err := server.FindEngine(ctx)
	if err != nil {
		return nil, err
	}
	return openContainer(ctx, engine, s.with(options))
}

func openAuto(ctx context.Context, s shape, options stores.Options) (*Store, error) {
	store, noProcess := openProcesses(ctx, s, options)
	if noProcess == nil || ctx.Err() != nil {
		return store, noProcess
	}
	why := format.OneLine(noProcess.Error())
	if missing, ok := errors.AsType[*programs.MissingError](noProcess); ok {
		why = "no redis-server found on this machine"
		noProcess = missing // --redis embedded is nothing for what comes here
	}
	if s.several() {
		return nil, noProcess
	}
	noContainer := ""
	if engine, err := server.FindEngine(ctx); err == nil && engine.HasImage(ctx, cmp.Or(options.Image, defaultImage)) {
		r, err := openContainer(ctx, engine, s.with(options))
		if err == nil || ctx.Err() != nil {
			return r, err
		}
		noContainer = "; " + format.OneLine(err.Error())
	}
	if s.durable {
		return nil, fmt.Errorf("%w%s", noProcess, noContainer)
	}
	return openEmbedded(why + noContainer)
}

// FromClient makes a store of a client that the caller has. The caller closes the
// client, after the store.
//
// From a [*goredis.Client], Connect makes clients of their own, with its address,
// login and dialer, which are metered; its hooks are not taken over. A client of
// another kind, e.g. of a cluster, is handed out unchanged: it cannot be metered
// or interrupted, and Connect refuses to.
func FromClient(ctx context.Context, client goredis.UniversalClient) (*Store, error) {
	store := newStore(nil, stores.Info{Kind: stores.KindClient,
		Detail: "a client that was there already; its server may serve others too"})
	store.admin = client
	store.lent = true
	if single, ok := client.(*goredis.Client); ok {
		store.base = *single.Options()
		store.self.About.Addr = store.base.Addr
		store.quieten()
	}
	if err := store.describe(ctx); err != nil {
		return nil, fmt.Errorf("use a Redis client: %w", err)
	}
	return store, nil
}

// Owned reports whether the server was started here, for this process alone.
func (r *Store) Owned() bool { return r.self.Own != nil || r.model != nil }

// Admin is a client for the harness' own use. It is not metered, and is closed
// with r. It is nil on a cluster, and on a store that [FromClient] made of another
// client than a [*goredis.Client].
func (r *Store) Admin() *goredis.Client {
	single, _ := r.admin.(*goredis.Client)
	return single
}

// adminPool is how many connections the admin client may have. It opens few: but after as
// many failed attempts as that go-redis looks for a server that is gone once a second
// only, and would not notice that it is back.
const adminPool = 1000

// connect makes the admin client and asks the server who it is.
func (r *Store) connect(ctx context.Context) error {
	r.quieten()
	r.self.About.Addr = r.base.Addr
	r.admin = r.Client(ClientOptions{Pool: adminPool})
	if err := r.describe(ctx); err != nil {
		return errors.Join(err, r.admin.Close())
	}
	return nil
}

// quieten keeps clients from talking to the server on their own account.
func (r *Store) quieten() {
	r.base.DisableIdentity = true
	r.base.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	r.base.ContextTimeoutEnabled = true
	r.base.ConnMaxIdleTime = -1 // no dial in the middle of a run
	// One attempt: a server that cannot be reached is the caller's to see.
	r.base.DialerRetries = 1
	// One pool, that pipelines share.
	r.base.PipelinePoolSize = -1
}

// Close tries again to remove what could not be removed, ends the admin client and,
// if the server was started here, the server and its directory. Clients should be
// closed before. Only the first call does anything; all return its error.
func (r *Store) Close() error {
	return r.self.End(func() error {
		errs := []error{r.lose()}
		if !r.lent && r.admin != nil {
			errs = append(errs, r.admin.Close())
		}
		for _, n := range slices.Concat(r.watched, r.sentinels) {
			errs = append(errs, n.admin.Close())
		}
		for _, n := range slices.Backward(r.nodes) {
			errs = append(errs, n.Close())
		}
		if r.model != nil {
			r.model.close()
		}
		return errors.Join(errs...)
	})
}
