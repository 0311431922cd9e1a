package window

import (
	"io"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/quota"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// dial is a clock that is set by hand.
type dial struct {
	clock.Wall
	now time.Time
}

func (d *dial) Now() time.Time { return d.now }

// start is the beginning of a window of a minute, and of one of 15.
var start = time.Date(2031, time.March, 15, 12, 0, 0, 0, time.UTC)

func policy(kind quota.Kind, length time.Duration, limit int64) *quota.Policy {
	return &quota.Policy{Name: "contact-form", Limit: limit, Unit: "submissions",
		Window: quota.Window{Kind: kind, Length: length}}
}

// onBoth runs a test on miniredis and on a redis-server, with a clock of its own.
func onBoth(t *testing.T, test func(t *testing.T, env strategies.Env, now *dial)) {
	t.Helper()
	run := func(server func(testing.TB) *redisstore.Store) func(*testing.T) {
		return func(t *testing.T) {
			c := server(t).Client(redisstore.ClientOptions{Pool: 4})
			t.Cleanup(func() { closing(t, c) })
			now := &dial{now: start}
			test(t, strategies.Env{
				Clock: now, Clients: map[string]any{"redis": c}, Prefix: storetest.Prefix(t), Instances: 1,
				Options: quota.Options{"multi": "false"},
			}, now)
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
	d, err := s.Take(t.Context(), quota.Request{Subject: "203.0.113.10", Policy: p, Units: units})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// admitted counts how many of n single units are.
func admitted(t *testing.T, s strategies.Strategy, p *quota.Policy, n int) (count int) {
	t.Helper()
	for range n {
		if take(t, s, p, 1).Admitted {
			count++
		}
	}
	return count
}

func used(t *testing.T, s strategies.Strategy, p *quota.Policy, tier quota.Tier, units int64, known bool) {
	t.Helper()
	r, err := s.(strategies.Viewer).Used(t.Context(), "203.0.113.10", p)
	if err != nil || len(r) != 1 ||
		r[0] != (quota.Reading{Tier: tier, Units: units, Known: known, PerInstance: tier == quota.TierProcess}) {
		t.Errorf("shows %+v (%v), want %d units in %s, known %v", r, err, units, tier, known)
	}
}

func grant(t *testing.T, s strategies.Strategy, p *quota.Policy, limit, units int64) error {
	t.Helper()
	return s.(strategies.Provisioner).Provision(t.Context(), p,
		[]strategies.Grant{{Subject: "203.0.113.10", Limit: limit, Used: units}})
}

// A full hour of the calendar is a window of one hour's length, for both.
func TestCalendarHour(t *testing.T) {
	p := quota.Policy{Name: "hourly", Limit: 2, Window: quota.Window{Kind: quota.CalendarHour}}
	now := &dial{now: time.Date(2026, time.November, 20, 12, 59, 0, 0, time.UTC)}
	s := open(t, dequeMeta, strategies.Env{Clock: now})
	if n := admitted(t, s, &p, 3); n != 2 {
		t.Errorf("deque: %d of 2", n)
	}
	now.now = now.now.Add(time.Hour - 1)
	if n := admitted(t, s, &p, 1); n != 0 {
		t.Error("deque: a moment was forgotten before it was an hour old")
	}
	now.now = now.now.Add(1)
	if n := admitted(t, s, &p, 3); n != 2 {
		t.Errorf("deque: %d of 2 an hour later", n)
	}
	if d := timeToLive(p.Window); d != time.Hour+grace {
		t.Errorf("a key lives for %s", d)
	}
	if a, b := numbered(p.Window).At(now.now), p.Window.At(now.now); a != b {
		t.Errorf("numbered window %v, the policy's is %v", a, b)
	}
}
