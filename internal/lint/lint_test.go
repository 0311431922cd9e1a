package lint

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
)

// planted takes by a function of the client, the request's key and the clock.
type planted struct {
	env  strategies.Env
	take func(ctx context.Context, c redis.UniversalClient, key string, now time.Time) error
}

func (p planted) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	key := p.env.Prefix + string(req.Subject)
	if req.Policy.Window.Kind != quota.Standing {
		key += req.Policy.Window.Label(req.Policy.Window.At(p.env.Clock.Now()).Index)
	}
	return quota.Decision{Admitted: true}, p.take(ctx, strategies.Redis(p.env), key, p.env.Clock.Now())
}

func (planted) Close(context.Context) error { return nil }

// TestPlanted: each fault is found with the command that shows it, and nothing is found in right code.
func TestPlanted(t *testing.T) {
	const day = 24 * time.Hour
	expiring := redis.NewScript("local n = redis.call('INCR', KEYS[1]) redis.call('SET', KEYS[2], n, 'EX', 60) redis.call('EXPIRE', KEYS[1], 60) return n")
	byTime := redis.NewScript("local t = redis.call('TIME') redis.call('SET', KEYS[1], t[1], 'EX', 60) return ARGV[1]")
	byCaller := redis.NewScript("redis.call('SET', KEYS[1], ARGV[1], 'EX', 60) return 1")
	for _, c := range []struct {
		name, code, command string // "" if nothing is wrong
		kind                quota.Kind
		commands, trips     int // of one decision, at most
		keys                int
		take                func(ctx context.Context, c redis.UniversalClient, key string, now time.Time) error
	}{
		{"right", "", "", quota.Fixed, 2, 2, 2, func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
			return expiring.Run(ctx, c, []string{"{" + key + "}a", "{" + key + "}b"}).Err()
		}},
		{"two slots", "slots", "EVAL local n", quota.Fixed, 2, 2, 2, func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
			return expiring.Run(ctx, c, []string{key + "a", key + "b"}).Err()
		}},
		{"two slots in a transaction", "slots", "MULTI; SET", quota.Fixed, 2, 1, 2, func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
			_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Set(ctx, key+"a", 1, day); p.Set(ctx, key+"b", 1, day); return nil })
			return err
		}},
		{"two slots in a pipeline", "", "", quota.Fixed, 2, 1, 1, func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
			_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error { p.Set(ctx, key+"a", 1, day); p.Set(ctx, key+"b", 1, day); return nil })
			return err
		}},
		{"the caller's clock", "caller-clock", "EVAL redis.call('SET', ", quota.Fixed, 2, 2, 1, func(ctx context.Context, c redis.UniversalClient, key string, now time.Time) error {
			return byCaller.Run(ctx, c, []string{key}, now.UnixMilli()).Err()
		}},
		{"the caller's clock in a sorted set", "caller-clock", "ZADD", quota.Fixed, 2, 1, 1, func(ctx context.Context, c redis.UniversalClient, key string, now time.Time) error {
			_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
				p.ZAdd(ctx, key, redis.Z{Score: float64(now.UnixMicro()), Member: "one"})
				p.ExpireAt(ctx, key, now)
				return nil
			})
			return err
		}},
		{"the time of Redis", "", "", quota.Fixed, 2, 2, 1, func(ctx context.Context, c redis.UniversalClient, key string, now time.Time) error {
			return byTime.Run(ctx, c, []string{key}, now.UnixMilli()).Err()
		}},
		{"no time to live", "no-ttl", "INCR", quota.Fixed, 1, 1, 1, func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
			return c.Incr(ctx, key).Err()
		}},
		{"of a standing quota", "", "", quota.Standing, 1, 1, 1, func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
			return c.Incr(ctx, key).Err()
		}},
		{"a time to live later", "ttl-gap", "INCR", quota.Fixed, 2, 2, 1, func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
			c.Incr(ctx, key)
			return c.Expire(ctx, key, day).Err()
		}},
		{"a list that is never trimmed", "unbounded", "LPUSH", quota.Standing, 1, 1, 1, func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
			return c.LPush(ctx, key, "x").Err()
		}},
		{"a list that is", "", "", quota.Standing, 2, 1, 1, func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
			_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error { p.LPush(ctx, key, "x"); p.LTrim(ctx, key, 0, 9); return nil })
			return err
		}},
	} {
		m := strategies.Meta{Name: "planted", Needs: []strategies.Need{strategies.NeedRedis}, Kinds: []quota.Kind{c.kind},
			Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
				return planted{env, c.take}, nil
			}}
		r, err := Run(t.Context(), strategies.Selection{Meta: &m})
		if err != nil || r.MostCommands != c.commands || r.MostRoundTrips != c.trips || r.MostKeys != c.keys || r.Decisions != windows*asked*subjects {
			t.Errorf("%s: %v, %+v", c.name, err, r)
		}
		switch f := r.Findings; {
		case c.code == "" && len(f) == 0:
		case len(f) != 1 || f[0].Code != c.code || !strings.HasPrefix(f[0].Command, c.command) || c.code == "":
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

// TestSkipped: what cannot be driven is said, and why.
func TestSkipped(t *testing.T) {
	for want, m := range map[string]strategies.Meta{
		"it needs nats, and":            {Needs: []strategies.Need{"nats"}, Kinds: quota.Kinds()},
		"it sends no commands to Redis": {Kinds: quota.Kinds()},
		"it serves no policy":           {Needs: []strategies.Need{strategies.NeedRedis}},
	} {
		if r, err := Run(t.Context(), strategies.Selection{Meta: &m}); err != nil || !strings.HasPrefix(r.Skipped, want) || r.Decisions != 0 {
			t.Errorf("%v, %+v, should be %q", err, r, want)
		}
	}
}

// TestSlot: those that Redis' documentation and its CLUSTER KEYSLOT give.
func TestSlot(t *testing.T) {
	for k, want := range map[string]uint16{"123456789": 0x31C3, "foo": 12182, "{foo}bar": 12182, "a{foo}{bar}": 12182, "somekey": 11058, "foo{hash_tag}": 2515} {
		if got := slot(k); got != want {
			t.Errorf("%s is in %d, should be in %d", k, got, want)
		}
	}
	if slot("foo{}{bar}") == slot("{bar}") {
		t.Error("an empty hash tag is none")
	}
}

// TestKeys: a command has the keys that Redis' documentation says it has.
func TestKeys(t *testing.T) {
	for command, want := range map[string]string{
		"get a": "a", "set a 1 ex 9": "a", "del a b c": "a b c", "mset a 1 b 2": "a b", "eval s 2 a b c": "a b", "evalsha s 0 c": "",
		"zunion 2 a b withscores": "a b", "zunionstore a 2 b c weights 1 2": "a b c", "smove a b m": "a b", "rpoplpush a b": "a b",
		"zrangestore a b 0 -1": "a b", "ping": "", "time": "", "multi": "", "eval s": "", "zunionstore a": "a",
	} {
		if got := strings.Join(keys(strings.Fields(command)), " "); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

// TestCatalogue has what is true of the strategies of this module, and of no other. It drives them all, which takes seconds.
func TestCatalogue(t *testing.T) {
	testenv.Sequential(t)
	if testing.Short() {
		t.Skip("drives every strategy")
	}
	want := strings.Fields(`decr-literal:no-ttl incr-expire:ttl-gap lua-reserve:slots redis-hash:no-ttl redis-hash:ttl-gap
		scheduled-reset:slots three-tier:no-ttl three-tier:ttl-gap`)
	var got []string
	driven := 0
	for _, m := range strategies.All() {
		sel, err := m.Select(nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(t.Context(), sel)
		if err != nil {
			t.Error(err)
		}
		for _, f := range r.Findings {
			got = append(got, m.Name+":"+f.Code)
		}
		if r.Decisions > 0 {
			driven++
		}
		if (r.Decisions > 0) == (r.Skipped != "") || m.NeedsStore(strategies.NeedRedis) && len(m.Needs) == 1 && r.Skipped != "" {
			t.Errorf("%s: %d decisions, skipped: %q", m.Name, r.Decisions, r.Skipped)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || driven < 20 {
		t.Errorf("%d driven, found %q", driven, got)
	}
}
