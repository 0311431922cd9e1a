package memredis

import (
	"fmt"
	"strings"
	"testing"
)

// plainScripts need no machine, but for those that begin with a bang.
var plainScripts = []string{
	"return redis.call('GET', KEYS[1])", "return redis.call('get', KEYS[1]) or 'none'", "return redis.call('SET', KEYS[1], ARGV[1])",
	"local n = tonumber(redis.call('GET', KEYS[1]) or 0) if n < 0 then n = 0 end redis.call('SET', KEYS[1], n) return n",
	"local a, b = tonumber(ARGV[1]), tonumber(ARGV[2]) if a + b <= 7 then return {1, a * b, a - b, -a} elseif a == 5 then return {0, a / b} end return {-1, a, nil, b}",
	"local t = redis.call('TIME') return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)",
	"local s = redis.call('GET', KEYS[1]) if not s then redis.call('SET', KEYS[1], ARGV[1]) end return {s, s == false, s ~= nil, s and 1}",
	"local x = 1 do local x = 2 x = x + 1 end return x", "local x = 1 local x = x + 1 return x",
	"return {1, {2, 'x', {}}, redis.call('MGET', KEYS[1], KEYS[2])}", "return KEYS[9]", "return ARGV[1] + 1", "return ARGV[1] < ARGV[2]", "return 1 < 'x'",
	"return nil + 1", "return redis.call('NOSUCH', 1)", "return redis.call('INCRBY', KEYS[1], ARGV[1])", "return redis.call('EVAL', 'return 1', 0)",
	"return redis.call('INCRBY', KEYS[1], 1.5)", "return redis.call('SET', KEYS[1], nil)", "return redis.call('SET', KEYS[1], redis.call('INCRBY', KEYS[2], 3))",
	"return redis.call(ARGV[1], KEYS[1])", "redis.call('INCR', KEYS[1]) return redis.call('HGET', KEYS[1], 'f')", "local r = redis.call('SET', KEYS[1], 'v') return r[1]",
	"return tonumber('0x10')", "return tonumber('1e3')", "return tonumber(nil)", "return math.floor(ARGV[1] / 2)", "return true", "return", "local x = 5", "return 1 >= 1 and 2 > 3 or 'no'",
	"local s = redis.call('GET', KEYS[1]) if s == '5' then return 'five' end return s", "return redis.call('GET', KEYS[1]) < '50'", "return redis.call('GET', KEYS[1]) <= 50",
	"redis.call('HSET', KEYS[2], 'f', 7) local v = redis.call('HGET', KEYS[2], 'f') return {v, v + 1, v == '7', v[1]}", "return redis.call('HGET', KEYS[1], 'f')",
	"redis.call('SET', KEYS[2], redis.call('GET', KEYS[1]) or 1) return redis.call('GET', KEYS[2])", "return -redis.call('GET', KEYS[1])", "return {redis.call('GET', KEYS[1])}",
	"local t = redis.call('TIME') return {t[1], t[2] + 0, t[3]}", "if not redis.call('GET', KEYS[1]) or tonumber(ARGV[1]) == 5 then return 1 end return 0",
	"if redis.call('GET', KEYS[1]) and ARGV[1] ~= '5' then return 1 end return tonumber(redis.call('GET', KEYS[1]))", "return redis.call('GET', KEYS[1], KEYS[2])", "return redis.call('GET', KEYS[3])",
	"local a = 3 return {math.floor(a + ARGV[1]) * 2, -a, a - tonumber(ARGV[2]), tonumber(a) / 2, a + math.floor(2.5)}", "local t = {1, '7', false} return {t[1] + t[2], tonumber(t[2]) > 6, t[3]}",
	"local a = 'x' return a + redis.call('INCRBY', KEYS[2], 3)", "local a = 2 return a * redis.call('INCRBY', KEYS[2], 3)", "local a = 'x' return 1 + 1 > a", "local a = '1' return 1 + 1 >= tonumber(a)",
	"local a = 5 return a[1]", "local a = 'x' return {tonumber(a[1] or 4)}", "return tonumber(ARGV[2]) + tonumber(KEYS[9])",
	"!return #KEYS", "!return {err = 'MY error'}", "!for i = 1, 2 do redis.call('INCR', KEYS[1]) end return 1", "!return redis.pcall('INCR', KEYS[1])",
	"!return KEYS[1] == ARGV[1]", "!return ARGV[1] .. 'x'", "!x = 1", "!local function f() return 1 end return f()", "!local redis = {} return redis.call('GET', 'x')",
	"!return 7 % 4", "!local a = 1, 2 return a", "!return KEYS[1.5]", "!return cjson.encode({})", "!return 1, 2",
}

// A plain script answers, and leaves behind, what it does in the Lua machine.
func TestPlainAgreesWithTheMachine(t *testing.T) {
	for _, source := range plainScripts {
		source, machine := strings.CutPrefix(source, "!")
		for _, stored := range []string{"", "5", "-3", "text", "9007199254740993"} {
			for _, argv := range [][]string{{"5", "2"}, {"-1", "10"}, {"", "x"}, {"1.5", " 7 "}, {"get", "b"}} {
				var got [2]string
				for i := range got {
					table := New()
					table.SetNow(1_700_000_000_123_456_789)
					if stored != "" {
						table.Do([]string{"set", "k", stored})
					}
					s, _, err := table.load(source)
					if err != nil {
						t.Fatalf("%s: %v", source, err)
					}
					if (s.plain == nil) != machine {
						t.Fatalf("%q is plain: %v", source, s.plain != nil)
					}
					if i == 1 {
						s.plain = nil
					}
					r := table.run(s, []string{"k", "l"}, argv)
					if strings.Contains(r.Text, "user_script:") { // each says it in its own words
						r.Text = "an error of Lua"
					}
					got[i] = fmt.Sprintf("%+v, then %v %v, unknown %q", r, table.Do([]string{"get", "k"}), table.Do([]string{"get", "l"}), table.Unknown())
					table.Close()
				}
				if got[0] != got[1] {
					t.Errorf("%s with %q and %q:\n%s, in the machine\n%s", source, stored, argv, got[0], got[1])
				}
			}
		}
	}
}
