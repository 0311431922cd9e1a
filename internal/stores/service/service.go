// Package service opens services of a user's own that decide over HTTP: a gateway, or a
// team's limiter in any language. It is a driver of package stores, which registers
// itself when it is imported.
//
// A service is not a store: nothing can be prepared in it, read from it or removed. A
// strategy is given a [*Client].
package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/stores/httpstore"
	"github.com/quotabench/quotabench/stores"
)

const (
	urls        = "http:// or https://, with {subject} where the subject belongs"
	passwordEnv = "QUOTABENCH_SERVICE_PASSWORD"
)

// driverName is what stores of this kind are named after.
const driverName = "service"

func init() {
	stores.Register(stores.Driver{
		Name: driverName, Title: "service",
		Choices: []stores.Choice{{Word: "http://",
			Doc: "a service of yours, also https://, e.g. http://localhost:8080/check?user={subject}; " +
				"it is asked as often as the run has requests"}},
		URLs: urls, PasswordEnv: passwordEnv, Open: stores.Opener(Open),
	})
}

// Service is one service.
type Service struct {
	httpstore.Uncounted

	template  string // without user and password
	user      *url.Userinfo
	encrypted bool
	info      stores.Info
}

var (
	_ stores.Store  = (*Service)(nil)
	_ stores.Placed = (*Service)(nil)
)

// Open looks whether anything listens where the URL leads. It sends no request, which
// the service would count. Errors hold no password.
func Open(ctx context.Context, spec string, _ stores.Options) (*Service, error) {
	service, err := parse(spec)
	if err != nil {
		return nil, err
	}
	if err := httpstore.Reach(ctx, service.info.Addr); err != nil {
		why := format.OneLine(err.Error())
		return nil, fmt.Errorf("no service reached at %s (%s): start it, or correct --store service=URL", service.info.Addr,
			why)
	}
	return service, nil
}

// parse reads a URL.
func parse(spec string) (*Service, error) {
	if !strings.HasPrefix(spec, "http://") && !strings.HasPrefix(spec, "https://") {
		return nil, stores.Refuse(driverName, spec)
	}
	if strings.Contains(spec, "#") {
		return nil, errors.New("the URL of --store service= has a #, and what follows it is never sent: put {subject} " +
			"before it, or write %23")
	}
	// Braces may stand in no host name: what stands for the subject belongs behind it.
	u, err := url.Parse(spec)
	if err != nil || u.Hostname() == "" || strings.Contains(u.Host, "{") {
		return nil, errors.New("--store service= is not a valid URL: write e.g. http://host:port/path?user={subject}, " +
			"and %-encode what is special in a password")
	}
	service := &Service{encrypted: u.Scheme == "https", user: u.User}
	if name := service.user.Username(); name != "" {
		if _, ok := service.user.Password(); !ok {
			service.user = url.UserPassword(name, os.Getenv(passwordEnv))
		}
	}
	port := u.Port()
	if port == "" {
		port = map[bool]string{false: "80", true: "443"}[service.encrypted]
	}
	begin, rest, _ := strings.Cut(spec, "://")
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		rest = rest[i:]
	} else {
		rest = "/"
	}
	service.template = begin + "://" + u.Host + rest
	service.info = stores.Info{
		Kind: stores.KindURL, Detail: "a service that was already running, measured from outside; it may serve others too",
		Durability: "unknown", Addr: net.JoinHostPort(u.Hostname(), port),
	}
	return service, nil
}

// Driver is "service".
func (s *Service) Driver() string { return driverName }

// Info describes the service.
func (s *Service) Info() stores.Info { return s.info }

// URL of the service, which may have {subject} in it, and no password.
func (s *Service) URL() string { return s.template }

// Owned is false.
func (s *Service) Owned() bool { return false }

// Close does nothing.
func (s *Service) Close() error { return nil }

// Place is where the service runs, by its address alone.
func (s *Service) Place() stores.Place {
	if server.OnThisHost(s.info.Addr) {
		return stores.OnThisHost
	}
	return stores.Elsewhere
}

// Processes are not known.
func (s *Service) Processes(context.Context) ([]int, error) { return nil, server.ErrNotOurs }

// Confine is not possible.
func (s *Service) Confine(context.Context, []int) error { return server.ErrNotOurs }

// Connect makes a client, whose connections are opened by its requests.
func (s *Service) Connect(_ context.Context, _ stores.Scope, options stores.ConnOptions) (stores.Conn, error) {
	client := &Client{service: s, http: httpstore.NewClient(options, s.encrypted)}
	return httpstore.NewConn(client, client.http), nil
}

// Client asks a service.
type Client struct {
	service *Service
	http    *http.Client
}

// HTTP sends requests over the connections of the run.
func (c *Client) HTTP() *http.Client { return c.http }

// URL of the service, which may have {subject} in it, and no password.
func (c *Client) URL() string { return c.service.template }

// Login adds user and password of the service to a request, if it has them.
func (c *Client) Login(r *http.Request) {
	if userinfo := c.service.user; userinfo != nil {
		password, _ := userinfo.Password()
		r.SetBasicAuth(userinfo.Username(), password)
	}
}
