package prove_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/prove"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/replicated" // has redis-wait
	_ "github.com/quotabench/quotabench/strategies/reserve"    // has lua-reserve
)

// scenePrefix begins the names of limiters that a simulation alone looks at.
const scenePrefix = "scene "

// acted is a limiter with what its simulation says.
type acted struct {
	kind    quota.Kind
	policy  string // of the proof; "" for that of fewInAnHour, if it has one
	options prove.Options
	allow   func(p *player, ctx context.Context, key string) (bool, error)
	// memory is set if it has no store.
	memory bool
	// strategy is the registered one whose code it is, and meta another one, instead of allow.
	strategy  string
	meta      *strategies.Meta
	guarantee []quota.Clause
	// wrong is what the simulation finds; "" for nothing.
	wrong string
	// told is a text of its log.
	told string
}

// fewInAnHour are policies of which a day has few requests.
var fewInAnHour = map[quota.Kind]string{
	quota.Rolling: "10 requests per rolling 3m",
	quota.Fixed:   "10 requests per fixed 1h",
}

// player is one instance of such a limiter.
type player struct {
	redis  redis.UniversalClient
	now    func() time.Time
	policy *quota.Policy

	mu     sync.Mutex
	tokens map[string]int64
	at     map[string]time.Time
	broken bool
}

// Allow implements [strategies.Allower].
func (p *playing) Allow(ctx context.Context, key string) (bool, error) {
	return p.allow(p.player, ctx, key)
}

type playing struct {
	*player
	allow func(p *player, ctx context.Context, key string) (bool, error)
}

func (a acted) limiter(t *testing.T) (*strategies.Meta, prove.Options) {
	t.Helper()
	m := strategies.FromFunc("acted", []quota.Kind{a.kind},
		func(_ context.Context, env strategies.Env, policy *quota.Policy) (strategies.Allower, error) {
			p := &player{now: env.Clock.Now, policy: policy, tokens: map[string]int64{}, at: map[string]time.Time{}}
			if !a.memory {
				p.redis = strategies.Redis(env)
			}
			return &playing{p, a.allow}, nil
		})
	if a.strategy != "" {
		m = *testkit.Strategy(t, a.strategy).Meta
	}
	if a.meta != nil {
		m = *a.meta
	}
	m.Guarantee = a.guarantee
	if a.memory {
		m.Needs = nil
		m.PerProcess = true
	}
	o := a.options
	o.Skip = []prove.Stage{prove.Conformance, prove.Exploration}
	o.Days = 1
	if policy := cmp.Or(a.policy, fewInAnHour[a.kind]); policy != "" {
		o.Policy = testkit.Policy(t, policy)
	}
	return &m, o
}

// log keeps the moment of each request, by the clock of the process or by that of Redis.
func log(moment string) func(p *player, ctx context.Context, key string) (bool, error) {
	script := redis.NewScript(moment + `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], now, redis.call('INCR', KEYS[1] .. ':id'))
redis.call('PEXPIRE', KEYS[1], ARGV[2] / 1000 + 10000)
redis.call('PEXPIRE', KEYS[1] .. ':id', ARGV[2] / 1000 + 10000)
return 1`)
	return func(p *player, ctx context.Context, key string) (bool, error) {
		n, err := script.Run(ctx, p.redis, []string{key}, p.policy.Limit, p.policy.Window.Length.Microseconds(),
			p.now().UnixMicro()).Int64()
		return n == 1, err
	}
}

var (
	logOfProcess = log("local now = tonumber(ARGV[3])")
	logOfRedis   = log("local t = redis.call('TIME') local now = t[1] * 1000000 + t[2]")
)

// bucket is one in memory, where parts are what flows in, in parts of a unit of which the window has as many as ns.
func bucket(flown func(past, refill, most int64) int64) func(p *player, ctx context.Context, key string) (bool, error) {
	return func(p *player, _ context.Context, key string) (bool, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		now := p.now()
		unit := int64(p.policy.Window.RealLength())
		most := p.policy.Limit * unit
		tokens := most
		if at, ok := p.at[key]; ok {
			tokens = min(most, p.tokens[key]+flown(int64(now.Sub(at)), p.policy.Window.Refill, most))
		}
		p.at[key] = now
		ok := tokens >= unit
		if ok {
			tokens -= unit
		}
		p.tokens[key] = tokens
		return ok, nil
	}
}

// bounded never multiplies what a bucket cannot hold.
func bounded(past, refill, most int64) int64 {
	if past <= 0 {
		return 0
	}
	if past > most/refill {
		return most
	}
	return past * refill
}

// perHour counts in a key for each hour, which has a name.
func perHour(name func(p *player) string) func(p *player, ctx context.Context, key string) (bool, error) {
	return perWindow(3*time.Hour, name)
}

// perWindow counts in a key for each window, which has a name and expires so long after its last request.
func perWindow(life time.Duration, name func(p *player) string) func(p *player, ctx context.Context, key string) (bool,
	error) {
	return func(p *player, ctx context.Context, key string) (bool, error) {
		key += ":" + name(p)
		pipe := p.redis.TxPipeline()
		n := pipe.Incr(ctx, key)
		pipe.PExpire(ctx, key, life)
		_, err := pipe.Exec(ctx)
		return err == nil && n.Val() <= p.policy.Limit, err
	}
}

var perUTCHour = perHour(func(p *player) string { return p.now().UTC().Truncate(time.Hour).Format(time.RFC3339) })

// givesUp never asks its store again once that has failed.
var givesUp = func(p *player, ctx context.Context, key string) (bool, error) {
	if p.broken {
		return false, errors.New("the store has failed before")
	}
	ok, err := perUTCHour(p, ctx, key)
	p.broken = err != nil
	return ok, err
}

// steady are the clauses of a bucket in memory that rejects nobody wrongly, whatever its clock does.
func steady() []quota.Clause {
	none := quota.Clause{Property: quota.PropertyFalseReject, Tolerates: []quota.Fault{quota.FaultClock}, Formula: "0",
		Bound: func(quota.Params) int64 { return 0 }}
	return append(quota.PerInstance(quota.FaultClock), none)
}

const (
	million = "1000000 requests refilling 1000000 per 1m"
	ten     = "10 requests at a time"
	hour    = "10 requests per rolling 1h"
	paris   = "10 requests per calendar hour in Europe/Paris"
)

func negative(past, refill, _ int64) int64 { return past * refill }

var scenes = map[string]acted{
	"log of the process": {kind: quota.Rolling, allow: logOfProcess, wrong: "LEAK: "},
	"log of redis":       {kind: quota.Rolling, allow: logOfRedis},
	"log of the process of an hour": {kind: quota.Rolling, policy: hour, allow: logOfProcess,
		wrong: "LEAK: "},
	"log of redis of an hour": {kind: quota.Rolling, policy: hour, allow: logOfRedis},
	"log of the process which promises nothing of clocks": {kind: quota.Rolling, allow: logOfProcess,
		guarantee: []quota.Clause{quota.Exactly()}, told: "not claimed: clocks that differ: up to "},
	"counter of the process": {kind: quota.Fixed, allow: perUTCHour, told: "not claimed: clocks that differ: up to "},
	"log of redis far apart": {kind: quota.Rolling, allow: logOfRedis,
		options: prove.Options{Skew: []time.Duration{0, 30 * time.Second, -30 * time.Second}}},
	"log of the process far apart": {kind: quota.Rolling, allow: logOfProcess, guarantee: []quota.Clause{quota.Exactly()},
		options: prove.Options{Skew: []time.Duration{0, 5 * time.Second}}, wrong: "LEAK: "},
	"negative refill": {kind: quota.Bucket, memory: true, allow: bucket(negative), guarantee: steady(),
		wrong: "FALSE-REJECT: 3 requests rejected after the clock had stepped back by "},
	"negative refill of which nothing is promised": {kind: quota.Bucket, memory: true, allow: bucket(negative),
		told: "after the clock had stepped back by "},
	"negative refill that is asked for": {kind: quota.Bucket, memory: true, allow: bucket(negative),
		options: prove.Options{Faults: []quota.Fault{quota.FaultClock}}, wrong: "FALSE-REJECT: 3 requests rejected "},
	"no negative refill": {kind: quota.Bucket, memory: true, allow: bucket(bounded), guarantee: steady()},
	"overflow": {kind: quota.Bucket, policy: million, memory: true, allow: bucket(negative),
		wrong: "FALSE-REJECT: "},
	"no overflow": {kind: quota.Bucket, policy: million, memory: true, allow: bucket(bounded),
		told: "with a limit of 2,000 instead of 1,000,000"},
	"local hour": {kind: quota.CalendarHour, policy: paris, wrong: "around the end of summer time",
		allow: perHour(func(p *player) string {
			return p.now().In(p.policy.Window.Location).Format("2006-01-02T15")
		})},
	"hour": {kind: quota.CalendarHour, policy: paris, told: "around the end of summer time",
		allow: perHour(func(p *player) string {
			return p.policy.Window.At(p.now()).Start.UTC().Format(time.RFC3339)
		})},
	"lease":    {strategy: "lua-reserve", policy: ten, told: "callers that die and hold the whole limit"},
	"no lease": {strategy: "redis-wait", policy: ten, wrong: "STRANDED: "},
	"no lease as declared": {strategy: "redis-wait", policy: ten,
		guarantee: []quota.Clause{quota.Exactly(), quota.MayReject()}, told: "callers that die and hold the whole limit"},
	"slots":              {meta: new(slotsLimiter(false)), policy: ten, told: "half die after command 2"},
	"slots in two steps": {meta: new(slotsLimiter(true)), policy: ten, wrong: "STRANDED: "},
	"two in a year": {kind: quota.Rolling, policy: "2 requests per rolling 8760h", allow: logOfRedis,
		told: "a clock that steps back by "},
	"one in a month": {kind: quota.CalendarMonth, policy: "1 request per calendar month", told: "clocks of instances",
		allow: perWindow(32*24*time.Hour, func(p *player) string { return p.now().UTC().Format("2006-01") })},
	"gives up":      {kind: quota.Fixed, allow: givesUp, wrong: "STUCK: "},
	"goes on again": {kind: quota.Fixed, allow: perUTCHour, told: "what follows an outage of Redis"},
}

// Rests, odd moments of calendars, clocks that are wrong and what follows an outage accuse the limiters that are wrong
// there, and no others.
func TestScenes(t *testing.T) {
	names := slices.Sorted(maps.Keys(scenes))
	var asked []string
	for _, name := range names {
		asked = append(asked, scenePrefix+name)
	}
	out := proved(t, plantedVariable+"="+strings.Join(asked, ","))
	for _, name := range names {
		acted := scenes[name]
		stage := "TestPlanted/" + strings.ReplaceAll(scenePrefix+name, " ", "_") + "/simulation"
		how := map[bool]string{true: "PASS", false: "FAIL"}[acted.wrong == ""]
		contains(t, out, "--- "+how+": "+stage+" (")
		said := saidBy(out, stage)
		for _, text := range []string{acted.wrong, acted.told} {
			if !strings.Contains(said, text) {
				t.Errorf("%s: no %q", name, text)
			}
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

// saidBy is what a test of that name has printed.
func saidBy(out, name string) string {
	var said strings.Builder
	current := ""
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(line, "=== "); ok {
			fields := strings.Fields(rest)
			current = fields[len(fields)-1]
		} else if current == name {
			said.WriteString(line)
		}
	}
	return said.String()
}
