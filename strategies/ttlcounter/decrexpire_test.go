package ttlcounter

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// keyOf is where the only subject's count of the present month is.
func keyOf(env strategies.Env, p *quota.Policy) string {
	c := newCounter(env, "links")
	return c.key("u1", p, p.Window.Label(p.Window.At(clock.Wall{}.Now()).Index))
}

func wantCount(t *testing.T, env strategies.Env, key, value string, ttl bool) {
	t.Helper()
	v, left := env.Redis.Get(t.Context(), key).Val(), env.Redis.TTL(t.Context(), key).Val()
	if v != value || (left > 0) != ttl {
		t.Errorf("the count is %q with time to live %s, want %s and time to live: %v", v, left, value, ttl)
	}
}

// TestDecrExpire: the first access sets the count to the maximum and the expiry,
// later ones neither; rejected attempts count.
func TestDecrExpire(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		p := march(5, time.Hour)
		s, key := open(t, decrExpireMeta, env), keyOf(env, p)
		for i, step := range []struct {
			units, remaining int64
			admitted         bool
			count            string
		}{
			{1, 4, true, "4"}, {3, 1, true, "1"}, {2, 0, false, "-1"}, {1, 0, false, "-2"},
		} {
			d := take(t, s, p, step.units)
			if d.Admitted != step.admitted || d.Remaining != step.remaining || d.Degraded {
				t.Errorf("step %d: %+v, want %+v", i, d, step)
			}
			wantCount(t, env, key, step.count, true)
			if i == 0 {
				env.Redis.Expire(t.Context(), key, 10*time.Minute)
			}
		}
		if ttl := env.Redis.TTL(t.Context(), key).Val(); ttl > 10*time.Minute {
			t.Errorf("a later request set the expiry anew: %s", ttl)
		}
		r, err := s.(strategies.Viewer).Used(t.Context(), "u1", p)
		if err != nil || r[0].Units != 7 || !r[0].Known {
			t.Errorf("shows %+v (%v), want the 7 units that were asked for", r, err)
		}

		err = s.(strategies.Provisioner).Provision(t.Context(), p, []strategies.Grant{{Subject: "u1", Limit: 5, Used: 4}})
		if err != nil {
			t.Fatal(err)
		}
		wantCount(t, env, key, "1", true)
		if take(t, s, p, 1); take(t, s, p, 1).Admitted {
			t.Error("admits two units of the one that an operator left")
		}
	})
}

// before runs something ahead of the first command of a name.
type before struct {
	refuse // for its other hooks
	name   string
	do     func()
}

func (b *before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if do := b.do; cmd.Name() == b.name && do != nil {
			b.do = nil
			do()
		}
		return next(ctx, cmd)
	}
}

// TestExpiryBetweenSetAndDecr: the key that DECR then makes never expires, and
// while its window lasts it rejects everybody.
func TestExpiryBetweenSetAndDecr(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		p := march(5, time.Hour)
		key := keyOf(env, p)
		hooked := redis.NewClient(env.Redis.(*redis.Client).Options())
		t.Cleanup(func() { closing(t, hooked) })
		hooked.AddHook(&before{name: "decr", do: func() { env.Redis.Del(t.Context(), key) }})
		unlucky := env
		unlucky.Redis = hooked
		if d := take(t, open(t, decrExpireMeta, unlucky), p, 1); d.Admitted || d.Degraded {
			t.Errorf("%+v, want rejected", d)
		}
		wantCount(t, env, key, "-1", false)
		if d := take(t, open(t, decrExpireMeta, env), p, 1); d.Admitted {
			t.Errorf("%+v on a count below zero", d)
		}
		wantCount(t, env, key, "-2", false)
	})
}

// TestDecrExpireFailsClosed at either command, and a caller that gave up gets an
// error instead.
func TestDecrExpireFailsClosed(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		for _, name := range []string{"set", "decr"} {
			failing := redis.NewClient(env.Redis.(*redis.Client).Options())
			t.Cleanup(func() { closing(t, failing) })
			failing.AddHook(refuse(name))
			broken := env
			broken.Redis = failing
			s := open(t, decrExpireMeta, broken)
			if d := take(t, s, march(5, time.Hour), 1); d.Admitted || !d.Degraded {
				t.Errorf("%+v without %s, want failing closed", d, name)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if d, err := s.Take(ctx, quota.Request{Subject: "u1", Policy: march(5, time.Hour), Units: 1}); err == nil {
				t.Errorf("%+v for a caller that gave up", d)
			}
		}
	})
}
