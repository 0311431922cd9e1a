package httpstore

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

// Gateway is a kind of server whose limit stands in its configuration. Each
// configuration that is asked for gets a server of its own, which is started when it is
// asked for first.
type Gateway struct {
	Uncounted
	server.Fleet[*running]

	program *Program
	bin     string
	info    stores.Info
	options stores.Options
}

var (
	_ stores.Store  = (*Gateway)(nil)
	_ stores.Placed = (*Gateway)(nil)
)

// open starts one server of the program without a limit.
func open(ctx context.Context, p *Program, bin string, o stores.Options) (*Gateway, error) {
	server.RemoveLeftovers(ctx, o.Dir)
	g := &Gateway{program: p, bin: bin, options: o}
	g.Kind = p.Name
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
	return g.Serve(ctx, settings, func() (*running, error) {
		return server.Launch(g.bin, 0, func(port int) (*running, error) { return g.program.start(ctx, g.bin, port, settings, g.options) })
	})
}

// Driver names the kind of server.
func (g *Gateway) Driver() string { return g.program.Name }

// Info describes the servers.
func (g *Gateway) Info() stores.Info { return g.info }

// Owned is true: what is not started here is the store "service".
func (g *Gateway) Owned() bool { return true }

// Place is [stores.StartedHere].
func (g *Gateway) Place() stores.Place { return stores.StartedHere }

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
		return nil, stores.Refuse(p.Name, spec)
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
