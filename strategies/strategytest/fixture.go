package strategytest

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/fakeredis/hooks"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// fixture is one strategy on stores of its own.
type fixture struct {
	testing.TB
	meta      *strategies.Meta
	sel       strategies.Selection
	instances []strategies.Strategy
	env       strategies.Env
	ids       atomic.Uint64
	subjects  atomic.Uint32
	broken    atomic.Bool
	witness   *witness.Witness
	ends      []func() // called before the instances close
	// breakOthers breaks and mends the stores of [Stores.Clients]; nil if none of
	// them is needed, or none can be broken.
	breakOthers func(broken bool)
	needsOthers bool
	pools       []*pgxpool.Pool // of PostgreSQL
	// postponed is set if Redis tells times that are years ahead. What the strategy
	// decides then says nothing.
	postponed bool
	// moved is set if the time of the strategy and of its stores moves together, and ahead is how far it is ahead of the
	// wall clock's.
	moved bool
	ahead *atomic.Int64
	// rejects is set if a second window may reject what the policy admits.
	rejects bool
	// pass lets time pass.
	pass func(time.Duration)
}

// errOutage is what every store says while it is broken.
var errOutage = errors.New("the store is out of order")

// open makes that many instances with default options. It skips the test if a
// store is missing.
func open(tb testing.TB, meta *strategies.Meta, stores Stores, instances int) *fixture {
	tb.Helper()
	return openBy(tb, meta, stores, instances, nil, patientClock)
}

// openMoved is open with a clock that is moved together with those of the stores, if these can be moved. Time then
// takes no time, and no machine is too slow for it.
func openMoved(tb testing.TB, meta *strategies.Meta, stores Stores, instances int) *fixture {
	tb.Helper()
	if stores.advance == nil {
		return open(tb, meta, stores, instances)
	}
	moved := newSetClock()
	f := openBy(tb, meta, stores, instances, nil, testClock{Clock: moved})
	f.moved = true
	f.ahead = moved.int64
	f.pass = func(duration time.Duration) {
		moved.int64.Add(int64(duration))
		stores.advance(duration)
	}
	return f
}

// nano is the time of what is recorded.
func (f *fixture) nano() int64 { return clock.Nano() + f.ahead.Load() }

// patient is a clock that ends no contexts: a strategy's own deadlines would make
// what the suite finds a question of the machine's speed.
type patient struct{ quota.Clock }

var patientClock = testClock{Clock: patient{clock.Wall{}}}

// setClock is a patient clock that is ahead of the wall's by so many nanoseconds.
type setClock struct {
	patient
	int64 *atomic.Int64
}

func newSetClock() setClock { return setClock{patient{clock.Wall{}}, new(atomic.Int64)} }

func (c setClock) Now() time.Time { return c.patient.Now().Add(time.Duration(c.int64.Load())) }

// hasty is a clock that waits for nothing: it goes ahead by what it is asked to wait.
type hasty struct{ setClock }

func (h hasty) Sleep(ctx context.Context, duration time.Duration) error {
	h.int64.Add(max(0, int64(duration)))
	return ctx.Err()
}

// testClock is a clock for a test. virtual is its time if timestamps of the wall clock are wrong.
type testClock struct {
	quota.Clock
	virtual time.Time
}

// openBy opens on a clock for the test.
func openBy(tb testing.TB, meta *strategies.Meta, stores Stores, instances int, given quota.Options,
	c testClock) *fixture {
	tb.Helper()
	sel, err := meta.Select(given)
	if err != nil {
		tb.Fatal(err)
	}
	return opened(&fixture{TB: tb, meta: sel.Meta, sel: sel}, stores, instances, c) // with what the options need, too
}

// opened connects and opens a new fixture.
func opened(f *fixture, stores Stores, instances int, c testClock) *fixture {
	tb := f.TB
	tb.Helper()
	f.ahead = new(atomic.Int64)
	f.pass = wait
	f.rejects = stores.Second.Limit > 0 && !f.meta.TwoQuotas
	f.env = strategies.Env{
		Clock: c.Clock, Shared: new(strategies.Shared), Prefix: "conformance:" + rand.Text() + ":",
		Instances: instances, Options: f.sel.Options, Wake: func(string) {},
	}
	f.watch(c.virtual)
	f.connect(stores, !c.virtual.IsZero())
	for i := range instances {
		f.instances = append(f.instances, f.open(i))
	}
	tb.Cleanup(func() {
		for _, end := range f.ends {
			end()
		}
		for i, strategy := range f.instances {
			if err := strategy.Close(f.ctx()); err != nil {
				tb.Errorf("closing instance %d: %v", i, err)
			}
		}
		f.report()
	})
	return f
}

func (f *fixture) connect(stores Stores, virtual bool) {
	f.Helper()
	f.env.Clients = map[string]any{}
	if need, lacks := stores.lacks(f.sel.Needs); lacks {
		f.Skipf("needs %s", need)
	}
	for _, need := range f.sel.Needs {
		open := stores.Clients[string(need)]
		if open == nil {
			continue // connected below, or modelled
		}
		switch client := open(f.TB).(type) {
		case redis.UniversalClient:
			f.env.Clients[string(need)] = f.hooked(client, virtual)
		case *pgxpool.Pool:
			f.env.Clients[string(need)] = f.traced(client, string(need))
		default:
			f.env.Clients[string(need)] = client
			f.breakOthers = stores.Break
			f.needsOthers = true
		}
	}
	if f.sel.NeedsStore(strategies.NeedRedis) {
		if stores.Redis == nil {
			f.Skip("needs Redis")
		}
		client := stores.Redis(f.TB)
		if stores.Alone {
			f.ends = append(f.ends, f.lookOut(client))
		}
		f.env.Clients[string(strategies.NeedRedis)] = f.hooked(client, virtual)
	}
	needsPostgres := f.sel.NeedsStore(strategies.NeedPostgres)
	needsSource := f.sel.NeedsStore(strategies.NeedSource)
	switch {
	case !needsPostgres && !needsSource:
	case stores.Postgres != nil:
		f.env.Clients[string(strategies.NeedPostgres)] = f.traced(stores.Postgres(f.TB), string(strategies.NeedPostgres))
	case needsPostgres:
		f.Skip("needs PostgreSQL")
	default:
		f.env.Model = strategies.NewModel(func(ctx context.Context, sql string, run func() error) error {
			f.witness.Statement(ctx, sql, nil)
			if f.broken.Load() {
				return errOutage
			}
			return run()
		})
	}
}

// hooked watches what a Redis client is given, and lets it fail.
func (f *fixture) hooked(client redis.UniversalClient, virtual bool) redis.UniversalClient {
	client.AddHook(f.witness.RedisHook())
	if virtual {
		p := pieces{f.witness, clock.Wall{}.Now().UTC().Format("2006-01")}
		client.AddHook(hooks.Redis(p.look))
	}
	if f.postponed {
		client.AddHook(hooks.Redis(f.postpone))
	}
	client.AddHook(hooks.Redis(f.refuse))
	return client
}

// open makes one more instance, which the caller closes.
func (f *fixture) open(i int) strategies.Strategy {
	f.Helper()
	env := f.env
	env.Instance = i
	env.Rand = seed.Rand(1, seed.Instance, 1, uint64(i))
	strategy, err := f.meta.Open(f.ctx(), env)
	if err != nil {
		f.Fatalf("opening instance %d: %v", i, err)
	}
	return strategy
}

// breakStores makes every store command fail from now on, or mends the stores. PostgreSQL
// does not come back.
func (f *fixture) breakStores(broken bool) {
	f.broken.Store(broken)
	if f.breakOthers != nil {
		f.breakOthers(broken)
	}
	for _, pool := range f.pools {
		pool.Reset() // connections in use are not waited for
		pool.Close()
	}
}

// refuse lets no command through while the stores are broken.
func (f *fixture) refuse(ctx context.Context, cmds []redis.Cmder, send func(context.Context) error) error {
	if !f.broken.Load() {
		return send(ctx)
	}
	for _, cmd := range cmds {
		cmd.SetErr(errOutage)
	}
	return errOutage
}
