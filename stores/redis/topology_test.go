package redis_test

import (
	"fmt"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

// started opens a spec of servers that are started here.
func started(t *testing.T, spec string) *redis.Store {
	t.Helper()
	storetest.Redis(t) // or skip
	s, err := redis.Open(t.Context(), spec, stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func clientOf(t *testing.T, s stores.Store, o stores.ConnOptions) goredis.UniversalClient {
	t.Helper()
	o.Pool = max(o.Pool, 1)
	return connect(t, s, storetest.Scope(t), o).Client().(goredis.UniversalClient)
}

// TestReplicas plants a write, waits for its replica, and reads it there.
func TestReplicas(t *testing.T) {
	s := started(t, "process:replicas=1")
	c := clientOf(t, s, stores.ConnOptions{})
	if pids, err := s.Processes(t.Context()); err != nil || len(pids) != 2 {
		t.Errorf("processes %v, %v, want a master's and a replica's", pids, err)
	}
	before, err := s.Stats(t.Context())
	if err != nil || !before.Known || strings.Count(before.Incarnation, ",") != 1 {
		t.Errorf("stats %+v, %v", before, err)
	}
	if n, err := waited(t, c); n != 1 || err != nil {
		t.Fatalf("WAIT: %d, %v", n, err)
	}

	set := stores.NewSet()
	replica := further(t, set, s, "redis.replica")
	f := replica.(*redis.Store)
	if !f.Follows() {
		t.Error("it does not follow")
	}
	if err := c.Set(t.Context(), "k", 8, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := f.CatchUp(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	r := clientOf(t, replica, stores.ConnOptions{})
	if n, err := r.Get(t.Context(), "k").Int(); err != nil || n != 8 {
		t.Errorf("the replica has %d, %v, want 8", n, err)
	}
	if err := r.Set(t.Context(), "k", 9, 0).Err(); err == nil {
		t.Error("the replica took a write")
	}
	scope := storetest.Scope(t)
	if err := c.Set(t.Context(), scope.Prefix()+"k", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := replica.Prepare(t.Context(), scope); n != 0 || err != nil {
		t.Errorf("Prepare: %d, %v", n, err)
	}
	if err := replica.Wipe(t.Context(), scope); err != nil {
		t.Errorf("Wipe: %v", err)
	}
	if n := c.Exists(t.Context(), scope.Prefix()+"k").Val(); n != 1 {
		t.Error("wiping the replica removed the master's key")
	}
	// Handed out, it is a store of its own.
	if pids, err := s.Processes(t.Context()); err != nil || len(pids) != 1 {
		t.Errorf("processes %v, %v, want the master's alone", pids, err)
	}
	if err := f.Promote(t.Context()); err != nil || f.Follows() {
		t.Fatalf("promote: %v, follows %v", err, f.Follows())
	}
	if err := r.Set(t.Context(), "k", 9, 0).Err(); err != nil {
		t.Errorf("the promoted replica: %v", err)
	}
}

// waited writes, and says how many replicas have the write.
func waited(t *testing.T, c goredis.UniversalClient) (replicas int64, err error) {
	t.Helper()
	var wait *goredis.Cmd
	_, err = c.Pipelined(t.Context(), func(p goredis.Pipeliner) error { // on one connection
		p.Set(t.Context(), "k", 7, 0)
		wait = p.Do(t.Context(), "WAIT", 1, 10_000)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return wait.Int64()
}

// further opens a store next to main.
func further(t *testing.T, set *stores.Set, main stores.Store, name string) stores.Store {
	t.Helper()
	d, err := stores.DriverOf(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Further(t.Context(), stores.Further{Name: name, Main: main, MainSpec: "process"})
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Add(name, s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestFurther(t *testing.T) {
	testenv.Long(t)
	main := started(t, "process")
	addrs := map[string]bool{main.Info().Addr: true}
	for _, name := range []string{"redis.2", "redis.3", "redis.durable", "redis.replicated", "redis.replica"} {
		s := further(t, stores.NewSet(), main, name)
		if addrs[s.Info().Addr] {
			t.Errorf("%s is at %s, as another one is", name, s.Info().Addr)
		}
		addrs[s.Info().Addr] = true
		if got := strings.Contains(s.Info().Durability, "fsync always"); got != (name == "redis.durable") {
			t.Errorf("%s: %s", name, s.Info().Durability)
		}
		c := clientOf(t, s, stores.ConnOptions{})
		if name != "redis.replicated" {
			continue
		}
		if n, err := waited(t, c); n != 1 || err != nil {
			t.Errorf("%s: WAIT %d, %v, want 1", name, n, err)
		}
	}
}

// What cannot be had says how to give it.
func TestFurtherThatCannotBeHad(t *testing.T) {
	d, err := stores.DriverOf("redis")
	if err != nil {
		t.Fatal(err)
	}
	embedded := storetest.EmbeddedRedis(t)
	for _, x := range []struct{ name, main, want string }{
		{"redis.2", "redis://somewhere", "--store redis.2=SPEC"},
		{"redis.2", "cluster:redis://somewhere", "--store redis.2=SPEC"},
		{"redis.durable", "embedded", "--store redis.durable=process"},
		{"redis.replicated", "embedded", "--store redis.replicated=process"},
		{"redis.replicated", "container", "as processes only"},
		{"redis.replica", "embedded", "--store redis.replica=redis://host:port"},
	} {
		s, err := d.Further(t.Context(), stores.Further{Name: x.name, Main: embedded, MainSpec: x.main})
		if s != nil || err == nil {
			t.Errorf("%+v: %v, %v", x, s, err)
			continue
		}
		storecheck.Error(t, err, x.want)
	}
	s, err := d.Further(t.Context(), stores.Further{Name: "redis.2", Main: embedded, MainSpec: "embedded"})
	if err != nil || s.Info().Kind != stores.KindEmbedded {
		t.Fatalf("a second embedded one: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestShapesAreRefused(t *testing.T) {
	for spec, want := range map[string]string{
		"process:replicas=0":           "give replicas=1 to 5",
		"process:replicas=x":           "give replicas=1 to 5",
		"process:cluster=2":            "give cluster=3 to 9",
		"process:":                     "replicas=N, cluster=N, sentinel=N, durable, maxmemory",
		"process:lasting":              "replicas=N, cluster=N, sentinel=N, durable, maxmemory",
		"process:sentinel=0":           "give sentinel=1 to 9",
		"process:sentinel=3,cluster=3": "cluster or sentinel",
		"process:policy=allkeys-lru":   "maxmemory=N,policy=NAME",
		"process:cluster=3,replicas=9": "give replicas=1 to 5",
		"container:cluster=3":          "as processes only",
		"embedded:durable":             "embedded",
		"cluster:host:1":               "give cluster:redis://host:port",
		"cluster:redis://a,b":          "number 2 is no URL",
		"sentinel:redis://host:26379":  "master_name",
	} {
		s, err := redis.Open(t.Context(), spec, stores.Options{})
		if err == nil {
			_ = s.Close()
			t.Errorf("%s: taken", spec)
			continue
		}
		storecheck.Error(t, err, want)
	}
}

// TestCluster spreads keys over three masters, counts them there, finds the commands
// in the meter, and removes them; and reads two keys of different slots at once, which
// a cluster refuses.
func TestCluster(t *testing.T) {
	testenv.Long(t)
	s := started(t, "process:cluster=3")
	if !s.Owned() || stores.PlaceOf(s) != stores.StartedHere || s.Admin() != nil || s.Info().Version == "" {
		t.Errorf("%+v, owned %v", s.Info(), s.Owned())
	}
	if pids, err := s.Processes(t.Context()); err != nil || len(pids) != 3 {
		t.Errorf("processes %v, %v", pids, err)
	}
	checkCluster(t, s)

	password := secretOf(t, s)
	t.Setenv("REDISCLI_AUTH", password)
	addrs := strings.Split(s.Info().Addr, ",")
	again, err := redis.Open(t.Context(), "cluster:redis://"+addrs[0]+",redis://"+addrs[1], stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	if again.Owned() || again.Info().Kind != stores.KindURL {
		t.Errorf("%+v", again.Info())
	}
	checkCluster(t, again)

	single := storetest.Redis(t)
	t.Setenv("REDISCLI_AUTH", single.Admin().Options().Password)
	if s, err := redis.Open(t.Context(), "cluster:redis://"+single.Info().Addr, stores.Options{}); err == nil {
		_ = s.Close()
		t.Error("a single server is taken for a cluster")
	} else {
		storecheck.Error(t, err, "no cluster")
	}
}

// secretOf is the password of servers that were started here.
func secretOf(t *testing.T, s *redis.Store) string {
	t.Helper()
	c := clientOf(t, s, stores.ConnOptions{}).(*goredis.ClusterClient)
	return c.Options().Password
}

func checkCluster(t *testing.T, s *redis.Store) {
	t.Helper()
	ctx := t.Context()
	scope := storetest.Scope(t)
	var m stores.Meter
	c := clientOf(t, s, stores.ConnOptions{Pool: 2, Meter: &m})
	if n := m.Connections.Load(); n < 6 {
		t.Errorf("%d connections, want two to each master", n)
	}
	before, err := s.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sent := m.Snapshot()
	const keys = 60
	for i := range keys {
		if err := c.Set(ctx, fmt.Sprint(scope.Prefix(), i), 1, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if n := m.Snapshot().Sub(sent).Commands; n != keys {
		t.Errorf("%d commands metered, want %d", n, keys)
	}
	after, err := s.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// One of the two questions about statistics is among them; a master may also have
	// been asked for the cluster's state.
	if n := after.Commands - before.Commands - 1; n < keys || n > keys+10 {
		t.Errorf("the masters count %d commands, want %d", n, keys)
	}
	if after.CPU <= 0 || after.Memory <= 0 || before.Incarnation != after.Incarnation ||
		strings.Count(after.Incarnation, ",") != 2 {
		t.Errorf("stats %+v", after)
	}
	if u, err := s.Usage(ctx, scope); err != nil || u != (stores.Usage{Keys: keys, WithoutTTL: keys, Bytes: u.Bytes}) ||
		u.Bytes == 0 {
		t.Errorf("usage %+v, %v", u, err)
	}
	if n, err := s.Count(ctx); err != nil || n.Keys < keys || n.WithoutTTL < keys || n.Bytes == 0 {
		t.Errorf("%+v on all masters (%v), want %d keys or more", n, err, keys)
	}
	two := goredis.NewScript(`return redis.call("GET", KEYS[1]) .. redis.call("GET", KEYS[2])`)
	if err := two.Run(ctx, c, []string{scope.Prefix() + "1", scope.Prefix() + "2"}).Err(); err == nil ||
		!strings.Contains(err.Error(), "CROSSSLOT") {
		t.Errorf("two keys of different slots: %v, want CROSSSLOT", err)
	}
	if err := s.Wipe(ctx, scope); err != nil {
		t.Fatal(err)
	}
	if u, err := s.Usage(ctx, scope); err != nil || u.Keys != 0 {
		t.Errorf("left: %+v, %v", u, err)
	}
}

// TestPipelinesShareThePool asks for pipelines and commands from more callers than
// there are connections.
func TestPipelinesShareThePool(t *testing.T) {
	var m stores.Meter
	c := clientOf(t, storetest.Redis(t), stores.ConnOptions{Pool: 2, Meter: &m})
	done := make(chan error)
	const callers = 16
	for range callers {
		go func() {
			for range 20 {
				_, err := c.Pipelined(t.Context(), func(p goredis.Pipeliner) error {
					p.Ping(t.Context())
					return nil
				})
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := m.Connections.Load(); n != 2 {
		t.Errorf("%d connections, want the 2 of the pool", n)
	}
}
