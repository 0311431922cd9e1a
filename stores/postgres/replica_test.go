package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/postgres"
)

// further opens a store next to main.
func further(t *testing.T, f stores.Further) *postgres.Store {
	t.Helper()
	d, err := stores.DriverOf(f.Name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Further(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.(*postgres.Store)
}

// TestReplica plants rows, waits for the replica, and reads them there.
func TestReplica(t *testing.T) {
	testenv.Long(t)
	main := storetest.Postgres(t)
	ctx := t.Context()
	scope := storetest.Scope(t)
	r := further(t, stores.Further{Name: "postgres.replica", Main: main, MainSpec: "auto"})
	if !r.Follows() || main.Follows() || !r.Owned() ||
		!strings.Contains(r.Info().Detail, "a replica of "+main.Info().Addr) {
		t.Fatalf("%+v, follows %v", r.Info(), r.Follows())
	}
	storecheck.Hidden(t, r.Password(), r.Info(), r.Arguments())
	if _, err := main.Prepare(ctx, scope); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Prepare(ctx, scope); err != nil {
		t.Fatal(err)
	}
	there := connect(t, main, scope, stores.ConnOptions{Pool: 1}).Client().(*pgxpool.Pool)
	here := connect(t, r, scope, stores.ConnOptions{Pool: 2}).Client().(*pgxpool.Pool)
	if _, err := there.Exec(ctx, "CREATE TABLE planted AS SELECT 41 AS n"); err != nil {
		t.Fatal(err)
	}
	if _, err := there.Exec(ctx, "UPDATE planted SET n = n + 1"); err != nil {
		t.Fatal(err)
	}
	if err := r.CatchUp(ctx, main); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := here.QueryRow(ctx, "SELECT n FROM planted").Scan(&n); err != nil || n != 42 {
		t.Errorf("the replica shows %d, %v, want 42", n, err)
	}
	if _, err := here.Exec(ctx, "UPDATE planted SET n = 0"); err == nil {
		t.Error("the replica took a write")
	}
	if err := r.Wipe(ctx, scope); err != nil {
		t.Errorf("Wipe: %v", err)
	}
	if err := there.QueryRow(ctx, "SELECT n FROM planted").Scan(&n); err != nil {
		t.Errorf("wiping the replica took the primary's table: %v", err)
	}
	if err := main.Wipe(ctx, scope); err != nil {
		t.Error(err)
	}
}

// TestReplicaThatLags shows an old row until the lag is over, and can be promoted.
func TestReplicaThatLags(t *testing.T) {
	testenv.Long(t)
	const lag = 1500 * time.Millisecond
	main := storetest.Postgres(t)
	ctx := t.Context()
	scope := storetest.Scope(t)
	r := further(t, stores.Further{Name: "postgres.replica", Spec: "process:lag=" + lag.String(), Main: main})
	if _, err := main.Prepare(ctx, scope); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = main.Wipe(ctx, scope) }()
	there := connect(t, main, scope, stores.ConnOptions{Pool: 1}).Client().(*pgxpool.Pool)
	here := connect(t, r, scope, stores.ConnOptions{Pool: 1}).Client().(*pgxpool.Pool)
	if _, err := there.Exec(ctx, "CREATE TABLE planted AS SELECT 1 AS n"); err != nil {
		t.Fatal(err)
	}
	shown := func() (n int) {
		t.Helper()
		if err := here.QueryRow(ctx, "SELECT n FROM planted").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	// If the machine was too slow to read within the lag, another update follows.
	for n, soon := 2, false; !soon; n++ {
		if err := r.CatchUp(ctx, main); err != nil {
			t.Fatal(err)
		}
		from := clock.Nano()
		if _, err := there.Exec(ctx, "UPDATE planted SET n = $1", n); err != nil {
			t.Fatal(err)
		}
		got := shown()
		soon = clock.Nano()-from < int64(lag)
		if soon && got != n-1 {
			t.Errorf("right after the update the replica shows %d, want %d", got, n-1)
		}
		if err := r.CatchUp(ctx, main); err != nil {
			t.Fatal(err)
		}
		if got := shown(); got != n {
			t.Errorf("later it shows %d, want %d", got, n)
		}
		if n == 40 {
			t.Fatalf("none of %d updates was read within %v", n, lag)
		}
	}
}

// TestSecondServer prepares a transaction, which PostgreSQL does not allow by default.
func TestSecondServer(t *testing.T) {
	testenv.Long(t)
	main := storetest.Postgres(t)
	s := further(t, stores.Further{Name: "postgres.2", Main: main, MainSpec: "process"})
	if s.Info().Addr == main.Info().Addr || s.Follows() {
		t.Fatalf("%+v", s.Info())
	}
	c, err := pool(t, s, postgres.PoolOptions{Schema: storetest.Schema(t, s), Size: 1}).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	for _, sql := range []string{"CREATE TABLE planted (n int)", "BEGIN", "INSERT INTO planted VALUES (1)",
		"PREPARE TRANSACTION 'planted'", "COMMIT PREPARED 'planted'"} {
		if _, err := c.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func TestFurtherThatCannotBeHad(t *testing.T) {
	d, err := stores.DriverOf("postgres")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		f    stores.Further
		want string
	}{
		{stores.Further{Name: "postgres.2", MainSpec: "postgres://somewhere"}, "--store postgres.2=SPEC"},
		{stores.Further{Name: "postgres.2", MainSpec: "embedded"}, "no server"},
		{stores.Further{Name: "postgres.replica", MainSpec: "embedded"}, "no postgres that"},
		{stores.Further{Name: "postgres.replica", Spec: "process:lag=0s"}, "lag=TIME"},
		{stores.Further{Name: "postgres.replica", Spec: "process:late"}, "lag=TIME"},
		{stores.Further{Name: "postgres.2", Spec: "process:lag=1s"}, "none of"},
	} {
		s, err := d.Further(t.Context(), x.f)
		if s != nil || err == nil {
			t.Errorf("%+v: %v, %v", x.f, s, err)
			continue
		}
		storecheck.Error(t, err, x.want)
	}
}
