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

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/service"
)

func init() {
	strategies.BuildIn(codes.EnvoyRatelimit, openLimit)
	strategies.BuildIn(codes.GRPCBare, openBare)
}

// client is that of the store.
type client interface {
	Started() bool
	Locate(ctx context.Context, settings map[string]string, instance int) (clientConnInterface grpc.ClientConnInterface,
		domain, key string, err error)
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
	limiter, err := openClient(env)
	if err != nil {
		return nil, err
	}
	options := env.Options
	limiter.timeout = options.Duration("timeout")
	limiter.domain = options["domain"]
	limiter.descriptors, err = service.Descriptors(options["descriptors"])
	if err != nil {
		return nil, err
	}
	limiter.settings = func(policy *quota.Policy) map[string]string {
		return map[string]string{"unit": service.UnitOf(policy), "limit": strconv.FormatInt(policy.Limit, 10),
			"cache": options["cache"], "servers": options["servers"]}
	}
	return limiter, nil
}

// bareDomain is asked of services of a user's own, whose configuration does not have it.
const bareDomain = "quotabench-bare"

func openBare(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
	limiter, err := openClient(env)
	if err != nil {
		return nil, err
	}
	limiter.domain = bareDomain
	limiter.descriptors = [][][2]string{{{"subject", subject}}}
	return limiter, nil
}

// Take implements [strategies.Strategy].
func (l *limiter) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	if req.Units < 1 || req.Units > math.MaxUint32 {
		return quota.Decision{}, fmt.Errorf("a request of %d units: hits_addend has 32 bits", req.Units)
	}
	site, err := l.site(ctx, req.Policy)
	if err != nil {
		return quota.Decision{}, err
	}
	if l.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.timeout)
		defer cancel()
	}
	answer, err := site.calls.ShouldRateLimit(ctx, &rls.RateLimitRequest{
		Domain: site.domain, Descriptors: fill(site.descriptors, l.prefix+string(req.Subject)), HitsAddend: uint32(req.Units),
	})
	if err != nil {
		return quota.Decision{}, err
	}
	return l.decide(answer)
}

// decide makes a decision of an answer: the least that is left under the limits that it
// names, and the longest time until one that is used up begins anew.
func (l *limiter) decide(response *rls.RateLimitResponse) (quota.Decision, error) {
	decision := quota.Decision{Tier: service.TierService, Remaining: -1}
	for _, status := range response.Statuses {
		if status.CurrentLimit == nil {
			continue
		}
		if left := int64(status.LimitRemaining); decision.Remaining < 0 || left < decision.Remaining {
			decision.Remaining = left
		}
		if status.Code == rls.RateLimitResponse_OVER_LIMIT && status.DurationUntilReset != nil {
			decision.RetryAfter = max(decision.RetryAfter, status.DurationUntilReset.AsDuration())
		}
	}
	if decision.Remaining < 0 {
		l.unlimited.Add(1)
		if l.settings != nil && l.client.Started() {
			return quota.Decision{}, errors.New("ratelimit answers without a limit, although its configuration has one for " +
				"every subject")
		}
	}
	switch response.OverallCode {
	case rls.RateLimitResponse_OK:
		decision.Admitted = true
		decision.RetryAfter = 0
	case rls.RateLimitResponse_OVER_LIMIT:
	default:
		return quota.Decision{}, fmt.Errorf("the service answers with the code %s, which means neither admitted nor rejected",
			response.OverallCode)
	}
	return decision, nil
}

// site is where a policy is asked for. A server that is started here has its limit from
// then on.
func (l *limiter) site(ctx context.Context, policy *quota.Policy) (*site, error) {
	l.mu.RLock()
	s, ok := l.sites[policy.Name]
	l.mu.RUnlock()
	if ok {
		return s, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if site, ok := l.sites[policy.Name]; ok {
		return site, nil
	}
	var settings map[string]string
	if l.settings != nil {
		settings = l.settings(policy)
	}
	clientConnInterface, domain, key, err := l.client.Locate(ctx, settings, l.instance)
	if err != nil {
		return nil, err
	}
	s = &site{calls: rls.NewRateLimitServiceClient(clientConnInterface), domain: l.domain, descriptors: l.descriptors}
	if l.client.Started() {
		s.domain = domain
		s.descriptors = [][][2]string{{{key, subject}}}
	}
	l.sites[policy.Name] = s
	return s, nil
}

// fill makes the descriptors of one subject.
func fill(template [][][2]string, name string) []*common.RateLimitDescriptor {
	out := make([]*common.RateLimitDescriptor, len(template))
	for i, entries := range template {
		descriptor := &common.RateLimitDescriptor{Entries: make([]*common.RateLimitDescriptor_Entry, len(entries))}
		for j, e := range entries {
			descriptor.Entries[j] = &common.RateLimitDescriptor_Entry{Key: e[0], Value: strings.ReplaceAll(e[1], subject, name)}
		}
		out[i] = descriptor
	}
	return out
}

// Measures implements [strategies.Meter].
func (l *limiter) Measures() []strategies.Measure {
	return []strategies.Measure{{Name: "answers without a limit", Unit: "answers", Value: l.unlimited.Load()}}
}

// Close implements [strategies.Strategy].
func (l *limiter) Close(context.Context) error { return nil }
