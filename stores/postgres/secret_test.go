package postgres_test

import (
	"context"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/postgres"
)

// TestOwnServersAskForAPassword tries to get in as another user of this machine
// would.
func TestOwnServersAskForAPassword(t *testing.T) {
	eachPostgres(t, func(t *testing.T, p *postgres.Store) {
		other, err := postgres.Open(t.Context(), "postgres://quotabench@"+p.Info().Addr+"/postgres", stores.Options{})
		if err == nil {
			_ = other.Close()
			t.Fatal("opened without a password")
		}
		storecheck.Error(t, err, p.Info().Addr, "refuses the login")
		storecheck.Hidden(t, p.Password(), p.Info(), p.Arguments())
	})
}

// TestOwnPasswordIsHashedOnce: each connection would take milliseconds otherwise.
func TestOwnPasswordIsHashedOnce(t *testing.T) {
	p := storetest.Postgres(t)
	var kept string
	if err := pool(t, p, postgres.PoolOptions{Size: 1}).QueryRow(t.Context(),
		"SELECT rolpassword FROM pg_authid WHERE rolname = current_user").Scan(&kept); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(kept, "SCRAM-SHA-256$1:") {
		t.Errorf("the server keeps %.20s…", kept)
	}
	u := &url.URL{Scheme: "postgres", User: url.UserPassword("quotabench", p.Password()+"x"), Host: p.Info().Addr,
		Path: "postgres"}
	if other, err := postgres.Open(t.Context(), u.String(), stores.Options{}); err == nil {
		_ = other.Close()
		t.Error("opened with another password")
	}
}

// countingConn counts the bytes that pass.
type countingConn struct {
	net.Conn
	written *int
}

func (c countingConn) Write(p []byte) (int, error) {
	*c.written += len(p)
	return c.Conn.Write(p)
}

func TestPoolDialWrap(t *testing.T) {
	p := storetest.Postgres(t)
	var written, conns int
	var m stores.Meter
	pl := pool(t, p, postgres.PoolOptions{Size: 1, Meter: &m, DialWrap: func(c net.Conn) net.Conn {
		conns++
		return countingConn{c, &written}
	}})
	if _, err := pl.Exec(context.Background(), "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	before := written
	metered := m.Snapshot()
	if _, err := pl.Exec(context.Background(), "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	got := m.Snapshot().Sub(metered)
	if conns != 1 || written == before || int64(written-before) != got.BytesOut {
		t.Errorf("%d connections wrapped, %d bytes seen, %d metered", conns, written-before, got.BytesOut)
	}
}
