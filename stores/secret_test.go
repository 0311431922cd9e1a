package stores_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/storetest"
)

// TestOwnServersAskForAPassword tries to get in as another user of this machine
// would.
func TestOwnServersAskForAPassword(t *testing.T) {
	ctx := context.Background()
	redis := func(t *testing.T, r *stores.Redis) {
		if r.Info().Kind == stores.KindEmbedded {
			return // its data is not worth it
		}
		other, err := stores.OpenRedis(ctx, "redis://"+r.Info().Addr, stores.Options{})
		if err == nil {
			_ = other.Close()
			t.Fatal("opened without a password")
		}
		checkError(t, err, []string{"refuses the login"})
		checkHidden(t, r.Password(), r.Info(), r.Arguments())
	}
	postgres := func(t *testing.T, p *stores.Postgres) {
		other, err := stores.OpenPostgres(ctx, "postgres://quotabench@"+p.Info().Addr+"/postgres", stores.Options{})
		if err == nil {
			_ = other.Close()
			t.Fatal("opened without a password")
		}
		checkError(t, err, []string{p.Info().Addr, "refuses the login"})
		checkHidden(t, p.Password(), p.Info(), p.Arguments())
	}
	t.Run("redis", func(t *testing.T) { eachRedis(t, redis) })
	t.Run("postgres", func(t *testing.T) { eachPostgres(t, postgres) })
}

// checkHidden looks for a password where everybody can.
func checkHidden(t *testing.T, password string, i stores.Info, args []string) {
	t.Helper()
	if len(password) < 20 {
		t.Fatalf("a password of %d characters", len(password))
	}
	if strings.Contains(fmt.Sprintf("%+v %q", i, args), password) {
		t.Errorf("shown in its description or among its %d arguments", len(args))
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline") // there is none outside Linux
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lines {
		b, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(b), password) {
			t.Errorf("shown in %s: %q", name, strings.ReplaceAll(string(b), password, "***"))
		}
	}
}

func TestPasswordsDiffer(t *testing.T) {
	storetest.Redis(t)
	other, err := stores.OpenRedis(context.Background(), "process", stores.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if storetest.Redis(t).Password() == other.Password() {
		t.Error("two servers have the same password")
	}
}

func TestOddPasswords(t *testing.T) {
	storetest.Redis(t)
	for _, password := range []string{`a "quoted" one`, `back\slash\n`, "tab\tand\r\nlines", "señal ✓", "#hash 'x'"} {
		r, err := stores.OpenRedis(context.Background(), "process", stores.Options{Dir: t.TempDir(), Settings: map[string]string{"requirepass": password}})
		if err != nil {
			t.Errorf("%q: %v", password, err)
			continue
		}
		if got, err := r.Admin().ConfigGet(context.Background(), "requirepass").Result(); err != nil || got["requirepass"] != password {
			t.Errorf("the server has %q (%v), want %q", got["requirepass"], err, password)
		}
		_ = r.Close()
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
	pl := pool(t, p, stores.PoolOptions{Size: 1, Meter: &m, DialWrap: func(c net.Conn) net.Conn {
		conns++
		return countingConn{c, &written}
	}})
	if _, err := pl.Exec(context.Background(), "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	before, metered := written, m.Snapshot()
	if _, err := pl.Exec(context.Background(), "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	got := m.Snapshot().Sub(metered)
	if conns != 1 || written == before || int64(written-before) != got.BytesOut {
		t.Errorf("%d connections wrapped, %d bytes seen, %d metered", conns, written-before, got.BytesOut)
	}
}
