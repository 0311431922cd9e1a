package reserve

import (
	"context"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/clock"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/quota"
	pgstore "github.com/quotabench/quotabench/stores/postgres"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// uploads is the record's example.
var uploads = &quota.Policy{Name: "tenant-uploads", Limit: 1000, Unit: "MB"}

// onBoth runs a test on miniredis with the model, and on real servers.
func onBoth(t *testing.T, test func(t *testing.T, env strategies.Env)) {
	t.Helper()
	env := func(t *testing.T, server *redisstore.Store) strategies.Env {
		c := server.Client(redisstore.ClientOptions{Pool: 4})
		t.Cleanup(func() { closing(t, c) })
		return with(t, strategies.Env{
			Clock: clock.Wall{}, Rand: rand.New(rand.NewPCG(1, 2)), Clients: map[string]any{"redis": c},
			Shared: new(strategies.Shared), Prefix: storetest.Prefix(t), Instances: 1, Wake: func(string) {},
		}, nil)
	}
	t.Run("embedded", func(t *testing.T) {
		e := env(t, storetest.EmbeddedRedis(t))
		e.Model = strategies.NewModel(nil)
		test(t, e)
	})
	t.Run("server", func(t *testing.T) {
		e := env(t, storetest.Redis(t))
		server := storetest.Postgres(t)
		pool, err := server.Pool(t.Context(), pgstore.PoolOptions{Schema: storetest.Schema(t, server), Size: 4})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		e.Clients["postgres"] = pool
		test(t, e)
	})
}

// with gives lua-reserve's options in an environment values.
func with(t *testing.T, env strategies.Env, given quota.Options) strategies.Env {
	t.Helper()
	sel, err := luaReserveMeta.Select(given)
	must(t, err)
	env.Options = sel.Options
	return env
}

func closing(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// tenantOf opens lua-reserve with one tenant who has used so much.
func tenantOf(t *testing.T, env strategies.Env, used int64) *luaReserve {
	t.Helper()
	s, err := luaReserveMeta.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	l := s.(*luaReserve)
	if err := l.Provision(t.Context(), uploads, []strategies.Grant{{Subject: "t1", Limit: 1000, Used: used}}); err != nil {
		t.Fatal(err)
	}
	return l
}

var lastID uint64

func take(t *testing.T, s strategies.Strategy, units int64, admitted bool) quota.Reservation {
	t.Helper()
	lastID++
	d, err := s.Take(t.Context(), quota.Request{ID: lastID, Subject: "t1", Policy: uploads, Units: units})
	if err != nil {
		t.Fatal(err)
	}
	if d.Admitted != admitted {
		t.Fatalf("%d MB: %+v, want admitted %v", units, d, admitted)
	}
	return d.Reservation
}

func used(t *testing.T, s strategies.Strategy, want int64) {
	t.Helper()
	r, err := s.(strategies.Viewer).Used(t.Context(), "t1", uploads)
	if err != nil || len(r) != 1 || r[0].Units != want {
		t.Fatalf("used %+v (%v), want %d", r, err, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// nightly runs the sync job.
func nightly(t *testing.T, s *luaReserve) (changed bool) {
	t.Helper()
	changed, err := s.Jobs()[0].Run(t.Context())
	must(t, err)
	return changed
}

// betweenGetAndSet runs something before the first SET of a client.
type betweenGetAndSet struct{ what func() }

func (*betweenGetAndSet) DialHook(next redis.DialHook) redis.DialHook { return next }
func (*betweenGetAndSet) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (b *betweenGetAndSet) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if what := b.what; cmd.Name() == "set" && what != nil {
			b.what = nil
			what()
		}
		return next(ctx, cmd)
	}
}

// TestRecordedRace is the time line of ADR-RM-3: 100 MB and 150 MB on top of
// 800 MB are both let in, and one of them is forgotten.
func TestRecordedRace(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		other := redis.NewClient(strategies.Redis(env).(*redis.Client).Options())
		t.Cleanup(func() { closing(t, other) })
		a, err := checkThenSetMeta.Open(t.Context(), env)
		must(t, err)
		env.Clients = map[string]any{"redis": other}
		b, err := checkThenSetMeta.Open(t.Context(), env)
		must(t, err)
		must(t, a.(strategies.Provisioner).Provision(t.Context(), uploads,
			[]strategies.Grant{{Subject: "t1", Limit: 1000, Used: 800}}))

		other.AddHook(&betweenGetAndSet{what: func() { take(t, a, 100, true) }})
		take(t, b, 150, true)
		used(t, a, 950)
		take(t, a, 51, false)
		take(t, a, 50, true)
	})
}

func TestKeysAndMissingLimit(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		s, err := luaReserveMeta.Open(t.Context(), env)
		must(t, err)
		take(t, s, 1, false) // no operator has said how much the tenant may use
		must(t, strategies.Redis(env).Set(t.Context(), env.Prefix+"quota:tenant:t1:limit", 2, 0).Err())
		take(t, s, 2, true)
		take(t, s, 1, false)
		if got := strategies.Redis(env).Get(t.Context(), env.Prefix+"quota:tenant:t1:used").Val(); got != "2" {
			t.Errorf("the used key holds %q, want 2", got)
		}
	})
}

// TestDoubleRefund: the clamp hides that units were given back twice, and the
// other holder's are then given to another caller.
func TestDoubleRefund(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		s := tenantOf(t, env, 0)
		a := take(t, s, 600, true)
		take(t, s, 400, true)
		must(t, s.Refund(t.Context(), a))
		used(t, s, 400)
		must(t, s.Refund(t.Context(), a))
		used(t, s, 0)
		take(t, s, 1000, true) // with 400 MB still held
	})
}

// TestFiles: what is committed is a file, what is deleted is none, and the job
// puts the difference right.
func TestFiles(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		s := tenantOf(t, env, 100)
		a := take(t, s, 150, true)
		b := take(t, s, 200, true)
		must(t, s.Commit(t.Context(), a, 120))
		must(t, s.Commit(t.Context(), b, 200))
		used(t, s, 450) // a commit leaves Redis alone
		if err := s.Commit(t.Context(), b, 200); err == nil {
			t.Error("one upload can become two files")
		}
		if !nightly(t, s) {
			t.Error("the job says that it changed nothing")
		}
		used(t, s, 420)
		if nightly(t, s) {
			t.Error("the job says that it changed something again")
		}
		must(t, s.Refund(t.Context(), a)) // the file is deleted: its own size comes back
		used(t, s, 300)
		if nightly(t, s) {
			t.Error("a deleted file still counts")
		}
		must(t, s.Refund(t.Context(), a)) // a second time, nothing is known of a file
		used(t, s, 150)
		nightly(t, s)
		used(t, s, 300)
	})
}

// TestRefundLiteral: neither a failed upload nor a deleted file gives anything
// back to Redis. The table of files knows, and so does the job.
func TestRefundLiteral(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		env = with(t, env, quota.Options{"refund": refundLiteral})
		s := tenantOf(t, env, 100)
		failed := take(t, s, 400, true)
		deleted := take(t, s, 300, true)
		kept := take(t, s, 200, true)
		must(t, s.Refund(t.Context(), failed))
		used(t, s, 1000)
		must(t, s.Commit(t.Context(), deleted, 300))
		must(t, s.Commit(t.Context(), kept, 150))
		must(t, s.Refund(t.Context(), deleted))
		used(t, s, 1000)
		take(t, s, 1, false) // although 250 MB are all that is stored
		nightly(t, s)
		used(t, s, 250)
		take(t, s, 750, true)
	})
}

// TestSyncRestoresNoLimit: after Redis has lost its data, the sync brings the count
// back and not the limit, and everything is refused for good.
func TestSyncRestoresNoLimit(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		s := tenantOf(t, env, 100)
		must(t, strategies.Redis(env).Del(t.Context(), s.keys.used(uploads.Name, "t1"),
			s.keys.limit(uploads.Name, "t1")).Err())
		take(t, s, 1, false)
		nightly(t, s)
		used(t, s, 100)
		take(t, s, 1, false)
	})
}

// TestReadThenWriteRefunds: what is given back can be had again, and a refund is no
// less of a race than a take.
func TestReadThenWriteRefunds(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		for _, meta := range []strategies.Meta{checkThenSetMeta, appLockMeta} {
			env := env
			env.Prefix += meta.Name + ":"
			other := redis.NewClient(strategies.Redis(env).(*redis.Client).Options())
			t.Cleanup(func() { closing(t, other) })
			a, err := meta.Open(t.Context(), env)
			must(t, err)
			env.Clients = map[string]any{"redis": other}
			b, err := meta.Open(t.Context(), env)
			must(t, err)
			held := take(t, a, 600, true)
			take(t, a, 500, false)
			must(t, b.(strategies.Refunder).Refund(t.Context(), held))
			used(t, a, 0)
			held = take(t, a, 300, true)
			other.AddHook(&betweenGetAndSet{what: func() { take(t, a, 700, true) }})
			must(t, b.(strategies.Refunder).Refund(t.Context(), held))
			used(t, a, 0) // the 700 are forgotten
			must(t, b.(strategies.Refunder).Refund(t.Context(), held))
			used(t, a, 0)
			if err := a.(strategies.Refunder).Refund(t.Context(), quota.Reservation{}); err == nil {
				t.Error("a reservation of no request can be refunded")
			}
		}
	})
}

// TestLeakClause: what is promised ends with the first round of the job, whatever
// started it.
func TestLeakClause(t *testing.T) {
	c := luaReserveMeta.Guarantee[0]
	if c.Bound(quota.Params{Offered: 5, Options: quota.Options{"demand": demandRejected}}) < 5 {
		t.Error("promises something although a rejection starts a round, of which the period says nothing")
	}
	p := quota.Params{Limit: 1000, MaxCost: 150, InFlight: 50, Instances: 2, Offered: 2000}
	if over := c.Bound(p); over != 0 {
		t.Errorf("allows %d units over the limit before any round", over)
	}
	// All that was asked for may be admitted on top of a limit that was used up at
	// the start.
	p.SyncPeriod = 24 * time.Hour
	if c.Bound(p) < p.Offered {
		t.Errorf("allows %d units after a round, and %d may leak", c.Bound(p), p.Offered)
	}
}

// TestSyncErasesReservations: an upload that is under way when the job runs is
// forgotten, and its units are given to another caller.
func TestSyncErasesReservations(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		s := tenantOf(t, env, 200)
		open := take(t, s, 800, true)
		take(t, s, 1, false)
		nightly(t, s)
		used(t, s, 200)
		stolen := take(t, s, 800, true)
		must(t, s.Commit(t.Context(), open, 800))
		must(t, s.Commit(t.Context(), stolen, 800))
		nightly(t, s)
		used(t, s, 1800)
		take(t, s, 1, false)
	})
}

// TestProvisionReplaces: a grant is the tenant's whole state.
func TestProvisionReplaces(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		s := tenantOf(t, env, 700)
		must(t, s.Commit(t.Context(), take(t, s, 100, true), 100))
		must(t, s.Provision(t.Context(), uploads, []strategies.Grant{{Subject: "t1", Limit: 50}}))
		used(t, s, 0)
		nightly(t, s)
		used(t, s, 0)
		take(t, s, 51, false)
		take(t, s, 50, true)
	})
}

// TestLargeAmounts: bytes of large quotas pass the scripts unharmed.
func TestLargeAmounts(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		const petabyte = 1 << 50
		s := tenantOf(t, env, 0)
		must(t, s.Provision(t.Context(), uploads,
			[]strategies.Grant{{Subject: "t1", Limit: 4 * petabyte, Used: 3 * petabyte}}))
		r := take(t, s, petabyte-1, true)
		used(t, s, 4*petabyte-1)
		take(t, s, 2, false)
		must(t, s.Refund(t.Context(), r))
		used(t, s, 3*petabyte)
	})
}
