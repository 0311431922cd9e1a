package advice

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
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
	expiring := redis.NewScript("local n = redis.call('INCR', KEYS[1]) redis.call('SET', KEYS[2], n, 'EX', 60) " +
		"redis.call('EXPIRE', KEYS[1], 60) return n")
	byTime := redis.NewScript("local t = redis.call('TIME') redis.call('SET', KEYS[1], t[1], 'EX', 60) return ARGV[1]")
	byCaller := redis.NewScript("redis.call('SET', KEYS[1], ARGV[1], 'EX', 60) return 1")
	pushes := 0 // of the row at hand
	list := func(most ...int64) func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
		return func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
			pushes++
			_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
				p.LPush(ctx, key, "x")
				p.LTrim(ctx, key, 0, most[(pushes-1)/asked/subjects]-1)
				return nil
			})
			return err
		}
	}
	sends := func(by time.Duration, in time.Duration) func(ctx context.Context, c redis.UniversalClient, key string,
		now time.Time) error {
		return func(ctx context.Context, c redis.UniversalClient, key string, now time.Time) error {
			return c.Set(ctx, key, strconv.AppendInt(nil, now.Add(by).UnixNano()/int64(in), 10), day).Err()
		}
	}
	for _, c := range []struct {
		name, code, command string // "" if nothing is wrong
		kind                quota.Kind
		take                func(ctx context.Context, c redis.UniversalClient, key string, now time.Time) error
	}{
		{"right", "", "", quota.Fixed, func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
			return expiring.Run(ctx, c, []string{"{" + key + "}a", "{" + key + "}b"}).Err()
		}},
		{"two slots", "slots", "EVAL local n", quota.Fixed,
			func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
				return expiring.Run(ctx, c, []string{key + "a", key + "b"}).Err()
			}},
		{"two slots in a transaction", "slots", "MULTI; SET", quota.Fixed,
			func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
				_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
					p.Set(ctx, key+"a", 1, day)
					p.Set(ctx, key+"b", 1, day)
					return nil
				})
				return err
			}},
		{"two slots in a pipeline", "", "", quota.Fixed,
			func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
				_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
					p.Set(ctx, key+"a", 1, day)
					p.Set(ctx, key+"b", 1, day)
					return nil
				})
				return err
			}},
		{"the caller's clock", "caller-clock", "EVAL redis.call('SET', ", quota.Fixed,
			func(ctx context.Context, c redis.UniversalClient, key string, now time.Time) error {
				return byCaller.Run(ctx, c, []string{key}, now.UnixMilli()).Err()
			}},
		{"the caller's clock in a sorted set", "caller-clock", "ZADD", quota.Fixed,
			func(ctx context.Context, c redis.UniversalClient, key string, now time.Time) error {
				_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
					p.ZAdd(ctx, key, redis.Z{Score: float64(now.UnixMicro()), Member: "one"})
					p.ExpireAt(ctx, key, now)
					return nil
				})
				return err
			}},
		{"the time of Redis", "", "", quota.Fixed,
			func(ctx context.Context, c redis.UniversalClient, key string, now time.Time) error {
				return byTime.Run(ctx, c, []string{key}, now.UnixMilli()).Err()
			}},
		{"no time to live", "no-ttl", "INCR", quota.Fixed,
			func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
				return c.Incr(ctx, key).Err()
			}},
		{"of a standing quota", "", "", quota.Standing,
			func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
				return c.Incr(ctx, key).Err()
			}},
		{"a time to live later", "ttl-gap", "INCR", quota.Fixed,
			func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
				c.Incr(ctx, key)
				return c.Expire(ctx, key, day).Err()
			}},
		{"a list that is never trimmed", "unbounded", "LPUSH", quota.Standing,
			func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
				return c.LPush(ctx, key, "x").Err()
			}},
		{"a list that is", "", "", quota.Standing, list(9, 9, 9, 9)},
		{"a list that grows later", "", "", quota.Standing, list(10, 10, 20, 30)},
		{"a list that stops to grow", "", "", quota.Standing, list(10, 20, 20, 30)},
		{"a list that grew", "", "", quota.Standing, list(10, 20, 30, 30)},
		{"a list that expires", "", "", quota.Standing,
			func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
				_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
					p.LPush(ctx, key, "x")
					p.Expire(ctx, key, time.Minute)
					return nil
				})
				return err
			}},
		{"a sorted set that grows", "unbounded", "ZADD", quota.Standing,
			func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
				pushes++
				return c.ZAdd(ctx, key, redis.Z{Score: 1, Member: pushes}).Err()
			}},
		{"a set that grows", "unbounded", "SADD", quota.Standing,
			func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
				pushes++
				return c.SAdd(ctx, key, pushes).Err()
			}},
		{"a hash that grows", "unbounded", "HSET", quota.Standing,
			func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
				pushes++
				return c.HSet(ctx, key, strconv.Itoa(pushes), 1).Err()
			}},
		{"a stream that grows", "unbounded", "XADD", quota.Standing,
			func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
				return c.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []string{"a", "b"}}).Err()
			}},
		{"the caller's seconds", "caller-clock", "SET", quota.Fixed, sends(-near+time.Second, time.Second)},
		{"the caller's nanoseconds", "caller-clock", "SET", quota.Fixed, sends(near-time.Second, 1)},
		{"another time", "", "", quota.Fixed, sends(near+time.Second, time.Second)},
		{"the time of Redis by the caller", "", "", quota.Fixed, sends(-ahead, time.Millisecond)},
		{"a loaded script", "", "", quota.Fixed,
			func(ctx context.Context, c redis.UniversalClient, key string, now time.Time) error {
				byTime.Load(ctx, c)
				return byTime.EvalSha(ctx, c, []string{key}, now.UnixMilli()).Err()
			}},
		{"no time to live of two commands", "no-ttl", "SET ", quota.Fixed,
			func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
				c.SetNX(ctx, key, 0, 0)
				return c.Incr(ctx, key).Err()
			}},
		{"two things", "caller-clock no-ttl", "SET", quota.Fixed,
			func(ctx context.Context, c redis.UniversalClient, key string, now time.Time) error {
				return c.Set(ctx, key, now.Unix(), 0).Err()
			}},
		{"many keys and then one", "", "", quota.Fixed,
			func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
				c.Del(ctx, "{"+key+"}a", "{"+key+"}b", "{"+key+"}c")
				return c.Set(ctx, key, 1, day).Err()
			}},
	} {
		pushes = 0
		m := strategies.Meta{Name: "planted", Needs: []strategies.Need{strategies.NeedRedis}, Kinds: []quota.Kind{c.kind},
			Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
				return planted{env, c.take}, nil
			}}
		found, err := Run(t.Context(), strategies.Selection{Meta: &m}, quota.Policy{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var codes []string
		for _, a := range found {
			codes = append(codes, string(a.Code))
			if a.Strategy != "planted" || a.Policy == "" || !strings.HasPrefix(a.Command, c.command) {
				t.Errorf("%s: %+v", c.name, a)
			}
			for _, k := range a.Keys {
				if !strings.Contains(a.Command, k) {
					t.Errorf("%s: the command has no key %s: %+v", c.name, k, a)
				}
			}
		}
		if strings.Join(codes, " ") != c.code {
			t.Errorf("%s: %+v", c.name, found)
		}
	}
}

// TestCounted: what is wrong with many commands of one name is told once, with their number, and with what it is about.
func TestCounted(t *testing.T) {
	const decisions = windows * asked * subjects
	script := redis.NewScript("redis.call('SET', KEYS[1], 1, 'EX', 60) return redis.call('SET', KEYS[2], 1, 'EX', 60)")
	members := 0
	for name, c := range map[string]struct {
		want results.Advice
		take func(ctx context.Context, c redis.UniversalClient, key string, now time.Time) error
	}{
		"times and random members": {
			results.Advice{Code: codes.AdviseCallerClock, Names: "ZADD", Count: decisions},
			func(ctx context.Context, c redis.UniversalClient, key string, now time.Time) error {
				members++
				_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
					p.ZAdd(ctx, key, redis.Z{Score: float64(now.UnixMicro()), Member: fmt.Sprintf("%x", members*7919)})
					p.Expire(ctx, key, time.Hour)
					return nil
				})
				return err
			},
		},
		"a script by its digest": {
			results.Advice{Code: codes.AdviseSlots, Names: "EVAL", Count: decisions,
				Keys: []string{"advice:subject-a537727a", "advice:subject-a537727b"}, Slots: []int{12089, 8026}},
			func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
				return script.Run(ctx, c, []string{key + "a", key + "b"}).Err()
			},
		},
		"keys": {
			results.Advice{Code: codes.AdviseNoTTL, Names: "INCR", Count: windows * subjects,
				Keys: []string{"advice:subject-a537727"}},
			func(ctx context.Context, c redis.UniversalClient, key string, _ time.Time) error {
				return c.Incr(ctx, key).Err()
			},
		},
	} {
		m := strategies.Meta{Name: "planted", Needs: []strategies.Need{strategies.NeedRedis},
			Kinds: []quota.Kind{quota.Fixed},
			Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
				return planted{env, c.take}, nil
			}}
		found, err := Run(t.Context(), strategies.Selection{Meta: &m}, quota.Policy{})
		if err != nil || len(found) != 1 {
			t.Errorf("%s: %v, %+v", name, err, found)
			continue
		}
		got := found[0]
		if got.Command == "" {
			t.Errorf("%s: no example", name)
		}
		got.Strategy = ""
		got.Policy = ""
		got.Command = ""
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// settling counts what it is asked for, by what and by which instance.
type settling struct {
	instance int
	seen     map[string]int
}

func (s settling) Take(_ context.Context, req quota.Request) (quota.Decision, error) {
	s.seen[fmt.Sprintf("instance %d", s.instance)]++
	s.seen["of "+string(req.Subject)]++
	if req.Settles {
		s.seen["settles"]++
	}
	if req.ID == 2 {
		return quota.Decision{}, strategies.ErrPrescribed
	}
	return quota.Decision{Admitted: req.ID != 5}, nil
}

func (s settling) Refund(context.Context, quota.Reservation) error { s.seen["refunds"]++; return nil }

func (s settling) Commit(_ context.Context, _ quota.Reservation, units int64) error {
	s.seen["commits"] += int(units)
	return nil
}

func (settling) Close(context.Context) error { return nil }

// TestSettles: of five requests that are admitted one is given back and one is committed, of a standing quota four and
// one.
func TestSettles(t *testing.T) {
	for kind, refunds := range map[quota.Kind]int{quota.Fixed: 9*windows - 1, quota.Standing: 36*windows - 2} {
		seen := map[string]int{}
		m := strategies.Meta{Name: "planted", Needs: []strategies.Need{strategies.NeedRedis, strategies.NeedSource},
			Kinds: []quota.Kind{kind}, GivesBack: true,
			Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
				return settling{env.Instance, seen}, nil
			}}
		found, err := Run(t.Context(), strategies.Selection{Meta: &m}, quota.Policy{})
		const each = asked * windows
		want := map[string]int{"refunds": refunds, "commits": 9 * windows, "settles": 3 * each,
			"instance 0": 3*each/2 + windows/2, "instance 1": 3*each/2 - windows/2,
			"of subject-a": each, "of subject-b": each, "of subject-c": each}
		if err != nil || !maps.Equal(seen, want) || len(found) > 0 {
			t.Errorf("%v: %v, %+v, seen %v, want %v", kind, err, found, seen, want)
		}
	}
}

// TestServed: a policy of each kind of window, of the limit that is driven.
func TestServed(t *testing.T) {
	for want, m := range map[string]strategies.Meta{
		"10 requests per fixed 1h; 10 requests refilling 10 per 1h": {Kinds: []quota.Kind{quota.Fixed, quota.Bucket}},
		"10 requests at a time": {Kinds: quota.Kinds(), Reset: strategies.ResetsNever},
	} {
		var got []string
		for _, p := range served(strategies.Selection{Meta: &m}, quota.Policy{}) {
			got = append(got, p.String())
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestServedAsAsked: a policy that is asked for is the only one, with the limit that is driven.
func TestServedAsAsked(t *testing.T) {
	m := strategies.Meta{Kinds: []quota.Kind{quota.Fixed, quota.Bucket}}
	asked := quota.Policy{Name: "own", Unit: "links", Limit: 500,
		Window: quota.Window{Kind: quota.Fixed, Length: time.Minute}}
	got := served(strategies.Selection{Meta: &m}, asked)
	if len(got) != 1 || got[0].String() != "10 links per fixed 1m" {
		t.Errorf("%v", got)
	}
	asked.Window.Kind = quota.Rolling
	if got := served(strategies.Selection{Meta: &m}, asked); len(got) != 0 {
		t.Errorf("served although it cannot be: %v", got)
	}
}

// TestUnread: nothing is opened if it has other stores than Redis, or none.
func TestUnread(t *testing.T) {
	for name, needs := range map[string][]strategies.Need{
		"nats":              {"nats"},
		"Redis and nats":    {strategies.NeedRedis, "nats"},
		"PostgreSQL":        {strategies.NeedPostgres},
		"nothing":           nil,
		"a source of truth": {strategies.NeedSource},
	} {
		m := strategies.Meta{Name: "planted", Needs: needs, Kinds: quota.Kinds(),
			Open: func(context.Context, strategies.Env) (strategies.Strategy, error) {
				return nil, errors.New("it was opened")
			}}
		if found, err := Run(t.Context(), strategies.Selection{Meta: &m}, quota.Policy{}); err != nil || len(found) > 0 {
			t.Errorf("%s: %v, %+v", name, err, found)
		}
	}
}

// TestPanic: a strategy that panics is an error.
func TestPanic(t *testing.T) {
	m := strategies.Meta{Name: "planted", Needs: []strategies.Need{strategies.NeedRedis}, Kinds: []quota.Kind{quota.Fixed},
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			return planted{env, func(context.Context, redis.UniversalClient, string, time.Time) error {
				panic("out of order")
			}}, nil
		}}
	_, err := Run(t.Context(), strategies.Selection{Meta: &m}, quota.Policy{})
	if err == nil || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("%v", err)
	}
}

// TestSlot: those that Redis' documentation and its CLUSTER KEYSLOT give.
func TestSlot(t *testing.T) {
	for k, want := range map[string]uint16{"123456789": 0x31C3, "foo": 12182, "{foo}bar": 12182, "a{foo}{bar}": 12182,
		"somekey": 11058, "foo{hash_tag}": 2515} {
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
		"get a": "a", "set a 1 ex 9": "a", "del a b c": "a b c", "mset a 1 b 2": "a b", "eval s 2 a b c": "a b",
		"evalsha s 0 c":           "",
		"zunion 2 a b withscores": "a b", "zunionstore a 2 b c weights 1 2": "a b c", "smove a b m": "a b",
		"rpoplpush a b":        "a b",
		"zrangestore a b 0 -1": "a b", "ping": "", "time": "", "multi": "", "eval s": "", "zunionstore a": "a",
	} {
		if got := strings.Join(keys(strings.Fields(command)), " "); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

// TestCatalogue has what is true of the strategies of this module, and of no other. It drives them all, which takes
// seconds.
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
		if reads(sel) {
			driven++
		}
		found, err := Run(t.Context(), sel, quota.Policy{})
		if err != nil {
			t.Error(err)
		}
		for _, a := range found {
			if name := m.Name + ":" + string(a.Code); !slices.Contains(got, name) {
				got = append(got, name)
			}
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || driven < 20 {
		t.Errorf("%d driven, found %q", driven, got)
	}
}
