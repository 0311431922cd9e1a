package nginx_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/nginx"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func open(t testing.TB) stores.Store {
	return storetest.Shared(t, "nginx", func(ctx context.Context) (stores.Store, error) {
		return stores.Opener(nginx.Open)(ctx, "process", stores.Options{})
	})
}

type client interface {
	HTTP() *http.Client
	Locate(context.Context, map[string]string) (string, error)
}

// admitted asks a server with these settings so often for one key, and counts what is
// admitted.
func admitted(t *testing.T, s stores.Store, settings map[string]string, key string, times int) (n int) {
	t.Helper()
	conn, err := s.Connect(t.Context(), storetest.Scope(t), stores.ConnOptions{Pool: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	c := conn.Client().(client)
	url, err := c.Locate(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	for range times {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(url, "{subject}", key, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.HTTP().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusOK:
			n++
		case http.StatusTooManyRequests:
		default:
			t.Fatalf("status %d", resp.StatusCode)
		}
	}
	return n
}

// TestLimit: a key has a bucket of burst + 1, keys do not share one, and neither do
// configurations. A location that answers by return is not limited at all.
func TestLimit(t *testing.T) {
	s := open(t)
	if i := s.Info(); i.Kind != stores.KindProcess || i.Version == "" || stores.PlaceOf(s) != stores.StartedHere {
		t.Errorf("%+v", i)
	}
	limit := func(answer string) map[string]string {
		return map[string]string{"rate": "1r/m", "burst": "4", "nodelay": "true", "workers": "2", "answer": answer}
	}
	own := string(storetest.Scope(t)) // the server outlives the test
	for _, c := range []struct {
		what, key string
		settings  map[string]string
		want      int
	}{
		{"a key", "a", limit("file"), 5}, {"another key", "b", limit("file"), 5},
		{"the first key again", "a", limit("file"), 0},
		{"no limit", "a", nil, 20}, {"answered by return", "a", limit("return"), 20},
	} {
		if got := admitted(t, s, c.settings, own+c.key, 20); got != c.want {
			t.Errorf("%s: %d of 20 admitted, want %d", c.what, got, c.want)
		}
	}
	bad := limit("file")
	bad["burst"] = "4; return 200"
	conn, err := s.Connect(t.Context(), storetest.Scope(t), stores.ConnOptions{Pool: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Client().(client).Locate(t.Context(), bad); err == nil {
		t.Error("a setting that is not one gets into the configuration")
	}
}

// TestCloseEnds: nothing is left of the servers, and none is started afterwards.
func TestCloseEnds(t *testing.T) {
	open(t) // skips if there is none
	dir := t.TempDir()
	s, err := nginx.Open(t.Context(), "process", stores.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	storecheck.Eventually(t, "there are a master and two workers", func() bool {
		pids, err := s.Processes(t.Context())
		return err == nil && len(pids) >= 3
	})
	conn, err := s.Connect(t.Context(), storetest.Scope(t), stores.ConnOptions{Pool: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := conn.Client().(client).Locate(t.Context(), map[string]string{}); err == nil {
		t.Error("a server is started after all were ended")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v (%v)", left, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	storecheck.Refused(t, nginx.Open,
		map[string]string{"prcess": "did you mean process?",
			"http://x": "the value of --store nginx= is none of auto or process"})
}
