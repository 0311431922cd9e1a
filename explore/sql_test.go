package explore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	pgstore "github.com/quotabench/quotabench/stores/postgres"
	"github.com/quotabench/quotabench/strategies"
)

// sqlPlant is a strategy whose Take is one transaction, over a table of numbered
// counters that begin at 0.
type sqlPlant struct {
	pool *pgxpool.Pool
	tx   pgx.TxOptions
	take func(ctx context.Context, tx pgx.Tx, req quota.Request) (bool, error)
}

func (p sqlPlant) Take(ctx context.Context, req quota.Request) (d quota.Decision, err error) {
	err = pgx.BeginTxFunc(ctx, p.pool, p.tx, func(tx pgx.Tx) error {
		d.Admitted, err = p.take(ctx, tx, req)
		return err
	})
	return d, err
}

func (p sqlPlant) Close(context.Context) error { return nil }

func (p sqlPlant) Provision(ctx context.Context, _ *quota.Policy, _ []strategies.Grant) error {
	_, err := p.pool.Exec(ctx, "INSERT INTO counters SELECT generate_series(1, 2), 0")
	return err
}

func plantSQL(p sqlPlant) strategies.Selection {
	return strategies.Selection{Meta: &strategies.Meta{
		Name: "planted", Doc: "a plant", Form: strategies.Reference, Needs: []strategies.Need{strategies.NeedPostgres},
		Kinds: []quota.Kind{quota.Standing}, Counts: quota.CountsNothing,
		Guarantee: []quota.Clause{quota.Exactly()},
		Open: func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
			s := p
			s.pool = strategies.Postgres(env)
			_, err := s.pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS counters (id int PRIMARY KEY, n bigint NOT NULL)")
			return s, err
		},
	}}
}

func add(ctx context.Context, tx pgx.Tx, id int) error {
	_, err := tx.Exec(ctx, "UPDATE counters SET n = n + 1 WHERE id = $1", id)
	return err
}

// read reads the first counter by a SELECT that ends with more.
func read(ctx context.Context, tx pgx.Tx, more string) (n int64, err error) {
	err = tx.QueryRow(ctx, "SELECT n FROM counters WHERE id = 1"+more).Scan(&n)
	return n, err
}

// checked charges the first counter if it has room by what is read beforehand.
func checked(lock string) func(context.Context, pgx.Tx, quota.Request) (bool, error) {
	return func(ctx context.Context, tx pgx.Tx, req quota.Request) (bool, error) {
		n, err := read(ctx, tx, lock)
		if err != nil || n >= req.Policy.Limit {
			return false, err
		}
		return true, add(ctx, tx, 1)
	}
}

func sqlConfig(t testing.TB, clients int) explore.Config {
	t.Helper()
	return explore.Config{
		Resources: explore.Resources{Postgres: storetest.Postgres(t)}, Clients: clients, Limit: 1,
		Bounds:  explore.Bounds{DecisionTimeout: time.Minute},
		Scripts: []explore.Script{{{Kind: explore.Take, Units: 1}}},
	}
}

func runSQL(t *testing.T, sel strategies.Selection, cfg explore.Config) *explore.Result {
	t.Helper()
	r, err := explore.Run(t.Context(), sel, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r.Capped != "" {
		t.Errorf("not complete: %s", r.Capped)
	}
	return r
}

// sqlLines has a line per step: who, what, the reply and what callers were told.
func sqlLines(f *explore.Finding) string {
	var out []string
	for _, s := range f.Steps {
		verb, _, _ := strings.Cut(s.Command, " ")
		line := s.Actor + " " + verb
		if s.Reply != "" {
			line += " = " + s.Reply
		}
		if s.Outcome != "" {
			line += " -> " + s.Outcome
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func aborted(t *testing.T, r *explore.Result, kind explore.Property) results.Abort {
	t.Helper()
	i := slices.IndexFunc(r.Aborts, func(h results.Abort) bool { return h.Kind == kind })
	if i < 0 {
		t.Fatalf("no %s in %d schedules", kind, r.Runs)
	}
	return r.Aborts[i]
}

func TestPgCheckLeaks(t *testing.T) {
	cfg := sqlConfig(t, 2)
	r := runSQL(t, testkit.Strategy(t, "pg-check"), cfg)
	f := found(t, r, explore.Leak)
	const want = "A SELECT = 1\nB SELECT = 1\nA UPDATE = 1 row -> admitted\nB UPDATE = 1 row -> admitted"
	if got := sqlLines(f); got != want || f.Units != 1 {
		t.Errorf("leaks %d by\n%s", f.Units, got)
	}
	if r.Found(explore.Guarantee) != nil || len(r.Findings) != 1 {
		t.Errorf("findings %+v", r.Findings)
	}
	again, err := explore.Replay(t.Context(), f.Token, explore.Target{Postgres: cfg.Postgres})
	if err != nil || !again.Broken || again.Leak != 1 || !slices.EqualFunc(again.Finding.Steps, f.Steps, results.Step.Equal) {
		t.Errorf("replay: %+v, %v", again, err)
	}
	if sel, err := explore.TokenStrategy(f.Token); err != nil || !explore.OnPostgres(sel) || sel.Name != "pg-check" {
		t.Errorf("the token is of %v, %v", sel, err)
	}
}

// A schedule says which rows are committed after each step.
func TestRowsAfterSteps(t *testing.T) {
	r := runSQL(t, plantSQL(sqlPlant{take: checked("")}), sqlConfig(t, 2))
	leak := found(t, r, explore.Leak)
	var got []string
	for i, text := range layout.StoredTexts(leak) {
		if text != "" {
			got = append(got, leak.Steps[i].Command+": "+text)
		}
	}
	if want := []string{"commit;: n 1", "commit;: n 2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Of the 6 orders of two clients' SELECT and UPDATE, the two in which one is done
// before the other begins do not leak; the second one sends no UPDATE then.
func TestPgCheckCensus(t *testing.T) {
	c, err := explore.Enumerate(t.Context(), testkit.Strategy(t, "pg-check"), sqlConfig(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	if c.Schedules != 6 || c.Leaking != 4 || c.Worst != 1 || !c.Complete || c.Shortest == nil ||
		len(c.Shortest.Steps) != 4 {
		t.Errorf("counted %+v", c)
	}
}

// Three clients have 90 orders, and 18 in which one begins after the others.
func TestPgCheckCensusOfThree(t *testing.T) {
	testenv.Long(t)
	cfg := sqlConfig(t, 3)
	cfg.Limit = 2
	c, err := explore.Enumerate(t.Context(), testkit.Strategy(t, "pg-check"), cfg)
	if err != nil || c.Schedules != 90 || c.Leaking != 72 {
		t.Errorf("counted %+v, %v", c, err)
	}
}

func TestPgConditionalDoesNotLeak(t *testing.T) {
	testenv.Sequential(t)
	cfg := sqlConfig(t, 3)
	// With a limit of 1, an UPDATE by any client and then two times UPDATE and SELECT
	// in 6 orders; with a limit of 2, three UPDATEs and a SELECT by the last. Clients
	// that have not begun are alike to the search.
	type schedules struct{ search, all int64 }
	for limit, count := range testenv.Pick(map[int64]schedules{1: {3, 18}}, map[int64]schedules{1: {3, 18}, 2: {1, 6}}) {
		cfg.Limit = limit
		c, err := explore.Enumerate(t.Context(), testkit.Strategy(t, "pg-conditional"), cfg)
		if err != nil || c.Schedules != count.all || c.Leaking != 0 || !c.Complete {
			t.Errorf("limit %d: counted %+v, %v", limit, c, err)
		}
		r := runSQL(t, testkit.Strategy(t, "pg-conditional"), cfg)
		if len(r.Findings) > 0 || r.Runs != count.search {
			t.Errorf("in %d schedules: %+v", r.Runs, r.Findings)
		}
		claim := r.Claim
		for _, part := range []string{"leak", "guarantee", "3 clients", "statement", "PostgreSQL"} {
			if !strings.Contains(claim, part) || strings.Contains(claim, "ttl") {
				t.Errorf("claim %q", claim)
			}
		}
	}
}

// Both read before either writes: a leak unless the row is locked.
func TestBlockedClients(t *testing.T) {
	if r := runSQL(t, plantSQL(sqlPlant{take: checked("")}), sqlConfig(t, 2)); len(found(t, r, explore.Leak).Steps) < 8 ||
		r.Waited == 0 {
		t.Errorf("without a lock: %d waits, %+v", r.Waited, r.Findings)
	}
	locked := runSQL(t, plantSQL(sqlPlant{take: checked(" FOR UPDATE")}), sqlConfig(t, testenv.Pick(2, 3)))
	if len(locked.Findings) > 0 || locked.Waited == 0 || locked.Waited >= locked.Runs || len(locked.Aborts) > 0 {
		t.Errorf("with a lock: %d of %d schedules wait, %+v, %+v", locked.Waited, locked.Runs, locked.Findings, locked.Aborts)
	}
	// Nobody else can read the table meanwhile, those who look at it included.
	take := func(ctx context.Context, tx pgx.Tx, req quota.Request) (bool, error) {
		if _, err := tx.Exec(ctx, "LOCK TABLE counters IN ACCESS EXCLUSIVE MODE"); err != nil {
			return false, err
		}
		return checked("")(ctx, tx, req)
	}
	whole := runSQL(t, plantSQL(sqlPlant{take: take}), sqlConfig(t, 2))
	if len(whole.Findings) > 0 || whole.Waited == 0 {
		t.Errorf("with a lock on the table: %d of %d schedules wait, %+v", whole.Waited, whole.Runs, whole.Findings)
	}
}

// The shortest leak with transactions shows a client that waits and goes on.
func TestWaitingIsShown(t *testing.T) {
	take := func(ctx context.Context, tx pgx.Tx, _ quota.Request) (bool, error) { return true, add(ctx, tx, 1) }
	f := found(t, runSQL(t, plantSQL(sqlPlant{take: take}), sqlConfig(t, 2)), explore.Leak)
	const want = "A begin;\nA UPDATE = 1 row\nA commit; -> admitted\nB begin;\nB UPDATE = 1 row\nB commit; -> admitted"
	if got := sqlLines(f); got != want {
		t.Errorf("leaks by\n%s", got)
	}
}

func TestDeadlockIsAnOutcome(t *testing.T) {
	take := func(ctx context.Context, tx pgx.Tx, req quota.Request) (bool, error) {
		first := 1
		if req.ID > 16 { // of the second client
			first = 2
		}
		if err := add(ctx, tx, first); err != nil {
			return false, err
		}
		return false, add(ctx, tx, 3-first)
	}
	cfg := sqlConfig(t, 2)
	cfg.Properties = []explore.Property{explore.Leak, explore.Stuck}
	r := runSQL(t, plantSQL(sqlPlant{take: take}), cfg)
	h := aborted(t, r, explore.Deadlock)
	const want = "A begin;\nA UPDATE = 1 row\nB begin;\nB UPDATE = 1 row\nA UPDATE = waits for B\n" +
		"B UPDATE = error: deadlock detected (40P01)\nA goes = 1 row"
	if got := sqlLines(h.Shortest); got != want {
		t.Errorf("deadlock by\n%s", got)
	}
	if h.Schedules == 0 || h.Schedules >= r.Runs || len(r.Findings) > 0 {
		t.Errorf("%d of %d schedules, %+v", h.Schedules, r.Runs, r.Findings)
	}
	var b bytes.Buffer
	if err := text.Search(&b, layout.Page{}, r, ""); err != nil ||
		!strings.Contains(b.String(), fmt.Sprintf("with a deadlock: %d", h.Schedules)) {
		t.Errorf("report: %v\n%s", err, b.String())
	}
}

func TestSerializationFailureIsAnOutcome(t *testing.T) {
	p := sqlPlant{take: checked(""), tx: pgx.TxOptions{IsoLevel: pgx.RepeatableRead}}
	r := runSQL(t, plantSQL(p), sqlConfig(t, 2))
	h := aborted(t, r, explore.SerializationFailure)
	if got := sqlLines(h.Shortest); !strings.Contains(got,
		"B UPDATE = error: could not serialize access due to concurrent update (40001)") {
		t.Errorf("serialization failure by\n%s", got)
	}
	if f := r.Found(explore.Leak); f != nil || len(r.Findings) > 0 {
		t.Errorf("findings %+v", r.Findings)
	}
}

// Both sleeps end at one moment, so the second may end anywhere within what
// the first client does then, which is 7 steps; the mutex lets no client wait in the
// server.
func TestSleepsAndMutexesOfTheClock(t *testing.T) {
	m := plantSQL(sqlPlant{take: checked("")}).Meta
	open := m.Open
	m.Open = func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
		s, err := open(ctx, env)
		return locking{s.(sqlPlant), env.Clock, strategies.SharedValue(env.Shared, "lock", env.Clock.NewMutex)}, err
	}
	r := runSQL(t, strategies.Selection{Meta: m}, sqlConfig(t, 2))
	if len(r.Findings) > 0 || r.Waited > 0 || r.Runs < 10 {
		t.Errorf("%d schedules, %d wait, %+v", r.Runs, r.Waited, r.Findings)
	}
}

type locking struct {
	sqlPlant
	clock quota.Clock
	mu    quota.Mutex
}

func (l locking) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	if err := l.clock.Sleep(ctx, 1); err != nil {
		return quota.Decision{}, err
	}
	if err := l.mu.Lock(ctx); err != nil {
		return quota.Decision{}, err
	}
	defer l.mu.Unlock()
	return l.sqlPlant.Take(ctx, req)
}

func TestSQLThatCannotBeExplored(t *testing.T) {
	var unfit *explore.UnfitError
	if _, err := explore.Run(t.Context(), testkit.Strategy(t, "pg-check"), explore.Config{}); !errors.As(err, &unfit) ||
		!strings.Contains(err.Error(), "--postgres") {
		t.Errorf("without a server: %v", err)
	}
	cfg := sqlConfig(t, 2)
	cfg.Faults = []quota.Fault{quota.FaultCrash}
	if _, err := explore.Run(t.Context(), testkit.Strategy(t, "pg-check"), cfg); !errors.As(err, &unfit) ||
		!strings.Contains(err.Error(), "faults") {
		t.Errorf("with faults: %v", err)
	}
}

// A transaction that is left open keeps others waiting forever.
func TestStuckOnPostgres(t *testing.T) {
	m := plantSQL(sqlPlant{}).Meta
	open := m.Open
	m.Open = func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
		s, err := open(ctx, env)
		return leftOpen{s.(sqlPlant)}, err
	}
	f := found(t, runSQL(t, strategies.Selection{Meta: m}, sqlConfig(t, 2)), explore.Stuck)
	const want = "A begin;\nA UPDATE = 1 row -> rejected\nB begin;\nB UPDATE = waits for A"
	if got := sqlLines(f); got != want || f.Detail != "B waits for a lock that A never gives up" {
		t.Errorf("%s by\n%s", f.Detail, got)
	}
}

type leftOpen struct{ sqlPlant }

func (l leftOpen) Take(ctx context.Context, _ quota.Request) (quota.Decision, error) {
	tx, err := l.pool.Begin(ctx)
	if err == nil {
		err = add(ctx, tx, 1)
	}
	return quota.Decision{}, err
}

// Every strategy that is SQL keeps what it declares.
func TestDeclaredOnPostgres(t *testing.T) {
	testenv.Sequential(t)
	tried := 0
	for _, m := range strategies.All() {
		sel, err := m.Select(nil)
		if err != nil {
			t.Fatal(err)
		}
		if !explore.OnPostgres(sel) || m.Excluded[strategies.ModeExplore] != "" {
			continue
		}
		tried++
		cfg := sqlConfig(t, testenv.Pick(2, 3))
		cfg.Properties = []explore.Property{explore.Guarantee, explore.Stuck}
		cfg.Scripts = nil
		if m.GivesBack {
			cfg.Clients = 2
			cfg.Scripts = []explore.Script{{{Kind: explore.Take, Units: 1}, {Kind: explore.Refund}}}
		}
		if r := runSQL(t, sel, cfg); len(r.Findings) > 0 {
			t.Errorf("%s: %s by\n%s", sel, r.Findings[0].Detail, sqlLines(&r.Findings[0]))
		}
	}
	if tried == 0 {
		t.Fatal("no strategy is SQL")
	}
}

// An interrupted search shows what it has found, and leaves nothing on the server.
func TestInterruptedOnPostgres(t *testing.T) {
	cfg := sqlConfig(t, 3)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	take := func(ctx context.Context, tx pgx.Tx, req quota.Request) (bool, error) {
		n++
		if n == 60 {
			cancel()
		}
		return checked("")(ctx, tx, req)
	}
	r, err := explore.Run(ctx, plantSQL(sqlPlant{take: take}), cfg)
	if err != nil || r.Capped != "interrupted" || r.Found(explore.Leak) == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	pool, err := storetest.Postgres(t).Pool(t.Context(), pgstore.PoolOptions{Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var left int
	if err := pool.QueryRow(t.Context(),
		"SELECT count(*) FROM pg_namespace WHERE nspname LIKE '%explore%'").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d schemas are left, %v", left, err)
	}
}

func TestTimeoutOnPostgres(t *testing.T) {
	cfg := sqlConfig(t, 2)
	cfg.Timeout = time.Nanosecond
	r, err := explore.Run(t.Context(), plantSQL(sqlPlant{take: checked("")}), cfg)
	untried(t, r, err)
}
