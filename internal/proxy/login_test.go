package proxy_test

import (
	"context"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/proxy"
	"github.com/quotabench/quotabench/internal/stores/storetest"
)

// guarded is a proxy with a password before a Redis that it is logged in to.
func guarded(t *testing.T) *proxy.Door {
	t.Helper()
	direct, _ := storetest.RedisClient(t)
	o := direct.Options()
	p := proxy.New()
	door, err := p.Redis("of the proxy", func(ctx context.Context) (net.Conn, error) {
		conn, err := o.Dialer(ctx, o.Network, o.Addr)
		if err != nil || o.Password == "" {
			return conn, err
		}
		b := &bench{t: t}
		b.write(conn, "AUTH "+o.Password)
		b.read(conn, "+OK\r\n")
		return conn, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return door
}

// TestPassword: only who knows the proxy's password reaches the Redis behind it, by either protocol, and logs in to it
// more than once if it likes to.
func TestPassword(t *testing.T) {
	p := guarded(t)
	for password, want := range map[string]bool{"of the proxy": true, "another": false, "": false} {
		for _, protocol := range []int{2, 3} {
			client := redis.NewClient(&redis.Options{Addr: p.Addr(), Password: password, Protocol: protocol, MaxRetries: -1,
				DisableIdentity: true})
			before := p.Barred()
			err := client.Echo(t.Context(), "x").Err()
			if (err == nil) != want || (p.Barred() > before) == want {
				t.Errorf("password %q, RESP%d: %v, %d commands barred", password, protocol, err, p.Barred()-before)
			}
			if again := client.Do(t.Context(), "AUTH", password).Err(); want && again != nil {
				t.Errorf("RESP%d, a second AUTH: %v", protocol, again)
			}
			if named := client.Do(t.Context(), "AUTH", "default", "wrong").Err(); named == nil {
				t.Errorf("password %q, RESP%d: a wrong second AUTH is taken", password, protocol)
			}
			_ = client.Close()
		}
	}
}
