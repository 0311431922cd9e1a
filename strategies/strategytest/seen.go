package strategytest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// mark is the key of what the suite puts into every context that it passes on, so
// that it knows the commands of its calls.
type mark struct{}

// ctx is the context of the suite's calls.
func (f *fixture) ctx() context.Context { return context.WithValue(context.Background(), mark{}, true) }

// watch makes the fixture's witness. If virtual is not zero, timestamps of the
// wall clock are looked for in commands.
func (f *fixture) watch(virtual time.Time) {
	caller := func(ctx context.Context) bool { return ctx.Value(mark{}) != nil }
	if f.sel.Foreign {
		caller = nil // the commands come under contexts of their own
	}
	f.witness = witness.New(witness.Config{
		// The only stores whose commands are seen.
		NeedsStore: slices.ContainsFunc(needs, f.sel.NeedsStore) || len(f.sel.RedisNeeds()) > 0,
		Caller:     caller,
		Real:       clock.Wall{}.Now(), Virtual: virtual,
	})
}

// report fails the test if the strategy's work was not seen: nothing that the
// suite found is worth anything then.
func (f *fixture) report() {
	f.Helper()
	for _, reason := range f.witness.Reasons() {
		if f.postponed && reason.Code != witness.WallClock {
			continue
		}
		f.Errorf("the test could not follow the strategy: %v", reason)
	}
}

// traced is a pool like pool, of the store with the name, whose statements the witness
// sees. It is as large as the strategy asks for.
func (f *fixture) traced(pool *pgxpool.Pool, store string) *pgxpool.Pool {
	f.Helper()
	cfg := pool.Config()
	cfg.ConnConfig.Tracer = f.witness.Tracer()
	if n := f.sel.Connections(store).Pool; n > 0 {
		cfg.MaxConns = int32(n)
	}
	own, err := pgxpool.NewWithConfig(f.ctx(), cfg)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(own.Close)
	f.pools = append(f.pools, own)
	return own
}

// connections are those of one client, by the address that the server sees.
type connections struct {
	mu    sync.Mutex
	own   map[string]bool
	known map[string]bool // of others, from before the strategy was opened
}

// DialHook notes the client's own connections.
func (c *connections) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err == nil && conn != nil && conn.LocalAddr() != nil {
			c.mu.Lock()
			c.own[conn.LocalAddr().String()] = true
			c.mu.Unlock()
		}
		return conn, err
	}
}

// ProcessHook implements [redis.Hook].
func (*connections) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements [redis.Hook].
func (*connections) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// others are connections to the server that are not the client's. A server that
// does not list its clients, or that is reached over no network, has none.
func (c *connections) others(ctx context.Context, client *redis.Client) map[string]bool {
	out := map[string]bool{}
	list, err := client.ClientList(ctx).Result()
	if err != nil {
		return out
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for field := range strings.FieldsSeq(list) {
		addr, ok := strings.CutPrefix(field, "addr=")
		if host, _, err := net.SplitHostPort(addr); ok && err == nil && net.ParseIP(host) != nil && !c.own[addr] {
			out[addr] = true
		}
	}
	return out
}

// lookOut watches for connections to the server that are opened from now on and
// are not the client's. It returns what to call at the end.
func (f *fixture) lookOut(client *redis.Client) func() {
	c := &connections{own: map[string]bool{}}
	client.AddHook(c)
	plain := redis.NewClient(client.Options()) // its commands are not the strategy's
	plain.AddHook(c)
	c.known = c.others(f.ctx(), plain)
	return func() {
		for addr := range c.others(f.ctx(), plain) {
			if !c.known[addr] {
				f.witness.Note(witness.OtherClient, "a connection from "+addr+
					" reached Redis past the client that the strategy was given")
			}
		}
		if err := plain.Close(); err != nil {
			f.Error(err)
		}
	}
}

// checkClock: the strategy takes the time from its clock. That clock is years
// away from the wall's: no command may hold the wall's time. A strategy without
// stores has nothing but the clock to go by, and must see its windows pass.
func checkClock(tb testing.TB, meta *strategies.Meta, stores Stores) {
	tb.Helper()
	skipForeign(tb, meta)
	setClock := newSetClock()
	// It begins early in the month, the day and the hour: half an hour in microseconds
	// and three weeks in milliseconds, as what is left of a window, look like the wall's seconds.
	real := clock.Wall{}.Now().UTC()
	setClock.int64.Store(int64(time.Date(real.Year()+4, real.Month(), 3, 2, 3, 0, 0, time.UTC).Sub(real)))
	fixture := openBy(tb, meta, stores, 1, nil, testClock{setClock, setClock.Now()})
	const limit, offered = 3, 6
	for _, policy := range served(meta, stores) {
		q := withLimit(policy, limit)
		q.Window.Timeline = quota.Timeline{} // policy time is the clock's
		book := fixture.book(q)
		subject := book.subject(0)
		book.exhaust(subject, offered)
		if len(meta.Needs) > 0 || meta.Reset != strategies.ResetsWindow || q.Window.Kind == quota.Standing {
			continue
		}
		setClock.int64.Add(int64(2 * reach(q.Window)))
		if admitted, _ := book.exhaust(subject, offered); admitted == 0 && book.least(offered) > 0 {
			tb.Errorf("%s window: two windows passed on the strategy's clock and nothing is admitted: "+
				"it takes the time from elsewhere", policy.Window.Kind)
		}
	}
	if fixture.witness.Told() {
		checkClockApart(tb, fixture, stores, setClock)
	}
}

// postponement is by how much the times are ahead that a Redis is made to tell.
const postponement = 8 * 366 * 24 * time.Hour

// checkClockApart: a strategy that asks a store for the time may send it back, and takes
// its own from its clock nevertheless. The store's are made to differ from the wall
// clock's, so that what is near those is the strategy's own.
func checkClockApart(tb testing.TB, asked *fixture, stores Stores, c quota.Clock) {
	tb.Helper()
	f := opened(&fixture{TB: tb, meta: asked.meta, sel: asked.sel, postponed: true}, stores, 1, testClock{c, c.Now()})
	const limit, offered = 3, 6
	for _, policy := range served(f.meta, stores) {
		q := withLimit(policy, limit)
		q.Window.Timeline = quota.Timeline{}
		subject := f.book(q).subject(0)
		for range offered {
			_, _ = f.instances[0].Take(f.ctx(), quota.Request{ID: f.ids.Add(1), Subject: subject.name, Policy: q, Units: 1})
		}
	}
}

// postpone has a Redis answer times that are years ahead.
func (f *fixture) postpone(ctx context.Context, cmds []redis.Cmder, send func(context.Context) error) error {
	err := send(ctx)
	for _, cmd := range cmds {
		f.witness.Postpone(cmd, postponement)
	}
	return err
}

// skipForeign skips what moves time for code that reads the clock of package time:
// explorations move that, see explore.
func skipForeign(tb testing.TB, meta *strategies.Meta) {
	tb.Helper()
	if meta.Foreign {
		tb.Skip("its clock is that of package time, which explorations move")
	}
}

// reach is at least one window's length.
func reach(window quota.Window) time.Duration {
	switch window.Kind {
	case quota.CalendarMonth:
		return 31 * 24 * time.Hour
	case quota.CalendarDay:
		return 25 * time.Hour
	case quota.CalendarHour:
		return time.Hour
	}
	return window.Length
}

// pieces feeds the numbers in the middle of texts to the witness: a key that ends
// in a timestamp tells the time as an argument does. Dates are looked for as text.
type pieces struct {
	witness *witness.Witness
	date    string // the wall clock's month
}

// look is a [hooks.Redis].
func (p pieces) look(ctx context.Context, cmds []redis.Cmder, send func(context.Context) error) error {
	for _, cmd := range cmds {
		p.lookAt(ctx, cmd)
	}
	return send(ctx)
}

func (p pieces) lookAt(ctx context.Context, cmd redis.Cmder) {
	for _, arg := range cmd.Args()[1:] {
		text, ok := arg.(string)
		if !ok {
			continue
		}
		if strings.Contains(text, p.date) && !p.witness.Told() {
			p.witness.Note(witness.WallClock,
				fmt.Sprintf("%s holds %q, the wall clock's month: the strategy takes the time from elsewhere than its clock",
					cmd.Name(), text))
		}
		var numbers []any
		for _, n := range strings.FieldsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) {
			if len(n) >= 10 && len(n) < len(text) {
				numbers = append(numbers, n)
			}
		}
		if numbers != nil {
			p.witness.Statement(ctx, cmd.Name()+" ", numbers)
		}
	}
}
