package redis_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/programs"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

func TestKeysUnderAndWipeStayInsideThePrefix(t *testing.T) {
	eachRedis(t, func(t *testing.T, r *redis.Store) {
		ctx := context.Background()
		base := storetest.Prefix(t)
		// Patterns in a prefix must not reach other keys.
		prefix := base + `we*rd?[ab]\:`
		outside := []string{base + "other", base + "weird1a:k", base + "weXrdYa:k", strings.TrimSuffix(prefix, ":"), base + `we*rd?a\:k`, "x" + prefix + "k"}
		a := r.Admin()
		for _, k := range outside {
			if err := a.Set(ctx, k, 1, 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		const n = 2500 // more than one batch
		pipe := a.Pipeline()
		for i := range n {
			ttl := time.Hour
			if i%5 == 0 {
				ttl = 0
			}
			pipe.Set(ctx, fmt.Sprint(prefix, i), 1, ttl)
		}
		pipe.HSet(ctx, prefix+"hash", "f", 1)
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
		total, forever, err := r.KeysUnder(ctx, prefix)
		if err != nil || total != n+1 || forever != n/5+1 {
			t.Errorf("KeysUnder: %d, %d without TTL, %v; want %d, %d", total, forever, err, n+1, n/5+1)
		}
		removed, err := r.WipePrefix(ctx, prefix)
		if err != nil || removed != n+1 {
			t.Errorf("Wipe removed %d (%v), want %d", removed, err, n+1)
		}
		total, _, err = r.KeysUnder(ctx, prefix)
		if err != nil || total != 0 {
			t.Errorf("%d keys left (%v)", total, err)
		}
		if left, err := a.Exists(ctx, outside...).Result(); err != nil || left != int64(len(outside)) {
			t.Errorf("%d of %d keys outside the prefix are left (%v)", left, len(outside), err)
		}
		if _, err := r.WipePrefix(ctx, ""); err == nil {
			t.Error("an empty prefix was wiped")
		}
	})
}

func TestEmbeddedRedisAges(t *testing.T) {
	r := storetest.EmbeddedRedis(t)
	ctx := context.Background()
	a := r.Admin()
	const life = 150 * time.Millisecond
	from := clock.Nano()
	start, err := a.Time(ctx).Result()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Set(ctx, "k", 1, life).Err(); err != nil {
		t.Fatal(err)
	}
	storecheck.Eventually(t, "the key expires", func() bool { return a.Exists(ctx, "k").Val() == 0 })
	end, err := a.Time(ctx).Result()
	if err != nil {
		t.Fatal(err)
	}
	// Both clocks of miniredis must have moved, together.
	passed := time.Duration(clock.Nano() - from)
	if d := end.Sub(start); d < life/3 || d > passed+life/3 {
		t.Errorf("TIME moved by %v while a key of %v expired, in %v", d, life, passed)
	}
}

func TestEmbeddedRedisIsDescribed(t *testing.T) {
	r := storetest.EmbeddedRedis(t)
	i := r.Info()
	if i.Kind != stores.KindEmbedded || !r.Owned() || r.PID() != 0 || i.Durability == "" || i.Detail == "" ||
		i.Addr == "" {
		t.Errorf("%+v, owned %v, pid %d", i, r.Owned(), r.PID())
	}
	if st, err := r.Stats(context.Background()); err != nil || !reflect.DeepEqual(st, stores.Stats{}) {
		t.Errorf("stats %+v %v: an embedded server keeps none", st, err)
	}
}

func TestRedisProcessIsDescribed(t *testing.T) {
	r := storetest.Redis(t)
	ctx := context.Background()
	i := r.Info()
	if i.Kind != stores.KindProcess || !r.Owned() || r.PID() <= 0 || !strings.HasPrefix(i.Addr, "127.0.0.1:") {
		t.Errorf("%+v, owned %v, pid %d", i, r.Owned(), r.PID())
	}
	if i.Version == "" || i.Durability != "no snapshots, no append-only file" {
		t.Errorf("version %q, durability %q", i.Version, i.Durability)
	}
	a, err := r.Stats(ctx)
	if !a.Known || err != nil {
		t.Fatal(a, err)
	}
	b, err := r.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Incarnation) != 40 || a.Incarnation != b.Incarnation || b.Commands <= a.Commands || a.Memory <= 0 ||
		a.CPU <= 0 || a.Evicted != 0 || a.Forking {
		t.Errorf("stats %+v, then %+v", a, b)
	}
}

func TestRedisSettings(t *testing.T) {
	storetest.Redis(t) // skips if there is none
	ctx := context.Background()
	r, err := redis.Open(ctx, "process",
		stores.Options{Dir: t.TempDir(), Settings: map[string]string{"appendonly": "yes", "appendfsync": "always"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if got := r.Info().Durability; got != "no snapshots, append-only file, fsync always" {
		t.Errorf("durability %q", got)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	_, err = redis.Open(ctx, "process",
		stores.Options{Dir: t.TempDir(), Settings: map[string]string{"no-such-setting": "1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a server that ends at once: %v", err)
	}
}

func TestClientOptions(t *testing.T) {
	r := storetest.EmbeddedRedis(t)
	c := client(t, r, redis.ClientOptions{Pool: 7, Retries: 2, Timeout: 123 * time.Millisecond})
	o := c.Options()
	if o.PoolSize != 7 || o.MaxRetries != 2 || o.ReadTimeout != 123*time.Millisecond ||
		o.DialTimeout != 123*time.Millisecond {
		t.Errorf("options not taken: %+v", o)
	}
	if o := client(t, r, redis.ClientOptions{}).Options(); o.MaxRetries > 0 {
		t.Errorf("the client retries %d times unasked", o.MaxRetries)
	}
	if !o.DisableIdentity || o.MaintNotificationsConfig.Mode != "disabled" {
		t.Error("the client talks to the server on its own account")
	}
}

// unreachable is an address where nothing listens.
const unreachable = "127.0.0.1:1"

func TestOpenRedisErrors(t *testing.T) {
	const secret = "s3cr3t%2Fpw" // "s3cr3t/pw" once decoded
	for _, tc := range []struct {
		spec string
		want []string
	}{
		{"", []string{"--redis is empty", "auto, process, container, container:image=redis:8, embedded", "redis://"}},
		{"precess", []string{`"precess"`, "auto, process, container, container:image=redis:8, embedded", "redis://"}},
		{"http://u:" + secret + "@h/", []string{"auto, process, container, container:image=redis:8, embedded"}},
		{"redis://u:" + secret + "@" +
			unreachable, []string{unreachable, "connection refused", "start one", "--redis process", "--redis embedded"}},
		{"redis://u:" + secret + "@" + unreachable + "/notanumber", []string{"not a valid URL"}},
		{"redis://u:" + secret + "@" + unreachable + "?nonsense=1", []string{"not a valid URL", "nonsense"}},
		{"redis://u:s3cr3t/pw@" + unreachable, []string{"not a valid URL", "%-encode"}},
		{"unix://u:" + secret + "@/nowhere/redis.sock", []string{"/nowhere/redis.sock", "--redis process"}},
	} {
		r, err := redis.Open(context.Background(), tc.spec, stores.Options{})
		if err == nil {
			_ = r.Close()
			t.Errorf("%s: opened", tc.spec)
			continue
		}
		storecheck.Error(t, err, tc.want...)
	}
}

func TestRedisWithPassword(t *testing.T) {
	storetest.Redis(t)
	ctx := context.Background()
	own, err := redis.Open(ctx, "process",
		stores.Options{Dir: t.TempDir(), Settings: map[string]string{"requirepass": "s3cr3t/pw"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = own.Close() }()
	addr := own.Info().Addr
	r, err := redis.Open(ctx, "redis://:s3cr3t%2Fpw@"+addr+"/3", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if i := r.Info(); i.Kind != stores.KindURL || r.Owned() || r.PID() != 0 ||
		strings.Contains(fmt.Sprintf("%+v", i), "s3cr3t") {
		t.Errorf("%+v, owned %v, pid %d", i, r.Owned(), r.PID())
	}
	if err := client(t, r, redis.ClientOptions{}).Set(ctx, "k", 1, 0).Err(); err != nil {
		t.Error(err)
	}
	if n, err := own.Admin().Exists(ctx, "k").Result(); err != nil || n != 0 {
		t.Errorf("the database in the URL was not used (%v)", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if own.Admin().Ping(ctx).Err() != nil {
		t.Error("closing a server that is not ours ended it")
	}
	t.Setenv("REDISCLI_AUTH", "s3cr3t/pw")
	if r, err := redis.Open(ctx, "redis://"+addr, stores.Options{}); err != nil {
		t.Errorf("password from the environment: %v", err)
	} else {
		_ = r.Close()
	}
	t.Setenv("REDISCLI_AUTH", "s3cr3t-wrong")
	for _, spec := range []string{"redis://" + addr, "redis://u:s3cr3t-also@" + addr} {
		_, err := redis.Open(ctx, spec, stores.Options{})
		if err == nil {
			t.Fatal("opened with a wrong password")
		}
		storecheck.Error(t, err, addr, "refuses the login", "REDISCLI_AUTH")
	}
}

func TestOpenAuto(t *testing.T) {
	ctx := context.Background()
	r, err := redis.Open(ctx, "auto", stores.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if k := r.Info().Kind; !slices.Contains([]stores.Kind{stores.KindProcess, stores.KindEmbedded}, k) {
		t.Errorf("kind %s", k)
	}
	if programs.Required("redis") && r.Info().Kind != stores.KindProcess {
		t.Errorf("a redis-server is here, and auto took %+v", r.Info())
	}
	// If the server cannot start, auto says so and goes on.
	r2, err := redis.Open(ctx, "auto", stores.Options{Dir: "/nonexistent/folder"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r2.Close() }()
	if i := r2.Info(); i.Kind != stores.KindEmbedded || strings.Contains(i.Detail, "\n") {
		t.Errorf("%+v", i)
	}
}
