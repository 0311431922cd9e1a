// Package ratelimit is the code of strategies over Envoy's rate-limit protocol. Programs
// get it by package full.
package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/service"
)

func init() {
	strategies.BuildIn(service.EnvoyRatelimit, openLimit)
	strategies.BuildIn(service.GRPCBare, openBare)
}

// client is that of the store.
type client interface {
	Started() bool
	Locate(ctx context.Context, settings map[string]string, instance int) (cc grpc.ClientConnInterface, domain, key string, err error)
}

// subject stands in a value for the subject of a request.
const subject = "{subject}"

// limiter is one instance of envoy-ratelimit or grpc-bare.
type limiter struct {
	client   client
	prefix   string // of subjects' names, so that no two runs share one
	instance int
	timeout  time.Duration
	// settings of a policy; nil if there is no limit.
	settings    func(*quota.Policy) map[string]string
	domain      string
	descriptors [][][2]string
	// unlimited counts answers without a limit.
	unlimited strategies.Tally

	mu    sync.RWMutex
	sites map[string]*site // by the policy's name
}

// site is where a policy is asked for.
type site struct {
	calls       rls.RateLimitServiceClient
	domain      string
	descriptors [][][2]string
}

var _ strategies.Meter = (*limiter)(nil)

func openClient(env strategies.Env) (*limiter, error) {
	c, ok := env.Clients[string(service.NeedRatelimit)].(client)
	if !ok {
		return nil, errors.New("there is no ratelimit to ask")
	}
	return &limiter{client: c, prefix: env.Prefix, instance: env.Instance, sites: map[string]*site{}}, nil
}

func openLimit(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
	l, err := openClient(env)
	if err != nil {
		return nil, err
	}
	o := env.Options
	l.timeout = o.Duration("timeout")
	l.domain = o["domain"]
	l.descriptors, err = service.Descriptors(o["descriptors"])
	if err != nil {
		return nil, err
	}
	l.settings = func(p *quota.Policy) map[string]string {
		return map[string]string{"unit": service.UnitOf(p), "limit": strconv.FormatInt(p.Limit, 10), "cache": o["cache"], "servers": o["servers"]}
	}
	return l, nil
}

// bareDomain is asked of services of a user's own, whose configuration does not have it.
const bareDomain = "quotabench-bare"

func openBare(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
	l, err := openClient(env)
	if err != nil {
		return nil, err
	}
	l.domain = bareDomain
	l.descriptors = [][][2]string{{{"subject", subject}}}
	return l, nil
}

// Take implements [strategies.Strategy].
func (l *limiter) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	if req.Units < 1 || req.Units > math.MaxUint32 {
		return quota.Decision{}, fmt.Errorf("a request of %d units: hits_addend has 32 bits", req.Units)
	}
	s, err := l.site(ctx, req.Policy)
	if err != nil {
		return quota.Decision{}, err
	}
	if l.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.timeout)
		defer cancel()
	}
	answer, err := s.calls.ShouldRateLimit(ctx, &rls.RateLimitRequest{
		Domain: s.domain, Descriptors: fill(s.descriptors, l.prefix+string(req.Subject)), HitsAddend: uint32(req.Units),
	})
	if err != nil {
		return quota.Decision{}, err
	}
	return l.decide(answer)
}

// decide makes a decision of an answer: the least that is left under the limits that it
// names, and the longest time until one that is used up begins anew.
func (l *limiter) decide(r *rls.RateLimitResponse) (quota.Decision, error) {
	d := quota.Decision{Tier: service.TierService, Remaining: -1}
	for _, s := range r.Statuses {
		if s.CurrentLimit == nil {
			continue
		}
		if left := int64(s.LimitRemaining); d.Remaining < 0 || left < d.Remaining {
			d.Remaining = left
		}
		if s.Code == rls.RateLimitResponse_OVER_LIMIT && s.DurationUntilReset != nil {
			d.RetryAfter = max(d.RetryAfter, s.DurationUntilReset.AsDuration())
		}
	}
	if d.Remaining < 0 {
		l.unlimited.Add(1)
		if l.settings != nil && l.client.Started() {
			return quota.Decision{}, errors.New("ratelimit answers without a limit, although its configuration has one for every subject")
		}
	}
	switch r.OverallCode {
	case rls.RateLimitResponse_OK:
		d.Admitted = true
		d.RetryAfter = 0
	case rls.RateLimitResponse_OVER_LIMIT:
	default:
		return quota.Decision{}, fmt.Errorf("the service answers with the code %s, which means neither admitted nor rejected", r.OverallCode)
	}
	return d, nil
}

// site is where a policy is asked for. A server that is started here has its limit from
// then on.
func (l *limiter) site(ctx context.Context, p *quota.Policy) (*site, error) {
	l.mu.RLock()
	s, ok := l.sites[p.Name]
	l.mu.RUnlock()
	if ok {
		return s, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.sites[p.Name]; ok {
		return s, nil
	}
	var settings map[string]string
	if l.settings != nil {
		settings = l.settings(p)
	}
	cc, domain, key, err := l.client.Locate(ctx, settings, l.instance)
	if err != nil {
		return nil, err
	}
	s = &site{calls: rls.NewRateLimitServiceClient(cc), domain: l.domain, descriptors: l.descriptors}
	if l.client.Started() {
		s.domain = domain
		s.descriptors = [][][2]string{{{key, subject}}}
	}
	l.sites[p.Name] = s
	return s, nil
}

// fill makes the descriptors of one subject.
func fill(template [][][2]string, name string) []*common.RateLimitDescriptor {
	out := make([]*common.RateLimitDescriptor, len(template))
	for i, entries := range template {
		d := &common.RateLimitDescriptor{Entries: make([]*common.RateLimitDescriptor_Entry, len(entries))}
		for j, e := range entries {
			d.Entries[j] = &common.RateLimitDescriptor_Entry{Key: e[0], Value: strings.ReplaceAll(e[1], subject, name)}
		}
		out[i] = d
	}
	return out
}

// Measures implements [strategies.Meter].
func (l *limiter) Measures() []strategies.Measure {
	return []strategies.Measure{{Name: "answers without a limit", Unit: "answers", Value: l.unlimited.Load()}}
}

// Close implements [strategies.Strategy].
func (l *limiter) Close(context.Context) error { return nil }
