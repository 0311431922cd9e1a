package windowlog_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	pgstore "github.com/quotabench/quotabench/stores/postgres"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/windowlog"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const (
	documented = "sql-window-log"
	locking    = "sql-window-log-atomic"
	retrying   = "sql-window-log-atomic:by=serializable"
)

var all = []string{documented, locking, retrying}

// hand is a clock that a test moves.
type hand struct {
	clock.Wall
	mu  sync.Mutex
	now time.Time
}

func (h *hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

var start = time.Date(2031, time.March, 15, 12, 30, 0, 0, time.UTC)

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

func open(t *testing.T, pool *pgxpool.Pool, name string, c quota.Clock) strategies.Strategy {
	t.Helper()
	sel := testkit.Strategy(t, name)
	s, err := sel.Open(t.Context(),
		strategies.Env{Clock: c, Clients: map[string]any{"postgres": pool}, Instances: 1, Options: sel.Options})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func policy(t *testing.T, name string, limit int64) *quota.Policy {
	t.Helper()
	p := testkit.Policy(t, name)
	p.Limit = limit
	return &p
}

func take(ctx context.Context, t *testing.T, s strategies.Strategy, p *quota.Policy) quota.Decision {
	t.Helper()
	d, err := s.Take(ctx, quota.Request{Subject: "a", Policy: p, Units: 1})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func used(t *testing.T, s strategies.Strategy, p *quota.Policy) int64 {
	t.Helper()
	r, err := s.(strategies.Viewer).Used(t.Context(), "a", p)
	if err != nil || len(r) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	return r[0].Units
}

// TestRollingWindow: rows grow old one by one, to the nanosecond.
func TestRollingWindow(t *testing.T) {
	for _, name := range all {
		h := &hand{now: start}
		s := open(t, newPool(t, nil), name, h)
		p := policy(t, "guest-message", 2)
		for i, step := range []struct {
			after    time.Duration
			admitted bool
			used     int64
		}{
			{0, true, 1},
			{time.Minute, true, 2},
			{9*time.Minute - time.Nanosecond, false, 2},
			{time.Nanosecond, true, 2}, // ten minutes after the first
			{time.Minute - time.Nanosecond, false, 2},
			{time.Nanosecond, true, 2},
		} {
			h.pass(step.after)
			if d := take(t.Context(), t, s, p); d.Admitted != step.admitted || d.Remaining != 2-step.used || d.RetryAfter != 0 {
				t.Errorf("%s, step %d: %+v, want %+v", name, i, d, step)
			}
			if n := used(t, s, p); n != step.used {
				t.Errorf("%s, step %d: %d rows, want %d", name, i, n, step.used)
			}
		}
	}
}

// TestCalendarMonth is the hit tracking of ADR-009.
func TestCalendarMonth(t *testing.T) {
	for _, name := range all {
		h := &hand{now: time.Date(2031, time.March, 31, 23, 59, 59, 0, time.UTC)}
		s := open(t, newPool(t, nil), name, h)
		p := policy(t, "link-hits", 1)
		first := take(t.Context(), t, s, p)
		second := take(t.Context(), t, s, p)
		if !first.Admitted || second.Admitted || second.RetryAfter != time.Second {
			t.Errorf("%s: %+v and %+v", name, first, second)
		}
		h.pass(time.Second)
		if d := take(t.Context(), t, s, p); !d.Admitted {
			t.Errorf("%s, in April: %+v", name, d)
		}
	}
}

func TestProvision(t *testing.T) {
	for _, name := range all {
		s := open(t, newPool(t, nil), name, &hand{now: start})
		p := policy(t, "guest-message", 3)
		take(t.Context(), t, s, p)
		for range 2 { // a grant replaces what is there
			if err := s.(strategies.Provisioner).Provision(t.Context(), p,
				[]strategies.Grant{{Subject: "a", Limit: 3, Used: 2}, {Subject: "b", Limit: 3}}); err != nil {
				t.Fatal(err)
			}
			if n := used(t, s, p); n != 2 {
				t.Errorf("%s: %d rows, want 2", name, n)
			}
		}
		if err := s.(strategies.Provisioner).Provision(t.Context(), p,
			[]strategies.Grant{{Subject: "a", Limit: 9}}); err == nil {
			t.Errorf("%s takes a limit of the subject's own, and has nowhere to keep it", name)
		}
	}
}

// tracer records statements, and moves the clock before the first with a verb.
type tracer struct {
	mu   sync.Mutex
	sent []string
	verb string
	do   func()
}

func (tr *tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	verb, _, _ := strings.Cut(strings.TrimSuffix(q.SQL, ";"), " ")
	tr.mu.Lock()
	tr.sent = append(tr.sent, verb)
	do := tr.do
	if verb != tr.verb {
		do = nil
	}
	if do != nil {
		tr.do = nil
	}
	tr.mu.Unlock()
	if do != nil {
		do()
	}
	return ctx
}

func (tr *tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestStatements(t *testing.T) {
	for name, want := range map[string][2]string{
		documented: {"SELECT INSERT", "SELECT"},
		locking:    {"begin SELECT SELECT INSERT commit", "begin SELECT SELECT commit"},
		retrying:   {"begin SELECT SELECT INSERT commit", "begin SELECT SELECT commit"},
	} {
		tr := &tracer{}
		s := open(t, newPool(t, tr), name, &hand{now: start})
		p := policy(t, "receipt-email", 1)
		for i, w := range want {
			tr.sent = nil
			take(t.Context(), t, s, p)
			if got := strings.Join(tr.sent, " "); got != w {
				t.Errorf("%s sends %s for request %d, want %s", name, got, i, w)
			}
		}
	}
}

// TestRetriesAreCounted: two transactions that have read the same rows cannot both
// insert.
func TestRetriesAreCounted(t *testing.T) {
	tr := &tracer{}
	s := open(t, newPool(t, tr), retrying, &hand{now: start})
	p := policy(t, "receipt-email", 1)
	var other quota.Decision
	tr.verb = "INSERT"
	tr.do = func() { other = take(t.Context(), t, s, p) }
	if d := take(t.Context(), t, s, p); d.Admitted == other.Admitted {
		t.Errorf("%+v and %+v, want one to be admitted", d, other)
	}
	if m := s.(strategies.Meter).Measures(); m[0].Name != "retries" || m[0].Value != 1 {
		t.Errorf("measured %+v, want one retry", m)
	}
}

// TestMomentIsThatOfTheDecision: what grows old while a caller waits for the lock,
// or for its snapshot, is not counted.
func TestMomentIsThatOfTheDecision(t *testing.T) {
	for _, name := range []string{locking, retrying} {
		tr := &tracer{}
		h := &hand{now: start}
		s := open(t, newPool(t, tr), name, h)
		p := policy(t, "receipt-email", 1)
		take(t.Context(), t, s, p)
		h.pass(time.Hour - time.Nanosecond)
		tr.verb = "begin"
		tr.do = func() { h.pass(time.Nanosecond) }
		if d := take(t.Context(), t, s, p); !d.Admitted {
			t.Errorf("%s: %+v, want the row of an hour ago to be forgotten", name, d)
		}
	}
}

func TestServesSingleUnits(t *testing.T) {
	for _, name := range all {
		sel := testkit.Strategy(t, name)
		if sel.ServesPolicy(policy(t, "agent-spend", 10)) == nil ||
			sel.ServesPolicy(policy(t, "agent-sandboxes", 10)) == nil {
			t.Errorf("%s serves costs of several units, or a quota without a window", name)
		}
	}
}

func explored(t *testing.T, name string, cfg explore.Config) *explore.Result {
	t.Helper()
	cfg.Postgres = storetest.Postgres(t)
	r, err := explore.Run(t.Context(), testkit.Strategy(t, name), cfg)
	if err != nil || r.Capped != "" {
		t.Fatalf("%s: %+v, %v", name, r, err)
	}
	return r
}

// TestDocumentedLeaks: the shortest schedule sends two e-mails in an hour.
func TestDocumentedLeaks(t *testing.T) {
	cfg := explore.Config{Policy: *policy(t, "receipt-email", 1)}
	r := explored(t, documented, cfg)
	f := r.Found(explore.Leak)
	if f == nil || f.Units != 1 || len(r.Findings) != 1 {
		t.Fatalf("findings %+v, want a leak of one", r.Findings)
	}
	var got []string
	for _, s := range f.Steps {
		verb, _, _ := strings.Cut(s.Command, " ")
		got = append(got, s.Actor+" "+verb)
	}
	if want := []string{"A SELECT", "B SELECT", "A INSERT", "B INSERT"}; !slices.Equal(got, want) {
		t.Errorf("leaks by %q, want %q", got, want)
	}
}

// TestAtomicDoesNotLeak, whichever way it excludes others.
func TestAtomicDoesNotLeak(t *testing.T) {
	type search struct {
		name, policy string
		clients      int
	}
	few := []search{{locking, "receipt-email", 2}, {retrying, "receipt-email", 2}}
	for _, c := range testenv.Pick(few,
		append(few, search{locking, "link-hits", 2})) {
		r := explored(t, c.name, explore.Config{Policy: *policy(t, c.policy, 1), Clients: c.clients})
		if len(r.Findings) > 0 || r.Runs < 2 {
			t.Errorf("%+v: %d schedules, %+v", c, r.Runs, r.Findings)
		}
		failed := slices.ContainsFunc(r.Aborts, func(a results.Abort) bool { return a.Schedules > 0 })
		if waits := r.Waited > 0; waits != (c.name == locking) || failed != (c.name == retrying) {
			t.Errorf("%+v: waits %v, ends transactions %v", c, waits, failed)
		}
	}
}

func TestGivesUp(t *testing.T) {
	for _, name := range all {
		s := open(t, newPool(t, nil), name, &hand{now: start})
		p := policy(t, "receipt-email", 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if d, err := s.Take(ctx, quota.Request{Subject: "a", Policy: p, Units: 1}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
}
