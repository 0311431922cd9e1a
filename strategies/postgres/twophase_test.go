package postgres_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	pgstore "github.com/quotabench/quotabench/stores/postgres"
	"github.com/quotabench/quotabench/strategies"
)

// databases are the two of a pg-two-phase. What is done in them is recorded in one
// list.
type databases struct {
	pools [2]*pgxpool.Pool
	tr    *intruder
}

// intruder is a tracer that interferes with the nth statement of a verb, counted
// over both databases.
type intruder struct {
	tracer
	mu   sync.Mutex
	verb string
	nth  int
	do   func(*pgx.Conn)
}

func (in *intruder) TraceQueryStart(ctx context.Context, c *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	ctx = in.tracer.TraceQueryStart(ctx, c, q)
	in.mu.Lock()
	hit := false
	if verb, _, _ := strings.Cut(q.SQL, " "); in.nth > 0 && verb == in.verb {
		in.nth--
		hit = in.nth == 0
	}
	in.mu.Unlock()
	if hit {
		in.do(c)
	}
	return ctx
}

func (in *intruder) at(verb string, nth int, do func(*pgx.Conn)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.verb = verb
	in.nth = nth
	in.do = do
}

func newDatabases(t *testing.T) *databases {
	t.Helper()
	d := &databases{tr: &intruder{}}
	for i := range d.pools {
		d.pools[i] = newPool(t, d.tr)
	}
	return d
}

func (d *databases) open(t *testing.T) strategies.Strategy {
	t.Helper()
	s, err := testkit.Strategy(t, "pg-two-phase").Open(t.Context(), strategies.Env{
		Clock: clock.Wall{}, Clients: map[string]any{"postgres": d.pools[0], "postgres.2": d.pools[1]}, Instances: 1,
		Wake: func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	d.tr.take()
	return s
}

// wantBoth checks what both databases show against what they should.
func wantBoth(t *testing.T, s strategies.Strategy, p *quota.Policy, first, second int64) {
	t.Helper()
	r, err := s.(strategies.Viewer).Used(t.Context(), "a", p)
	if err != nil || len(r) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	if r[0].Units != first || r[1].Units != second || r[0].Tier == r[1].Tier {
		t.Errorf("used: %+v, want %d and %d", r, first, second)
	}
}

func (d *databases) wantNothingPrepared(t *testing.T) {
	t.Helper()
	var n int
	sql := "SELECT count(*) FROM pg_prepared_xacts WHERE gid LIKE current_schema() || '%'"
	for i, p := range d.pools {
		if err := p.QueryRow(t.Context(), sql).Scan(&n); err != nil || n != 0 {
			t.Errorf("database %d: %d transactions are prepared, %v", i, n, err)
		}
	}
}

func TestTwoPhaseStatements(t *testing.T) {
	d := newDatabases(t)
	s := d.open(t)
	p := policy(t, "agent-tokens", 10)
	for i, step := range []struct {
		units, remaining int64
		admitted         bool
		statements       string
	}{
		{4, 6, true, "begin UPDATE SELECT rollback INSERT INSERT begin UPDATE begin UPDATE PREPARE PREPARE COMMIT COMMIT"},
		{7, 6, false, "begin UPDATE SELECT rollback"},
		{6, 0, true, "begin UPDATE begin UPDATE PREPARE PREPARE COMMIT COMMIT"},
	} {
		got := take(t.Context(), t, s, "a", p, step.units)
		if got.Admitted != step.admitted || got.Remaining != step.remaining {
			t.Errorf("step %d: %+v, want %+v", i, got, step)
		}
		if sent := d.tr.take(); sent != step.statements {
			t.Errorf("step %d sends %s, want %s", i, sent, step.statements)
		}
	}
	wantBoth(t, s, p, 10, 10)
}

// TestTwoPhaseRefund: both databases get the units back.
func TestTwoPhaseRefund(t *testing.T) {
	d := newDatabases(t)
	s := d.open(t)
	p := policy(t, "agent-storage", 10)
	held := take(t.Context(), t, s, "a", p, 7).Reservation
	refund(t, s, held)
	wantBoth(t, s, p, 0, 0)
}

// TestTwoPhaseNeedsBoth: what the second database has no room for, the first does
// not keep.
func TestTwoPhaseNeedsBoth(t *testing.T) {
	d := newDatabases(t)
	s := d.open(t)
	p := policy(t, "agent-storage", 10)
	take(t.Context(), t, s, "a", p, 1)
	if _, err := d.pools[1].Exec(t.Context(), "UPDATE quota_windows SET used_units = 8"); err != nil {
		t.Fatal(err)
	}
	if got := take(t.Context(), t, s, "a", p, 5); got.Admitted || got.Remaining != 2 {
		t.Errorf("%+v where the second database has room for 2", got)
	}
	wantBoth(t, s, p, 1, 8)
}

// TestCoordinatorDies at each step, and another life of the instance settles what it
// left behind: only what the first database has committed stands.
func TestCoordinatorDies(t *testing.T) {
	for _, c := range []struct {
		verb      string
		nth       int
		recovered int64
		used      int64
	}{
		{"PREPARE", 1, 0, 1}, {"PREPARE", 2, 1, 1}, {"COMMIT", 1, 1, 1}, {"COMMIT", 2, 1, 6},
	} {
		d := newDatabases(t)
		s := d.open(t)
		p := policy(t, "agent-storage", 10)
		take(t.Context(), t, s, "a", p, 1)
		d.tr.at(c.verb, c.nth, func(*pgx.Conn) { panic("the coordinator dies") })
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s %d: the coordinator did not die", c.verb, c.nth)
				}
			}()
			_, _ = s.Take(t.Context(), quota.Request{Subject: "a", Policy: p, Units: 5})
		}()
		again := d.open(t)
		if n := measured(again)["recovered"]; n != c.recovered {
			t.Errorf("%s %d: %d transactions recovered, want %d", c.verb, c.nth, n, c.recovered)
		}
		d.wantNothingPrepared(t)
		wantBoth(t, again, p, c.used, c.used)
		if got := take(t.Context(), t, again, "a", p, 1); !got.Admitted {
			t.Errorf("%s %d: %+v after the recovery", c.verb, c.nth, got)
		}
	}
}

// TestAnswerIsLost: the caller itself settles a transaction whose server did not
// answer. Before the decision it is rolled back, after it committed.
func TestAnswerIsLost(t *testing.T) {
	for _, c := range []struct {
		verb     string
		nth      int
		admitted bool
	}{{"PREPARE", 1, false}, {"PREPARE", 2, false}, {"COMMIT", 1, true}, {"COMMIT", 2, true}} {
		d := newDatabases(t)
		admin := newPool(t, nil)
		s := d.open(t)
		p := policy(t, "agent-storage", 10)
		take(t.Context(), t, s, "a", p, 1)
		d.tr.at(c.verb, c.nth, func(conn *pgx.Conn) {
			if _, err := admin.Exec(t.Context(), "SELECT pg_terminate_backend($1)", int32(conn.PgConn().PID())); err != nil {
				t.Error(err)
			}
		})
		got, err := s.Take(t.Context(), quota.Request{Subject: "a", Policy: p, Units: 5})
		if got.Admitted != c.admitted || (err == nil) != c.admitted {
			t.Errorf("%s %d: %+v, %v", c.verb, c.nth, got, err)
		}
		if n := measured(s)["in doubt"]; n != 1 {
			t.Errorf("%s %d: %d in doubt, want 1", c.verb, c.nth, n)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("%s %d: %v", c.verb, c.nth, err)
		}
		d.wantNothingPrepared(t)
		want := int64(1)
		if c.admitted {
			want = 6
		}
		wantBoth(t, s, p, want, want)
	}
}

// TestCallerGivesUpBetweenPhases: what is being committed is not left half done.
func TestCallerGivesUpBetweenPhases(t *testing.T) {
	d := newDatabases(t)
	s := d.open(t)
	p := policy(t, "agent-storage", 10)
	take(t.Context(), t, s, "a", p, 1)
	ctx, cancel := context.WithCancel(t.Context())
	d.tr.at("PREPARE", 2, func(*pgx.Conn) { cancel() })
	if got, err := s.Take(ctx, quota.Request{Subject: "a", Policy: p, Units: 5}); err != nil || !got.Admitted {
		t.Errorf("%+v, %v", got, err)
	}
	wantBoth(t, s, p, 6, 6)
	d.wantNothingPrepared(t)
}

func TestTwoPhaseConcurrent(t *testing.T) {
	const workers, limit = 6, 20
	d := newDatabases(t)
	s := d.open(t)
	p := policy(t, "user-links", limit)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range 6 {
				got, err := s.Take(t.Context(), quota.Request{Subject: "a", Policy: p, Units: 1})
				if err != nil {
					t.Error(err)
				}
				if got.Admitted {
					admitted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := admitted.Load(); n != limit {
		t.Errorf("%d admitted, want %d", n, limit)
	}
	wantBoth(t, s, p, limit, limit)
}

// TestServerThatPreparesNothing says so when it is opened, and not in mid-run.
func TestServerThatPreparesNothing(t *testing.T) {
	testenv.Long(t)
	storetest.Postgres(t) // skips if there are no programs
	server, err := pgstore.Open(t.Context(), "process",
		stores.Options{Settings: map[string]string{"max_prepared_transactions": "0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	pool, err := server.Pool(t.Context(), pgstore.PoolOptions{Size: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	_, err = testkit.Strategy(t, "pg-two-phase").Open(t.Context(), strategies.Env{
		Clock: clock.Wall{}, Clients: map[string]any{"postgres": pool, "postgres.2": pool}, Instances: 1,
	})
	if err == nil || !strings.Contains(err.Error(), "max_prepared_transactions") {
		t.Errorf("%v, want the setting to be named", err)
	}
}
