package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/postgres"
)

// A server that cannot serve a run is refused at the start, with what it lacks.
func TestUnusableServersAreRefused(t *testing.T) {
	p := storetest.Postgres(t)
	ctx := context.Background()
	admin := pool(t, p, postgres.PoolOptions{Size: 1})
	do := func(sql string) {
		t.Helper()
		if _, err := admin.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	// user is a new one with what it is given, and its URL.
	user := func(name string, more ...string) string {
		t.Helper()
		do("CREATE ROLE " + name + " LOGIN PASSWORD 's3cr3t'")
		t.Cleanup(func() { do("DROP OWNED BY " + name + "; DROP ROLE " + name) })
		for _, sql := range more {
			do(fmt.Sprintf(sql, name))
		}
		return "postgres://" + name + ":s3cr3t@" + p.Info().Addr + "/postgres"
	}
	refused := func(url string, want ...string) {
		t.Helper()
		s, err := postgres.Open(ctx, url, stores.Options{})
		if err == nil {
			_ = s.Close()
			t.Fatalf("opened, want %q", want)
		}
		storecheck.Error(t, err, want...)
	}
	const create = "GRANT CREATE ON DATABASE postgres TO %s"
	refused(user("usable_poor"), `lets the user "usable_poor" make no schema in the database "postgres"`, "GRANT CREATE ON DATABASE")
	refused(user("usable_reader", create, "ALTER ROLE %s SET default_transaction_read_only = on"), "read-only",
		"default_transaction_read_only")
	refused(user("usable_none", create, "ALTER ROLE %s CONNECTION LIMIT 0"), "no connection left", "CONNECTION LIMIT")
	refused("postgres://quotabench:"+p.Password()+"@"+p.Info().Addr+"/nosuch", "no such database")

	good, err := postgres.Open(ctx, user("usable_few", create, "ALTER ROLE %s CONNECTION LIMIT 7"), stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = good.Close() }()
	if left, setting, known := good.Room(ctx); !known || left < 1 || left > 6 ||
		setting != "the CONNECTION LIMIT of its role" {
		t.Errorf("room for %d (%s), known %v", left, setting, known)
	}
	if left, setting, known := p.Room(ctx); !known || left < 100 || setting != "max_connections" {
		t.Errorf("room for %d (%s), known %v", left, setting, known)
	}
}
