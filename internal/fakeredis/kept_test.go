package fakeredis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/stores/storetest"
)

// kept is a miniredis whose scripts run in one Lua state. taken counts them.
func kept(t testing.TB, protocol int) (c *redis.Client, taken *int) {
	m := miniredis.RunT(t)
	s := fakeredis.NewScripts(m)
	taken = new(int)
	m.Server().SetPreHook(func(p *server.Peer, cmd string, args ...string) bool {
		done := s.Take(p, cmd, args...)
		if done {
			*taken++
		}
		return done
	})
	c = redis.NewClient(&redis.Options{Addr: m.Addr(), Protocol: protocol, PoolSize: 1})
	t.Cleanup(func() { _ = c.Close(); m.Close(); s.Close() })
	return c, taken
}

// TestScriptsAgreeWithRedis: scripts answer in the kept state what they answer on a
// server, in both protocols, and leave the same behind.
func TestScriptsAgreeWithRedis(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		o := *storetest.Redis(t).Admin().Options()
		o.Protocol = protocol
		real := redis.NewClient(&o)
		ours, taken := kept(t, protocol)
		ran := 0
		for _, content := range [][]any{{"ping"}, {"set", "k", "7"}, {"set", "k", "x"}, {"hset", "k", "f", "3"},
			{"sadd", "k", "f1"}, {"zadd", "k", "2", "f1"}} {
			for _, script := range scripts {
				for _, arg := range []string{"5", "1.5", "abc"} {
					answer := func(c *redis.Client) string {
						c.FlushAll(t.Context())
						c.Do(t.Context(), content...)
						v, err := c.Eval(t.Context(), script, []string{"k"}, arg).Result()
						left, errLeft := c.Do(t.Context(), "get", "k").Result()
						return shown("eval", v, err) + ", then " + shown("get", left, errLeft)
					}
					ran++
					if want, got := answer(real), answer(ours); want != got {
						t.Fatalf("%v, RESP%d: %q of %q answers %s, want %s", content, protocol, script, arg, got, want)
					}
				}
			}
		}
		if *taken != ran {
			t.Errorf("%d of %d scripts ran in the kept state", *taken, ran)
		}
		_ = real.Close()
	}
}

// TestScriptsLeftToMiniredis: what the kept state lacks still works.
func TestScriptsLeftToMiniredis(t *testing.T) {
	c, taken := kept(t, 3)
	ctx := t.Context()
	sha := c.ScriptLoad(ctx, "return redis.call('INCR', KEYS[1])").Val()
	multi := c.TxPipeline()
	multi.EvalSha(ctx, sha, []string{"n"})
	multi.Eval(ctx, "return redis.call('INCR', KEYS[1])", []string{"n"})
	if _, err := multi.Exec(ctx); err != nil {
		t.Error(err)
	}
	got := []string{fmt.Sprint(c.Eval(ctx, "return cjson.encode({7})", nil).Val())}
	pipe := c.Pipeline()
	pipe.Do(ctx, "select", 1)
	other := pipe.Eval(ctx, "return redis.call('GET', KEYS[1])", []string{"n"})
	pipe.Do(ctx, "select", 0)
	_, _ = pipe.Exec(ctx)
	got = append(got, fmt.Sprint(other.Val()))
	if *taken != 0 {
		t.Errorf("%d of them ran in the kept state", *taken)
	}
	// What one script does to its connection is over with it.
	c.Eval(ctx, "return redis.call('SELECT', 1)", nil)
	got = append(got, fmt.Sprint(c.Eval(ctx, "return redis.call('GET', KEYS[1])", []string{"n"}).Val()),
		fmt.Sprint(c.EvalSha(ctx, sha, []string{"n"}).Val()))
	if want := "[[7] <nil> 2 3]"; fmt.Sprint(got) != want || *taken != 3 {
		t.Errorf("answers %v, want %s; %d ran in the kept state, want 3", got, want, *taken)
	}
	known := c.ScriptExists(ctx, sha, fakeredis.SHA1("return redis.call('SELECT', 1)"), "none").Val()
	c.ScriptFlush(ctx)
	if err := c.EvalSha(ctx, sha, []string{"n"}).Err(); fmt.Sprint(known) != "[true true false]" ||
		!redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("loaded are %v, and %v after a flush", known, err)
	}
}

// TestScriptsWake: a script's command wakes who waits for its key.
func TestScriptsWake(t *testing.T) {
	c, _ := kept(t, 3)
	waiter := redis.NewClient(&redis.Options{Addr: c.Options().Addr})
	t.Cleanup(func() { _ = waiter.Close() })
	push := redis.NewScript("return redis.call('RPUSH', KEYS[1], 'x')")
	if err := push.Load(t.Context(), c).Err(); err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	go func() { got <- fmt.Sprint(waiter.BLPop(t.Context(), 0, "list").Val()) }()
	time.Sleep(100 * time.Millisecond) // it waits by then, or takes what is there: no machine fails for being slow
	if err := push.Run(t.Context(), c, []string{"list"}).Err(); err != nil {
		t.Fatal(err)
	}
	select {
	case v := <-got:
		if v != "[list x]" {
			t.Error(v)
		}
	case <-time.After(time.Minute):
		t.Error("a waiting client does not notice what a script pushes")
	}
}

// TestScriptsAllocate: a script costs a multiple of what its commands do, and not a Lua
// state.
func TestScriptsAllocate(t *testing.T) {
	c, _ := kept(t, 3)
	script := redis.NewScript("return redis.call('INCR', KEYS[1])")
	incr := testing.AllocsPerRun(100, func() { c.Incr(t.Context(), "n") })
	eval := testing.AllocsPerRun(100, func() { script.Run(t.Context(), c, []string{"n"}) })
	if eval > 6*incr {
		t.Errorf("a script allocates %v times, its command %v times", eval, incr)
	}
}

// A key that is set within a millisecond lives for its whole time, and not to the beginning
// of the millisecond of its deadline.
func TestWholeTimeToLive(t *testing.T) {
	const set, life = int64(1_000_123_457), int64(1e9)
	table := fakeredis.New()
	table.Reset(set)
	for _, args := range [][]string{{"set", "a", "1", "px", "1000"}, {"set", "b", "1"}, {"pexpire", "b", "1000"}} {
		table.Do(args)
	}
	for _, at := range []int64{set + life - 457_000, set + life - 1, set + life} {
		table.SetNow(at)
		table.ExpireDue()
		if got, want := table.Len(), map[bool]int{true: 2}[at < set+life]; got != want {
			t.Errorf("after %d ns: %d keys, want %d", at-set, got, want)
		}
	}
}
