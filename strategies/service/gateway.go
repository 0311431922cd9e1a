package service

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// The stores of gateways that are started for a run. Their clients have the methods of
// local.
const (
	NeedNginx   strategies.Need = "nginx"
	NeedHAProxy strategies.Need = "haproxy"
)

// local is a client of gateways that are configured for a run.
type local interface {
	HTTP() *http.Client
	// Locate returns the URL that a server with these settings answers at, with
	// {subject} in it, and starts the server if need be.
	Locate(ctx context.Context, settings map[string]string) (string, error)
}

// gateway is one instance of a strategy on a gateway.
type gateway struct {
	asker
	local local
	// settings of a policy; nil if there is no limit.
	settings func(*quota.Policy) map[string]string

	mu   sync.RWMutex
	urls map[string]string // by the policy's name
}

// openGateway opens an instance that configures the gateway by settings.
func openGateway(env strategies.Env, need strategies.Need, settings func(*quota.Policy) map[string]string) (strategies.Strategy, error) {
	c, ok := env.Clients[string(need)].(local)
	if !ok {
		return nil, fmt.Errorf("there is no %s to start", need)
	}
	return &gateway{local: c, settings: settings, urls: map[string]string{}, asker: asker{
		http: c.HTTP(), clock: env.Clock, prefix: env.Prefix, method: http.MethodGet,
		admitted: &statuses{http.StatusOK - firstStatus: true}, rejected: &statuses{http.StatusTooManyRequests - firstStatus: true},
	}}, nil
}

// Take implements [strategies.Strategy].
func (g *gateway) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	g.mu.RLock()
	url, ok := g.urls[req.Policy.Name]
	g.mu.RUnlock()
	if !ok {
		var err error
		if url, err = g.locate(ctx, req.Policy); err != nil {
			return quota.Decision{}, err
		}
	}
	return g.ask(ctx, url, req)
}

// locate is the URL for a policy, whose limit the gateway has from then on.
func (g *gateway) locate(ctx context.Context, p *quota.Policy) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if url, ok := g.urls[p.Name]; ok {
		return url, nil
	}
	var settings map[string]string
	if g.settings != nil {
		settings = g.settings(p)
	}
	url, err := g.local.Locate(ctx, settings)
	if err == nil {
		g.urls[p.Name] = url
	}
	return url, err
}

// Close implements [strategies.Strategy].
func (g *gateway) Close(context.Context) error { return nil }

func init() {
	family.Register(files, strategies.Meta{
		Name:      "http-bare",
		Outside:   true,
		Kinds:     quota.Kinds(),
		Serves:    servesSingle,
		Counts:    quota.CountsNothing,
		Control:   strategies.ControlOpen,
		Options:   []quota.Option{{Name: "on", Default: string(NeedNginx), Values: []string{string(NeedNginx), string(NeedHAProxy)}}},
		NeedsToo:  func(o quota.Options) []strategies.Need { return []strategies.Need{strategies.Need(o["on"])} },
		Guarantee: []quota.Clause{family.NoFalseReject()},
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			return openGateway(env, strategies.Need(env.Options["on"]), nil)
		},
	})
}
