package explore_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// capped is a bucket in memory, by the clock of package time. Its defect: it is cut down
// to its size after a request was served, and not before.
type capped struct {
	mu     sync.Mutex
	policy *quota.Policy
	late   bool
	left   int64
	since  time.Time
}

func (b *capped) Allow(context.Context, string) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	each := b.policy.Window.RealLength() / time.Duration(b.policy.Window.Refill)
	now := time.Now() //nolint:forbidigo // what is tested is code that does this
	if b.since.IsZero() {
		b.left = b.policy.Limit
		b.since = now
	}
	flowed := now.Sub(b.since) / each
	b.left = b.left + int64(flowed)
	b.since = b.since.Add(flowed * each)
	if !b.late && b.left >= b.policy.Limit { // a full bucket keeps no part of a unit
		b.left = b.policy.Limit
		b.since = now
	}
	if b.left < 1 {
		return false, nil
	}
	b.left = min(b.left-1, b.policy.Limit)
	return true, nil
}

// drawn is the adapter of such a library.
func drawn(late bool) strategies.Meta {
	m := strategies.FromFunc("drawn", []quota.Kind{quota.Bucket},
		func(_ context.Context, _ strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			return &capped{policy: p, late: late}, nil
		})
	m.Needs = nil
	m.Foreign = true
	m.PerProcess = true
	return m
}

// fractional keeps the moment at which a window began in Redis, by the server's clock. Its
// defect: of a moment with a fraction of a millisecond it keeps nothing.
type fractional struct {
	rdb    redis.UniversalClient
	policy *quota.Policy
	keep   string
}

const firstWindow = `local t = redis.call("TIME")
local now = t[1] * 1000 + t[2] / 1000
local from, n = string.match(redis.call("GET", KEYS[1]) or "", "^(%KEEP%):(%d+)$")
if not from or now - from >= tonumber(ARGV[2]) then from, n = string.format("%.3f", now), 0 end
if tonumber(n) >= tonumber(ARGV[1]) then return 0 end
redis.call("SET", KEYS[1], from .. ":" .. (n + 1), "PX", ARGV[2])
return 1`

func (f *fractional) Allow(ctx context.Context, key string) (bool, error) {
	script := strings.Replace(firstWindow, "%KEEP%", f.keep, 1)
	n, err := f.rdb.Eval(ctx, script, []string{key}, f.policy.Limit, f.policy.Window.RealLength().Milliseconds()).Int()
	return n == 1, err
}

// logged keeps the moments of what it admitted in a sorted set, by the server's clock. Its defect: it takes 5.000042,
// of which Redis tells 5 and 42, for 5.42.
const logged = `local t = redis.call("TIME")
local now = math.floor(tonumber(t[1] .. "." .. string.format(ARGV[3], t[2])) * 1e6 + 0.5)
redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", string.format("%.0f", now - ARGV[2] * 1000))
if redis.call("ZCARD", KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call("ZADD", KEYS[1], string.format("%.0f", now), string.format("%.0f", now) .. redis.call("ZCARD", KEYS[1]))
redis.call("PEXPIRE", KEYS[1], ARGV[2])
return 1`

func logging(fraction string) strategies.Meta {
	return strategies.FromFunc("logged", []quota.Kind{quota.Rolling},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			return strategies.AllowFunc(func(ctx context.Context, key string) (bool, error) {
				n, err := strategies.Redis(env).Eval(ctx, logged, []string{key}, p.Limit, p.Window.RealLength().Milliseconds(),
					fraction).Int()
				return n == 1, err
			}), nil
		})
}

// written are limiters as others write them, wrong and right.
func written(what string) strategies.Meta {
	switch what {
	case "zeros dropped":
		return logging("%d")
	case "zeros kept":
		return logging("%06d")
	case "capped late":
		return drawn(true)
	case "capped":
		return drawn(false)
	}
	keep := map[string]string{"whole milliseconds": "%d+%.000", "fractions": "[%d.]+"}[what]
	m := strategies.FromFunc("fractional", []quota.Kind{quota.FirstRequest},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			return &fractional{strategies.Redis(env), p, keep}, nil
		})
	m.Guarantee = []quota.Clause{quota.Exactly()}
	return m
}

// What shows only when time has passed, or when a search begins within a millisecond, is
// found without a word about clocks, and is no fault; and if the defect is not there, nothing is.
func TestSearchesFind(t *testing.T) {
	testenv.Sequential(t)
	for what, wrong := range map[string]bool{
		"capped late": true, "capped": false, "whole milliseconds": true, "fractions": false, "zeros dropped": true,
		"zeros kept": false,
	} {
		m := written(what)
		sel, err := m.Select(nil)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for i, cfg := range explore.Searches(sel,
			explore.Config{Bounds: explore.Bounds{MaxStates: testenv.Pick(400, 4_000), Preemptions: -1, First: true}}) {
			res, err := explore.Run(t.Context(), sel, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if f := res.Found(explore.Leak); f != nil {
				found++
				if i < 2 || len(f.Faults) > 0 || !cfg.Passes {
					t.Errorf("%s: search %d: %+v", what, i, f)
				}
				if len(m.Guarantee) > 0 && !cfg.First && res.Found(explore.Guarantee) == nil {
					t.Errorf("%s: search %d breaks no guarantee", what, i)
				}
				if r, err := explore.ReplayOf(t.Context(), sel, f.Token, explore.Target{}); err != nil || !r.Broken {
					t.Errorf("%s: its token: %+v, %v", what, r, err)
				}
				break
			}
		}
		if (found > 0) != wrong {
			t.Errorf("%s: %d leaks", what, found)
		}
	}
}

// A window that begins with a request and lasts whole seconds rejects what comes after half of one.
func TestSearchesFindWindowsTooLong(t *testing.T) {
	testenv.Sequential(t)
	const script = `local n = redis.call("INCR", KEYS[1]) if n == 1 then redis.call("EXPIRE", KEYS[1], ARGV[1]) end return n`
	m := strategies.FromFunc("whole seconds", []quota.Kind{quota.FirstRequest},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			seconds := (p.Window.RealLength() + time.Second - 1) / time.Second
			return strategies.AllowFunc(func(ctx context.Context, key string) (bool, error) {
				n, err := strategies.Redis(env).Eval(ctx, script, []string{key}, int64(seconds)).Int64()
				return n <= p.Limit, err
			}), nil
		})
	sel, err := m.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, cfg := range explore.Searches(sel, explore.Config{Bounds: explore.Bounds{MaxStates: 400, Preemptions: -1,
		First: true}}) {
		res, err := explore.Run(t.Context(), sel, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if res.Found(explore.FalseReject) != nil {
			return
		}
	}
	t.Error("no search finds a false reject")
}

// A bucket is exact for a limit of one, and not for rolling windows of two. Whoever names a policy is told.
func TestSearchesOfAPolicy(t *testing.T) {
	testenv.Sequential(t)
	sel := testkit.Strategy(t, "gcra")
	cfg := explore.Config{Policy: policy(t, "5 logins per rolling 15m")}
	for _, cfg := range explore.Searches(sel, cfg) {
		res, err := explore.Run(t.Context(), sel, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if res.Found(explore.Leak) != nil {
			if res.Limit != 2 {
				t.Errorf("for a limit of %d", res.Limit)
			}
			return
		}
		if !strings.Contains(res.Claim, fmt.Sprintf("for a limit of %d", res.Limit)) {
			t.Errorf("the claim names no limit: %s", res.Claim)
		}
	}
	t.Error("no search finds the leak")
}

// The window of a limiter of others is told next to the limit, also if that is one.
func TestWindowOfASearch(t *testing.T) {
	m := strategies.FromFunc("partial", []quota.Kind{quota.Fixed},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			return &partial{rdb: strategies.Redis(env), limit: p.Limit}, nil
		})
	sel, err := m.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int64{1, 2} {
		r, err := explore.Run(t.Context(), sel,
			explore.Config{Policy: policy(t, "10 calls per fixed 1m"), Limit: limit,
				Properties: []explore.Property{explore.Leak}})
		if err != nil || r.Limit != limit || r.Window != "per fixed 1m" {
			t.Errorf("limit %d: %+v, %v", limit, r, err)
		}
	}
}

// weighs counts the window before by the share of it that is left. Its defect: that is cut to a whole number.
type weighs struct {
	env    strategies.Env
	policy *quota.Policy
	cut    bool
}

const weighScript = `local before, n = tonumber(redis.call("GET", KEYS[2]) or "0"), tonumber(redis.call("GET", KEYS[1]) or "0")
local weight = before * ARGV[2]
if ARGV[3] == "1" then weight = math.floor(weight) end
if n + 1 + weight > tonumber(ARGV[1]) then return 0 end
redis.call("SET", KEYS[1], n + 1, "PX", ARGV[4])
return 1`

func (l *weighs) Allow(ctx context.Context, key string) (bool, error) {
	now := l.env.Clock.Now().UnixMilli()
	length := l.policy.Window.RealLength().Milliseconds()
	keys := []string{fmt.Sprint(key, now/length), fmt.Sprint(key, now/length-1)}
	left := float64(length-now%length) / float64(length)
	n, err := strategies.Redis(l.env).Eval(ctx, weighScript, keys, l.policy.Limit, left, l.cut, 2*length).Int()
	return n == 1, err
}

// A window that others approximate is broken between its ends.
func TestSearchesFindHalves(t *testing.T) {
	testenv.Sequential(t)
	for _, cut := range []bool{false, true} {
		m := strategies.FromFunc("weighs", []quota.Kind{quota.Rolling},
			func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
				return &weighs{env, p, cut}, nil
			})
		m.Guarantee = []quota.Clause{quota.Weighted()}
		sel, err := m.Select(nil)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		cfg := explore.Config{Bounds: explore.Bounds{MaxStates: testenv.Pick(400, 4_000), Preemptions: -1},
			Properties: []explore.Property{explore.Guarantee}}
		for _, cfg := range explore.Searches(sel, cfg) {
			res, err := explore.Run(t.Context(), sel, cfg)
			if err != nil {
				t.Fatal(err)
			}
			found = found || res.Found(explore.Guarantee) != nil
		}
		if found != cut {
			t.Errorf("cut %v: found %v", cut, found)
		}
	}
}

// Searches in which time passes are of libraries, under policies that they serve, and
// with units that they serve.
func TestSearchesFit(t *testing.T) {
	select1 := func(m strategies.Meta) []explore.Config {
		t.Helper()
		sel, err := m.Select(nil)
		if err != nil {
			t.Fatal(err)
		}
		return explore.Searches(sel, explore.Config{})
	}
	m := drawn(false)
	all := select1(m)
	for i, cfg := range all {
		if cfg.Instances != 1 {
			t.Errorf("search %d of a library that counts per process has %d instances", i, cfg.Instances)
		}
		if len(cfg.Scripts) == 0 {
			continue
		}
		if cfg.Policy.Window.Kind != quota.Bucket || len(cfg.Faults) > 0 || !cfg.Passes {
			t.Errorf("search %d: %+v", i, cfg)
		}
		for _, s := range cfg.Scripts {
			for _, a := range s {
				if a.Units != 1 {
					t.Errorf("search %d asks for %d units of a library that serves one", i, a.Units)
				}
			}
		}
	}
	serves := m.Serves
	m.Serves = nil
	if more := select1(m); len(more) != len(all)+1 {
		t.Errorf("%d searches where several units are served, %d where not", len(more), len(all))
	}
	m.Serves = func(p *quota.Policy) error {
		if p.Window.Refill > 1 {
			return context.Canceled
		}
		return serves(p)
	}
	if fewer := select1(m); len(fewer) >= len(all) {
		t.Errorf("%d searches where fewer policies are served, %d where more", len(fewer), len(all))
	}
	m = drawn(false)
	m.Form = strategies.Reference
	if n := len(select1(m)); n != 1 {
		t.Errorf("%d searches of a strategy that is no library", n)
	}
	m.SharesMemory = true
	if all := select1(m); len(all) != 2 || all[0].Instances != 0 || all[1].Clients != 3 || all[1].Instances != 1 {
		t.Errorf("searches of a strategy whose callers meet in memory: %+v", all)
	}
}

// TestPlaced: callers that meet in memory are searched on one instance, unless it was said how many there are.
func TestPlaced(t *testing.T) {
	sel := strategies.Selection{Meta: &strategies.Meta{SharesMemory: true}}
	for _, c := range []struct {
		cfg     explore.Config
		clients []int // of each search
	}{
		{explore.Config{}, []int{0, 3}},
		{explore.Config{Clients: 4, Skew: []time.Duration{time.Second}}, []int{4, 4}},
		{explore.Config{Clients: 2, Instances: 2}, []int{2}},
		{explore.Config{Clients: 1}, []int{1}},
		{explore.Config{Skew: []time.Duration{0, time.Second}}, []int{0}},
	} {
		var clients []int
		for i, placed := range c.cfg.Placed(sel) {
			clients = append(clients, placed.Clients)
			if want := c.cfg.Instances + i; placed.Instances != want {
				t.Errorf("%+v: search %d has %d instances, want %d", c.cfg, i, placed.Instances, want)
			}
		}
		if !slices.Equal(clients, c.clients) {
			t.Errorf("%+v: searches of %v clients, want %v", c.cfg, clients, c.clients)
		}
		if n := len(c.cfg.Placed(strategies.Selection{Meta: &strategies.Meta{}})); n != 1 {
			t.Errorf("%+v: %d searches of a strategy that shares nothing", c.cfg, n)
		}
	}
}

// TestSearchesWithinOneWindow: time does not pass under a policy with windows if nothing resets the limiter.
func TestSearchesWithinOneWindow(t *testing.T) {
	for name, never := range map[string]bool{"lua-reserve-hardened": true, "gcra": false} {
		sel := testkit.Strategy(t, name)
		m := *sel.Meta
		m.Form = strategies.Library
		sel.Meta = &m
		standing, windows := 0, 0
		for _, cfg := range explore.Searches(sel, explore.Config{}) {
			switch {
			case !cfg.Passes:
			case cfg.Policy.Window.Kind == quota.Standing:
				standing++
			default:
				windows++
			}
		}
		if (standing > 0) != never || (windows > 0) == never {
			t.Errorf("%s: time passes in %d searches of a standing policy and in %d of others", name, standing, windows)
		}
	}
}

// TestTicks: a limiter that forgets its counts two windows after the first request is found out by the clock's second
// tick, and not by its first. One tick is what a claim needs.
func TestTicks(t *testing.T) {
	sel := plant(func(ctx context.Context, p *planted, r quota.Request) (quota.Decision, error) {
		window := r.Policy.Window.At(p.env.Clock.Now()).Start
		began, err := strategies.Redis(p.env).SetNX(ctx, p.env.Prefix+"first", window.Unix(), 0).Result()
		if err != nil {
			return quota.Decision{}, err
		}
		first := window.Unix()
		if !began {
			first, err = strategies.Redis(p.env).Get(ctx, p.env.Prefix+"first").Int64()
		}
		if err != nil || window.Unix()-first >= 7200 {
			return verdict(err == nil, err)
		}
		return windowed(ctx, p, r)
	})
	take := explore.Action{Kind: explore.Take, Units: 1}
	for ticks, leaks := range map[int]bool{0: true, 1: false, 2: true} {
		found, err := explore.Run(t.Context(), sel, explore.Config{
			Policy:  quota.Policy{Name: "hourly", Limit: 1, Unit: "calls", Window: quota.Window{Kind: quota.CalendarHour}},
			Scripts: []explore.Script{{take, take, take}}, Clients: 1, Limit: 1,
			Properties: []explore.Property{explore.Leak}, Faults: []quota.Fault{quota.FaultClock},
			Scope: explore.Scope{Ticks: ticks},
		})
		if err != nil || found.Capped != "" {
			t.Fatalf("%d ticks: %v, %s", ticks, err, found.Capped)
		}
		if got := len(found.Findings) > 0; got != leaks {
			t.Errorf("%d ticks: found %t, want %t", ticks, got, leaks)
		}
		claims := strings.Contains(found.Claim, "1 x clock")
		if found.Least() != (ticks == 1) || claims != (ticks == 1) {
			t.Errorf("%d ticks: the least search %t, claim %q", ticks, found.Least(), found.Claim)
		}
	}
}

// TestSearchesOfTumblingWindows: each script is searched under the first kind of tumbling window, whichever that is,
// and the shorter ones under each.
func TestSearchesOfTumblingWindows(t *testing.T) {
	for _, kinds := range [][]quota.Kind{
		{quota.Fixed}, {quota.CalendarMonth}, {quota.CalendarMonth, quota.CalendarDay, quota.Fixed},
		{quota.Fixed, quota.Rolling},
	} {
		meta := drawn(false)
		meta.Kinds = kinds
		meta.Serves = nil
		sel, err := meta.Select(nil)
		if err != nil {
			t.Fatal(err)
		}
		searched := map[string][]quota.Kind{} // by the text of scripts
		for _, cfg := range explore.Searches(sel, explore.Config{}) {
			kind := cfg.Policy.Window.Kind
			scripts := fmt.Sprint(cfg.Scripts)
			if cfg.Passes && !slices.Contains(searched[scripts], kind) {
				searched[scripts] = append(searched[scripts], kind)
			}
		}
		first := slices.DeleteFunc(slices.Clone(kinds), func(kind quota.Kind) bool {
			return kind.Tumbling() && kind != kinds[0]
		})
		for scripts, want := range map[string][]quota.Kind{"take,take,take,take": first, "take,take,take": kinds} {
			parsed, err := explore.ParseScripts(scripts)
			if err != nil {
				t.Fatal(err)
			}
			if got := searched[fmt.Sprint(parsed)]; !slices.Equal(got, want) {
				t.Errorf("%v: %s is searched under %v, want %v", kinds, scripts, got, want)
			}
		}
	}
}
