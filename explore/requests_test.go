package explore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// unitsCounter is a counter that gives units back. With paysLater it charges requests that settle with their commits.
type unitsCounter struct {
	env       strategies.Env
	life      time.Duration // of its key; 0 is the policy's window, or for ever
	below     bool          // it also lowers a count that is not there
	paysLater bool
	atLimit   bool // it admits at the limit
}

const (
	countUnits = `local n = tonumber(redis.call('GET', KEYS[1]) or '0')
if n + ARGV[6] > ARGV[1] + ARGV[4] then return 0 end
if ARGV[5] == '1' then return 1 end
redis.call('INCRBY', KEYS[1], ARGV[2])
if n == 0 and ARGV[3] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return 1`
	lowerUnits = `if ARGV[2] ~= '1' and redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
return redis.call('DECRBY', KEYS[1], ARGV[1])`
)

func (c *unitsCounter) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	life := c.life
	if life == 0 {
		life = req.Policy.Window.RealLength()
	}
	later := c.paysLater && req.Settles
	room := req.Units
	if c.paysLater {
		room = 1
	}
	n, err := strategies.Redis(c.env).Eval(ctx, countUnits, []string{c.env.Prefix + string(req.Subject)}, req.Policy.Limit,
		req.Units, life.Milliseconds(), c.atLimit, later, room).Int()
	decision := quota.Decision{Admitted: n == 1, Tier: quota.TierRedis, Remaining: -1}
	if n == 1 {
		decision.Reservation.Request = req
	}
	return decision, err
}

func (c *unitsCounter) Refund(ctx context.Context, res quota.Reservation) error {
	if c.paysLater && !res.Committed {
		return nil
	}
	key := c.env.Prefix + string(res.Request.Subject)
	return strategies.Redis(c.env).Eval(ctx, lowerUnits, []string{key}, res.Request.Units, c.below).Err()
}

func (c *unitsCounter) Commit(ctx context.Context, res quota.Reservation, actual int64) error {
	if !c.paysLater {
		return nil
	}
	return strategies.Redis(c.env).IncrBy(ctx, c.env.Prefix+string(res.Request.Subject), actual).Err()
}

func (c *unitsCounter) Close(context.Context) error { return nil }

func counting(kind quota.Kind, counter unitsCounter, clauses ...quota.Clause) strategies.Meta {
	return strategies.Meta{
		Name: "counted", Doc: "a counter", Form: strategies.Library, Needs: []strategies.Need{strategies.NeedRedis},
		Kinds: []quota.Kind{kind}, GivesBack: true, Counts: quota.CountsNothing, Guarantee: clauses,
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			own := counter
			own.env = env
			return &own, nil
		},
	}
}

// broken are the properties that the default searches of a limiter find broken.
func broken(t *testing.T, meta *strategies.Meta, cfg explore.Config) string {
	t.Helper()
	sel, err := meta.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Properties = []explore.Property{explore.Guarantee, explore.FalseReject, explore.TTL}
	cfg.MaxStates = testenv.Pick(12_000, 40_000)
	cfg.Preemptions = -1
	cfg.First = true
	var found []string
	for _, search := range explore.Searches(sel, cfg) {
		if len(search.Faults) > 0 {
			continue
		}
		result, err := explore.Run(t.Context(), sel, search)
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range result.Findings {
			found = append(found, string(finding.Property)+": "+finding.Detail)
		}
	}
	return strings.Join(found, "; ")
}

// crossing is the clause of limiters that charge after the work.
func crossing() quota.Clause {
	return quota.Clause{Property: quota.PropertyLeak, Formula: "in flight x largest cost - 1",
		Bound: func(params quota.Params) int64 { return max(1, params.InFlight)*params.MaxCost - 1 }}
}

// What is given back after its window, what is under way when a key expires, and what is charged after the work: each
// wrong limiter is found by a default search, and its right twin is not accused.
func TestGivenBackAndUnderWay(t *testing.T) {
	testenv.Sequential(t)
	exactly := quota.Exactly()
	for name, c := range map[string]struct {
		meta  strategies.Meta
		wrong string
	}{
		"given back to a count that is there": {counting(quota.FirstRequest, unitsCounter{}, exactly), ""},
		"given back to no count":              {counting(quota.FirstRequest, unitsCounter{below: true}, exactly), "ttl: "},
		"never forgets":                       {counting(quota.Standing, unitsCounter{}, exactly), ""},
		"forgets what is under way":           {counting(quota.Standing, unitsCounter{life: time.Minute}, exactly), "guarantee: "},
		"charges after the work":              {counting(quota.Standing, unitsCounter{paysLater: true}, crossing()), ""},
		"admits at the limit": {counting(quota.Standing, unitsCounter{paysLater: true, atLimit: true}, crossing()),
			"guarantee: "},
		"charges after the work, and says nothing": {counting(quota.Standing, unitsCounter{paysLater: true}, exactly),
			"guarantee: "},
	} {
		found := broken(t, &c.meta, explore.Config{})
		if c.wrong == "" && found != "" || !strings.Contains(found, c.wrong) {
			t.Errorf("%s: found %q, want %q", name, found, c.wrong)
		}
	}
}

// A count that is forgotten later than its units are held forgets nothing.
func TestHeldForLessThanItsKeyLives(t *testing.T) {
	testenv.Sequential(t)
	for text, wrong := range map[string]bool{
		"9 units at a time held 30s": false, "9 units at a time held 2m": true, "9 units at a time": true,
	} {
		meta := counting(quota.Standing, unitsCounter{life: time.Minute}, quota.Exactly())
		meta.GivesBack = false // each key begins with a request that is held
		if found := broken(t, &meta, explore.Config{Policy: policy(t, text), Limit: 1, Clients: 1}); (found != "") != wrong {
			t.Errorf("%s: found %q", text, found)
		}
	}
}

const (
	oneAfterTheOther = `for i = 1, 2 do
	local n = redis.call('INCR', KEYS[i])
	if n == 1 then redis.call('PEXPIRE', KEYS[i], ARGV[i + 2]) end
	if n > tonumber(ARGV[i]) then return 0 end
end
return 1`
	bothOrNone = `for i = 1, 2 do
	if tonumber(redis.call('GET', KEYS[i]) or '0') >= tonumber(ARGV[i]) then return 0 end
end
for i = 1, 2 do
	if redis.call('INCR', KEYS[i]) == 1 then redis.call('PEXPIRE', KEYS[i], ARGV[i + 2]) end
end
return 1`
)

// bursting admits one request per second besides what its policy says.
func bursting(source string, burst int64) strategies.Meta {
	script := redis.NewScript(source)
	meta := strategies.FromFunc("bursting", []quota.Kind{quota.Fixed},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			return strategies.AllowFunc(func(ctx context.Context, key string) (bool, error) {
				now := env.Clock.Now()
				keys := []string{key + now.Truncate(p.Window.RealLength()).Format(time.RFC3339),
					key + "/" + now.Truncate(time.Second).Format(time.RFC3339)}
				n, err := script.Run(ctx, strategies.Redis(env), keys, p.Limit, burst,
					p.Window.RealLength().Milliseconds(), 1000).Int()
				return n == 1, err
			}), nil
		})
	meta.Guarantee = []quota.Clause{quota.Exactly()}
	return meta
}

// burstingHere is such a limiter in memory.
type burstingHere struct {
	env     strategies.Env
	policy  *quota.Policy
	careful bool // what the second window rejects is not charged to the first
	used    map[time.Time]int64
}

func (b *burstingHere) Allow(context.Context, string) (bool, error) {
	now := b.env.Clock.Now()
	long := time.Time{}
	if length := b.policy.Window.RealLength(); length > 0 {
		long = now.Truncate(length).Add(time.Nanosecond) // another key than that of the second
	}
	short := now.Truncate(time.Second)
	allowed := b.used[long] < b.policy.Limit && b.used[short] < 1
	if allowed || !b.careful {
		b.used[long]++
		b.used[short]++
	}
	return allowed, nil
}

func burstingInMemory(careful bool) strategies.Meta {
	meta := strategies.FromFunc("bursting", []quota.Kind{quota.Fixed, quota.Standing},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			return &burstingHere{env, p, careful, map[time.Time]int64{}}, nil
		})
	meta.Needs = nil
	meta.PerProcess = true
	meta.Guarantee = quota.PerInstance()
	return meta
}

// A limiter with two windows is judged by both. What the second rejects stays charged to the first: wrong. More in a
// second than that has: wrong. Without a word about the second window its rejections are.
func TestTwoWindows(t *testing.T) {
	testenv.Sequential(t)
	both := explore.Config{Policy: policy(t, "10 requests per fixed 1m"), Second: policy(t, "1 requests per fixed 1s")}
	one := explore.Config{Policy: both.Policy}
	endless := explore.Config{Policy: policy(t, "10 requests at a time"), Second: both.Second}
	for name, c := range map[string]struct {
		meta  strategies.Meta
		cfg   explore.Config
		wrong string
	}{
		"charged to both or none":            {bursting(bothOrNone, 1), both, ""},
		"charged to the first":               {bursting(oneAfterTheOther, 1), both, "false-reject: "},
		"two in a second":                    {bursting(bothOrNone, 2), both, "guarantee: "},
		"nothing was said":                   {bursting(bothOrNone, 1), one, "false-reject: "},
		"charged to both or none, in memory": {burstingInMemory(true), both, ""},
		"charged to the first, in memory":    {burstingInMemory(false), both, "false-reject: "},
		"next to a limit without an end":     {burstingInMemory(true), endless, ""},
		"charged to a limit without an end":  {burstingInMemory(false), endless, "false-reject: "},
	} {
		found := broken(t, &c.meta, c.cfg)
		if c.wrong == "" && found != "" || !strings.Contains(found, c.wrong) {
			t.Errorf("%s: found %q, want %q", name, found, c.wrong)
		}
	}
}

// A request that is under way may yet be admitted: what is rejected meanwhile is no false reject yet, also if what the
// policy's windows admit is bounded in rolling windows too.
func TestRejectedWhileAnotherIsUnderWay(t *testing.T) {
	testenv.Sequential(t)
	for name, second := range map[string]quota.Policy{"one window": {}, "two windows": policy(t, "9 requests per fixed 1h")} {
		sel, err := strategies.Parse("fixed-window")
		if err != nil {
			t.Fatal(err)
		}
		result, err := explore.Run(t.Context(), sel[0], explore.Config{
			Policy: policy(t, "9 requests per fixed 1s"), Second: second, Limit: 1,
			Scope: explore.Scope{Passes: true}, Properties: []explore.Property{explore.Guarantee},
		})
		if err != nil || len(result.Findings) > 0 || result.Claim == "" {
			t.Errorf("%s: error %v, claim %q, findings %+v", name, err, result.Claim, result.Findings)
		}
	}
}
