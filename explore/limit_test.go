package explore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func scripted(t *testing.T, script string, cfg explore.Config) explore.Config {
	t.Helper()
	var err error
	cfg.Scripts, err = explore.ParseScripts(script)
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Properties) == 0 {
		cfg.Properties = []explore.Property{explore.Leak, explore.FalseReject, explore.Guarantee}
	}
	return cfg
}

// chargedTo charges a counter in one step and takes the charge back if it exceeds the
// limit.
func chargedTo(ctx context.Context, p *planted, limit int64) (quota.Decision, error) {
	key := p.env.Prefix + "n"
	n, err := strategies.Redis(p.env).Incr(ctx, key).Result()
	if err != nil || n <= limit {
		return verdict(err == nil, err)
	}
	return verdict(false, strategies.Redis(p.env).Decr(ctx, key).Err())
}

// TestChangedLimit: a limiter that remembers the first limit it saw is right as long as
// there is but one. It leaks after the limit was lowered, and rejects wrongly after it
// was raised; one that goes by the request's limit does neither.
func TestChangedLimit(t *testing.T) {
	testenv.Sequential(t)
	remembers := plant(func(ctx context.Context, p *planted, r quota.Request) (quota.Decision, error) {
		if p.seen == 0 {
			p.seen = r.Policy.Limit
		}
		return chargedTo(ctx, p, p.seen)
	})
	obeys := plant(func(ctx context.Context, p *planted, r quota.Request) (quota.Decision, error) {
		return chargedTo(ctx, p, r.Policy.Limit)
	})
	for _, c := range []struct {
		sel    strategies.Selection
		script string
		limit  int64
		breaks explore.Property
	}{
		{remembers, "take,take,take", 2, ""},
		{remembers, "take,take;limit=1", 2, explore.Leak},
		{remembers, "take,take;limit=2", 1, explore.FalseReject},
		{remembers, "take,take;limit=2", 2, ""},
		{remembers, "take,limit=1,take;take", 2, explore.Leak},
		{obeys, "take,take;limit=1", 2, ""},
		{obeys, "take,take;limit=2", 1, ""},
		{obeys, "take,take;limit=1,limit=3", 2, ""},
	} {
		clients := 1 + strings.Count(c.script, ";")
		cfg := scripted(t, c.script, explore.Config{Clients: clients, Limit: c.limit})
		r, err := explore.Run(t.Context(), c.sel, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if c.breaks == "" {
			if len(r.Findings) > 0 || r.Capped != "" {
				t.Errorf("%s: %+v, ended by %q", c.script, r.Findings, r.Capped)
			}
			continue
		}
		f := found(t, r, c.breaks)
		if len(r.Findings) != 1 {
			t.Errorf("%s: %+v", c.script, r.Findings)
		}
		if again, err := explore.ReplayOf(t.Context(), c.sel, f.Token, explore.Target{}); err != nil || !again.Broken {
			t.Errorf("%s: again: %+v, %v", c.script, again, err)
		}
	}
}

// keeper keeps the limit in Redis, and may have a copy of it in its memory.
type keeper struct {
	planted
	caches bool
	cached int64
}

func (k *keeper) SetLimit(ctx context.Context, p *quota.Policy, _ []quota.Subject) error {
	k.cached = 0
	return strategies.Redis(k.env).Set(ctx, k.env.Prefix+"limit", p.Limit, 0).Err()
}

func (k *keeper) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	limit := k.cached
	if limit == 0 {
		var err error
		limit, err = strategies.Redis(k.env).Get(ctx, k.env.Prefix+"limit").Int64()
		if errors.Is(err, redis.Nil) {
			limit = 2 // as it was set up
		} else if err != nil {
			return verdict(false, err)
		}
		if k.caches {
			k.cached = limit
		}
	}
	return chargedTo(ctx, &k.planted, limit)
}

// TestLimitKeptInAStore: the commands that set a limit are interleaved with those of
// requests, each of which may go by either limit then, also if the operator dies in
// between. A copy in the memory of another instance outlives that, and leaks.
func TestLimitKeptInAStore(t *testing.T) {
	testenv.Sequential(t)
	for _, caches := range []bool{false, true} {
		sel := plant(nil)
		sel.Open = func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			return &keeper{planted: planted{env: env}, caches: caches}, nil
		}
		for _, fault := range []quota.Fault{"", quota.FaultCrash, quota.FaultOutage} {
			cfg := scripted(t, "take,take;limit=1", explore.Config{Limit: 2, Properties: []explore.Property{explore.Leak}})
			if fault != "" {
				cfg.Faults = []quota.Fault{fault}
			}
			r, err := explore.Run(t.Context(), sel, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if leaks := r.Found(explore.Leak) != nil; leaks != caches || r.Capped != "" {
				t.Errorf("caches %t, fault %q: %+v, ended by %q", caches, fault, r.Findings, r.Capped)
			}
		}
	}
}

// TestChangedLimitIsAFault: a clause that does not tolerate another limit says nothing
// about schedules in which there was one, and a clause that does is held to it.
func TestChangedLimitIsAFault(t *testing.T) {
	for _, tolerates := range [][]quota.Fault{nil, {quota.FaultLimit}} {
		sel := plant(func(ctx context.Context, p *planted, _ quota.Request) (quota.Decision, error) {
			return chargedTo(ctx, p, 2)
		})
		sel.Guarantee = []quota.Clause{quota.Exactly(tolerates...)}
		r, err := explore.Run(t.Context(), sel, scripted(t, "take,take;limit=1", explore.Config{Limit: 2}))
		if err != nil {
			t.Fatal(err)
		}
		found(t, r, explore.Leak)
		if broken := r.Found(explore.Guarantee) != nil; broken != (tolerates != nil) {
			t.Errorf("tolerates %v: %+v", tolerates, r.Findings)
		}
	}
}

// TestDeclaredUnderAnotherLimit: every strategy that declares something under another
// limit keeps it, lowered and raised.
func TestDeclaredUnderAnotherLimit(t *testing.T) {
	testenv.Sequential(t)
	tried := 0
	bound := testenv.Pick(100, 400)
	for _, m := range strategies.All() {
		if m.NeedsStore(strategies.NeedPostgres) || m.Excluded[strategies.ModeExplore] != "" ||
			!tolerates(m, quota.FaultLimit) {
			continue
		}
		for _, script := range []string{"take,take;limit=1;take", "take,take;limit=3;take"} {
			tried++
			cfg := scripted(t, script, explore.Config{Clients: 3, Limit: 2, Bounds: explore.Bounds{MaxStates: bound},
				Properties: []explore.Property{explore.Guarantee}})
			if b := run(t, m.Name, cfg).Found(explore.Guarantee); b != nil {
				t.Errorf("%s, %s: %s", m.Name, script, b.Detail)
			}
		}
	}
	if tried < 10 {
		t.Errorf("%d searches: the registry declares more", tried)
	}
}

func tolerates(m *strategies.Meta, f quota.Fault) bool {
	return slices.ContainsFunc(m.Guarantee, func(c quota.Clause) bool { return slices.Contains(c.Tolerates, f) })
}

// TestChangedLimitOnPostgres: the limit changes there, too.
func TestChangedLimitOnPostgres(t *testing.T) {
	testenv.Sequential(t)
	take := func(ctx context.Context, tx pgx.Tx, _ quota.Request) (bool, error) {
		tag, err := tx.Exec(ctx, "UPDATE counters SET n = n + 1 WHERE id = 1 AND n < 2")
		return tag.RowsAffected() > 0, err
	}
	for _, c := range []struct {
		sel   strategies.Selection
		leaks bool
	}{{testkit.Strategy(t, "pg-conditional"), false}, {plantSQL(sqlPlant{take: take}), true}} {
		cfg := scripted(t, "take,take;limit=1", sqlConfig(t, 2))
		cfg.Limit = 2
		if r := runSQL(t, c.sel, cfg); (r.Found(explore.Leak) != nil) != c.leaks {
			t.Errorf("%s: %+v", c.sel.Name, r.Findings)
		}
	}
}

// TestLimitsThatCannotChange says why.
func TestLimitsThatCannotChange(t *testing.T) {
	bucket := quota.Policy{Name: "b", Unit: "calls", Limit: 2,
		Window: quota.Window{Kind: quota.Bucket, Length: time.Minute}}
	for _, c := range []struct {
		strategy, script, want string
		cfg                    explore.Config
	}{
		{"exact", "limit=1", "2 clients change the limit", explore.Config{}},
		{"token-bucket", "take;limit=1", "bucket", explore.Config{Policy: bucket}},
		{"exact", "take;limit=1", "", explore.Config{}},
	} {
		_, err := explore.Run(t.Context(), testkit.Strategy(t, c.strategy), scripted(t, c.script, c.cfg))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v, want %q", c.strategy, c.script, err, c.want)
		}
	}
	for _, bad := range []string{"limit", "limit=0", "limit=x"} {
		if _, err := explore.ParseScripts("take;" + bad); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
	const others = "take@1=2,take@9,take@many"
	if s, err := explore.ParseScripts(others); err != nil || s[0].String() != others || !s[0].Crowds() || !s[0].Others() {
		t.Errorf("%v, %v", s, err)
	}
	if s, err := explore.ParseScripts("take=2,limit=1,refund"); err != nil || s[0].String() != "take=2,limit=1,refund" ||
		!s[0].Settles(0) {
		t.Errorf("%v, %v", s, err)
	}
}
