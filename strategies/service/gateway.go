package service

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// The stores of gateways that are started for a run. Their clients have the methods of
// local.
const (
	needNginx   strategies.Need = "nginx"
	needHAProxy strategies.Need = "haproxy"
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
func openGateway(env strategies.Env, need strategies.Need,
	settings func(*quota.Policy) map[string]string) (strategies.Strategy, error) {
	c, ok := env.Clients[string(need)].(local)
	if !ok {
		return nil, fmt.Errorf("there is no %s to start", need)
	}
	return &gateway{local: c, settings: settings, urls: map[string]string{}, asker: asker{
		http: c.HTTP(), clock: env.Clock, prefix: env.Prefix, method: http.MethodGet,
		admitted: &statuses{http.StatusOK - firstStatus: true},
		rejected: &statuses{http.StatusTooManyRequests - firstStatus: true},
	}}, nil
}

// Take implements [strategies.Strategy].
func (g *gateway) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	g.mu.RLock()
	url, ok := g.urls[req.Policy.Name]
	g.mu.RUnlock()
	if !ok {
		var err error
		url, err = g.locate(ctx, req.Policy)
		if err != nil {
			return quota.Decision{}, err
		}
	}
	return g.ask(ctx, url, req)
}

// locate is the URL for a policy, whose limit the gateway has from then on.
func (g *gateway) locate(ctx context.Context, policy *quota.Policy) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if url, ok := g.urls[policy.Name]; ok {
		return url, nil
	}
	var settings map[string]string
	if g.settings != nil {
		settings = g.settings(policy)
	}
	url, err := g.local.Locate(ctx, settings)
	if err == nil {
		g.urls[policy.Name] = url
	}
	return url, err
}

// Close implements [strategies.Strategy].
func (g *gateway) Close(context.Context) error { return nil }

func init() {
	family.Register(files, strategies.Meta{
		Name:    "http-bare",
		Outside: true,
		Kinds:   quota.Kinds(),
		Serves:  servesSingle,
		Counts:  quota.CountsNothing,
		About:   strategies.About{Control: strategies.ControlOpen},
		Options: []quota.Option{{Name: "on", Default: string(needNginx),
			Values: []string{string(needNginx), string(needHAProxy)}}},
		Setup: strategies.Setup{NeedsToo: func(options quota.Options) []strategies.Need {
			return []strategies.Need{strategies.Need(options["on"])}
		}},
		Guarantee: []quota.Clause{family.NoFalseReject()},
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			return openGateway(env, strategies.Need(env.Options["on"]), nil)
		},
	})
}

func init() {
	family.Register(files, strategies.Meta{
		Name:    "nginx-limit-req",
		Needs:   []strategies.Need{needNginx},
		Outside: true,
		Kinds:   []quota.Kind{quota.Bucket, quota.Fixed, quota.Rolling},
		Serves:  servesRate,
		Counts:  quota.CountsAdmitted,
		Options: []quota.Option{
			{Name: "burst", Default: burstOfLimit, Check: checkBurst},
			{Name: "nodelay", Default: "true", Type: "bool"},
			{Name: "workers", Default: "2", Type: "int", Min: "1", Max: "64"},
			{Name: "answer", Default: "file", Values: []string{"file", "return"}},
		},
		Guarantee: []quota.Clause{
			{
				Property: quota.PropertyLeak, Kinds: []quota.Kind{quota.Bucket},
				Formula: "max(L, burst + 1), and 1 + 10 ms of the rate for its clock",
				Bound: func(params quota.Params) int64 {
					return max(0, burst(params.Options, params.Limit)+1-params.Limit) + forClock(params)
				},
			},
			{
				Property: quota.PropertyLeak, Kinds: []quota.Kind{quota.Fixed, quota.Rolling},
				Formula: "L + burst + 1, and 1 + 10 ms of the rate for its clock",
				Bound:   func(params quota.Params) int64 { return burst(params.Options, params.Limit) + 1 + forClock(params) },
			},
			quota.MayReject(),
		},
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			return openGateway(env, needNginx, func(policy *quota.Policy) map[string]string {
				rate, _ := rateOf(policy)
				return map[string]string{
					"rate": rate, "burst": strconv.FormatInt(burst(env.Options, policy.Limit), 10),
					"nodelay": strconv.FormatBool(env.Options.Bool("nodelay")),
					"workers": env.Options["workers"], "answer": env.Options["answer"],
				}
			})
		},
	})
}

// clockMayErr is how far nginx's clock may be behind: it is read once in each turn of a
// worker's event loop, in whole milliseconds.
const clockMayErr = 10 * time.Millisecond

// forClock is how many requests more may pass because of nginx's clock, since a request
// may seem earlier than it was sent, and the next one later than it is: one, and what
// flows in while it is behind.
func forClock(params quota.Params) int64 {
	if params.Policy == nil {
		return 1
	}
	units := params.Limit
	if params.Policy.Window.Kind == quota.Bucket {
		units = params.Policy.Window.Refill
	}
	length := params.Policy.Window.RealLength()
	if length <= 0 {
		return 1
	}
	return 1 + units*int64(clockMayErr)/int64(length)
}

// burstOfLimit is the value of burst that makes a bucket of the policy's limit.
const burstOfLimit = "limit-1"

// mostBurst bounds what nginx counts in thousandths of a request, in 32 bits.
const mostBurst = 1_000_000

func checkBurst(text string) error {
	if n, err := strconv.ParseInt(text, 10, 64); text != burstOfLimit && (err != nil || n < 0 || n > mostBurst) {
		return fmt.Errorf("%q is not limit-1, and no number from 0 to %d", text, mostBurst)
	}
	return nil
}

// burst is the burst in force.
func burst(options quota.Options, limit int64) int64 {
	n, err := strconv.ParseInt(options["burst"], 10, 64)
	if err != nil {
		return max(0, limit-1)
	}
	return n
}

// servesRate refuses policies whose rate nginx would round.
func servesRate(policy *quota.Policy) error {
	if _, ok := rateOf(policy); !ok {
		return strategies.Unserved(policy, "nginx takes whole requests per second, or a multiple of 3 per minute, and "+
			"rounds all others")
	}
	if policy.Limit > mostBurst {
		return strategies.Unserved(policy, "nginx counts bursts up to %d requests", mostBurst)
	}
	return servesSingle(policy)
}

// rateOf is the policy's rate as limit_req_zone takes it. A rate per minute is kept in
// thousandths of a request per second, which are whole for multiples of 3 per minute.
func rateOf(policy *quota.Policy) (string, bool) {
	units := policy.Limit
	if policy.Window.Kind == quota.Bucket {
		units = policy.Window.Refill
	}
	length := policy.Window.RealLength()
	if length <= 0 || units > mostBurst {
		return "", false
	}
	for _, x := range []struct {
		per      time.Duration
		suffix   string
		multiple int64
	}{{time.Second, "r/s", 1}, {time.Minute, "r/m", 3}} {
		if rate := units * int64(x.per); rate%int64(length) == 0 && rate/int64(length)%x.multiple == 0 &&
			rate/int64(length) <= mostBurst {
			return strconv.FormatInt(rate/int64(length), 10) + x.suffix, true
		}
	}
	return "", false
}

func init() {
	family.Register(files, strategies.Meta{
		Name:    "haproxy-req-rate",
		Needs:   []strategies.Need{needHAProxy},
		Outside: true,
		Kinds:   []quota.Kind{quota.Fixed, quota.Rolling},
		Serves:  servesPeriod,
		Counts:  quota.CountsAttempts,
		Options: []quota.Option{
			{Name: "threads", Default: "2", Type: "int", Min: "1", Max: "64"},
		},
		Guarantee: []quota.Clause{
			{
				Property: quota.PropertyLeak, Formula: "2 L - 1",
				Bound: func(params quota.Params) int64 { return max(0, params.Limit-1) },
			},
			{
				Property: quota.PropertyFalseReject, Formula: "any: rejected requests count",
				Bound: func(quota.Params) int64 { return quota.Unbounded },
			},
		},
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			return openGateway(env, needHAProxy, func(policy *quota.Policy) map[string]string {
				return map[string]string{
					"period": strconv.FormatInt(policy.Window.RealLength().Milliseconds(), 10) + "ms",
					"above":  strconv.FormatInt(policy.Limit, 10), "threads": env.Options["threads"],
				}
			})
		},
	})
}

// longest period that HAProxy counts, in milliseconds of 31 bits.
const longest = 24 * 24 * time.Hour

// servesPeriod refuses policies whose window HAProxy would round.
func servesPeriod(policy *quota.Policy) error {
	if duration := policy.Window.RealLength(); duration < time.Millisecond || duration%time.Millisecond != 0 ||
		duration > longest {
		return strategies.Unserved(policy, "HAProxy counts over whole milliseconds, up to 24 days")
	}
	if policy.Limit > mostBurst {
		return strategies.Unserved(policy, "a limit above %d is not tested with HAProxy", mostBurst)
	}
	return servesSingle(policy)
}
