package fakeredis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
)

// miniScripts as strategies write them, and what makes conversions show.
var miniScripts = []string{
	"return redis.call('GET', KEYS[1])",
	"return redis.call('INCRBY', KEYS[1], ARGV[1])",
	"local n = tonumber(redis.call('GET', KEYS[1]) or '0') if n + 1 > tonumber(ARGV[1]) then return {0, n} end " +
		"redis.call('INCR', KEYS[1]) return {1, n + 1}",
	"local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('EXPIRE', KEYS[1], 100) end return {n, " +
		"redis.call('PTTL', KEYS[1])}",
	"redis.call('SET', KEYS[1], ARGV[1], 'PX', 5001) return redis.call('PTTL', KEYS[1])",
	"redis.call('SET', KEYS[1], 1, 'EX', 100) return redis.call('PTTL', KEYS[1])",
	"redis.call('SET', KEYS[1], 1) redis.call('PEXPIRE', KEYS[1], (ARGV[1] + 2) * 10000) return redis.call('PTTL', " +
		"KEYS[1])",
	"redis.call('SET', KEYS[1], 3) redis.call('PEXPIREAT', KEYS[1], 4102444800000) return redis.call('PERSIST', KEYS[1])",
	"return {1, redis.call('HGET', KEYS[1], 'f'), 3.99, 'x', 4}",
	"redis.call('HINCRBY', KEYS[1], 'f', 1) return redis.call('HGETALL', KEYS[1])",
	"return redis.call('SET', KEYS[1], ARGV[1], 'NX')",
	"return {ok = 'FINE'}", "return nil", "return true", "return false", "return {}", "return #KEYS + #ARGV",
	"return tostring(1.5)",
}

// miniProgram draws a command, or some in one transaction. A time to live that is set
// as a length may have lost milliseconds on the server when it is read, see [aged];
// one that is set as a moment is read as one, exactly. TTL
// in seconds is left out: Redis rounds it, and miniredis drops what is beyond the
// whole second.
func miniProgram(r *rand.Rand, prefix string) [][]any {
	key := func() string { return prefix + strconv.Itoa(r.IntN(5)) }
	field := func() string { return "f" + strconv.Itoa(r.IntN(4)) }
	num := func() string { return []string{"1", "-1", "5", "0", "100", strconv.Itoa(r.IntN(1000))}[r.IntN(6)] }
	text := func() string { return []string{num(), "hello", "", "x\r\ny"}[r.IntN(4)] }
	secs := func() string { return []string{"1000", "2000", "100000", "-1"}[r.IntN(4)] }
	one := func(args ...any) [][]any { return [][]any{args} }
	k := key()
	timed := func(args ...any) [][]any { return [][]any{args, {"pttl", k}} }
	pick := []func() [][]any{
		func() [][]any { return one("get", k) },
		func() [][]any { return timed("set", k, text()) },
		func() [][]any { return timed("set", k, text(), "ex", "1000") },
		func() [][]any { return timed("set", k, text(), "px", "1234567", "nx") },
		func() [][]any { return timed("set", k, num(), "keepttl", "get") },
		func() [][]any { return timed("setnx", k, text()) },
		func() [][]any { return timed("incr", k) }, func() [][]any { return timed("decr", k) },
		func() [][]any { return timed("incrby", k, num()) }, func() [][]any { return timed("decrby", k, num()) },
		func() [][]any { return one("del", k, key()) }, func() [][]any { return one("exists", k) },
		func() [][]any { return one("type", k) },
		func() [][]any { return timed("expire", k, secs()) }, func() [][]any { return timed("pexpire", k, secs()+"000") },
		func() [][]any { return timed("persist", k) },
		func() [][]any {
			at := strconv.FormatInt(4102444800000+int64(r.IntN(1e6)), 10)
			return [][]any{{"pexpireat", k, at}, {"pexpiretime", k}}
		},
		func() [][]any { return one("hset", k, field(), text()) }, func() [][]any { return one("hget", k, field()) },
		func() [][]any { return one("hincrby", k, field(), num()) }, func() [][]any { return one("hgetall", k) },
		func() [][]any { return one("hdel", k, field()) }, func() [][]any { return one("hlen", k) },
		func() [][]any { return one("sadd", k, field(), field()) }, func() [][]any { return one("srem", k, field()) },
		func() [][]any { return one("smembers", k) }, func() [][]any { return one("scard", k) },
		func() [][]any { return one("mget", k, key()) },
		func() [][]any { return timed("eval", miniScripts[r.IntN(len(miniScripts))], "1", k, num()) },
		func() [][]any { return timed("eval", miniScripts[r.IntN(len(miniScripts))], "1", k, num()) },
		func() [][]any { return one("get") }, func() [][]any { return one("nosuch", k) },
	}
	return pick[r.IntN(len(pick))]()
}

// answers runs commands, more than one in a transaction.
func answers(ctx context.Context, c *redis.Client, cmds [][]any) []string {
	var out []string
	if len(cmds) == 1 {
		v, err := c.Do(ctx, cmds[0]...).Result()
		return append(out, miniShown(cmds[0][0].(string), v, err))
	}
	tx := c.TxPipeline()
	for _, args := range cmds {
		tx.Do(ctx, args...)
	}
	done, err := tx.Exec(ctx)
	if len(done) != len(cmds) {
		return []string{fmt.Sprintf("%d answers to %d commands, %v", len(done), len(cmds), err)}
	}
	for i, cmd := range done {
		v, err := cmd.(*redis.Cmd).Result()
		out = append(out, miniShown(cmds[i][0].(string), v, err))
	}
	return out
}

// miniShown renders a reply so that replies can be compared. Of errors the kind counts,
// since strategies cannot rely on more.
func miniShown(name string, v any, err error) string {
	if errors.Is(err, redis.Nil) {
		return "nil"
	}
	if err != nil && name == "eval" {
		return "error" // of a script, miniredis says ERR whatever it is
	}
	if err != nil {
		code, _, _ := strings.Cut(err.Error(), " ")
		return "error " + code
	}
	list, ok := v.([]any)
	if !ok {
		return fmt.Sprintf("%T %v", v, v) // of maps in the order of their keys
	}
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = fmt.Sprintf("%T %v", x, x)
	}
	if name == "smembers" {
		slices.Sort(parts)
	}
	if (name == "eval" || name == "hgetall") && len(parts)%2 == 0 && len(parts) > 2 {
		pairs := []string{}
		for i := 0; i+1 < len(parts); i += 2 {
			pairs = append(pairs, parts[i]+"="+parts[i+1])
		}
		slices.Sort(pairs)
		parts = pairs
	}
	return strings.Join(parts, ", ")
}

// compare runs a program on miniredis and on a redis-server.
func compare(ctx context.Context, real *redis.Client, ours *fakeredis.Mini, prefix string, seed uint64, n int) error {
	c := fakeredis.Client(ours)
	defer c.Close() //nolint:errcheck // nothing is written any more
	now := clock.Wall{}.Now()
	ours.Reset(now.UnixNano())
	for i := range 5 {
		if err := real.Del(ctx, prefix+strconv.Itoa(i)).Err(); err != nil {
			return err
		}
	}
	r := rand.New(rand.NewPCG(seed, 0))
	var log []string
	for range n {
		cmds := miniProgram(r, prefix)
		want := answers(ctx, real, cmds)
		got := answers(ctx, c, cmds)
		log = append(log, fmt.Sprintf("%q -> %q", cmds, want))
		same := slices.Equal(want, got)
		if !same && !aged(cmds, want, got) {
			return fmt.Errorf("seed %d: %q answers %q, want %q; before it:\n%s", seed, cmds, got, want,
				strings.Join(log[max(0, len(log)-12):], "\n"))
		}
	}
	return nil
}

// aged reports whether all that differs is what the two clocks make of a time
// to live: the one of the server goes on, and neither shows less than a millisecond.
func aged(cmds [][]any, want, got []string) bool {
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if want[i] == got[i] {
			continue
		}
		name := cmds[i][0].(string)
		left := strings.TrimPrefix(want[i][strings.LastIndex(want[i], ", ")+1:], " ")
		full := strings.TrimPrefix(got[i][strings.LastIndex(got[i], ", ")+1:], " ")
		a, err1 := strconv.ParseInt(strings.TrimPrefix(left, "int64 "), 10, 64)
		b, err2 := strconv.ParseInt(strings.TrimPrefix(full, "int64 "), 10, 64)
		if err1 != nil || err2 != nil || a < 1 || b < 1 || max(a-b, b-a) > 1500 {
			return false
		}
		if name != "pttl" && name != "eval" {
			return false
		}
	}
	return true
}

func differential(t testing.TB) (*redis.Client, *fakeredis.Mini, string) {
	real := storetest.Redis(t)
	o := *real.Admin().Options()
	o.Protocol = 2
	c := redis.NewClient(&o)
	ours, err := fakeredis.NewMini()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(); ours.Close() })
	return c, ours, storetest.Prefix(t)
}

// Miniredis answers as a redis-server does, as far as strategies go.
func TestMiniAgreesWithRedis(t *testing.T) {
	real, ours, prefix := differential(t)
	for seed := range testenv.Pick[uint64](40, 100) {
		if err := inTime(func() error { return compare(t.Context(), real, ours, prefix, seed, 60) }); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzMiniAgreesWithRedis(f *testing.F) {
	real, ours, prefix := differential(f)
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		if err := compare(t.Context(), real, ours, prefix, seed, 40); err != nil {
			t.Fatal(err)
		}
	})
}
