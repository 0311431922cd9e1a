package hardened_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	pgstore "github.com/quotabench/quotabench/stores/postgres"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
)

const agent = quota.Subject("agent-7")

// stack is a set of stores that instances share.
type stack struct {
	redis  *redis.Client
	env    strategies.Env
	opened int
	pool   *pgxpool.Pool // nil without a server
	// sourceDown makes statements of the model fail.
	sourceDown bool
}

func onEveryStack(t *testing.T, test func(t *testing.T, s *stack)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		s := newStack(t, storetest.EmbeddedRedis(t))
		s.env.Model = strategies.NewModel(func(_ context.Context, _ string, run func() error) error {
			if s.sourceDown {
				return errors.New("connection refused")
			}
			return run()
		})
		test(t, s)
	})
	t.Run("servers", func(t *testing.T) {
		s := newStack(t, storetest.Redis(t))
		p := storetest.Postgres(t)
		pool, err := p.Pool(t.Context(), pgstore.PoolOptions{Schema: storetest.Schema(t, p), Size: 8})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		s.pool = pool
		test(t, s)
	})
}

func newStack(t *testing.T, r *redisstore.Store) *stack {
	s := &stack{redis: r.Client(redisstore.ClientOptions{Pool: 8})}
	s.env = strategies.Env{Clock: clock.Wall{}, Shared: new(strategies.Shared), Prefix: storetest.Prefix(t), Instances: 2}
	t.Cleanup(func() {
		_ = s.redis.Close()
		if _, err := r.WipePrefix(context.Background(), s.env.Prefix); err != nil {
			t.Error(err)
		}
	})
	return s
}

// in is an instance with a Redis client of its own.
type in struct {
	strategies.Strategy
	t      *testing.T
	client *redis.Client
	pool   *pgxpool.Pool
	ids    *uint64
}

func (s *stack) open(t *testing.T, selection string) *in {
	t.Helper()
	sel := testkit.Strategy(t, selection)
	options := *s.redis.Options()
	client := redis.NewClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	env := s.env
	env.Options = sel.Options
	env.Instance = s.opened
	env.Clients = map[string]any{"redis": client}
	env.Rand = seed.Rand(1, seed.Instance, 1, uint64(s.opened))
	s.opened++
	i := &in{t: t, client: client, ids: new(uint64)}
	*i.ids = uint64(s.opened) << 32
	var err error
	if s.pool != nil {
		i.pool, err = pgxpool.NewWithConfig(t.Context(), s.pool.Config())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(i.pool.Close)
		env.Clients["postgres"] = i.pool
	}
	i.Strategy, err = sel.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func (i *in) take(p *quota.Policy, units int64) quota.Decision {
	i.t.Helper()
	*i.ids++
	d, err := i.Take(i.t.Context(), quota.Request{ID: *i.ids, Subject: agent, Policy: p, Units: units})
	if err != nil {
		i.t.Fatal(err)
	}
	return d
}

func (i *in) provision(p *quota.Policy, limit, used int64) {
	i.t.Helper()
	grant := strategies.Grant{Subject: agent, Limit: limit, Used: used}
	if err := i.Strategy.(strategies.Provisioner).Provision(i.t.Context(), p, []strategies.Grant{grant}); err != nil {
		i.t.Fatal(err)
	}
}

// wants asks n times for one unit and checks the admissions against want.
func (i *in) wants(what string, p *quota.Policy, n, want int) (held []quota.Reservation) {
	i.t.Helper()
	for range n {
		if d := i.take(p, 1); d.Admitted {
			held = append(held, d.Reservation)
		}
	}
	if len(held) != want {
		i.t.Errorf("%s: %d of %d requests were admitted, want %d", what, len(held), n, want)
	}
	return held
}

func (i *in) measure(name string) int64 {
	i.t.Helper()
	for _, m := range i.Strategy.(strategies.Meter).Measures() {
		if m.Name == name {
			return m.Value
		}
	}
	i.t.Fatalf("there is no measure %q", name)
	return 0
}

func policy(t *testing.T, name string, limit int64) *quota.Policy {
	t.Helper()
	p := testkit.Policy(t, name)
	p.Limit = limit
	// No window ends during a test.
	p.Window.Timeline = quota.Timeline{Real: clock.Wall{}.Now(),
		Policy: time.Date(2031, time.March, 15, 12, 30, 0, 0, time.UTC)}
	return &p
}

func later(p *quota.Policy) *quota.Policy {
	q := *p
	q.Window.Timeline = quota.Timeline{Real: clock.Wall{}.Now(),
		Policy: time.Date(2031, time.April, 15, 13, 30, 0, 0, time.UTC)}
	return &q
}

type refuse struct{}

func (refuse) DialHook(next redis.DialHook) redis.DialHook { return next }

func (refuse) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (refuse) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		err := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		cmd.SetErr(err)
		return err
	}
}

const name = "three-tier-hardened"

// TestEvictionAdmitsNothingTwice drops the hash again and again: what was admitted and
// what was lost with it never add up to more than the limit.
func TestEvictionAdmitsNothingTwice(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		a := s.open(t, name+":lease=0s")
		b := s.open(t, name+":lease=0s")
		limit := testenv.Pick(40, 160)
		p := policy(t, "agent-api", int64(limit))
		a.provision(p, int64(limit), 0)
		admitted := 0
		for i := range testenv.Pick(100, 400) {
			if i%7 == 3 {
				s.wipe(t)
			}
			for _, x := range []*in{a, b} {
				if x.take(p, 1).Admitted {
					admitted++
				}
			}
		}
		if admitted > limit || admitted < limit/2 {
			t.Errorf("%d of %d units were admitted", admitted, limit)
		}
	})
}

func (s *stack) wipe(t *testing.T) {
	t.Helper()
	keys, err := s.redis.Keys(t.Context(), s.env.Prefix+"escrow:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) > 0 {
		s.redis.Del(t.Context(), keys...)
	}
}

// TestReset: a new window rejects nobody, whatever instances still know of the old one.
func TestReset(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		a := s.open(t, name+":lease=1m")
		b := s.open(t, name+":lease=1m")
		p := policy(t, "agent-api", 5)
		a.provision(p, 5, 0)
		a.wants("the first window", p, 9, 5)
		b.wants("on the other instance", p, 3, 0)
		for _, x := range []*in{a, b} {
			if x.measure("filter hits") == 0 {
				t.Error("the filter has rejected nothing")
			}
		}
		next := later(p)
		b.wants("the next window", next, 3, 3)
		a.wants("the next window, on the other instance", next, 3, 2)
	})
}

// TestRaisedLimit: what instances may reject by themselves is over when the operator
// is answered. Neither one rejects what fits then.
func TestRaisedLimit(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		a := s.open(t, name+":lease=100ms")
		b := s.open(t, name+":lease=100ms")
		p := policy(t, "agent-api", 3)
		a.provision(p, 3, 0)
		a.wants("at first", p, 5, 3)
		b.wants("on the other instance", p, 3, 0)
		for limit, last := int64(5), testenv.Pick(int64(9), 25); limit < last; limit += 2 {
			a.provision(p, limit, limit-2)
			b.wants("after the limit was raised", p, 1, 1)
			a.wants("after the limit was raised, on the other instance", p, 3, 1)
			b.wants("at the limit", p, 3, 0)
		}
		a.provision(p, 4, 8)
		a.wants("after the limit was lowered", p, 3, 0)
	})
}

// TestRefundReachesEveryInstance: units that come back can be had if their lack was
// known.
func TestRefundReachesEveryInstance(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		for _, use := range []string{"agent-api", "agent-sandboxes"} {
			a := s.open(t, name+":lease=100ms")
			b := s.open(t, name+":lease=100ms")
			p := policy(t, use, 3)
			a.provision(p, 3, 0)
			held := a.wants(use, p, 5, 3)
			for _, r := range held {
				b.wants(use+" at the limit", p, 2, 0)
				for range 2 { // the second time it is worth nothing
					if err := a.Strategy.(strategies.Refunder).Refund(t.Context(), r); err != nil {
						t.Fatal(err)
					}
				}
				b.wants(use+" after a refund", p, 2, 1)
			}
		}
	})
}

// TestSettledOnce: a commit and a refund are worth the same however often they are told.
func TestSettledOnce(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		x := s.open(t, name)
		p := policy(t, "agent-storage", 10)
		x.provision(p, 10, 0)
		d := x.take(p, 6)
		commit := func(units int64) {
			t.Helper()
			if err := x.Strategy.(strategies.Committer).Commit(t.Context(), d.Reservation, units); err != nil {
				t.Fatal(err)
			}
		}
		used := func(want int64) {
			t.Helper()
			r, err := x.Strategy.(strategies.Viewer).Used(t.Context(), agent, p)
			if err != nil || len(r) != 1 || r[0].Units != want || !r[0].Known {
				t.Errorf("readings %+v, %v; want %d", r, err, want)
			}
		}
		used(6)
		commit(2)
		commit(2)
		used(2)
		commit(4)
		used(4)
		for range 2 {
			if err := x.Strategy.(strategies.Refunder).Refund(t.Context(), d.Reservation); err != nil {
				t.Fatal(err)
			}
		}
		used(0)
		commit(5) // it comes late
		used(0)
	})
}

// TestOutages: without Redis PostgreSQL decides, exactly; without both nothing is
// admitted. Without PostgreSQL the credit lasts.
func TestOutages(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		a := s.open(t, name)
		b := s.open(t, name)
		p := policy(t, "agent-api", 32)
		a.provision(p, 32, 0)
		a.wants("with both", p, 1, 1) // and one unit of credit
		b.client.AddHook(refuse{})
		for range 40 {
			d := b.take(p, 1)
			if !d.Degraded || d.Tier == quota.TierRedis {
				t.Fatalf("without Redis: %+v", d)
			}
		}
		b.wants("without Redis, at the limit", p, 3, 0)
		if a.pool != nil {
			a.pool.Close()
			b.pool.Close()
		}
		s.sourceDown = true
		if d, err := b.Take(t.Context(), quota.Request{ID: 1, Subject: agent, Policy: p, Units: 1}); err == nil {
			t.Errorf("without both: %+v, want an error", d)
		}
		a.wants("without PostgreSQL, from the credit", p, 1, 1)
		if d, err := a.Take(t.Context(), quota.Request{ID: 2, Subject: agent, Policy: p, Units: 1}); err == nil {
			t.Errorf("without PostgreSQL or credit: %+v, want an error", d)
		}
	})
}

// TestFewStatements: PostgreSQL is written as often as the option says, and not by
// rejections.
func TestFewStatements(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		for selection, want := range map[string]int64{name: 17, name + ":draws=4": 5, name + ":draws=1": 2} {
			x := s.open(t, selection)
			p := policy(t, "agent-api", 320)
			p.Name = selection
			x.provision(p, 320, 0)
			x.wants(selection, p, 400, 320)
			if n := x.measure("draws"); n != want {
				t.Errorf("%s: %d draws, want %d", selection, n, want)
			}
		}
	})
}

// TestKeysExpire: every hash of a window has a deadline, whoever wrote to it last.
func TestKeysExpire(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		x := s.open(t, name)
		p := policy(t, "agent-api", 20)
		for i := range 12 {
			d := x.take(p, 2)
			if i%3 == 0 && d.Admitted {
				if err := x.Strategy.(strategies.Refunder).Refund(t.Context(), d.Reservation); err != nil {
					t.Fatal(err)
				}
			}
			keys := s.redis.Keys(t.Context(), s.env.Prefix+"escrow:*").Val()
			if len(keys) != 1 || s.redis.PTTL(t.Context(), keys[0]).Val() <= 0 {
				t.Fatalf("after request %d: keys %q, which live for %v", i, keys, s.redis.PTTL(t.Context(), keys[0]).Val())
			}
		}
	})
}

// TestPurge removes ended windows, and them alone.
func TestPurge(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		x := s.open(t, name)
		p := policy(t, "agent-api", 5)
		old := *p
		old.Window.Timeline = quota.Timeline{} // of the wall clock
		long := quota.Timeline{Real: clock.Wall{}.Now().AddDate(0, 0, -3),
			Policy: time.Date(2031, 3, 15, 12, 30, 0, 0, time.UTC)}
		gone := quota.Reservation{Request: quota.Request{ID: 9, Subject: agent, Policy: &old, Units: 1},
			Window: old.Window.At(long.Real).Index}
		x.wants("now", p, 1, 1)
		if err := x.Strategy.(strategies.Refunder).Refund(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		job := x.Strategy.(strategies.Jobber).Jobs()[0]
		for _, want := range []bool{true, false} {
			if changed, err := job.Run(t.Context()); err != nil || changed != want {
				t.Errorf("changed %t, %v; want %t", changed, err, want)
			}
		}
		x.wants("after a purge", p, 6, 4)
	})
}

// TestNotesOfStandingRefundsArePurged: a window without an end keeps what it counts,
// and not forever what was given back in it.
func TestNotesOfStandingRefundsArePurged(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		late := &ahead{}
		s.env.Clock = late
		x := s.open(t, name)
		p := policy(t, "agent-sandboxes", 3)
		held := x.wants("at first", p, 2, 2)
		if err := x.Strategy.(strategies.Refunder).Refund(t.Context(), held[0]); err != nil {
			t.Fatal(err)
		}
		job := x.Strategy.(strategies.Jobber).Jobs()[0]
		for _, c := range []struct {
			by   time.Duration
			want bool
		}{{0, false}, {25 * time.Hour, true}, {25 * time.Hour, false}} {
			late.by = c.by
			if changed, err := job.Run(t.Context()); err != nil || changed != c.want {
				t.Errorf("%s later: changed %t, %v; want %t", c.by, changed, err, c.want)
			}
		}
		x.wants("after a purge", p, 4, 2)
	})
}

// ahead is a clock that a test moves.
type ahead struct {
	clock.Wall
	by time.Duration
}

func (a *ahead) Now() time.Time { return a.Wall.Now().Add(a.by) }

// TestInstancesTogether: many callers of two instances are admitted exactly the limit.
func TestInstancesTogether(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		a := s.open(t, name)
		b := s.open(t, name)
		p := policy(t, "agent-api", 100)
		a.provision(p, 100, 0)
		var admitted [2]int
		var wg sync.WaitGroup
		var mu sync.Mutex
		for w := range 16 {
			wg.Go(func() {
				for i := range 20 {
					x := []*in{a, b}[w%2]
					d, err := x.Take(t.Context(), quota.Request{ID: uint64(w*100 + i), Subject: agent, Policy: p, Units: 1})
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					if d.Admitted {
						admitted[w%2]++
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if n := admitted[0] + admitted[1]; n != 100 {
			t.Errorf("%d were admitted, want 100", n)
		}
	})
}
