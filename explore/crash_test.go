package explore_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// hoarding keeps its count in the memory of its process alone.
func hoarding(_ context.Context, p *planted, r quota.Request) (quota.Decision, error) {
	if p.seen >= r.Policy.Limit {
		return verdict(false, nil)
	}
	p.seen++
	return verdict(true, nil)
}

// one is a limiter that admits one request in the life of its process.
type one struct {
	mu   sync.Mutex
	used bool
}

func (o *one) Allow(context.Context, string) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() { o.used = true }()
	return !o.used, nil
}

// An instance ends between two requests, too, and its next life has none of its memory.
func TestAnIdleInstanceCrashes(t *testing.T) {
	library := foreign(t, func(strategies.Env, *quota.Policy) strategies.Allower { return &one{} })
	unclocked := *library.Meta // one request is all it ever admits
	library.Meta = &unclocked
	unclocked.Reset = strategies.ResetsMissing
	twice := []explore.Script{{{Kind: explore.Take, Units: 1}, {Kind: explore.Take, Units: 1}}}
	for name, c := range map[string]struct {
		sel strategies.Selection
		cfg explore.Config
	}{
		"two callers":            {plant(hoarding), explore.Config{Policy: tenants, Instances: 1}},
		"one caller, twice":      {plant(hoarding), explore.Config{Policy: tenants, Clients: 1, Scripts: twice}},
		"a library, two callers": {library, explore.Config{Policy: policy(t, "1 request per fixed 1m"), Instances: 1}},
		"a library, twice": {library,
			explore.Config{Policy: policy(t, "1 request per fixed 1m"), Clients: 1, Scripts: twice}},
	} {
		c.cfg.Limit = 1
		c.cfg.Asks = -1
		c.cfg.Properties = []explore.Property{explore.Leak}
		for _, crashes := range []bool{false, true} {
			c.cfg.Faults = nil
			if crashes {
				c.cfg.Faults = []quota.Fault{quota.FaultCrash}
			}
			r, err := explore.Run(t.Context(), c.sel, c.cfg)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if f := r.Found(explore.Leak); crashes != (f != nil) || f != nil && !strings.Contains(words(f), "instance 0 crash") {
				t.Errorf("%s, crashes %t: %+v; %s", name, crashes, r.Findings, r.Claim)
			}
		}
	}
}

// An instance that starts anew draws other random numbers, the same ones in each run.
func TestAnotherLifeDrawsOtherNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		sel    strategies.Selection
		policy quota.Policy
	}{
		"in process": {plant(hoarding), tenants},
		"a library": {foreign(t, func(strategies.Env, *quota.Policy) strategies.Allower {
			return &one{}
		}), policy(t, "1 request per fixed 1m")},
	} {
		var mu sync.Mutex
		drawn := map[uint64]bool{}
		meta := *c.sel.Meta
		opens := c.sel.Open
		meta.Reset = strategies.ResetsMissing
		c.sel.Meta = &meta
		meta.Open = func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
			mu.Lock()
			defer mu.Unlock()
			drawn[env.Rand.Uint64()] = true
			return opens(ctx, env)
		}
		if _, err := explore.Run(t.Context(), c.sel, explore.Config{
			Policy: c.policy, Instances: 1, Limit: 1, Scope: explore.Scope{Asks: -1}, Faults: []quota.Fault{quota.FaultCrash},
			Properties: []explore.Property{explore.Stuck},
		}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(drawn) != 2 {
			t.Errorf("%s: two lives of an instance drew %d numbers", name, len(drawn))
		}
	}
}

// A claim speaks of the faults that some schedule had, and says which could not be had.
func TestAClaimNamesFaultsThatHappened(t *testing.T) {
	for _, c := range []struct{ strategy, faults, with string }{
		{"memory-deque", "crash", "with at most 1 x crash,"},
		{"memory-deque", "crash,outage", "with at most 1 x crash (outage: could not occur)"},
		{"memory-deque", "eviction,outage", "with no fault (eviction, outage: could not occur)"},
		{"incr-expire-atomic", "crash,outage", "with at most 1 x crash, 1 x outage,"},
		{"unlimited", "crash", "with no fault (crash: could not occur)"},
	} {
		faults, err := explore.ParseFaults(c.faults)
		if err != nil {
			t.Fatal(err)
		}
		r := run(t, c.strategy, explore.Config{Faults: faults, Properties: []explore.Property{explore.Stuck}})
		if !strings.Contains(r.Claim, c.with) {
			t.Errorf("%s, %s: %q", c.strategy, c.faults, r.Claim)
		}
	}
}
