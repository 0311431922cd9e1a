package service

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// fixed is a client of a test's server.
type fixed struct {
	*http.Client
	url string
}

func (f fixed) HTTP() *http.Client                                        { return f.Client }
func (f fixed) URL() string                                               { return f.url }
func (f fixed) Login(r *http.Request)                                     { r.Header.Set("X-Login", "yes") }
func (f fixed) Locate(context.Context, map[string]string) (string, error) { return f.url, nil }

var policy = quota.Policy{Name: "p", Limit: 5, Unit: "calls",
	Window: quota.Window{Kind: quota.Rolling, Length: time.Minute}}

// at opens http on a handler.
func at(t *testing.T, path string, given quota.Options, h http.HandlerFunc) (strategies.Strategy, error) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	meta := testkit.Strategy(t, "http").Meta
	sel, err := meta.Select(given)
	if err != nil {
		return nil, err
	}
	return meta.Open(t.Context(), strategies.Env{
		Clock: clock.Wall{}, Prefix: "run:", Options: sel.Options,
		Clients: map[string]any{"service": fixed{srv.Client(), srv.URL + path}},
	})
}

func take(t *testing.T, s strategies.Strategy, subject quota.Subject) (quota.Decision, error) {
	t.Helper()
	return s.Take(t.Context(), quota.Request{Subject: subject, Policy: &policy, Units: 1})
}

// TestStatusesAndHeaders: what an answer means, by default and by options.
func TestStatusesAndHeaders(t *testing.T) {
	own := quota.Options{"admitted": "200-299+304", "rejected": "403+5xx", "remaining": "X-Left", "retry-after": "X-Wait"}
	for name, c := range map[string]struct {
		given   quota.Options
		status  int
		headers string // name=value, with a bar between
		want    quota.Decision
		fails   bool
	}{
		"admitted":          {nil, 204, "", quota.Decision{Admitted: true, Remaining: -1}, false},
		"with what is left": {nil, 200, "RateLimit-Remaining=7", quota.Decision{Admitted: true, Remaining: 7}, false},
		"by the older header": {nil, 200, "X-RateLimit-Remaining=3|RateLimit-Remaining=none",
			quota.Decision{Admitted: true, Remaining: 3}, false},
		"rejected":         {nil, 429, "Retry-After=2", quota.Decision{Remaining: -1, RetryAfter: 2 * time.Second}, false},
		"until a date":     {nil, 429, "Retry-After=Thu, 01 Jan 1970 00:00:00 GMT", quota.Decision{Remaining: -1}, false},
		"an error":         {nil, 500, "", quota.Decision{}, true},
		"not an admission": {nil, 302, "Location=/elsewhere", quota.Decision{}, true},
		"own admission":    {own, 304, "X-Left=1", quota.Decision{Admitted: true, Remaining: 1}, false},
		"own rejection": {own, 503, "X-Wait=0.5|Retry-After=9",
			quota.Decision{Remaining: -1, RetryAfter: 500 * time.Millisecond}, false},
		"own error": {own, 429, "", quota.Decision{}, true},
	} {
		s, err := at(t, "/?u={subject}", c.given, func(w http.ResponseWriter, _ *http.Request) {
			for h := range strings.SplitSeq(c.headers, "|") {
				if name, value, ok := strings.Cut(h, "="); ok {
					w.Header().Set(name, value)
				}
			}
			w.WriteHeader(c.status)
		})
		if err != nil {
			t.Fatal(err)
		}
		s.(*service).http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		d, err := take(t, s, "a")
		if c.fails != (err != nil) {
			t.Errorf("%s: error %v", name, err)
		}
		c.want.Tier = TierService
		if err == nil && d != c.want {
			t.Errorf("%s: %+v, want %+v", name, d, c.want)
		}
	}
}

// TestRequests: the subject is escaped as its place asks for, and requests are sent as
// the options say.
func TestRequests(t *testing.T) {
	for _, c := range []struct {
		path  string
		given quota.Options
		want  string
	}{
		{"/check/{subject}/x?y=1", nil, "GET /check/run:a%2Fb%20&%3F/x?y=1 header= close=false"},
		{"/?u={subject}&v=1", quota.Options{"method": "POST", "keep-alive": "false"},
			"POST /?u=run%3Aa%2Fb+%26%3F&v=1 header= close=true"},
		{"/", quota.Options{"subject-header": "X-Api-Key"}, "GET / header=run%3Aa%2Fb+%26%3F close=false"},
	} {
		got := ""
		s, err := at(t, c.path, c.given, func(_ http.ResponseWriter, r *http.Request) {
			got = r.Method + " " + r.RequestURI + " header=" + r.Header.Get("X-Api-Key") + " close=" +
				map[bool]string{true: "true", false: "false"}[r.Close]
			if r.Header.Get("X-Login") != "yes" {
				t.Error("the request has no login")
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if d, err := take(t, s, "a/b &?"); err != nil || !d.Admitted || got != c.want {
			t.Errorf("%s: %+v, %v: asked %q, want %q", c.path, d, err, got, c.want)
		}
	}
}

func TestTimeout(t *testing.T) {
	s, err := at(t, "/{subject}", quota.Options{"timeout": "20ms"}, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := take(t, s, "a"); err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("%v, want a deadline", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for want, c := range map[string]struct {
		path  string
		given quota.Options
	}{
		"have the status 429 in common":    {"/{subject}", quota.Options{"admitted": "2xx+429"}},
		`"2x" are no statuses`:             {"/{subject}", quota.Options{"admitted": "2x"}},
		`"200-100" are no statuses`:        {"/{subject}", quota.Options{"rejected": "200-100"}},
		`"a b" are no names of headers`:    {"/{subject}", quota.Options{"remaining": "a b"}},
		"give a number of requests from 0": {"/{subject}", quota.Options{"may-leak": "-1"}},
	} {
		if _, err := at(t, c.path, c.given, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	meta := testkit.Strategy(t, "http").Meta
	for _, c := range []struct {
		url, header string
		ok          bool
	}{{"http://h/", "", false}, {"http://h/?u={subject}", "", true}, {"http://h/", "X-Api-Key", true}} {
		err := meta.Suits(quota.Options{"subject-header": c.header}, fixed{url: c.url})
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "put {subject} into the URL") {
			t.Errorf("%s with the header %q: %v", c.url, c.header, err)
		}
	}
	for _, text := range []string{"5 calls per fixed 1m", "5 calls per calendar hour",
		"5 calls per rolling 1m costing 2"} {
		p := testkit.Policy(t, text)
		if meta.ServesPolicy(&p) == nil {
			t.Errorf("%s is served", text)
		}
	}
}

// TestPolicies: gateways serve what they can be configured for without rounding.
func TestPolicies(t *testing.T) {
	for text, want := range map[string]struct {
		rate    string
		haproxy bool
	}{
		"20 x refilling 10 per 1s": {"10r/s", false}, "20 x per fixed 10s": {"2r/s", true},
		"3 x per rolling 1m": {"3r/m", true}, "90 x per fixed 1h": {"", true},
		"180 x per fixed 1h": {"3r/m", true}, "4 x per fixed 1m": {"", true}, "7 x refilling 1 per 3s": {"", false},
		"1 x per fixed 1.5ms": {"", false}, "9 x per rolling 30d": {"", false},
	} {
		p := testkit.Policy(t, text)
		if rate, _ := rateOf(&p); rate != want.rate {
			t.Errorf("%s: nginx's rate is %q, want %q", text, rate, want.rate)
		}
		for name, serves := range map[string]bool{"nginx-limit-req": want.rate != "", "haproxy-req-rate": want.haproxy} {
			meta := testkit.Strategy(t, name).Meta
			if err := meta.ServesPolicy(&p); (err == nil) != serves {
				t.Errorf("%s: %s: %v", text, name, err)
			}
		}
	}
}

// TestSentAgain: a service that counts and breaks the connection gets a GET twice from Go's
// client. What it decided the second time is no decision on one request.
func TestSentAgain(t *testing.T) {
	var counted atomic.Int64
	s, err := at(t, "/?u={subject}&api_key=s3cr3t", nil, func(w http.ResponseWriter, _ *http.Request) {
		if counted.Add(1) == 2 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusOK)
	})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := take(t, s, "a"); err != nil || !d.Admitted {
		t.Fatalf("first: %+v, %v", d, err)
	}
	if d, err := take(t, s, "a"); !errors.Is(err, errSentAgain) || counted.Load() != 3 {
		t.Errorf("second: %+v, %v, counted %d times", d, err, counted.Load())
	}
}

// TestSubjectHeader: headers that the client writes itself carry no subject.
func TestSubjectHeader(t *testing.T) {
	for header, ok := range map[string]bool{"X-Api-Key": true, "host": false, "Authorization": false, "X-A+X-B": false,
		"not a header": false} {
		if err := checkSubjectHeader(header); (err == nil) != ok {
			t.Errorf("%s: %v", header, err)
		}
	}
}
