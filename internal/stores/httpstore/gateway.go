package httpstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

// Gateway is a kind of server whose limit stands in its configuration. Each
// configuration that is asked for gets a server of its own, which is started when it is
// asked for first.
type Gateway struct {
	Uncounted

	program *Program
	bin     string
	info    stores.Info
	options stores.Options

	mu      sync.Mutex
	servers map[string]*running
	cores   []int // that servers are confined to; nil for all
	closed  bool

	closing sync.Once
	result  error
}

var (
	_ stores.Store  = (*Gateway)(nil)
	_ stores.Placed = (*Gateway)(nil)
)

// open starts one server of the program without a limit.
func open(ctx context.Context, p *Program, bin string, o stores.Options) (*Gateway, error) {
	server.RemoveLeftovers(ctx, o.Dir)
	g := &Gateway{program: p, bin: bin, options: o, servers: map[string]*running{}}
	version, err := p.version(ctx, bin)
	if err != nil {
		return nil, err
	}
	first, err := g.serve(ctx, nil)
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	g.info = stores.Info{
		Kind: stores.KindProcess, Detail: "a server for each configuration, child processes of " + bin + first.as,
		Version: version, Durability: "counts in memory", Addr: first.addr,
	}
	return g, nil
}

// serve returns the server with these settings, and starts it if there is none.
func (g *Gateway) serve(ctx context.Context, settings map[string]string) (*running, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errors.New(g.program.Name + " is closed")
	}
	key := fmt.Sprint(settings) // which prints maps in the order of their keys
	if s, ok := g.servers[key]; ok {
		return s, nil
	}
	s, err := g.program.launch(ctx, g.bin, settings, g.options)
	if err != nil {
		return nil, err
	}
	g.servers[key] = s
	if g.cores != nil {
		err = s.child.Confine(ctx, g.cores)
	}
	return s, err
}

// Driver names the kind of server.
func (g *Gateway) Driver() string { return g.program.Name }

// Info describes the servers.
func (g *Gateway) Info() stores.Info { return g.info }

// Owned is true: what is not started here is the store "service".
func (g *Gateway) Owned() bool { return true }

// Place is [stores.StartedHere].
func (g *Gateway) Place() stores.Place { return stores.StartedHere }

// Processes are those of all servers.
func (g *Gateway) Processes(ctx context.Context) (all []int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(g.servers)) {
		more, err := g.servers[key].child.Processes(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// Confine lets all servers run on some cores alone, and those that are started later.
func (g *Gateway) Confine(ctx context.Context, cores []int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cores = cores
	var errs []error
	for _, s := range g.servers {
		errs = append(errs, s.child.Confine(ctx, cores))
	}
	return errors.Join(errs...)
}

// Close ends all servers. Only the first call does anything; all return its error.
func (g *Gateway) Close() error {
	g.closing.Do(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.closed = true
		var errs []error
		for _, s := range g.servers {
			errs = append(errs, s.child.Close())
		}
		if err := errors.Join(errs...); err != nil {
			g.result = fmt.Errorf("close %s: %w", g.program.Name, err)
		}
	})
	return g.result
}

// Connect makes a client. [stores.Conn.Client] is a [*Client].
func (g *Gateway) Connect(_ context.Context, _ stores.Scope, o stores.ConnOptions) (stores.Conn, error) {
	c := &Client{gateway: g, http: NewClient(o, false)}
	return NewConn(c, c.http), nil
}

// Client asks the servers of a [Gateway].
type Client struct {
	gateway *Gateway
	http    *http.Client
}

// HTTP sends requests over the connections of the run.
func (c *Client) HTTP() *http.Client { return c.http }

// Locate returns the URL that a server with these settings answers at, with {subject}
// where the subject belongs, and starts the server if need be. No settings: no limit.
func (c *Client) Locate(ctx context.Context, settings map[string]string) (string, error) {
	s, err := c.gateway.serve(ctx, settings)
	if err != nil {
		return "", err
	}
	return s.url(settings), nil
}

// Driver is the driver of the program.
func (p *Program) Driver() stores.Driver {
	return stores.Driver{
		Name: p.Name, Title: p.Title,
		Choices: []stores.Choice{
			{Word: "auto", Doc: "processes if " + p.Title + " is installed, else none; the default"},
			{Word: "process", Doc: p.Title + " of this machine, started as children and removed afterwards"},
		},
		Default: "auto", Open: stores.Opener(p.Open), Survey: p.survey,
	}
}

// Open opens what spec names: "auto" or "process". auto is process if the program is
// found on this machine, and otherwise an [stores.AbsentError].
func (p *Program) Open(ctx context.Context, spec string, o stores.Options) (*Gateway, error) {
	if spec != "auto" && spec != "process" {
		d := p.Driver()
		return nil, d.Refuse(spec)
	}
	if bin, ok := server.Find(p.Name); ok {
		return open(ctx, p, bin, o)
	}
	err := fmt.Errorf("no %s found on the PATH or in the usual folders: install it (%s)", p.Name, p.install())
	if spec == "auto" {
		err = &stores.AbsentError{Reason: stores.Info{Kind: stores.KindNone, Detail: err.Error()}}
	}
	return nil, err
}

func (p *Program) install() string { return server.Install(p.Package, p.Name, p.Name, p.Name) }

func (p *Program) survey(context.Context) []stores.Finding {
	bin, _ := server.Find(p.Name)
	f := server.SurveyProgram(p.Name, bin, "--"+p.Name+" process", "measure one of yours by --service URL", p.install())
	return []stores.Finding{f}
}
