package haproxy_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/haproxy"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
)

func TestMain(m *testing.M) { storetest.Main(m) }

type client interface {
	HTTP() *http.Client
	Locate(context.Context, map[string]string) (string, error)
}

// TestLimit: a key is admitted so often in a period, keys do not share a count, and the
// other location has none.
func TestLimit(t *testing.T) {
	s := storetest.Shared(t, "haproxy", func(ctx context.Context) (stores.Store, error) {
		return stores.Opener(haproxy.Open)(ctx, "process", stores.Options{})
	})
	if i := s.Info(); i.Kind != stores.KindProcess || i.Version == "" || stores.PlaceOf(s) != stores.StartedHere {
		t.Errorf("%+v", i)
	}
	conn, err := s.Connect(t.Context(), storetest.Scope(t), stores.ConnOptions{Pool: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	c := conn.Client().(client)
	limit := map[string]string{"period": "3600s", "above": "5", "threads": "2"}
	for _, x := range []struct {
		what, key string
		settings  map[string]string
		want      int
	}{{"a key", "a", limit, 5}, {"another key", "b", limit, 5}, {"the first key again", "a", limit, 0},
		{"no limit", "a", nil, 20}} {
		url, err := c.Locate(t.Context(), x.settings)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for range 20 {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(url, "{subject}", x.key, 1), nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.HTTP().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				n++
			} else if resp.StatusCode != http.StatusTooManyRequests {
				t.Fatalf("status %d", resp.StatusCode)
			}
		}
		if n != x.want {
			t.Errorf("%s: %d of 20 admitted, want %d", x.what, n, x.want)
		}
	}
	if _, err := c.Locate(t.Context(), map[string]string{"period": "1s\n", "above": "5", "threads": "2"}); err == nil {
		t.Error("a setting that is not one gets into the configuration")
	}
}

func TestOpenRefuses(t *testing.T) {
	storecheck.Refused(t, haproxy.Open, map[string]string{"prcess": "did you mean process?"})
}
