// Package adapters registers published Go limiters as strategies, each by its public
// API at the version that this module's go.mod names. What each declares is what its own
// documentation promises. It is a module of its own, so that none of them is a dependency
// of quotabench:
//
//	go run ./cmd/quotabench list strategies
//	go run ./cmd/quotabench explore lib-throttled-redis
package adapters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func init() {
	quota.RegisterPolicy(quota.Policy{
		Name: "window-calls", Limit: 10, Unit: "calls",
		Window: quota.Window{Kind: quota.FirstRequest, Length: 10 * time.Second},
		Doc:    "calls of a client in 10 s from the first of them on",
	})
}

// limiter is a library's limiter for one policy.
type limiter interface {
	// take asks for units of a key and returns how many are granted.
	take(ctx context.Context, key string, units int64) (granted int64, err error)
}

// all returns units if they are granted as a whole.
func all(ok bool, units int64) int64 {
	if ok {
		return units
	}
	return 0
}

// making makes the limiter of one instance for one policy.
type making func(env strategies.Env, policy *quota.Policy) (limiter, error)

// library completes a Meta, which is of a library unless it says otherwise, and
// registers it.
func library(meta strategies.Meta, open making) {
	meta.Form = cmp.Or(meta.Form, strategies.Library)
	meta.Counts = quota.CountsNothing
	meta.PerProcess = len(meta.Needs) == 0
	meta.Open = func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		return &instance{env: env, open: open, limiters: map[limited]limiter{}}, nil
	}
	strategies.Register(meta)
}

// single refuses policies with costs other than 1.
func single(policy *quota.Policy) error {
	for _, c := range policy.Costs {
		if c != 1 {
			return fmt.Errorf("policy %s has requests of %d %s, and only those of 1 are served", policy.Name, c, policy.Unit)
		}
	}
	return nil
}

// instance is one application instance that uses a library.
type instance struct {
	env      strategies.Env
	open     making
	mu       sync.Mutex
	limiters map[limited]limiter
}

// limited is what a limiter is made for.
type limited struct {
	policy string
	limit  int64
	window quota.Window
}

var _ strategies.Strategy = (*instance)(nil)

// Take implements [strategies.Strategy].
func (s *instance) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	limiter, err := s.limiter(req.Policy)
	if err != nil {
		return quota.Decision{}, err
	}
	if err := ctx.Err(); err != nil {
		return quota.Decision{}, err
	}
	n, err := limiter.take(ctx, s.env.Prefix+req.Policy.Name+":"+string(req.Subject), req.Units)
	if err != nil {
		return quota.Decision{}, err
	}
	tier := quota.TierProcess
	if strategies.Redis(s.env) != nil {
		tier = quota.TierRedis
	}
	decision := quota.Decision{Admitted: n > 0, Tier: tier, Remaining: -1}
	if decision.Admitted && n < req.Units {
		decision.Granted = n
	}
	return decision, nil
}

// limiter is that of the policy. Opening one may ask a store, so no lock is held
// meanwhile; of two that are made at once the first is kept.
func (s *instance) limiter(policy *quota.Policy) (limiter, error) {
	key := limited{policy.Name, policy.Limit, policy.Window}
	s.mu.Lock()
	l, ok := s.limiters[key]
	s.mu.Unlock()
	if ok {
		return l, nil
	}
	l, err := s.open(s.env, policy)
	if err != nil {
		return nil, fmt.Errorf("make the library's limiter: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok := s.limiters[key]; ok {
		return first, closed(l)
	}
	s.limiters[key] = l
	return l, nil
}

// Close implements [strategies.Strategy].
func (s *instance) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, limiter := range s.limiters {
		err = errors.Join(err, closed(limiter))
	}
	return err
}

// closed ends a limiter that runs goroutines.
func closed(l limiter) error {
	if c, ok := l.(interface{ close() error }); ok {
		return c.close()
	}
	return nil
}
