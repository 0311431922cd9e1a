package ttlcounter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/quota"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// onBoth runs a test on miniredis and on a redis-server.
func onBoth(t *testing.T, test func(t *testing.T, env strategies.Env)) {
	t.Helper()
	run := func(server func(testing.TB) *redisstore.Store) func(*testing.T) {
		return func(t *testing.T) {
			c := server(t).Client(redisstore.ClientOptions{Pool: 4})
			t.Cleanup(func() { closing(t, c) })
			test(t, strategies.Env{Clock: clock.Wall{}, Clients: map[string]any{"redis": c}, Prefix: storetest.Prefix(t),
				Instances: 1})
		}
	}
	t.Run("embedded", run(storetest.EmbeddedRedis))
	t.Run("server", run(storetest.Redis))
}

func closing(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func open(t *testing.T, m strategies.Meta, env strategies.Env) strategies.Strategy {
	t.Helper()
	s, err := m.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func take(t *testing.T, s strategies.Strategy, p *quota.Policy, units int64) quota.Decision {
	t.Helper()
	d, err := s.Take(t.Context(), quota.Request{Subject: "u1", Policy: p, Units: units})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// march is a policy per calendar month with the present some time before the end
// of March 2031.
func march(limit int64, left time.Duration) *quota.Policy {
	return &quota.Policy{Name: "user-links", Limit: limit, Unit: "links", Window: quota.Window{
		Kind: quota.CalendarMonth,
		Timeline: quota.Timeline{
			Real:   clock.Wall{}.Now(),
			Policy: time.Date(2031, time.April, 1, 0, 0, 0, 0, time.UTC).Add(-left),
		},
	}}
}

// TestKeys: each record's own policy has the record's keys, other policies have
// keys of their own.
func TestKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		for _, c := range []struct {
			meta        strategies.Meta
			policy, key string
		}{
			{incrExpireMeta, "user-links", "users:u1:quota:2031-03"},
			{incrExpireMeta, "quota", "users:u1:user-links:2031-03"},
			{incrExpireAtomicMeta, "user-links", "users:u1:quota:2031-03"},
			{decrLiteralMeta, "link-hits", "links:u1:hits:2031-03"},
			{decrExpireMeta, "link-hits", "links:u1:hits:2031-03"},
			{decrExpireMeta, "user-links", "links:u1:user-links:2031-03"},
		} {
			env := env
			env.Prefix += c.meta.Name + ":" + c.policy + ":"
			p := march(10, 24*time.Hour)
			p.Name = c.policy
			take(t, open(t, c.meta, env), p, 1)
			keys := strategies.Redis(env).Keys(t.Context(), env.Prefix+"*").Val()
			if len(keys) != 1 || keys[0] != env.Prefix+c.key {
				t.Errorf("%s: keys %q, want %q", c.meta.Name, keys, env.Prefix+c.key)
			}
		}
	})
}

// TestExpirySetOnce: the caller that creates the key sets how long it lives, in whole
// seconds and never less than the window; no caller changes that again.
func TestExpirySetOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		p := march(10, time.Hour+300*time.Millisecond)
		s := open(t, incrExpireMeta, env)
		take(t, s, p, 3)
		key := s.(*incrExpire).key("u1", p, p.Window.Label(p.Window.At(clock.Wall{}.Now()).Index))
		ttl := strategies.Redis(env).PTTL(t.Context(), key).Val()
		if ttl > time.Hour+time.Second || ttl < time.Hour-5*time.Minute {
			t.Errorf("time to live %s, want an hour and the second that was begun", ttl)
		}
		strategies.Redis(env).Expire(t.Context(), key, 10*time.Minute)
		take(t, s, p, 3)
		if ttl := strategies.Redis(env).PTTL(t.Context(), key).Val(); ttl > 10*time.Minute {
			t.Errorf("the second request set the expiry anew: %s", ttl)
		}
	})
}

func TestWholeSeconds(t *testing.T) {
	start := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct{ left, want time.Duration }{
		{1, time.Second}, {time.Second, time.Second}, {time.Second + 1, 2 * time.Second},
		{744 * time.Hour, 744 * time.Hour}, {59*time.Second + 999*time.Millisecond, time.Minute},
	} {
		if got := wholeSeconds(&quota.Span{Start: start, End: start.Add(c.left)}, start); got != c.want {
			t.Errorf("%s before the end: %s, want %s", c.left, got, c.want)
		}
	}
}

// refuse is a hook that fails commands of one name instead of sending them.
type refuse string

func (refuse) DialHook(next redis.DialHook) redis.DialHook { return next }
func (refuse) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (name refuse) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == string(name) {
			return errors.New("refused")
		}
		return next(ctx, cmd)
	}
}

// TestOrphan: without the EXPIRE of the key's creator there will never be one.
func TestOrphan(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		p := march(10, time.Hour)
		client := strategies.Redis(env).(*redis.Client)
		failing := redis.NewClient(client.Options())
		t.Cleanup(func() { closing(t, failing) })
		failing.AddHook(refuse("expire"))
		broken := env
		broken.Clients = map[string]any{"redis": failing}
		if d := take(t, open(t, incrExpireMeta, broken), p, 1); d.Admitted || !d.Degraded {
			t.Errorf("%+v without an EXPIRE, want failing closed", d)
		}
		s := open(t, incrExpireMeta, env)
		for range 3 {
			if d := take(t, s, p, 1); !d.Admitted {
				t.Errorf("%+v, want admitted", d)
			}
		}
		key := s.(*incrExpire).key("u1", p, p.Window.Label(p.Window.At(clock.Wall{}.Now()).Index))
		if ttl := client.TTL(t.Context(), key).Val(); ttl != -1 {
			t.Errorf("time to live %s, want none", ttl)
		}
		if n := client.Get(t.Context(), key).Val(); n != "4" {
			t.Errorf("counter %s, want 4: the rejected request was counted", n)
		}
	})
}

// TestRejectedAttempts: they count in the documented form and cost nothing in the
// hardened one.
func TestRejectedAttempts(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		for _, c := range []struct {
			meta strategies.Meta
			last bool
			used int64
		}{{incrExpireMeta, false, 13}, {incrExpireAtomicMeta, true, 5}} {
			env := env
			env.Prefix += c.meta.Name + ":"
			p := march(5, time.Hour)
			s := open(t, c.meta, env)
			take(t, s, p, 4)
			if d := take(t, s, p, 8); d.Admitted {
				t.Errorf("%s: %+v over the limit", c.meta.Name, d)
			}
			if d := take(t, s, p, 1); d.Admitted != c.last {
				t.Errorf("%s: the unit that is left: %+v, want admitted %v", c.meta.Name, d, c.last)
			}
			r, err := s.(strategies.Viewer).Used(t.Context(), "u1", p)
			if err != nil || r[0].Units != c.used {
				t.Errorf("%s: shows %+v (%v), want %d", c.meta.Name, r, err, c.used)
			}
		}
	})
}

// behind is a clock that reads the given moments, the last one forever.
type behind struct {
	clock.Wall
	times []time.Time
}

func (b *behind) Now() time.Time {
	t := b.times[0]
	if len(b.times) > 1 {
		b.times = b.times[1:]
	}
	return t
}

// TestLateRequest: a request that reads its window, and reaches Redis when that
// window's key has expired.
func TestLateRequest(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		const now = 0 // what the clock reads is so long ago
		for i, c := range []struct {
			meta     strategies.Meta
			since    time.Duration   // how long it has been April
			read     []time.Duration // what the clock reads, as a time ago
			within   time.Duration   // how long the request may take for the case to be this one; 0 for any time
			admitted bool
			degraded bool
			charged  string // the key, without the prefix
		}{
			// The documented forms start the old month's count again, whatever it was.
			{incrExpireMeta, 2 * grace, []time.Duration{time.Minute}, 0, true, false, "users:u1:quota:2031-03"},
			{decrExpireMeta, 2 * grace, []time.Duration{time.Minute}, 0, true, false, "links:u1:user-links:2031-03"},
			// Within the grace the old month is still there to be counted.
			{incrExpireAtomicMeta, grace / 5, []time.Duration{grace / 2}, grace / 2, true, false, "users:u1:quota:2031-03"},
			// Beyond it the request moves to the month that has begun.
			{incrExpireAtomicMeta, 2 * grace, []time.Duration{time.Minute, now}, 0, true, false, "users:u1:quota:2031-04"},
			// A clock that stays behind gets no decision from Redis.
			{incrExpireAtomicMeta, 2 * grace, []time.Duration{time.Minute}, 0, false, true, ""},
		} {
			for try := 0; ; try++ {
				env := env
				env.Prefix += fmt.Sprint(i, ":", try, ":")
				p := march(1, -c.since)
				from := clock.Wall{}.Now()
				began := clock.Nano()
				read := &behind{}
				for _, ago := range c.read {
					read.times = append(read.times, from.Add(-ago))
				}
				env.Clock = read
				d := take(t, open(t, c.meta, env), p, 1)
				want := env.Prefix + c.charged
				keys := strategies.Redis(env).Keys(t.Context(), env.Prefix+"*").Val()
				took := time.Duration(clock.Nano() - began)
				if c.within > 0 && took > c.within && try < 20 {
					t.Logf("case %d took %s on this machine, which is another case: again", i, took)
					continue
				}
				if d.Admitted != c.admitted || d.Degraded != c.degraded {
					t.Errorf("case %d: %+v, want admitted %v, degraded %v", i, d, c.admitted, c.degraded)
				}
				if c.charged == "" && len(keys) > 0 || c.charged != "" && (len(keys) != 1 || keys[0] != want) {
					t.Errorf("case %d: keys %q, want %q", i, keys, want)
				}
				break
			}
		}
	})
}

// TestAtomicExpiry: the counter outlives its window by the grace, also if an
// operator made it.
func TestAtomicExpiry(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		p := march(10, time.Hour)
		s := open(t, incrExpireAtomicMeta, env)
		take(t, s, p, 1)
		err := s.(strategies.Provisioner).Provision(t.Context(), p, []strategies.Grant{{Subject: "u2", Limit: 10, Used: 4}})
		if err != nil {
			t.Fatal(err)
		}
		for _, subject := range []quota.Subject{"u1", "u2"} {
			span := p.Window.At(clock.Wall{}.Now())
			key := s.(*incrExpireAtomic).key(subject, p, p.Window.Label(span.Index))
			before := clock.Wall{}.Now()
			ttl := strategies.Redis(env).PTTL(t.Context(), key).Val()
			after := clock.Wall{}.Now()
			// An embedded server's keys age late by a little.
			const off = grace / 2
			if least, most := span.End.Add(grace-off).Sub(after), span.End.Add(grace+off).Sub(before); ttl < least ||
				ttl > most {
				t.Errorf("%s: time to live %s, want %s to %s: until the window's end and the grace of %s", subject, ttl, least,
					most, grace)
			}
		}
	})
}

// TestDecrLiteral: nothing sets the count, so nothing is admitted and nothing
// expires; a count that an operator set would have worked.
func TestDecrLiteral(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		p := march(2, time.Hour)
		s := open(t, decrLiteralMeta, env)
		for range 3 {
			if d := take(t, s, p, 1); d.Admitted || d.Degraded {
				t.Errorf("%+v, want rejected", d)
			}
		}
		key := s.(*decrLiteral).key("u1", p, p.Window.Label(p.Window.At(clock.Wall{}.Now()).Index))
		if v, ttl := strategies.Redis(env).Get(t.Context(), key).Val(),
			strategies.Redis(env).TTL(t.Context(), key).Val(); v != "-3" || ttl != -1 {
			t.Errorf("counter %s with time to live %s, want -3 and none", v, ttl)
		}
		r, err := s.(strategies.Viewer).Used(t.Context(), "u1", p)
		if err != nil || r[0].Units != 5 || !r[0].Known {
			t.Errorf("shows %+v (%v), want 5: the limit more than was asked for", r, err)
		}

		strategies.Redis(env).Set(t.Context(), key, 2, 0)
		for i, want := range []bool{true, true, false} {
			if d := take(t, s, p, 1); d.Admitted != want {
				t.Errorf("request %d on a count of 2: %+v", i+1, d)
			}
		}
		if ttl := strategies.Redis(env).TTL(t.Context(), key).Val(); ttl <= 0 {
			t.Errorf("time to live %s after the first of a full count, want about an hour", ttl)
		}
	})
}
