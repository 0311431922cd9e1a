package window

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// wire is a hook that notes the round trips of a client, and refuses them on
// demand.
type wire struct {
	mu    sync.Mutex
	trips []string
	down  bool
}

func (w *wire) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w *wire) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := w.note(cmd); err != nil {
			return err
		}
		return next(ctx, cmd)
	}
}

func (w *wire) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := w.note(cmds...); err != nil {
			for _, c := range cmds {
				c.SetErr(err)
			}
			return err
		}
		return next(ctx, cmds)
	}
}

func (w *wire) note(cmds ...redis.Cmder) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return errors.New("refused")
	}
	var names []string
	for _, c := range cmds {
		names = append(names, c.Name())
	}
	w.trips = append(w.trips, strings.Join(names, " "))
	return nil
}

// wired returns an environment whose client goes through the wire.
func wired(t *testing.T, env strategies.Env) (strategies.Env, *wire) {
	t.Helper()
	w := &wire{}
	c := redis.NewClient(strategies.Redis(env).(*redis.Client).Options())
	t.Cleanup(func() { closing(t, c) })
	c.AddHook(w)
	env.Clients = map[string]any{"redis": c}
	return env, w
}

// TestFixedCommands: each check is one round trip, which sets the expiry anew.
func TestFixedCommands(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env, now *dial) {
		for multi, want := range map[string][]string{
			"false": {"incr expire", "incrby expire"},
			"true":  {"multi incr expire exec", "multi incrby expire exec"},
		} {
			direct := strategies.Redis(env)
			env, w := wired(t, env)
			env.Options = quota.Options{"multi": multi}
			env.Prefix = env.Prefix + multi + ":"
			now.now = start.Add(20 * time.Second)
			s := open(t, fixedMeta, env)
			p := policy(quota.Fixed, time.Minute, 3)
			take(t, s, p, 1)
			key := env.Prefix + "contact:203.0.113.10:32189040"
			direct.Expire(t.Context(), key, time.Second)
			if d := take(t, s, p, 3); d.Admitted || d.RetryAfter != 40*time.Second || d.Tier != quota.TierRedis || d.Degraded {
				t.Errorf("multi=%s: %+v, want rejected for 40 s", multi, d)
			}
			w.trips = slices.DeleteFunc(w.trips, func(s string) bool { return s == "hello" }) // of the connection
			if !slices.Equal(w.trips, want) {
				t.Errorf("multi=%s: round trips %q, want %q", multi, w.trips, want)
			}
			ttl := direct.PTTL(t.Context(), key).Val()
			if ttl > 65*time.Second || ttl <= time.Minute {
				t.Errorf("multi=%s: time to live %s after the second call, want the window and 5 s", multi, ttl)
			}
			used(t, s, p, quota.TierRedis, 4, true) // rejected attempts count
			if take(t, s, p, 1).Admitted {
				t.Errorf("multi=%s: a rejected attempt has left room", multi)
			}
		}
	})
}

// TestFixedBurst: the limit at a window's end and again at the next one's
// beginning, whichever kind of window the policy has.
func TestFixedBurst(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env, now *dial) {
		for _, kind := range []quota.Kind{quota.Fixed, quota.Rolling} {
			env := env
			env.Prefix += kind.String() + ":"
			s := open(t, fixedMeta, env)
			p := policy(kind, 15*time.Minute, 5)
			now.now = start.Add(-1)
			if n := admitted(t, s, p, 7); n != 5 {
				t.Errorf("%s: %d of 5 at the end", kind, n)
			}
			now.now = start
			used(t, s, p, quota.TierRedis, 0, false)
			if n := admitted(t, s, p, 7); n != 5 {
				t.Errorf("%s: %d of 5 at the beginning", kind, n)
			}
		}
	})
}

// TestFixedFallsBack: without Redis each process counts for itself, from nothing,
// and what it admitted then is not known to Redis afterwards.
func TestFixedFallsBack(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env, now *dial) {
		p := policy(quota.Fixed, time.Minute, 3)
		var instances []strategies.Strategy
		var wires []*wire
		for range 2 {
			env, w := wired(t, env)
			instances = append(instances, open(t, fixedMeta, env))
			wires = append(wires, w)
		}
		if n := admitted(t, instances[0], p, 2); n != 2 {
			t.Fatalf("%d of 2", n)
		}
		total := 2
		for i, s := range instances {
			wires[i].down = true
			if d := take(t, s, p, 1); !d.Admitted || !d.Degraded || d.Tier != quota.TierProcess {
				t.Errorf("%+v, want admitted by the process, degraded", d)
			}
			total += 1 + admitted(t, s, p, 9)
			if d := take(t, s, p, 1); d.Admitted || !d.Degraded {
				t.Errorf("%+v, want rejected by the process, degraded", d)
			}
			wires[i].down = false
		}
		total += admitted(t, instances[1], p, 3)
		if total != 3+2*3 {
			t.Errorf("%d units were admitted, want the limit from Redis and from each process", total)
		}
		bound := int64(-1)
		for _, c := range fixedMeta.Guarantee {
			if c.Property == quota.PropertyLeak && c.Applies(quota.Fixed) && slices.Contains(c.Tolerates, quota.FaultOutage) {
				bound = p.Limit + c.Bound(quota.Params{Limit: p.Limit, MaxCost: 1, Instances: 2})
			}
		}
		if bound != int64(total) {
			t.Errorf("declared are %d units at most, and %d were admitted", bound, total)
		}
	})
}

func TestFixedCancelled(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env, _ *dial) {
		s := open(t, fixedMeta, env)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if d, err := s.Take(ctx, quota.Request{Subject: "a", Policy: policy(quota.Fixed, time.Minute, 1),
			Units: 1}); err == nil {
			t.Errorf("%+v for a caller that gave up", d)
		}
	})
}

func TestFixedProvision(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env, _ *dial) {
		s := open(t, fixedMeta, env)
		p := policy(quota.Fixed, time.Minute, 5)
		take(t, s, p, 4)
		for _, units := range []int64{3, 0} {
			if err := grant(t, s, p, 5, units); err != nil {
				t.Fatal(err)
			}
			used(t, s, p, quota.TierRedis, units, units > 0)
			key := env.Prefix + "contact:203.0.113.10:32189040"
			if ttl := strategies.Redis(env).PTTL(t.Context(), key).Val(); units > 0 &&
				(ttl <= time.Minute || ttl > 65*time.Second) {
				t.Errorf("time to live %s, want the window and most of 5 s", ttl)
			}
		}
		if err := grant(t, s, p, 6, 0); err == nil {
			t.Error("takes a limit of the subject's own, and has nowhere to keep it")
		}
	})
}

// TestTimeToLive shrinks with the policy's time and is whole seconds.
func TestTimeToLive(t *testing.T) {
	for _, c := range []struct {
		length time.Duration
		speed  float64
		want   time.Duration
	}{
		{time.Minute, 0, 65 * time.Second},
		{time.Minute, 1, 65 * time.Second},
		{time.Minute, 13, 5 * time.Second},
		{time.Minute, 60, 2 * time.Second},
		{time.Minute, 1e6, time.Second},
		{100 * time.Millisecond, 1, 6 * time.Second},
	} {
		w := quota.Window{Kind: quota.Fixed, Length: c.length,
			Timeline: quota.Timeline{Real: start, Policy: start, Speed: c.speed}}
		if got := timeToLive(w); got != c.want {
			t.Errorf("%s at %g x: %s, want %s", c.length, c.speed, got, c.want)
		}
	}
}
