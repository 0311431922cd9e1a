package service_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/service"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
)

// TestClient: requests go where the URL leads, with its login, over as many connections
// as there may be, and each is counted. None is sent before.
func TestClient(t *testing.T) {
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		asked = append(asked, r.URL.String()+" "+user+" "+password+" "+r.Proto)
	}))
	defer srv.Close()
	s, err := service.Open(t.Context(), strings.Replace(srv.URL, "://", "://me:s3cr3t@", 1)+
		"/check?user={subject}", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if i := s.Info(); i.Kind != stores.KindURL || s.Owned() || stores.PlaceOf(s) != stores.OnThisHost ||
		strings.Contains(i.Detail+i.Addr, "s3cr3t") {
		t.Errorf("%+v", i)
	}
	for _, cold := range []bool{false, true} {
		asked = nil
		var m stores.Meter
		conn, err := s.Connect(t.Context(), storetest.Scope(t), stores.ConnOptions{Pool: 2, Cold: cold, Meter: &m})
		if err != nil {
			t.Fatal(err)
		}
		c := conn.Client().(*service.Client)
		if c.URL() != srv.URL+"/check?user={subject}" {
			t.Errorf("the URL is %s", c.URL())
		}
		for range 3 {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL(), nil)
			if err != nil {
				t.Fatal(err)
			}
			c.Login(r)
			resp, err := c.HTTP().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
		want := map[bool]int64{false: 1, true: 3}[cold]
		if got := m.Snapshot(); got.Commands != 3 || got.RoundTrips != 3 || got.Connections != want || got.BytesIn == 0 ||
			got.Unparsed != 0 {
			t.Errorf("cold %v: %+v, want 3 requests over %d connections", cold, got, want)
		}
		if len(asked) != 3 || asked[0] != "/check?user={subject} me s3cr3t HTTP/1.1" {
			t.Errorf("asked %q", asked)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	storecheck.Refused(t, service.Open, map[string]string{
		"process":                         `--store service="process" is none of a URL`,
		"http://u:s3cr3t%@a/x":            "--store service= is not a valid URL",
		"http:///x":                       "--store service= is not a valid URL",
		"http://h/#/x?u={subject}":        "the URL of --store service= has a #",
		"http://{subject}.example/x":      "--store service= is not a valid URL",
		"http://u:s3cr3t@127.0.0.1:1/{x}": "no service reached at 127.0.0.1:1",
	})
}
