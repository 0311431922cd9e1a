package postgres_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	pgstore "github.com/quotabench/quotabench/stores/postgres"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/postgres"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// tracer records statements and lets others go first.
type tracer struct {
	mu         sync.Mutex
	statements []string
}

type beforeKey struct{}

type before struct {
	verb string
	left int
	do   func()
}

// at makes do happen once, right before the first statement with that verb.
func at(ctx context.Context, verb string, do func()) context.Context {
	return atFirst(ctx, 1, verb, do)
}

// atFirst makes do happen right before each of the first n statements with that
// verb.
func atFirst(ctx context.Context, n int, verb string, do func()) context.Context {
	return context.WithValue(ctx, beforeKey{}, &before{verb, n, do})
}

func (tr *tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	verb, _, _ := strings.Cut(q.SQL, " ")
	if b, ok := ctx.Value(beforeKey{}).(*before); ok && b.left > 0 && b.verb == verb {
		b.left--
		b.do()
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.statements = append(tr.statements, verb)
	return ctx
}

func (tr *tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (tr *tracer) take() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	s := strings.Join(tr.statements, " ")
	tr.statements = nil
	return s
}

func newPool(t *testing.T, tr pgx.QueryTracer) *pgxpool.Pool {
	t.Helper()
	p := storetest.Postgres(t)
	pool, err := p.Pool(t.Context(), pgstore.PoolOptions{Schema: storetest.Schema(t, p), Size: 8, Tracer: tr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func open(t *testing.T, pool *pgxpool.Pool, name string) strategies.Strategy {
	t.Helper()
	s, err := tryOpen(t.Context(), pool, name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// names are those of the package's strategies.
var names = []string{"pg-check", "pg-conditional", "pg-row-lock", "pg-optimistic", "pg-query-cache"}

// patient is a clock that ends no contexts unless it is told to: on a slow machine
// every check could take longer than its time-out.
type patient struct {
	quota.Clock
	hurry atomic.Bool
}

func (p *patient) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if !p.hurry.Load() {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}

// tryOpen opens a strategy by its name, and its options after a colon.
func tryOpen(ctx context.Context, pool *pgxpool.Pool, name string) (strategies.Strategy, error) {
	return openOn(ctx, pool, name, &patient{Clock: clock.Wall{}})
}

func openOn(ctx context.Context, pool *pgxpool.Pool, name string, c quota.Clock) (strategies.Strategy, error) {
	sel, err := strategies.Parse(name)
	if err != nil {
		return nil, err
	}
	return sel[0].Open(ctx, strategies.Env{
		Clock: c, Clients: map[string]any{"postgres": pool}, Instances: 1, Shared: new(strategies.Shared),
		Options: sel[0].Options,
	})
}

func policy(t *testing.T, name string, limit int64) *quota.Policy {
	t.Helper()
	p := testkit.Policy(t, name)
	p.Limit = limit
	return &p
}

func take(ctx context.Context, t *testing.T, s strategies.Strategy, subject quota.Subject, p *quota.Policy,
	units int64) quota.Decision {
	t.Helper()
	d, err := s.Take(ctx, quota.Request{Subject: subject, Policy: p, Units: units})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func wantUsed(t *testing.T, s strategies.Strategy, subject quota.Subject, p *quota.Policy, want quota.Reading) {
	t.Helper()
	r, err := s.(strategies.Viewer).Used(t.Context(), subject, p)
	if err != nil {
		t.Fatal(err)
	}
	want.Tier = quota.TierPostgres
	if len(r) != 1 || r[0] != want {
		t.Errorf("used: %+v, want %+v", r, want)
	}
}

func TestSequential(t *testing.T) {
	tr := &tracer{}
	s := open(t, newPool(t, tr), "pg-check")
	tr.take()
	sequential(t, s, tr, "SELECT INSERT UPDATE", "SELECT", "SELECT UPDATE", "SELECT")
}

// sequential takes 4, 7, 6 and 1 units of 10, by these statements, and then units of another subject and policy.
func sequential(t *testing.T, s strategies.Strategy, tr *tracer, statements ...string) {
	t.Helper()
	p := policy(t, "agent-tokens", 10)
	other := policy(t, "user-links", 10)
	wantUsed(t, s, "a", p, quota.Reading{})
	tr.take()
	for i, step := range []struct {
		units, remaining int64
		admitted         bool
	}{{4, 6, true}, {7, 6, false}, {6, 0, true}, {1, 0, false}} {
		d := take(t.Context(), t, s, "a", p, step.units)
		if d.Admitted != step.admitted || d.Remaining != step.remaining || d.Tier != quota.TierPostgres {
			t.Errorf("step %d: %+v, want %+v", i, d, step)
		}
		if got := tr.take(); got != statements[i] {
			t.Errorf("step %d sends %s, want %s", i, got, statements[i])
		}
	}
	wantUsed(t, s, "a", p, quota.Reading{Units: 10, Known: true})
	for what, d := range map[string]quota.Decision{
		"subject": take(t.Context(), t, s, "b", p, 10),
		"policy":  take(t.Context(), t, s, "a", other, 10),
	} {
		if !d.Admitted {
			t.Errorf("another %s shares the quota: %+v", what, d)
		}
	}
}

// TestCallersPassBetweenReadAndCharge: both are admitted, neither charge is lost.
func TestCallersPassBetweenReadAndCharge(t *testing.T) {
	s := open(t, newPool(t, &tracer{}), "pg-check")
	p := policy(t, "agent-tokens", 10)
	for _, verb := range []string{"INSERT", "UPDATE"} {
		subject := quota.Subject(verb)
		var other quota.Decision
		d := take(at(t.Context(), verb, func() { other = take(t.Context(), t, s, subject, p, 10) }), t, s, subject, p, 10)
		if !d.Admitted || !other.Admitted {
			t.Errorf("before %s: %+v and %+v, want both admitted", verb, d, other)
		}
		wantUsed(t, s, subject, p, quota.Reading{Units: 20, Known: true})
	}
}

func TestRefundAndProvision(t *testing.T) {
	s := open(t, newPool(t, nil), "pg-check")
	p := policy(t, "agent-storage", 100)
	grant := strategies.Grant{Subject: "a", Limit: 50, Used: 20}
	if err := s.(strategies.Provisioner).Provision(t.Context(), p,
		[]strategies.Grant{grant, {Subject: "b", Limit: 1}}); err != nil {
		t.Fatal(err)
	}
	if d := take(t.Context(), t, s, "a", p, 31); d.Admitted || d.Remaining != 30 {
		t.Errorf("31 of 30: %+v", d)
	}
	d := take(t.Context(), t, s, "a", p, 30)
	for _, left := range []int64{20, -10} {
		if err := s.(strategies.Refunder).Refund(t.Context(), d.Reservation); err != nil {
			t.Fatal(err)
		}
		wantUsed(t, s, "a", p, quota.Reading{Units: left, Known: true})
	}
	grant.Limit = 200
	grant.Used = 60
	if err := s.(strategies.Provisioner).Provision(t.Context(), p, []strategies.Grant{grant}); err != nil {
		t.Fatal(err)
	}
	if d := take(t.Context(), t, s, "a", p, 140); !d.Admitted || d.Remaining != 0 {
		t.Errorf("140 of 140 after the limit was raised: %+v", d)
	}
}

func TestNoReset(t *testing.T) {
	s := open(t, newPool(t, nil), "pg-check")
	p := policy(t, "user-links", 2)
	take(t.Context(), t, s, "a", p, 2)
	later := *p
	now := clock.Wall{}.Now()
	later.Window.Timeline = quota.Timeline{Real: now, Policy: now.AddDate(0, 1, 0)}
	if d := take(t.Context(), t, s, "a", &later, 1); d.Admitted {
		t.Errorf("a month later: %+v, want a rejection", d)
	}
}

// TestConcurrent stays within the declared bound, and counts what it admitted.
func TestConcurrent(t *testing.T) {
	const workers, limit = 8, 60
	for _, name := range names {
		s := open(t, newPool(t, nil), name)
		p := policy(t, "user-links", limit)
		var admitted, failed atomic.Int64
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for range 20 {
					d, err := s.Take(t.Context(), quota.Request{Subject: "a", Policy: p, Units: 1})
					if err != nil {
						failed.Add(1)
					}
					if d.Admitted {
						admitted.Add(1)
					}
				}
			})
		}
		wg.Wait()
		meta := testkit.Strategy(t, name).Meta
		over := meta.Guarantee[0].Bound(quota.Params{Limit: limit, MaxCost: 1, Deciding: workers})
		if n := admitted.Load(); failed.Load() > 0 || n < limit || n > limit+over {
			t.Errorf("%s: %d admitted and %d failed, want %d to %d and none", name, n, failed.Load(), limit, limit+over)
		}
		wantUsed(t, s, "a", p, quota.Reading{Units: admitted.Load(), Known: true})
	}
}

// TestInstancesOpenTogether: the table is made once, by the first instance.
func TestInstancesOpenTogether(t *testing.T) {
	pool := newPool(t, nil)
	for _, name := range names {
		errs := make(chan error, 8)
		for range cap(errs) {
			go func() {
				_, err := tryOpen(t.Context(), pool, name)
				errs <- err
			}()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := tryOpen(t.Context(), nil, name); err == nil {
			t.Errorf("%s opens without PostgreSQL", name)
		}
	}
}

func TestCancelled(t *testing.T) {
	for _, name := range names {
		s := open(t, newPool(t, nil), name)
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		if d, err := s.Take(ctx, quota.Request{Subject: "a", Policy: policy(t, "user-links", 2), Units: 1}); err == nil {
			t.Errorf("%s: %+v, want an error", name, d)
		}
	}
}

// TestProvisionIsBulk: ten thousand subjects are one statement.
func TestProvisionIsBulk(t *testing.T) {
	grants := make([]strategies.Grant, 10_000)
	for i := range grants {
		grants[i] = strategies.Grant{Subject: quota.Subject(strings.Repeat("s", i%7+1) + time.Duration(i).String()), Limit: 5,
			Used: int64(i % 5)}
	}
	p := policy(t, "user-links", 5)
	for _, name := range testenv.Pick(names[:2], names) {
		tr := &tracer{}
		s := open(t, newPool(t, tr), name)
		tr.take()
		start := clock.Nano()
		if err := s.(strategies.Provisioner).Provision(t.Context(), p, grants); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: 10,000 subjects in %s", name, time.Duration(clock.Nano()-start))
		if got := tr.take(); got != "INSERT" {
			t.Errorf("%s sends %q, want one INSERT", name, got)
		}
		wantUsed(t, s, grants[9_999].Subject, p, quota.Reading{Units: 4, Known: true})
	}
}
