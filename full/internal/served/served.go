// Package served tests strategies that need a single store with a server of its own.
package served

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/trouble/network"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/strategytest"
)

// Strategy is a strategy that needs a single store, e.g. an etcd, and its server.
type Strategy struct {
	Meta *strategies.Meta

	need   string
	server stores.Store
}

// Start starts the server of a strategy that needs a single store, whose driver must be
// imported. Tests of a package share the server and stop it by [storetest.Main]. If
// it is missing, the test is skipped.
func Start(t testing.TB, strategy string) Strategy {
	t.Helper()
	meta, err := strategies.Lookup(strategy)
	if err != nil {
		t.Fatal(err)
	}
	if len(meta.Needs) != 1 {
		t.Fatalf("%s needs %v, not a single store", strategy, meta.Needs)
	}
	need := string(meta.Needs[0])
	driver, err := stores.DriverOf(need)
	if err != nil {
		t.Fatal(err)
	}
	return Strategy{meta, need, storetest.Shared(t, need, func(ctx context.Context) (stores.Store, error) {
		return driver.Open(ctx, "process", stores.Options{})
	})}
}

// Run is the conformance suite on the server.
func (s Strategy) Run(t *testing.T) {
	var off network.Switch
	strategytest.Run(t, s.Meta, strategytest.Stores{
		Clients: map[string]func(testing.TB) any{s.need: func(tb testing.TB) any {
			value, _ := s.connect(tb, &off)
			return value
		}},
		Break: off.Set,
	})
}

// connect returns a client of the test's own, in a scope of the test's own.
func (s Strategy) connect(t testing.TB, off *network.Switch) (client any, scope stores.Scope) {
	t.Helper()
	scope = storetest.Scope(t)
	conn, err := s.server.Connect(t.Context(), scope, stores.ConnOptions{Pool: 1, Wrap: off.Wrap})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if err := s.server.Wipe(context.Background(), scope); err != nil {
			t.Error(err)
		}
	})
	return conn.Client(), scope
}

// Open makes an instance. The client and the prefix of keys are the test's own.
func (s Strategy) Open(t testing.TB, given quota.Options) (strategy strategies.Strategy, client any, prefix string) {
	t.Helper()
	client, scope := s.connect(t, new(network.Switch))
	return s.OpenOn(t, given, client, scope.Prefix()), client, scope.Prefix()
}

// OpenOn makes an instance with a client and a prefix that there are already.
func (s Strategy) OpenOn(t testing.TB, given quota.Options, client any, prefix string) strategies.Strategy {
	t.Helper()
	sel, err := s.Meta.Select(given)
	if err != nil {
		t.Fatal(err)
	}
	strategy, err := s.Meta.Open(t.Context(), strategies.Env{
		Clock: clock.Wall{}, Prefix: prefix, Clients: map[string]any{s.need: client}, Options: sel.Options, Instances: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return strategy
}

// CountsRetries requires of a strategy with the figures "successes" and "retries" that
// callers of one key come in between each other, and callers of keys of their own do not.
func CountsRetries(t *testing.T, strategy strategies.Strategy) {
	t.Helper()
	const callers, each = 8, 5
	policy := StandingPolicy(callers * each)
	run := func(subject func(caller int) quota.Subject) map[string]int64 {
		before := Measures(strategy)
		var group sync.WaitGroup
		for w := range callers {
			group.Go(func() {
				for range each {
					if decision, err := strategy.Take(t.Context(),
						quota.Request{Subject: subject(w), Policy: policy, Units: 1}); err != nil || !decision.Admitted {
						t.Errorf("%+v, %v", decision, err)
					}
				}
			})
		}
		group.Wait()
		after := Measures(strategy)
		for name := range after {
			after[name] -= before[name]
		}
		return after
	}
	apart := run(func(caller int) quota.Subject { return quota.Subject(rune('a' + caller)) })
	if apart["successes"] != callers*each || apart["retries"] != 0 {
		t.Errorf("on keys of their own: %v, want %d successes without retries", apart, callers*each)
	}
	// On a busy machine callers may come one after the other: then others try.
	for from, retries := clock.Nano(), int64(0); retries == 0 && !t.Failed(); {
		hot := quota.Subject(fmt.Sprint("hot", clock.Nano()))
		together := run(func(int) quota.Subject { return hot })
		retries = together["retries"]
		if together["successes"] != callers*each || retries == 0 && clock.Nano()-from > int64(time.Minute) {
			t.Errorf("on one key: %v, want %d successes with retries", together, callers*each)
		}
		if decision, err := strategy.Take(t.Context(), quota.Request{Subject: hot, Policy: policy, Units: 1}); err != nil ||
			decision.Admitted || decision.Remaining != 0 {
			t.Errorf("one more: %+v, %v", decision, err)
		}
	}
}

// Measures are the figures of a strategy that is a [strategies.Meter], by name.
func Measures(strategy strategies.Strategy) map[string]int64 {
	out := map[string]int64{}
	for _, measure := range strategy.(strategies.Meter).Measures() {
		out[measure.Name] = measure.Value
	}
	return out
}

// StandingPolicy is a standing quota of the limit, in requests.
func StandingPolicy(limit int64) *quota.Policy {
	return &quota.Policy{Name: "p", Limit: limit, Unit: "requests", Window: quota.Window{Kind: quota.Standing}}
}
