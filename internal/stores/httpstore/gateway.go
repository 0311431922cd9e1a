package httpstore

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/programs"
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
func open(ctx context.Context, program *Program, bin string, options stores.Options) (*Gateway, error) {
	server.RemoveLeftovers(ctx, options.Dir)
	gateway := &Gateway{program: program, bin: bin, options: options}
	gateway.Kind = program.Name
	version, err := program.version(ctx, bin)
	if err != nil {
		return nil, err
	}
	first, err := gateway.serve(ctx, nil)
	if err != nil {
		return nil, errors.Join(err, gateway.Close())
	}
	gateway.info = stores.Info{
		Kind: stores.KindProcess, Detail: "a server for each configuration, child processes of " + bin + first.as,
		Version: version, Durability: "counts in memory", Addr: first.addr,
	}
	return gateway, nil
}

// serve returns the server with these settings, and starts it if there is none.
func (g *Gateway) serve(ctx context.Context, settings map[string]string) (*running, error) {
	return g.Serve(ctx, settings, func() (*running, error) {
		return server.Launch(g.bin, 0, func(port int) (*running, error) {
			return g.program.start(ctx, g.bin, port, settings, g.options)
		})
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
func (g *Gateway) Connect(_ context.Context, _ stores.Scope, options stores.ConnOptions) (stores.Conn, error) {
	client := &Client{gateway: g, http: NewClient(options, false)}
	return NewConn(client, client.http), nil
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
	running, err := c.gateway.serve(ctx, settings)
	if err != nil {
		return "", err
	}
	return running.url(settings), nil
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
func (p *Program) Open(ctx context.Context, spec string, options stores.Options) (*Gateway, error) {
	if spec != "auto" && spec != "process" {
		return nil, stores.Refuse(p.Name, spec)
	}
	bin, err := programs.Named(p.Name).Path()
	if err == nil {
		return open(ctx, p, bin, options)
	}
	if spec == "auto" {
		err = &stores.AbsentError{Reason: stores.Info{Kind: stores.KindNone, Detail: err.Error()}}
	}
	return nil, err
}

func (p *Program) survey(context.Context) []stores.Finding {
	return []stores.Finding{server.Survey(programs.Named(p.Name), "measure one of yours by --store service=URL")}
}

// Program is what differs from one kind of gateway to the next.
type Program struct {
	// Name of the driver and of the program, and Title, which is what people call it.
	Name, Title string
	// Template of the configuration file, filled with a [Site].
	Template *template.Template
	// Valid are the forms of the settings, by name. A limit has all of them.
	Valid map[string]*regexp.Regexp
	// Command starts a server, given its configuration file.
	Command func(bin, config string) *exec.Cmd
}

// Site is what a configuration is written for.
type Site struct {
	// Addr is the host and port to listen on.
	Addr string
	// Bare and Limited are the paths of the location without a limit and of the one
	// with it. They hold a secret, so that other users of the machine cannot ask.
	Bare, Limited string
	// Page is a file to answer with, and Dir a folder that the server may write to.
	Page, Dir string
	// Root is set if the server runs as root, since no other user may enter its
	// folder.
	Root bool
	// Settings of the limit; nil for none.
	Settings map[string]string
}

// config writes the configuration of a server.
func (p *Program) config(site Site) (string, error) {
	if site.Settings != nil {
		for name, form := range p.Valid {
			if !form.MatchString(site.Settings[name]) {
				return "", fmt.Errorf("the setting %s of %s is %q", name, p.Title, site.Settings[name])
			}
		}
		if len(site.Settings) != len(p.Valid) {
			return "", fmt.Errorf("%s is given settings that it does not have", p.Title)
		}
	}
	var builder strings.Builder
	err := p.Template.Execute(&builder, site)
	return builder.String(), err
}

// running is one server.
type running struct {
	*server.Child
	addr, as    string
	bare, limit string // URLs
}

// url is that of the limited location, or of the other one without settings.
func (s *running) url(settings map[string]string) string {
	if len(settings) == 0 {
		return s.bare
	}
	return s.limit
}

var versionText = regexp.MustCompile(`[0-9]+(\.[0-9]+)+`)

func (p *Program) version(ctx context.Context, bin string) (string, error) {
	out, err := server.Run(ctx, exec.Command(bin, "-v"), nil)
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w: %s", bin, err, server.LastLines(out, 1))
	}
	return versionText.FindString(out), nil
}

// start starts a server, and waits until it answers at a path that no other knows.
func (p *Program) start(ctx context.Context, bin string, port int, settings map[string]string,
	options stores.Options) (*running, error) {
	home, err := server.NewHome(options.Dir, p.Name, "nobody")
	if err != nil {
		return nil, err
	}
	secret := "/" + strings.ToLower(crand.Text())
	site := Site{
		Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Dir: home.Data, Settings: settings,
		Root: home.User == nil && os.Getuid() == 0,
		Bare: secret + "/bare", Limited: secret + "/limited",
	}
	site.Page, err = home.WriteSecret("page", "admitted\n")
	if err != nil {
		return nil, err
	}
	text, err := p.config(site)
	if err != nil {
		return nil, errors.Join(err, home.Dir.Remove())
	}
	file, err := home.WriteSecret(p.Name+".conf", text)
	if err != nil {
		return nil, err
	}
	cmd := p.Command(bin, file)
	cmd.Dir, cmd.Env = home.Data, server.Env()
	child, err := home.Start(cmd)
	if err != nil {
		return nil, err
	}
	at := "http://" + site.Addr
	s := &running{Child: child, addr: site.Addr, as: home.As, bare: at + site.Bare + query,
		limit: at + site.Limited + query}
	taken := func(words string) bool { return strings.Contains(strings.ToLower(words), "address already in use") }
	if err := server.Await(ctx, child, taken, s.ours); err != nil {
		return nil, errors.Join(err, child.Close())
	}
	return s, nil
}

// query has the subject in a parameter.
const query = "?subject={subject}"

// ours asks the location without a limit, which no other program's server has.
func (s *running) ours(ctx context.Context) error {
	client := NewClient(stores.ConnOptions{Pool: 1, Cold: true}, false)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.bare, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(req)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%w: it answers with status %d", server.ErrPortTaken, response.StatusCode)
	}
	return nil
}
