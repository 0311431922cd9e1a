package explore_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// promising is the fixed window with one clause of leaks, that holds whatever the
// clock does.
func promising(t *testing.T, kind quota.Kind, bound int64) strategies.Selection {
	t.Helper()
	sel := testkit.Strategy(t, "fixed-window")
	m := *sel.Meta
	m.Guarantee = []quota.Clause{{
		Property: quota.PropertyLeak, Kinds: []quota.Kind{kind}, Tolerates: []quota.Fault{quota.FaultClock},
		Formula: "as planted", Bound: func(quota.Params) int64 { return bound },
	}}
	sel.Meta = &m
	return sel
}

func hourly() quota.Policy {
	return quota.Policy{Name: "hourly", Unit: "calls", Window: quota.Window{Kind: quota.Fixed, Length: time.Hour}}
}

// TestRollingClauses explores a clause about rolling windows under a policy with
// fixed ones: around the boundary of two fixed windows, twice the limit fits into
// one rolling window.
func TestRollingClauses(t *testing.T) {
	testenv.Sequential(t)
	cfg := explore.Config{
		Policy: hourly(), Limit: 1, Faults: []quota.Fault{quota.FaultClock},
		Properties: []explore.Property{explore.Guarantee},
	}
	for bound, broken := range []bool{true, false} {
		r, err := explore.Run(t.Context(), promising(t, quota.Rolling, int64(bound)), cfg)
		if err != nil {
			t.Fatal(err)
		}
		f := r.Found(explore.Guarantee)
		if (f != nil) != broken {
			t.Errorf("bound %d: finding %+v; %s", bound, f, r.Claim)
		}
		if f != nil && f.Units != 1 {
			t.Errorf("bound %d: broken by %d units, not 1", bound, f.Units)
		}
	}
}

// TestGuaranteeByOwnClocks has two instances whose clocks show different windows:
// each admits the limit once, and by its own clock neither admits more.
func TestGuaranteeByOwnClocks(t *testing.T) {
	cfg := explore.Config{
		Policy: hourly(), Limit: 1, Skew: []time.Duration{0, time.Hour},
		Properties: []explore.Property{explore.Leak, explore.Guarantee},
	}
	r, err := explore.Run(t.Context(), promising(t, quota.Fixed, 0), cfg)
	if err != nil {
		t.Fatal(err)
	}
	found(t, r, explore.Leak)
	if f := r.Found(explore.Guarantee); f != nil {
		t.Errorf("the clause is broken by clocks that differ: %+v", f)
	}
	cfg.Skew = nil
	r, err = explore.Run(t.Context(), promising(t, quota.Fixed, -1), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r.Found(explore.Guarantee) == nil {
		t.Errorf("a bound that every schedule breaks is not judged: %s", r.Claim)
	}
}

// A false reject that a clause allows is no finding, and nothing is claimed of it; one beyond the clause is.
func TestFalseRejectsAsDeclared(t *testing.T) {
	atMost := func(bound int64) []quota.Clause {
		return []quota.Clause{{Property: quota.PropertyFalseReject, Formula: "as planted",
			Bound: func(quota.Params) int64 { return bound }}}
	}
	for name, c := range map[string]struct {
		declared []quota.Clause
		found    []explore.Property
		units    int64
	}{
		"nothing": {nil, []explore.Property{explore.FalseReject}, 0},
		"any":     {[]quota.Clause{quota.MayReject()}, nil, 0},
		"two":     {atMost(2), nil, 2},
		"one":     {atMost(1), []explore.Property{explore.Guarantee, explore.FalseReject}, 1},
		"other kinds": {[]quota.Clause{{Property: quota.PropertyFalseReject, Kinds: []quota.Kind{quota.Rolling},
			Formula: "any",
			Bound:   func(quota.Params) int64 { return quota.Unbounded }}}, []explore.Property{explore.FalseReject}, 0},
	} {
		m := strategies.FromFunc("rejects", []quota.Kind{quota.Fixed},
			func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
				return strategies.AllowFunc(func(ctx context.Context, key string) (bool, error) {
					return false, strategies.Redis(env).Incr(ctx, key).Err()
				}), nil
			})
		m.Guarantee = c.declared
		sel, err := m.Select(nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := explore.Run(t.Context(), sel,
			explore.Config{Policy: hourly(), Limit: 2, Scope: explore.Scope{Asks: -1},
				Properties: []explore.Property{explore.Guarantee, explore.FalseReject}})
		if err != nil {
			t.Fatal(err)
		}
		var found []explore.Property
		for _, f := range r.Findings {
			found = append(found, f.Property)
		}
		slices.Sort(found)
		slices.Sort(c.found)
		if !slices.Equal(found, c.found) || r.AllowedUnits != c.units ||
			(r.AllowedBy == "") != slices.Contains([]string{"nothing", "other kinds"}, name) ||
			strings.Contains(r.Claim, "false-reject") {
			t.Errorf("%s: found %v, and %d units are allowed: %q", name, found, r.AllowedUnits, r.Claim)
		}
	}
}

// A bucket and a weighed counter count something else than a rolling or a fixed window. A search that holds them to their
// clauses has nothing against that as far as the clauses go; a search for leaks has.
func TestCountsAsDeclared(t *testing.T) {
	testenv.Sequential(t)
	const rolling, fixed = "2 requests per rolling 10s", "2 requests per fixed 10s"
	byClauses := []explore.Property{explore.Guarantee, explore.Drift, explore.Stranded}
	byLimit := append([]explore.Property{explore.Leak}, byClauses...)
	leaks := func(clause quota.Clause) bool { return clause.Property == quota.PropertyLeak }
	rejects := func(clause quota.Clause) bool { return clause.Property == quota.PropertyFalseReject }
	take := explore.Action{Kind: explore.Take, Units: 1}
	for _, c := range []struct {
		strategy, policy string
		properties       []explore.Property
		without          func(quota.Clause) bool // clauses that are not declared
		found            []explore.Property
	}{
		{strategy: "gcra", policy: rolling, properties: byClauses},
		{strategy: "gcra", policy: fixed, properties: byClauses},
		{strategy: "token-bucket", policy: rolling, properties: byClauses},
		{strategy: "token-bucket", policy: fixed, properties: byClauses},
		{strategy: "fixed-window", policy: rolling, properties: byClauses},
		{strategy: "sliding-counter", policy: rolling, properties: byClauses},
		{strategy: "gcra", policy: rolling, properties: byLimit, found: []explore.Property{explore.Leak, explore.Drift}},
		{strategy: "gcra", policy: rolling, properties: byClauses, without: leaks, found: []explore.Property{explore.Drift}},
		{strategy: "gcra", policy: fixed, properties: byClauses, without: rejects,
			found: []explore.Property{explore.Drift, explore.Stranded}},
		{strategy: "sliding-counter", policy: rolling, properties: byClauses, without: rejects,
			found: []explore.Property{explore.Drift, explore.Stranded}},
	} {
		sel := testkit.Strategy(t, c.strategy)
		if c.without != nil {
			m := *sel.Meta
			m.Guarantee = slices.DeleteFunc(slices.Clone(m.Guarantee), c.without)
			sel.Meta = &m
		}
		r, err := explore.Run(t.Context(), sel, explore.Config{
			Policy: testkit.Policy(t, c.policy), Limit: 2, Clients: 1, Properties: c.properties,
			Scripts: []explore.Script{{take, take, take}}, Scope: explore.Scope{Passes: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []explore.Property
		for _, finding := range r.Findings {
			got = append(got, finding.Property)
		}
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(c.found))) {
			t.Errorf("%s, %s, %s: found %q, want %q", c.strategy, c.policy, c.properties, got, c.found)
		}
	}
}

// TestLapsedUnits: the counter of a window may count what a client has not settled in time, which no fault has kept it
// from. What a crash leaves behind is stranded.
func TestLapsedUnits(t *testing.T) {
	testenv.Sequential(t)
	take := explore.Action{Kind: explore.Take, Units: 1}
	for fault, want := range map[quota.Fault][]explore.Property{
		"": nil, quota.FaultCrash: {explore.Drift, explore.Stranded},
	} {
		cfg := explore.Config{
			Policy: testkit.Policy(t, "2 requests per calendar-month"), Limit: 2, Clients: 1,
			Properties: []explore.Property{explore.Guarantee, explore.Drift, explore.Stranded},
			Scripts:    []explore.Script{{take, {Kind: explore.Refund}}}, Scope: explore.Scope{Passes: true},
		}
		if fault != "" {
			cfg.Faults = []quota.Fault{fault}
		}
		search, err := explore.Run(t.Context(), testkit.Strategy(t, "redis-durable"), cfg)
		if err != nil {
			t.Fatal(err)
		}
		var got []explore.Property
		for _, finding := range search.Findings {
			got = append(got, finding.Property)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q: found %q, want %q", fault, got, want)
		}
	}
}
