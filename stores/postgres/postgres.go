package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/programs"
	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/stores"
)

// defaultImage is the container image that is used if options name none.
const defaultImage = "postgres:17.11-alpine"

const urls = "postgres://"

// containerImage stands before the name of an image.
const containerImage = "container:image="

// driverName is what stores of this kind are named after.
const driverName = "postgres"

func init() {
	stores.Register(stores.Driver{
		Name: driverName, Title: "PostgreSQL", Class: stores.ClassSQL, Noun: "schema",
		Get: "give auto, process, container or a URL by --postgres, and install its server for the first two (" +
			programs.Named(driverName).Packages() + ")",
		Choices: []stores.Choice{
			{Word: "auto", Doc: "a process if PostgreSQL is installed, else a container if its image is here, else embedded; " +
				"the default"},
			{Word: "process", Doc: "PostgreSQL of this machine, started as a child and removed afterwards; " +
				"as postgres.replica also process:lag=TIME"},
			{Word: "process:connections=40", Doc: "one that takes so many connections at most, in place of 300"},
			{Word: "container", Doc: "the official image in Docker or Podman, removed afterwards"},
			{Word: "container:image=postgres:18", Doc: "another image, made as the official ones are"},
			{Word: "embedded", Doc: "no server: tiered strategies use an in-process model, SQL strategies are skipped"},
			{Word: "none", Doc: "no server, and no model in its place: strategies that need one are skipped"},
			{Word: "postgres://", Doc: "a server of yours by URL; only a schema of the run's own is touched"},
		},
		URLs: urls, Default: "auto", Image: defaultImage, PasswordEnv: "PGPASSWORD",
		Survey: survey, ErrorKind: errorKind, Open: stores.Opener(Open), Further: openFurther,
	})
}

// Store is one open PostgreSQL server.
type Store struct {
	common
	self  *leases.Self
	base  *pgxpool.Config // to reach it; copied for each pool
	admin *pgxpool.Pool
	// lent is set if admin is the caller's, who closes it.
	lent bool
	// lag is by how much a replica follows later than it could, if that was asked for.
	lag time.Duration
	// room is how many connections the server allows ordinary users.
	room int
}

// common has the methods that stores of every kind share.
type common = leases.Common

func newStore(own server.Server, about stores.Info) *Store {
	store := &Store{self: &leases.Self{Kind: driverName, About: about, Own: own}}
	store.common = store.self.Common()
	store.self.Remove = store.remove
	store.self.Answers = func(ctx context.Context) error { return store.admin.Ping(ctx) }
	return store
}

// Open opens the PostgreSQL that spec names: "auto", "process", "container",
// "embedded" or a URL. auto is process if the programs are found on this
// machine, else container if the image is here already. Containers need an
// import of package stores/container. Otherwise, and with embedded, there is no
// server, which is a [*stores.AbsentError]: strategies that can do without use
// their in-process model.
//
// Errors are of one line, say how to go on, and hold no password.
func Open(ctx context.Context, spec string, options stores.Options) (*Store, error) {
	if !options.KeepLeftovers {
		server.RemoveLeftovers(ctx, options.Dir)
	}
	if n, ok := strings.CutPrefix(spec, "process:connections="); ok { // which PostgreSQL checks
		settings := map[string]string{"max_connections": n}
		maps.Copy(settings, options.Settings)
		spec = "process"
		options.Settings = settings
	}
	if image, ok := strings.CutPrefix(spec, containerImage); ok && image != "" {
		spec = "container"
		options.Image = image
	}
	switch {
	case spec == "auto":
		return openAuto(ctx, options)
	case spec == "process":
		bin, err := find()
		if err != nil {
			return nil, err
		}
		return openProcess(ctx, bin, options)
	case spec == "container":
		engine, err := server.FindEngine(ctx)
		if err != nil {
			return nil, err
		}
		return openContainer(ctx, engine, options)
	case spec == "embedded" || spec == "none":
		return nil, absent("asked for")
	case isURL(spec):
		return openURL(ctx, spec, options)
	}
	return nil, stores.Refuse(driverName, spec)
}

func openAuto(ctx context.Context, options stores.Options) (*Store, error) {
	bin, err := find()
	if err != nil {
		return openWithoutProcess(ctx, options, "no PostgreSQL found on this machine")
	}
	store, err := openProcess(ctx, bin, options)
	if err != nil && ctx.Err() == nil {
		return openWithoutProcess(ctx, options, format.OneLine(err.Error()))
	}
	return store, err
}

func openWithoutProcess(ctx context.Context, options stores.Options, why string) (*Store, error) {
	if engine, err := server.FindEngine(ctx); err == nil && engine.HasImage(ctx, cmp.Or(options.Image, defaultImage)) {
		store, err := openContainer(ctx, engine, options)
		if err == nil || ctx.Err() != nil {
			return store, err
		}
		why += "; " + format.OneLine(err.Error())
	}
	return nil, absent(why)
}

func absent(why string) error {
	return &stores.AbsentError{Reason: stores.Info{
		Kind:       stores.KindModel,
		Detail:     "no server (" + why + "): an in-process model stands in where a strategy can use one",
		Durability: "none: memory of this process",
	}}
}

// URL leads other processes of this machine to a server that was started here, and has its
// password; "" for any other store.
func (p *Store) URL() string {
	if p.self.Own == nil || p.self.Replica {
		return ""
	}
	config := p.base.ConnConfig
	u := url.URL{Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Path: config.Database,
		RawQuery: "sslmode=disable",
		Host:     net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))}
	return u.String()
}

// FromPool makes a store of a pool that the caller has. The caller closes the
// pool, after the store.
//
// Connect opens pools of their own, with a copy of this one's configuration: its
// server, login, dialer and hooks. They are metered.
func FromPool(ctx context.Context, pool *pgxpool.Pool) (*Store, error) {
	store := newStore(nil, stores.Info{Kind: stores.KindClient,
		Detail: "a pool that was there already; its server may serve others too"})
	store.base = pool.Config()
	store.admin = pool
	store.lent = true
	store.self.About.Addr = address(store.base)
	if err := store.describe(ctx); err != nil {
		return nil, fmt.Errorf("use a PostgreSQL pool: %w", err)
	}
	return store, nil
}

// Close tries again to drop what could not be dropped, ends the harness' own
// connections and, if the server was started here, the server and its directory.
// Pools should be closed before. Only the first call does anything; all return its
// error.
func (p *Store) Close() error {
	return p.self.End(func() error {
		if !p.lent {
			p.admin.Close()
		}
		return nil
	})
}

// connect opens the admin pool and asks the server who it is. base is set.
func (p *Store) connect(ctx context.Context) error {
	p.self.About.Addr = address(p.base)
	var err error
	p.admin, err = p.pool(ctx, PoolOptions{Size: 2})
	if err != nil {
		return err
	}
	if err := p.describe(ctx); err != nil {
		p.admin.Close()
		return err
	}
	return nil
}

// address is host:port, or the path of a socket.
func address(config *pgxpool.Config) string {
	if connConfig := config.ConnConfig; strings.HasPrefix(connConfig.Host, "/") {
		return fmt.Sprintf("%s/.s.PGSQL.%d", connConfig.Host, connConfig.Port)
	}
	return net.JoinHostPort(config.ConnConfig.Host, strconv.Itoa(int(config.ConnConfig.Port)))
}

// describe completes Info from what the server says.
func (p *Store) describe(ctx context.Context) error {
	var version int
	var shown, fsync, commit, fullPage string
	var most, kept int
	err := p.admin.QueryRow(ctx, `
		SELECT current_setting('server_version_num')::int, current_setting('server_version'),
		       current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes'),
		       current_setting('max_connections')::int, current_setting('superuser_reserved_connections')::int,
		       pg_is_in_recovery()`).
		Scan(&version, &shown, &fsync, &commit, &fullPage, &most, &kept, &p.self.Replica)
	if err != nil {
		return err
	}
	if version < oldest*10000 {
		return fmt.Errorf("%w at %s: it is version %s, and %d is the oldest that works", errOld, p.self.About.Addr, shown,
			oldest)
	}
	p.self.About.Version = shown
	p.self.About.Durability = "fsync " + fsync + ", synchronous_commit " + commit
	if fullPage != "on" {
		p.self.About.Durability += ", full_page_writes " + fullPage
	}
	// The harness itself keeps two open.
	p.room = max(1, most-kept-2)
	if !p.Owned() && !p.self.Replica {
		p.self.Share(board{p})
	}
	return nil
}

// oldest is the oldest version that its authors still supported when
// this was written and that has ON CONFLICT in all forms used.
const oldest = 12

var errOld = errors.New("postgresql is too old")
