package strategies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/quotabench/quotabench/quota"
)

// Allower is what many limiter libraries look like: it says whether one request
// of the key may pass, and counts it.
type Allower interface {
	Allow(ctx context.Context, key string) (bool, error)
}

// Decider is an [Allower] that can say more than yes or no, e.g. that it decided from what
// it had leased ([quota.TierProcess]) or without its store ([quota.Decision.Degraded]).
// An empty tier is that of its store.
type Decider interface {
	Decide(ctx context.Context, key string) (quota.Decision, error)
}

// AllowFunc is a function as an [Allower]. Exploring does not see what a function
// keeps in variables of its own, and visits more states for that: a limiter in memory is better a type.
type AllowFunc func(ctx context.Context, key string) (bool, error)

// Allow implements [Allower].
func (f AllowFunc) Allow(ctx context.Context, key string) (bool, error) { return f(ctx, key) }

// FromFunc is the Meta of a limiter that serves requests of one unit and neither
// gives units back nor shows its counters. Open makes the limiter of one
// application instance for one policy; it is called when the instance meets the
// policy for the first time. Keys begin with the run's prefix and the policy's
// name.
//
// The Meta is a beginning, which the caller may change: its form is [Library], it
// needs Redis (set Needs to nil for a limiter in memory), counts nothing that can
// be read, and guarantees nothing. A leak clause such as [quota.Exactly] is what
// makes a leak a broken promise. Its Serves refuses policies with costs other than 1: one that
// replaces it has to call it, too.
func FromFunc(name string, kinds []quota.Kind,
	open func(ctx context.Context, env Env, policy *quota.Policy) (Allower, error)) Meta {
	return Meta{
		Name: name, Doc: "adapter of " +
			name, Form: Library, Needs: []Need{NeedRedis}, Kinds: kinds, Counts: quota.CountsNothing,
		Serves: servesSingle,
		Open: func(_ context.Context, env Env) (Strategy, error) {
			if open == nil {
				return nil, errors.New("FromFunc was given no function")
			}
			return &allowing{env: env, open: open, limiters: map[limits]Allower{}}, nil
		},
	}
}

// servesSingle refuses policies with costs other than 1.
func servesSingle(policy *quota.Policy) error {
	for _, c := range policy.Costs {
		if c != 1 {
			return fmt.Errorf("policy %s has requests of %d %s; only requests of 1 are served", policy.Name, c, policy.Unit)
		}
	}
	return nil
}

// limits are what a limiter is made for.
type limits struct {
	name   string
	limit  int64
	window quota.Window
}

// allowing is one instance of a limiter library.
type allowing struct {
	env      Env
	open     func(context.Context, Env, *quota.Policy) (Allower, error)
	mu       sync.Mutex
	limiters map[limits]Allower
	closed   bool
}

// Take implements [Strategy].
func (a *allowing) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	if req.Units != 1 {
		return quota.Decision{}, fmt.Errorf("a request of %d units: only requests of 1 are served, so its Serves has to "+
			"refuse policies with other costs, as that of FromFunc does", req.Units)
	}
	allower, err := a.limiter(ctx, req.Policy)
	if err != nil {
		return quota.Decision{}, err
	}
	if err := ctx.Err(); err != nil {
		return quota.Decision{}, err
	}
	key := a.env.Prefix + req.Policy.Name + ":" + string(req.Subject)
	if decider, ok := allower.(Decider); ok {
		decision, err := decider.Decide(ctx, key)
		decision.Tier = cmp.Or(decision.Tier, a.tier())
		return decision, err
	}
	ok, err := allower.Allow(ctx, key)
	if err != nil {
		return quota.Decision{}, err
	}
	return quota.Decision{Admitted: ok, Tier: a.tier(), Remaining: -1}, nil
}

// limiter is the one for the policy. Two callers that meet a policy at once may
// both make one; the first is kept.
func (a *allowing) limiter(ctx context.Context, policy *quota.Policy) (Allower, error) {
	key := limits{policy.Name, policy.Limit, policy.Window}
	a.mu.Lock()
	allower, ok := a.limiters[key]
	a.mu.Unlock()
	if ok {
		return allower, nil
	}
	allower, err := a.open(ctx, a.env, policy)
	if err != nil {
		return nil, fmt.Errorf("making the limiter: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if first, ok := a.limiters[key]; ok {
		return first, nil
	}
	a.limiters[key] = allower
	return allower, nil
}

func (a *allowing) tier() quota.Tier {
	switch {
	case a.env.Clients[string(NeedRedis)] != nil:
		return quota.TierRedis
	case a.env.Clients[string(NeedPostgres)] != nil:
		return quota.TierPostgres
	}
	return quota.TierProcess
}

// Close implements [Strategy]. It closes the limiters that are an [io.Closer], as those
// are that run goroutines, once: a second Close of theirs may do anything.
func (a *allowing) Close(context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	a.closed = true
	var err error
	for _, allower := range a.limiters {
		if closer, ok := allower.(io.Closer); ok {
			err = errors.Join(err, closer.Close())
		}
	}
	return err
}
