package adapters_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// The limiters here do what published ones do, in words of our own: a counter per window
// and a bucket in one timestamp on Redis, one by compare and swap, and a bucket and a
// counter in memory by the clock of package time. A mutant is one of them with a defect,
// which a search must find, and which the limiter without it must not show.

// design makes the limiter of one instance; defect is "" for none.
type design struct {
	kind    quota.Kind
	foreign bool
	memory  bool
	open    func(env strategies.Env, defect string) take
}

type take func(ctx context.Context, p *quota.Policy, key string, units int64) (bool, error)

// planted is a script in which a defect replaces a part, and fails if the
// script has no such part.
func planted(script, defect string, parts map[string][2]string) string {
	if part, ok := parts[defect]; ok {
		if strings.Count(script, part[0]) != 1 {
			panic("the script has no such part: " + part[0])
		}
		script = strings.Replace(script, part[0], part[1], 1)
	}
	return script
}

const counterScript = `
local units = tonumber(ARGV[1])
local used = redis.call('INCRBY', KEYS[1], units)
if used == units then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
if used > tonumber(ARGV[2]) then
  redis.call('DECRBY', KEYS[1], units)
  return 0
end
return 1`

var counter = design{kind: quota.FirstRequest, open: func(env strategies.Env, defect string) take {
	script := planted(counterScript, defect, map[string][2]string{
		"off by one":     {"tonumber(ARGV[2])", "tonumber(ARGV[2]) + 1"},
		"lost TTL":       {"redis.call('PEXPIRE', KEYS[1], ARGV[3])", ""},
		"missing refund": {"redis.call('DECRBY', KEYS[1], units)", ""},
		"TTL too short":  {"ARGV[3])", "ARGV[3] - 1000)"},
		"TTL of 0":       {"ARGV[3])", "math.floor(ARGV[3] / 1000) * 1000)"},
	})
	var first int64
	return func(ctx context.Context, p *quota.Policy, key string, units int64) (bool, error) {
		limit := p.Limit
		switch defect {
		case "wrong key":
			key += fmt.Sprint(env.Instance)
		case "stale limit":
			if first == 0 {
				first = limit
			}
			limit = first
		case "non-atomic pair":
			used, err := strategies.Redis(env).Get(ctx, key).Int64()
			if err != nil && err != redis.Nil { //nolint:errorlint // as the client returns it
				return false, err
			}
			if used+units > limit {
				return false, nil
			}
			limit += 100
		}
		n, err := strategies.Redis(env).Eval(ctx, script, []string{key}, units, limit,
			p.Window.RealLength().Milliseconds()).Int64()
		return n == 1, err
	}
}}

const bucketScript = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, size, units = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local full = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now) + interval * units
if full - now > interval * size then return 0 end
redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', math.ceil((full - now) / 1000))
return 1`

var bucket = design{kind: quota.Bucket, open: func(env strategies.Env, defect string) take {
	script := planted(bucketScript, defect, map[string][2]string{
		"burst off by one": {"interval * size then", "interval * (size + 1) then"},
		"interval rounded": {"tonumber(ARGV[1])", "math.floor(ARGV[1] / 1000000) * 1000000"},
		"TTL in whole seconds": {"'PX', math.ceil((full - now) / 1000)",
			"'EX', math.max(1, math.floor((full - now) / 1000000))"},
		"TTL of one unit":    {"'PX', math.ceil((full - now) / 1000)", "'PX', math.ceil(interval / 1000)"},
		"wrong unit of time": {"'PX', math.ceil((full - now) / 1000)", "'PX', math.ceil((full - now) / 1000000)"},
	})
	return func(ctx context.Context, p *quota.Policy, key string, units int64) (bool, error) {
		interval := p.Window.RealLength().Microseconds() / p.Window.Refill
		n, err := strategies.Redis(env).Eval(ctx, script, []string{key}, interval, p.Limit, units).Int64()
		return n == 1, err
	}
}}

// swap sets a key if it has the value that was read, "" for none.
const swap = `
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1`

var swapping = design{kind: quota.FirstRequest, open: func(env strategies.Env, defect string) take {
	return func(ctx context.Context, p *quota.Policy, key string, units int64) (bool, error) {
		for range 10 {
			old, err := strategies.Redis(env).Get(ctx, key).Result()
			if err != nil && err != redis.Nil { //nolint:errorlint // as the client returns it
				return false, err
			}
			var used int64
			if old != "" {
				if _, err := fmt.Sscan(old, &used); err != nil {
					return false, err
				}
			}
			if used+units > p.Limit {
				return false, nil
			}
			n, err := strategies.Redis(env).Eval(ctx, swap, []string{key}, old, used+units).Int64()
			if err != nil {
				return false, err
			}
			if n == 1 || defect == "loser admitted" {
				return true, nil
			}
		}
		return false, strategies.ErrContention
	}
}}

// tokens is a bucket in memory for one key.
type tokens struct {
	mu    sync.Mutex
	left  float64
	since time.Time
}

var inMemoryBucket = design{kind: quota.Bucket, foreign: true, memory: true,
	open: func(_ strategies.Env, defect string) take {
		var buckets sync.Map
		return func(_ context.Context, p *quota.Policy, key string, units int64) (bool, error) {
			now := time.Now() //nolint:forbidigo // what is tested is code that does this
			b, _ := buckets.LoadOrStore(key, &tokens{left: float64(p.Limit), since: now})
			t := b.(*tokens)
			t.mu.Lock()
			defer t.mu.Unlock()
			if defect == "filled when it falls short" && t.left >= float64(units) {
				t.left -= float64(units)
				return true, nil
			}
			elapsed := now.Sub(t.since)
			if defect == "refill rounded down" {
				elapsed = elapsed.Truncate(time.Second)
			}
			t.left += elapsed.Seconds() * float64(p.Window.Refill) / p.Window.RealLength().Seconds()
			t.since = now
			if defect != "no cap" && defect != "capped too late" {
				t.left = min(t.left, float64(p.Limit))
			}
			if t.left < float64(units) {
				return false, nil
			}
			t.left -= float64(units)
			if defect == "capped too late" {
				t.left = min(t.left, float64(p.Limit))
			}
			return true, nil
		}
	}}

// window is a counter in memory for one key.
type window struct {
	used int64
	ends time.Time
}

var inMemoryCounter = design{kind: quota.FirstRequest, foreign: true, memory: true,
	open: func(_ strategies.Env, defect string) take {
		var mu sync.Mutex
		windows := map[string]*window{}
		return func(_ context.Context, p *quota.Policy, key string, units int64) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			now := time.Now() //nolint:forbidigo // what is tested is code that does this
			w := windows[key]
			if w == nil {
				w = &window{ends: now.Add(p.Window.RealLength())}
				windows[key] = w
			}
			if !now.Before(w.ends) {
				*w = window{ends: now.Add(p.Window.RealLength())}
				if defect == "wrong subject reset" {
					windows["another"], windows[key] = w, &window{used: p.Limit, ends: w.ends}
					w = windows[key]
				}
			}
			if w.used+units > p.Limit {
				return false, nil
			}
			w.used += units
			if defect == "window renewed" {
				w.ends = now.Add(p.Window.RealLength())
			}
			return true, nil
		}
	}}

// mutants are the defects, each with the search that finds it: a script for each client,
// the limit, and whether the clock ticks. Without a script a search has default flags.
var mutants = []struct {
	defect   string
	of       design
	policy   string
	scripts  string
	limit    int64
	faults   []quota.Fault
	property explore.Property
}{
	{"off by one", counter, "10 calls per first-request 10s", "", 0, nil, explore.Leak},
	{"wrong key", counter, "10 calls per first-request 10s", "", 0, nil, explore.Leak},
	{"non-atomic pair", counter, "10 calls per first-request 10s", "", 0, nil, explore.Leak},
	{"lost TTL", counter, "10 calls per first-request 10s", "take,take", 1, clock, explore.FalseReject},
	{"window renewed", inMemoryCounter, "10 calls per first-request 10s", "take,take,take", 2, clock, explore.FalseReject},
	{"TTL too short", counter, "10 calls per first-request 10s", "take,take", 1, clock, explore.Leak},
	{"missing refund", counter, "10 calls per first-request 10s", "take,take=2,take", 2, nil, explore.FalseReject},
	{"stale limit", counter, "10 calls per first-request 10s", "take,take;limit=1", 2, nil, explore.Leak},
	{"burst off by one", bucket, "10 calls refilling 2 per 3s", "", 0, nil, explore.Leak},
	{"interval rounded", bucket, "10 calls refilling 2 per 3s", "take,take", 1, clock, explore.Leak},
	{"TTL in whole seconds", bucket, "10 calls refilling 2 per 3s", "take,take", 1, clock, explore.Leak},
	{"TTL of one unit", bucket, "10 calls refilling 2 per 3s", "take=2,take=2", 2, clock, explore.Leak},
	{"wrong unit of time", bucket, "10 calls refilling 2 per 3s", "take,take", 1, clock, explore.Leak},
	{"loser admitted", swapping, "10 calls per first-request 10s", "", 0, nil, explore.Leak},
	{"refill rounded down", inMemoryBucket, "10 calls refilling 1 per 1s", "take,take,take", 1, clock,
		explore.FalseReject},
	{"no cap", inMemoryBucket, "10 calls refilling 1 per 1s", "take,take,take", 1, clock, explore.Leak},
	{"capped too late", inMemoryBucket, "10 calls refilling 1 per 1s", "take,take,take", 1, clock, explore.Leak},
	{"filled when it falls short", inMemoryBucket, "10 calls refilling 1 per 1s", "take,take,take,take", 2, clock,
		explore.Leak},
	{"TTL of 0", counter, "10 calls per first-request 500ms", "take,take", 1, nil, explore.Leak},
	{"wrong subject reset", inMemoryCounter, "10 calls per first-request 10s", "take,take", 1, clock, neverAgain},
}

// neverAgain is no property: a search withholds its claim, because the limiter never
// admits again.
const neverAgain explore.Property = "never-admits-again"

// Files run in the order of their names: these searches come before those of libraries whose goroutines never end,
// since the end of each run counts all goroutines.
func TestMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.defect, func(t *testing.T) {
			found, claim := searched(t, m.of, m.defect, m.policy, m.scripts, m.limit, m.faults, m.property)
			if found == nil {
				t.Errorf("%s is not found: %s", m.property, claim)
			} else {
				t.Logf("%s in %d steps: %s", m.property, len(found.Steps), found.Detail)
			}
			if found, claim := searched(t, m.of, "", m.policy, m.scripts, m.limit, m.faults, m.property); found != nil ||
				claim == "" {
				t.Errorf("without the defect: %+v, claim %q", found, claim)
			}
		})
	}
}

func searched(t *testing.T, d design, defect, text, scripts string, limit int64, faults []quota.Fault,
	property explore.Property) (*explore.Finding, string) {
	t.Helper()
	meta := strategies.Meta{
		Name: "planted", Doc: "a limiter with a defect", Form: strategies.Library, Kinds: []quota.Kind{d.kind},
		Counts:  quota.CountsNothing,
		Foreign: d.foreign,
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			return opened{env, d.open(env, defect)}, nil
		},
	}
	if !d.memory {
		meta.Needs = []strategies.Need{strategies.NeedRedis}
	}
	sel, err := meta.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := testkit.Policy(t, text)
	cfg := explore.Config{Policy: p, Limit: limit, Faults: faults, Properties: []explore.Property{property},
		Bounds: explore.Bounds{MaxStates: 2_000}}
	if scripts != "" {
		cfg.Scripts, err = explore.ParseScripts(scripts)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Clients = len(cfg.Scripts)
	}
	if d.memory {
		cfg.Instances = 1
	}
	if property == neverAgain {
		cfg.Properties = []explore.Property{explore.FalseReject}
	}
	res, err := explore.Run(t.Context(), sel, cfg)
	if res != nil && len(res.Withheld) > 0 && res.Withheld[0].Code == string(property) {
		return &explore.Finding{Property: property, Detail: res.Withheld[0].Detail}, res.Claim
	}
	if err != nil {
		t.Fatal(err)
	}
	return res.Found(property), res.Claim
}

// opened is one instance of a planted limiter.
type opened struct {
	env  strategies.Env
	take take
}

func (o opened) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	ok, err := o.take(ctx, req.Policy, o.env.Prefix+string(req.Subject), req.Units)
	return quota.Decision{Admitted: ok, Tier: quota.TierRedis, Remaining: -1}, err
}

func (opened) Close(context.Context) error { return nil }
