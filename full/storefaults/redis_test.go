//go:build linux

package storefaults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	redisstore "github.com/quotabench/quotabench/stores/redis"
)

// redisURL leads to a server that was started here, by the name of a user; "" is that of
// its password alone.
func redisURL(of *redisstore.Store, at, user string) string {
	return (&url.URL{Scheme: "redis", User: url.UserPassword(user, of.Admin().Options().Password), Host: at}).String()
}

func startRedis(t *testing.T, spec string) *redisstore.Store {
	t.Helper()
	storetest.Redis(t) // or skip
	// Without a title of its own the server shows how it was started.
	o := stores.Options{KeepLeftovers: true,
		Settings: map[string]string{"set-proc-title": "no", "appendonly": "yes", "appendfsync": "no"}}
	s, err := redisstore.Open(t.Context(), spec, o)
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

// commander is an administrator of a Redis.
type commander struct{ c *goredis.Client }

func (c commander) do(args ...any) func(context.Context) error {
	return func(ctx context.Context) error { return c.c.Do(ctx, args...).Err() }
}

// keys are those that runs have left.
func (c commander) keys(ctx context.Context) ([]string, error) {
	return c.c.Keys(ctx, "quotabench:*").Result()
}

// removeKeys removes what is under our prefix, as somebody may who tidies up.
func (c commander) removeKeys(ctx context.Context) error {
	keys, err := c.keys(ctx)
	if err != nil {
		return err
	}
	return c.c.Del(ctx, keys...).Err()
}

// addTo changes counters by so many units.
func addTo(client *goredis.Client, units int64) func(ctx context.Context, keys []string) error {
	return func(ctx context.Context, keys []string) error {
		for _, key := range keys {
			if err := client.IncrBy(ctx, key, units).Err(); err != nil {
				return err
			}
		}
		return nil
	}
}

// counters does something to the counters of a run, the largest first, once there are some
// that a look has seen.
func (c commander) counters(change func(ctx context.Context, keys []string) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for {
			keys, err := c.keys(ctx)
			if err != nil {
				return err
			}
			value := map[string]int64{}
			for _, key := range keys {
				if n, err := c.c.Get(ctx, key).Int64(); err == nil && !strings.Contains(key, "mark") &&
					!strings.Contains(key, "warm-up") {
					value[key] = n
				}
			}
			keys = slices.SortedFunc(maps.Keys(value), func(a, b string) int { return cmp.Compare(value[b], value[a]) })
			_ = (clock.Wall{}).Sleep(ctx, 5*monitor.Every)
			if len(keys) > 0 && value[keys[0]] >= 4 {
				return change(ctx, keys)
			}
		}
	}
}

func redisVictim(t *testing.T) *victim {
	s := startRedis(t, "process")
	data := s.Admin().ConfigGet(t.Context(), "dir").Val()["dir"]
	// It dials each time anew while there is no server.
	client := goredis.NewClient(&goredis.Options{Addr: s.Info().Addr, Password: s.Admin().Options().Password,
		PoolSize: 10_000})
	t.Cleanup(func() { _ = client.Close() })
	admin := commander{client}
	const user = "app"
	password := s.Admin().Options().Password
	permit := admin.do("ACL", "SETUSER", user, "on", "resetpass", ">"+password, "~*", "&*", "+@all")
	if err := permit(t.Context()); err != nil {
		t.Fatal(err)
	}
	drop := admin.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	dropOften := func(ctx context.Context) error { // until requests are under way
		for range 20 {
			if err := drop(ctx); err != nil {
				return err
			}
			_ = (clock.Wall{}).Sleep(ctx, 5*time.Millisecond)
		}
		return nil
	}
	none := func(context.Context) error { return nil }
	back := func(ctx context.Context) error {
		return errors.Join(settled(func(ctx context.Context) error {
			_, err := admin.keys(ctx) // once it has loaded what it has stored
			return err
		})(ctx), permit(ctx))
	}
	again := func(empty bool) func(context.Context) error {
		return func(ctx context.Context) error {
			mend, err := s.Break(ctx, "restarted", "")
			if err != nil {
				return err
			}
			if empty {
				err = remove(data)
			}
			return errors.Join(err, mend(ctx), back(ctx))
		}
	}
	return &victim{
		open: func(ctx context.Context) (stores.Store, error) {
			return stores.Opener(redisstore.Open)(ctx, redisURL(s, s.Info().Addr, user), stores.Options{KeepLeftovers: true})
		},
		left: admin.keys,
		acts: map[string]act{
			"FLUSHALL":                     {inflict: suffers(s, "flushed", func(context.Context) time.Duration { return 0 })},
			"keys removed by their prefix": {inflict: admin.removeKeys},
			"one counter overwritten": {inflict: admin.counters(func(ctx context.Context, keys []string) error {
				return client.Set(ctx, keys[0], -99999, goredis.KeepTTL).Err()
			})},
			"all counters raised by 1":  {inflict: admin.counters(addTo(client, 1))},
			"all counters lowered by 1": {inflict: admin.counters(addTo(client, -1))},
			"one counter removed": {inflict: admin.counters(func(ctx context.Context, keys []string) error {
				return client.Del(ctx, keys[0]).Err()
			})},
			"all counters removed, and the mark not": {inflict: admin.counters(func(ctx context.Context, keys []string) error {
				return client.Del(ctx, keys...).Err()
			})},
			"memory full": {inflict: suffers(s, "full", briefly)},
			"memory full, with eviction": {inflict: inTurn(admin.do("CONFIG", "SET", "maxmemory-policy", "allkeys-random",
				"maxmemory", 1), admin.do("CONFIG", "SET", "maxmemory", 0, "maxmemory-policy", "noeviction"))},
			"demoted to a replica": {inflict: inTurn(admin.do("REPLICAOF", "127.0.0.1", 1),
				admin.do("REPLICAOF", "NO", "ONE"))},
			"stopped for a while": {inflict: suffers(s, "stopped", halted)},
			"clients paused": {inflict: inTurn(func(ctx context.Context) error {
				return admin.do("CLIENT", "PAUSE", halted(ctx).Milliseconds())(ctx)
			}, none)},
			"replicas missing that writes need": {inflict: inTurn(admin.do("CONFIG", "SET", "min-replicas-to-write", 1),
				admin.do("CONFIG", "SET", "min-replicas-to-write", 0))},
			"a command forbidden": {inflict: inTurn(admin.do("ACL", "SETUSER", user, "-evalsha"), permit)},
			"password rotated": {inflict: inTurn(admin.do("ACL", "SETUSER", user, "resetpass", ">another"), drop,
				permit)},
			"too few connections": {inflict: inTurn(admin.do("CONFIG", "SET", "maxclients", 1), drop,
				admin.do("CONFIG", "SET", "maxclients", 10000))},
			"connections ended":       {inflict: dropOften},
			"killed":                  killed(s, back),
			"restarted with its data": {inflict: again(false)},
			"restarted empty":         {inflict: again(true)},
		},
	}
}

// failoverVictim is a Redis and its replica, behind one address that leads to whichever
// is the master.
func failoverVictim(t *testing.T) *victim {
	s := startRedis(t, "process")
	d, err := stores.DriverOf("redis")
	if err != nil {
		t.Fatal(err)
	}
	further, err := d.Further(t.Context(),
		stores.Further{Name: "redis.replica", Main: s, MainSpec: "process", Options: stores.Options{KeepLeftovers: true}})
	if err != nil {
		t.Fatal(err)
	}
	replica := further.(*redisstore.Store)
	t.Cleanup(func() {
		if err := replica.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := replica.Admin().ConfigSet(t.Context(), "requirepass", s.Admin().Options().Password).Err(); err != nil {
		t.Fatal(err)
	}
	at := newRelay(t, s.Info().Addr)
	return &victim{
		open: func(ctx context.Context) (stores.Store, error) {
			return stores.Opener(redisstore.Open)(ctx, redisURL(s, at.Addr().String(), ""), stores.Options{KeepLeftovers: true})
		},
		left: commander{replica.Admin()}.keys,
		acts: map[string]act{
			"failover": {inflict: inTurn(func(ctx context.Context) error {
				_, err := s.Break(ctx, "restarted", "") // and never again
				return err
			}, replica.Promote, func(context.Context) error {
				at.turn(replica.Info().Addr)
				return nil
			})},
		},
	}
}

// clusterVictim is a Redis Cluster of three masters, of which one suffers.
func clusterVictim(t *testing.T) *victim {
	s := startRedis(t, "process:cluster=3")
	conn, err := s.Connect(t.Context(), storetest.Scope(t), stores.ConnOptions{Pool: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	c := conn.Client().(*goredis.ClusterClient)
	opt := c.Options()
	ranges, err := c.ClusterSlots(t.Context()).Result() //nolint:staticcheck // as the driver does
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*goredis.Client
	for _, a := range opt.Addrs {
		n := goredis.NewClient(&goredis.Options{Addr: a, Password: opt.Password, MaxRetries: 3})
		t.Cleanup(func() { _ = n.Close() })
		nodes = append(nodes, n)
	}
	one := commander{nodes[0]}
	text, err := nodes[0].InfoMap(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(text["Server"]["process_id"], &pid); err != nil {
		t.Fatal(err)
	}
	own := processOf(t, pid, opt.Addrs[0])
	var from, to int
	for _, r := range ranges {
		if r.Nodes[0].Addr == opt.Addrs[0] {
			from = r.Start
			to = r.End
		}
	}
	whole := func(ctx context.Context) error { // again, as far as each of them sees
		for _, n := range nodes {
			for {
				m, err := n.ClusterInfo(ctx).Result()
				if err == nil && strings.Contains(m, "cluster_state:ok") {
					break
				}
				if err := (clock.Wall{}).Sleep(ctx, 5*time.Millisecond); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return &victim{
		open: func(ctx context.Context) (stores.Store, error) {
			list := "cluster:"
			for i, a := range opt.Addrs {
				if i > 0 {
					list += ","
				}
				list += (&url.URL{Scheme: "redis", User: url.UserPassword("", opt.Password), Host: a}).String()
			}
			return stores.Opener(redisstore.Open)(ctx, list, stores.Options{KeepLeftovers: true})
		},
		left: func(ctx context.Context) (left []string, err error) {
			for _, n := range nodes {
				keys, err := commander{n}.keys(ctx)
				if err != nil {
					return nil, err
				}
				left = append(left, keys...)
			}
			return left, nil
		},
		acts: map[string]act{
			"FLUSHALL on one master": {inflict: one.do("FLUSHALL")},
			"slots lost": {inflict: inTurn(one.do("CLUSTER", "DELSLOTSRANGE", from, to),
				one.do("CLUSTER", "ADDSLOTSRANGE", from, to)), mend: whole},
			"one master stopped for a while": {inflict: suffers(s, "node-stopped", halted)},
			"one master killed": {inflict: func(context.Context) error { own.kill(); return nil },
				mend: inTurn(own.start, whole)},
		},
	}
}
