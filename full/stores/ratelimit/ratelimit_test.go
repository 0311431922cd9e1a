package ratelimit_test

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/quotabench/quotabench/full/stores/ratelimit"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func open(t testing.TB) stores.Store {
	return storetest.Shared(t, "ratelimit", func(ctx context.Context) (stores.Store, error) {
		return stores.Opener(ratelimit.Open)(ctx, "process", stores.Options{})
	})
}

func connect(t *testing.T, s stores.Store, o stores.ConnOptions) *ratelimit.Client {
	t.Helper()
	conn, err := s.Connect(t.Context(), storetest.Scope(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.Client().(*ratelimit.Client)
}

// ask asks once for a subject.
func ask(t *testing.T, cc grpc.ClientConnInterface, domain, key, subject string) rls.RateLimitResponse_Code {
	t.Helper()
	entries := []*common.RateLimitDescriptor_Entry{{Key: key, Value: subject}}
	r, err := rls.NewRateLimitServiceClient(cc).ShouldRateLimit(t.Context(),
		&rls.RateLimitRequest{Domain: domain, Descriptors: []*common.RateLimitDescriptor{{Entries: entries}}})
	if err != nil {
		t.Fatal(err)
	}
	return r.OverallCode
}

// TestLimit: subjects and configurations do not share a count, servers of one
// configuration do.
func TestLimit(t *testing.T) {
	s := open(t)
	if i := s.Info(); i.Kind != stores.KindProcess || stores.PlaceOf(s) != stores.StartedHere || !s.Owned() {
		t.Errorf("%+v", i)
	}
	c := connect(t, s, stores.ConnOptions{Pool: 1})
	limit := func(limit, servers string) map[string]string {
		return map[string]string{"unit": "day", "limit": limit, "cache": "0", "servers": servers}
	}
	for _, x := range []struct {
		what, subject string
		settings      map[string]string
		want          int
	}{
		{"a subject", "a", limit("5", "1"), 5}, {"another one", "b", limit("5", "1"), 5},
		{"the first one again", "a", limit("5", "1"), 0},
		{"another limit", "a", limit("7", "1"), 7}, {"two servers in turns", "a", limit("7", "2"), 7},
		{"no limit", "a", nil, 20}, {"nothing", "a", limit("0", "1"), 0},
	} {
		admitted := 0
		for i := range 20 {
			cc, domain, key, err := c.Locate(t.Context(), x.settings, i)
			if err != nil {
				t.Fatal(err)
			}
			if ask(t, cc, domain, key, x.subject) == rls.RateLimitResponse_OK {
				admitted++
			}
		}
		if admitted != x.want {
			t.Errorf("%s: %d of 20 admitted, want %d", x.what, admitted, x.want)
		}
	}
	for name, value := range map[string]string{"unit": "week", "limit": "5\n", "cache": "-1", "servers": "9",
		"other": "1"} {
		bad := limit("5", "1")
		bad[name] = value
		if _, _, _, err := c.Locate(t.Context(), bad, 0); err == nil {
			t.Errorf("%s=%q gets into the configuration", name, value)
		}
	}
}

// TestCloseEnds: nothing is left of the servers, and none is started afterwards.
func TestCloseEnds(t *testing.T) {
	open(t) // skips if there is none
	dir := t.TempDir()
	s, err := ratelimit.Open(t.Context(), "process", stores.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if pids, err := s.Processes(t.Context()); err != nil || len(pids) != 2 { // of it, and of its Redis
		t.Errorf("processes %v (%v)", pids, err)
	}
	c := connect(t, s, stores.ConnOptions{Pool: 1})
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, _, _, err := c.Locate(t.Context(), map[string]string{}, 0); err == nil {
		t.Error("a server is started after all were ended")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v (%v)", left, err)
	}
}

// service admits everything.
type service struct {
	rls.UnimplementedRateLimitServiceServer
}

func (service) ShouldRateLimit(context.Context, *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	return &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OK}, nil
}

// TestURL: calls go to the servers in turns by instance, over one connection or over one
// for each call, and are counted.
func TestURL(t *testing.T) {
	var addrs []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := grpc.NewServer()
		rls.RegisterRateLimitServiceServer(srv, service{})
		go func() { _ = srv.Serve(l) }()
		defer srv.Stop()
		addrs = append(addrs, l.Addr().String())
	}
	s, err := ratelimit.Open(t.Context(), "grpc://"+strings.Join(addrs, ","), stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if i := s.Info(); i.Kind != stores.KindURL || i.Addr != addrs[0] || s.Owned() ||
		stores.PlaceOf(s) != stores.OnThisHost {
		t.Errorf("%+v", i)
	}
	for _, x := range []struct {
		cold            bool
		calls, instance int
		connections     int64
	}{{false, 3, 0, 1}, {false, 3, 1, 1}, {true, 3, 0, 3}} {
		var m stores.Meter
		c := connect(t, s, stores.ConnOptions{Pool: 1, Cold: x.cold, Meter: &m})
		for range x.calls {
			cc, domain, key, err := c.Locate(t.Context(), nil, x.instance)
			if err != nil || domain != "" || key != "" || c.Started() {
				t.Fatalf("%s, %s, %v", domain, key, err)
			}
			if !x.cold && cc.(*grpc.ClientConn).Target() != "passthrough:///"+addrs[x.instance] {
				t.Errorf("instance %d asks %s", x.instance, cc.(*grpc.ClientConn).Target())
			}
			ask(t, cc, "d", "k", "a")
		}
		if got := m.Snapshot(); got.Commands != 3 || got.Connections != x.connections || got.Unparsed != 0 {
			t.Errorf("cold %v: %+v, want 3 calls over %d connections", x.cold, got, x.connections)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	storecheck.Refused(t, ratelimit.Open, map[string]string{
		"prcess":                 "did you mean process?",
		"grpc://u:s3cr3t@h:1":    "--store ratelimit= is not a valid URL",
		"grpc://h":               "--store ratelimit= is not a valid URL",
		"grpc://127.0.0.1:1":     "no service reached at 127.0.0.1:1",
		"http://127.0.0.1:1/x?y": "the value of --store ratelimit= is none of",
	})
}
