package stores

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// TestLostRaceForThePort starts servers on ports that somebody else has: once a
// program that does not answer, once another server of the same kind.
func TestLostRaceForThePort(t *testing.T) {
	ctx := context.Background()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mute.Close() }()
	parent := t.TempDir()
	for _, d := range []string{parent, filepath.Dir(parent)} { // for another account
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Dir: parent}
	check := func(t *testing.T, port int, err error) {
		t.Helper()
		if !errors.Is(err, errPortTaken) {
			t.Errorf("on port %d: %v", port, err)
		}
		if left, _ := filepath.Glob(filepath.Join(parent, "*")); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	}
	port := func(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

	t.Run("redis", func(t *testing.T) {
		bin, err := findRedis()
		if err != nil {
			t.Skip(err)
		}
		other, err := startEmbedded()
		if err != nil {
			t.Fatal(err)
		}
		defer other.close()
		_, err = startRedis(ctx, bin, port(mute), o)
		check(t, port(mute), err)
		taken, err := strconv.Atoi(other.server.Port())
		if err != nil {
			t.Fatal(err)
		}
		_, err = startRedis(ctx, bin, taken, o)
		check(t, taken, err)
	})
	t.Run("postgres", func(t *testing.T) {
		bin, err := findPostgres()
		if err != nil {
			t.Skip(err)
		}
		user, err := serverAccount()
		if err != nil {
			t.Skip(err)
		}
		_, err = startPostgres(ctx, bin, port(mute), user, o)
		check(t, port(mute), err)
	})
}

func TestStartOnFreePort(t *testing.T) {
	var ports []int
	err := startOnFreePort(func(port int) error {
		ports = append(ports, port)
		if len(ports) < 3 {
			return errPortTaken
		}
		return nil
	})
	if err != nil || len(ports) != 3 {
		t.Errorf("%v after ports %v, want success at the third", err, ports)
	}
	tries, broken := 0, errors.New("broken")
	if err := startOnFreePort(func(int) error { tries++; return broken }); !errors.Is(err, broken) || tries != 1 {
		t.Errorf("%v after %d tries: what is not the port's fault must not be repeated", err, tries)
	}
	tries = 0
	if err := startOnFreePort(func(int) error { tries++; return errPortTaken }); !errors.Is(err, errPortTaken) || tries != 5 {
		t.Errorf("%v after %d tries", err, tries)
	}
}

func TestNewestPostgresWins(t *testing.T) {
	for path, want := range map[string]float64{
		"/usr/lib/postgresql/15/bin":                              15,
		"/usr/lib/postgresql/9.6/bin":                             9.6,
		"/opt/homebrew/opt/postgresql@17/bin":                     17,
		"/usr/pgsql-16/bin":                                       16,
		"/usr/local/pgsql/bin":                                    0,
		"/Applications/Postgres.app/Contents/Versions/latest/bin": 0,
	} {
		if got := versionIn(path); got != want {
			t.Errorf("versionIn(%s) = %v, want %v", path, got, want)
		}
	}
}
