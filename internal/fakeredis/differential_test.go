package fakeredis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// scripts that programs call: what strategies do in theirs, and what makes
// conversions and errors show.
var scripts = []string{
	"return redis.call('GET', KEYS[1])",
	"return redis.call('INCRBY', KEYS[1], ARGV[1])",
	"return redis.pcall('INCRBY', KEYS[1], ARGV[1])",
	"local n = tonumber(redis.call('GET', KEYS[1]) or 0) redis.call('SET', KEYS[1], n + 1) return n",
	"return {1, redis.call('HGET', KEYS[1], 'f'), 3.99, 'x', false, 4}",
	"redis.call('HINCRBY', KEYS[1], 'f', 1) return redis.call('HGETALL', KEYS[1])",
	"return redis.call('SMEMBERS', KEYS[1])",
	"redis.call('ZADD', KEYS[1], 1.5, 'm') return {redis.call('ZSCORE', KEYS[1], 'm'), redis.call('ZCARD', KEYS[1]), " +
		"redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')}",
	"redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1]) return tonumber(redis.call('ZSCORE', KEYS[1], 'f1') or -1)",
	"local ok = redis.call('SET', KEYS[1], ARGV[1]) return ok",
	"return {err = 'MY error'}", "return {ok = 'FINE'}", "return redis.error_reply('MINE no')",
	"return redis.status_reply('YES')",
	"return redis.error_reply('MINE a\\nb')", "return {ok = 'F\\r\\nE'}",
	"return tonumber(ARGV[1])", "return #KEYS + #ARGV", "return nil", "return true", "return false", "return {}",
	"redis.call('SET', KEYS[1], 1.5) return redis.call('GET', KEYS[1])",
	"redis.call('SET', KEYS[1], 9007199254740993) return redis.call('GET', KEYS[1])",
	"redis.call('EXPIRE', KEYS[1], 100) return redis.call('PERSIST', KEYS[1])",
	"return math.floor(tonumber(ARGV[1]) / 3)", "return redis.sha1hex(ARGV[1])",
	"local used = tonumber(redis.call('GET', KEYS[1]) or 0) if used + tonumber(ARGV[1]) <= 1000 then return {1, " +
		"redis.call('INCRBY', KEYS[1], ARGV[1])} end return {-1, used}",
	"local left = tonumber(redis.call('GET', KEYS[1]) or 0) - tonumber(ARGV[1]) if left < 0 then left = 0 end " +
		"redis.call('SET', KEYS[1], left) return left",
	"return ARGV[1] + 1", "return ARGV[1] < 'abc'",
	"return {redis.call('MGET', KEYS[1], 'k1'), not ARGV[2], -ARGV[1], nil, 5}",
	"return redis.call('SET', KEYS[1], tonumber(ARGV[1]) * 1.5)",
	"return redis.call(ARGV[1], KEYS[1])",
	"local m = redis.call('HMGET', KEYS[1], 'f', 'f1') return {m[1], m[2] == false, m[3]}",
	"return #redis.call('SMEMBERS', KEYS[1])",
	"x = 1 return 1", "return x", "local function f() y = 1 end f() return 2", "KEYS = {} return 3",
	"string.z = 1 return 4", "redis.call = 1 return 5",
	"return redis.call('EVAL', 'return 1', 0)",
}

// program draws a command.
func program(r *rand.Rand) []any {
	key := func() string { return "k" + strconv.Itoa(r.IntN(6)) }
	field := func() string { return "f" + strconv.Itoa(r.IntN(12)) }
	num := func() string {
		return []string{"1", "-1", "5", "0", "100", "abc", "", "007", "-0", "+1", " 1", "1.5", "9223372036854775807",
			"-9223372036854775808", "9223372036854775808", strconv.Itoa(r.IntN(1000))}[r.IntN(16)]
	}
	text := func() string { return []string{num(), "hello", "", "x\r\ny"}[r.IntN(4)] }
	secs := func() string {
		return []string{"1000", "2000", "-1", "0", "abc", "9223372036854775807", "100000"}[r.IntN(7)]
	}
	// Sorted sets share a key with the others now and then, for errors of type.
	zkey := func() string { return "z" + strconv.Itoa(r.IntN(3)) }
	if r.IntN(8) == 0 {
		zkey = key
	}
	// What Redis writes in the same way in all its versions.
	score := func() string {
		return []string{num(), "1.5", "-2.5", "+1", "inf", "-inf", "nan", "1e3", "0x10", "0.25", "1700000000000",
			strconv.Itoa(r.IntN(9)), strconv.Itoa(r.IntN(9))}[r.IntN(13)]
	}
	limit := func() string {
		return []string{"", "(", "(1", "-inf", "+inf", "(inf", " 2", "x", "(2.5"}[r.IntN(9)] + []string{"",
			score()}[r.IntN(8)/7]
	}
	rank := func() string { return []string{"0", "1", "-1", "-2", "3", "-100", "100", "x"}[r.IntN(8)] }
	flag := func() string { return []string{"NX", "XX", "GT", "LT", "nx"}[r.IntN(5)] }
	future := strconv.FormatInt(4e12+int64(r.IntN(1e6)), 10)
	pick := []func() []any{
		func() []any { return []any{"get", key()} },
		func() []any { return []any{"SET", key(), text()} },
		func() []any { return []any{"set", key(), text(), "EX", secs()} },
		func() []any { return []any{"set", key(), text(), "PXAT", future, flag()} },
		func() []any { return []any{"set", key(), text(), "KEEPTTL", "GET"} },
		func() []any { return []any{"set", key(), text(), "px", secs(), "nx"} },
		func() []any { return []any{"setnx", key(), text()} },
		func() []any { return []any{"mget", key(), key()} },
		func() []any { return []any{"incr", key()} }, func() []any { return []any{"decr", key()} },
		func() []any { return []any{"incrby", key(), num()} }, func() []any { return []any{"decrby", key(), num()} },
		func() []any { return []any{"del", key(), key()} }, func() []any { return []any{"exists", key(), key()} },
		func() []any { return []any{"type", key()} },
		func() []any {
			return []any{"expire", key(), secs()}
		}, func() []any { return []any{"pexpire", key(), secs(), flag()} },
		func() []any {
			return []any{"pexpireat", key(), future, flag()}
		}, func() []any { return []any{"expireat", key(), "4000000000", flag(), flag()} },
		func() []any { return []any{"pexpireat", key(), future} },
		func() []any {
			return []any{"ttl", key()}
		}, func() []any { return []any{"pttl", key()} }, func() []any { return []any{"pexpiretime", key()} },
		func() []any { return []any{"persist", key()} },
		func() []any {
			return []any{"hset", key(), field(), text()}
		}, func() []any { return []any{"hset", key(), field(), text(), field()} },
		func() []any {
			return []any{"hget", key(), field()}
		}, func() []any { return []any{"hmget", key(), field(), field()} },
		func() []any { return []any{"hincrby", key(), field(), num()} }, func() []any { return []any{"hgetall", key()} },
		func() []any {
			return []any{"hdel", key(), field(), field()}
		}, func() []any { return []any{"hexists", key(), field()} },
		func() []any { return []any{"hlen", key()} }, func() []any { return []any{"hsetnx", key(), field(), text()} },
		func() []any {
			return []any{"sadd", key(), field(), field()}
		}, func() []any { return []any{"srem", key(), field(), field()} },
		func() []any { return []any{"smembers", key()} }, func() []any { return []any{"scard", key()} },
		func() []any { return []any{"sismember", key(), field()} },
		func() []any {
			return []any{"setex", key(), secs(), text()}
		}, func() []any { return []any{"psetex", key(), secs(), text()} },
		func() []any { return []any{"getset", key(), text()} }, func() []any { return []any{"getdel", key()} },
		func() []any { return []any{"getex", key()} }, func() []any { return []any{"getex", key(), "persist"} },
		func() []any {
			return []any{"getex", key(), "EX", secs()}
		}, func() []any { return []any{"getex", key(), "pxat", future, flag()} },
		func() []any {
			return []any{"zadd", zkey(), score(), field()}
		}, func() []any { return []any{"zadd", zkey(), score(), field(), score(), field()} },
		func() []any {
			return []any{"zadd", zkey(), flag(), score(), field()}
		}, func() []any { return []any{"zadd", zkey(), flag(), "CH", score(), field(), score(), field()} },
		func() []any {
			return []any{"zadd", zkey(), flag(), flag(), "incr", score(), field()}
		}, func() []any { return []any{"zadd", zkey(), "INCR", score(), field(), score()} },
		func() []any {
			return []any{"zincrby", zkey(), score(), field()}
		}, func() []any { return []any{"zrem", zkey(), field(), field()} },
		func() []any { return []any{"zcard", zkey()} }, func() []any { return []any{"zscore", zkey(), field()} },
		func() []any { return []any{"zrank", zkey(), field()} }, func() []any { return []any{"zrevrank", zkey(), field()} },
		func() []any {
			return []any{"zcount", zkey(), limit(), limit()}
		}, func() []any { return []any{"zremrangebyscore", zkey(), limit(), limit()} },
		func() []any { return []any{"zremrangebyrank", zkey(), rank(), rank()} },
		func() []any {
			return []any{"zrange", zkey(), rank(), rank()}
		}, func() []any { return []any{"zrange", zkey(), rank(), rank(), "REV", "WITHSCORES"} },
		func() []any {
			return []any{"zrevrange", zkey(), rank(), rank(), "withscores"}
		}, func() []any { return []any{"zrange", zkey(), rank(), rank(), "LIMIT", rank(), rank()} },
		func() []any { return []any{"zrange", zkey(), limit(), limit(), "BYSCORE", "LIMIT", rank(), rank()} },
		func() []any { return []any{"zrange", zkey(), limit(), limit(), "rev", "byscore", "withscores"} },
		func() []any { return []any{"zrangebyscore", zkey(), limit(), limit()} }, func() []any {
			return []any{"zrangebyscore", zkey(), limit(), limit(), "WITHSCORES", "LIMIT", rank(), rank()}
		},
		func() []any {
			return []any{"zrevrangebyscore", zkey(), limit(), limit(), "LIMIT", rank(), rank()}
		}, func() []any { return []any{"zrange", zkey(), rank(), rank(), field()} },
		func() []any { return []any{"eval", scripts[r.IntN(len(scripts))], "1", key(), num()} },
		func() []any {
			return []any{"evalsha", fakeredis.SHA1(scripts[r.IntN(len(scripts))]), "1", key(), num()}
		},
		func() []any { return []any{"eval", "return 1", num()} },
		func() []any {
			return []any{"get"}
		}, func() []any { return []any{"incr", key(), "2"} }, func() []any { return []any{"nosuch", key()} },
	}
	return pick[r.IntN(len(pick))]()
}

// shown renders a reply so that replies can be compared.
func shown(name string, v any, err error) string {
	switch {
	case errors.Is(err, redis.Nil):
		return "nil"
	case err != nil && strings.HasPrefix(name, "eval"):
		// A script's error names the place where it happened, each in its own words.
		code, rest, _ := strings.Cut(err.Error(), " ")
		rest, _, _ = strings.Cut(rest, " script: ")
		if strings.Contains(rest, "user_script:") {
			rest = "an error of Lua itself"
		}
		return "error " + code + " " + rest
	case err != nil:
		return "error " + err.Error()
	}
	return fmt.Sprintf("%T %v", v, normal(name, v))
}

// normal takes the order out of what has none.
func normal(name string, v any) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	out := make([]string, 0, len(list))
	pairs := name == "hgetall"
	for i := 0; i < len(list); i++ {
		x := fmt.Sprintf("%T %v", list[i], normal("", list[i]))
		if pairs && i+1 < len(list) {
			i++
			x += fmt.Sprintf("=%v", list[i])
		}
		out = append(out, x)
	}
	if pairs || name == "smembers" || name == "eval" || name == "evalsha" {
		slices.Sort(out)
	}
	return out
}

// alike compares two replies; what is left of a time to live may differ by what
// passes between the two stores.
func alike(name string, a, b string) bool {
	if a == b {
		return true
	}
	x, ok1 := strings.CutPrefix(a, "int64 ")
	y, ok2 := strings.CutPrefix(b, "int64 ")
	slack := map[string]int64{"ttl": 2, "pttl": 2000, "pexpiretime": 2000}[name]
	if slack == 0 || !ok1 || !ok2 {
		return false
	}
	m, _ := strconv.ParseInt(x, 10, 64)
	n, _ := strconv.ParseInt(y, 10, 64)
	return m > 0 && n > 0 && max(m-n, n-m) <= slack
}

// inTime calls compare again if it finds a difference and took long: on a busy machine
// keys of the server, whose clock goes on, expire meanwhile.
func inTime(compare func() error) (err error) {
	for range 100 {
		began := clock.Nano()
		err = compare()
		if err == nil || clock.Nano()-began < int64(500*time.Millisecond) {
			break
		}
	}
	return err
}

// differ runs a program on both stores, through the same client library, and
// returns the first command on which they differ.
func differ(ctx context.Context, real, ours *redis.Client, t *fakeredis.Table, seed uint64, n int) error {
	r := rand.New(rand.NewPCG(seed, 0))
	if err := errors.Join(real.FlushAll(ctx).Err(), ours.FlushAll(ctx).Err(), real.ScriptFlush(ctx).Err(),
		ours.ScriptFlush(ctx).Err()); err != nil {
		return err
	}
	var log []string
	for range n {
		args := program(r)
		name := strings.ToLower(args[0].(string))
		t.SetNow(clock.Wall{}.Now().UnixNano())
		v1, err1 := real.Do(ctx, args...).Result()
		v2, err2 := ours.Do(ctx, args...).Result()
		want := shown(name, v1, err1)
		got := shown(name, v2, err2)
		log = append(log, fmt.Sprintf("%q -> %s", args, want))
		if !alike(name, want, got) {
			return fmt.Errorf("seed %d: %q answers %s, want %s; before it:\n%s", seed, args, got, want,
				strings.Join(log[max(0, len(log)-12):], "\n"))
		}
	}
	return nil
}

func stores(t testing.TB) (real, ours *redis.Client, table *fakeredis.Table) {
	server := storetest.Redis(t)
	o := *server.Admin().Options()
	o.Protocol = 2
	real = redis.NewClient(&o)
	table = fakeredis.New()
	ours = fakeredis.Client(table)
	t.Cleanup(func() { _ = real.Close(); _ = ours.Close(); table.Close() })
	return real, ours, table
}

func TestAgreesWithRedis(t *testing.T) {
	real, ours, table := stores(t)
	programs := testenv.Pick(50, 150)
	if n, err := strconv.Atoi(os.Getenv("QUOTABENCH_PROGRAMS")); err == nil {
		programs = n
	}
	for seed := range programs {
		if err := inTime(func() error { return differ(t.Context(), real, ours, table, uint64(seed), 100) }); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzAgreesWithRedis(f *testing.F) {
	real, ours, table := stores(f)
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		if err := differ(t.Context(), real, ours, table, seed, 60); err != nil {
			t.Fatal(err)
		}
	})
}
