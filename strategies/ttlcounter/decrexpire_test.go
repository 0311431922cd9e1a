package ttlcounter

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// keyOf is where the only subject's count of the present month is.
func keyOf(env strategies.Env, p *quota.Policy) string {
	c := newCounter(env, linkHits)
	return c.key("u1", p, p.Window.Label(p.Window.At(clock.Wall{}.Now()).Index))
}

func wantCount(t *testing.T, env strategies.Env, key, value string, ttl bool) {
	t.Helper()
	v := strategies.Redis(env).Get(t.Context(), key).Val()
	left := strategies.Redis(env).TTL(t.Context(), key).Val()
	if v != value || (left > 0) != ttl {
		t.Errorf("the count is %q with time to live %s, want %s and time to live: %v", v, left, value, ttl)
	}
}

// TestDecrExpire: the first access sets the count to the maximum and the expiry,
// later ones neither; rejected attempts count.
func TestDecrExpire(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		p := march(5, time.Hour)
		s := open(t, decrExpireMeta, env)
		key := keyOf(env, p)
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
				strategies.Redis(env).Expire(t.Context(), key, 10*time.Minute)
			}
		}
		if ttl := strategies.Redis(env).TTL(t.Context(), key).Val(); ttl > 10*time.Minute {
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
		take(t, s, p, 1)
		if take(t, s, p, 1).Admitted {
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
		hooked := redis.NewClient(strategies.Redis(env).(*redis.Client).Options())
		t.Cleanup(func() { closing(t, hooked) })
		hooked.AddHook(&before{name: "decr", do: func() { strategies.Redis(env).Del(t.Context(), key) }})
		unlucky := env
		unlucky.Clients = map[string]any{"redis": hooked}
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
			failing := redis.NewClient(strategies.Redis(env).(*redis.Client).Options())
			t.Cleanup(func() { closing(t, failing) })
			failing.AddHook(refuse(name))
			broken := env
			broken.Clients = map[string]any{"redis": failing}
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

// listing opens decr-expire with init=listing over a client that notes its commands.
func listing(t *testing.T, env strategies.Env) (*decrExpire, *sent) {
	t.Helper()
	c := redis.NewClient(strategies.Redis(env).(*redis.Client).Options())
	t.Cleanup(func() { closing(t, c) })
	w := &sent{}
	c.AddHook(w)
	env.Clients = map[string]any{"redis": c}
	env.Options = quota.Options{"init": initListing}
	return open(t, decrExpireMeta, env).(*decrExpire), w
}

// sent notes the names of a client's commands.
type sent struct {
	refuse // for its other hooks
	names  []string
}

func (s *sent) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "hello" {
			s.names = append(s.names, cmd.Name())
		}
		return next(ctx, cmd)
	}
}

// TestListingCommands: a process creates each count once, and from then on DECR is
// all that it sends.
func TestListingCommands(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		p := march(5, time.Hour)
		s, w := listing(t, env)
		other, _ := listing(t, env)
		if d := take(t, s, p, 1); !d.Admitted || d.Remaining != 4 {
			t.Errorf("%+v, want admitted with 4 left", d)
		}
		take(t, s, p, 1)
		take(t, other, p, 2) // which tries to create it too, in vain
		if want := []string{"set", "decr", "expire", "decr"}; !slices.Equal(w.names, want) {
			t.Errorf("sent %q, want %q", w.names, want)
		}
		wantCount(t, env, keyOf(env, p), "1", true)
		take(t, s, p, 1)
		if take(t, s, p, 1).Admitted {
			t.Error("admits more than the limit")
		}
	})
}

// TestListingOrphan: the caller that is to set the expiry dies before it does, and
// no other ever will.
func TestListingOrphan(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		p := march(5, time.Hour)
		failing := redis.NewClient(strategies.Redis(env).(*redis.Client).Options())
		t.Cleanup(func() { closing(t, failing) })
		failing.AddHook(refuse("expire"))
		broken := env
		broken.Clients = map[string]any{"redis": failing}
		broken.Options = quota.Options{"init": initListing}
		if d := take(t, open(t, decrExpireMeta, broken), p, 1); d.Admitted || !d.Degraded {
			t.Errorf("%+v without an EXPIRE, want failing closed", d)
		}
		s, _ := listing(t, env)
		take(t, s, p, 1)
		wantCount(t, env, keyOf(env, p), "3", false)
	})
}

// TestListingLostKey: a process that remembers to have created the count does not
// do so again when Redis loses it, and DECR makes one that rejects everybody.
func TestListingLostKey(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		p := march(5, time.Hour)
		s, _ := listing(t, env)
		take(t, s, p, 1)
		strategies.Redis(env).Del(t.Context(), keyOf(env, p))
		if d := take(t, s, p, 1); d.Admitted || d.Degraded {
			t.Errorf("%+v, want rejected", d)
		}
		wantCount(t, env, keyOf(env, p), "-1", false)
	})
}

// TestListingProvision: what an operator sets is heeded by a process that has
// created the count before.
func TestListingProvision(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		p := march(5, time.Hour)
		s, _ := listing(t, env)
		take(t, s, p, 4)
		for _, used := range []int64{0, 4} {
			if err := s.Provision(t.Context(), p, []strategies.Grant{{Subject: "u1", Limit: 5, Used: used}}); err != nil {
				t.Fatal(err)
			}
			if d := take(t, s, p, 5-used); !d.Admitted {
				t.Errorf("%+v with %d of 5 used", d, used)
			}
			if d := take(t, s, p, 1); d.Admitted {
				t.Errorf("%+v over the limit", d)
			}
		}
	})
}
