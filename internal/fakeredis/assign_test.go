package fakeredis_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/stores/storetest"
)

// randomScript writes a random script of assignments, conditions and loops.
type randomScript struct{ *rand.Rand }

func (p randomScript) of(words ...string) string { return words[p.IntN(len(words))] }

func (p randomScript) variable() string { return p.of("a", "b", "c", "d") }

func (p randomScript) simple() string {
	return p.of("a", "b", "c", "d", "a", "b", "c", "d", "1", "2", "nil", "true", "false", "'s'")
}

func (p randomScript) number() string {
	return "number(" + p.simple() + ")"
}

func (p randomScript) expression(depth int) string {
	if depth == 3 {
		return p.simple()
	}
	switch p.IntN(9) {
	case 0, 1, 2:
		return fmt.Sprintf("(%s %s %s)", p.expression(depth+1), p.of("and", "or"), p.expression(depth+1))
	case 3:
		return "not " + p.simple()
	case 4:
		return fmt.Sprintf("(%s %s %s)", p.number(), p.of("<", "<=", "==", "~="), p.number())
	case 5:
		return fmt.Sprintf("(%s %s %s)", p.number(), p.of("+", "-"), p.number())
	case 6:
		return fmt.Sprintf("two(%s, %s)", p.simple(), p.simple())
	default:
		return p.simple()
	}
}

// target is a variable or an element of a table.
func (p randomScript) target() string {
	if p.IntN(4) == 0 {
		return fmt.Sprintf("list[%s]", p.of("1", "2", "number(a) + 1"))
	}
	return p.variable()
}

func (p randomScript) statement(depth int) string {
	if depth == 2 {
		return p.target() + " = " + p.expression(1)
	}
	inner := p.statement(depth + 1)
	switch p.IntN(7) {
	case 0, 1:
		first := p.IntN(4)
		names := []string{"a", "b", "c", "d"}
		var targets, values []string
		for i := range 2 + p.IntN(2) {
			targets = append(targets, names[(first+i)%4])
		}
		for range len(targets) - 1 + p.IntN(3) {
			values = append(values, p.expression(1))
		}
		targets = append(targets, fmt.Sprintf("list[%s]", p.of("1", "2", "number(a) + 1")))
		return strings.Join(targets, ", ") + " = " + strings.Join(values, ", ")
	case 2:
		return fmt.Sprintf("local %s = %s", p.variable(), p.expression(0))
	case 3:
		return fmt.Sprintf("if %s then %s else %s end", p.of("false", "nil", p.expression(0)), inner, p.statement(depth+1))
	case 4:
		return fmt.Sprintf("for i = 1, 2 do %s if %s then break end end", inner, p.expression(1))
	case 5:
		return fmt.Sprintf("do local f = function(a, b) %s return a, b end %s = f(c, d) end", inner, p.target())
	default:
		return p.target() + " = " + p.expression(0)
	}
}

// text is the whole script.
func (p randomScript) text() string {
	lines := []string{
		"local list = {7, 8}",
		"local function number(x) return tonumber(x) or 0 end",
		"local function two(x, y) if x then return y, x end return x end",
		"local a, b, c, d = 1, 'b', nil, false",
	}
	for range 2 + p.IntN(4) {
		lines = append(lines, p.statement(0))
	}
	lines = append(lines, "local all = ''",
		"for _, x in ipairs({tostring(a), tostring(b), tostring(c), tostring(d), tostring(list[1]), tostring(list[2])}) do",
		"all = all .. x .. ' ' end", "return all")
	return strings.Join(lines, "\n")
}

// TestRandomScriptsAgreeWithRedis: what variables hold after assignments, conditions and loops is what a server says.
func TestRandomScriptsAgreeWithRedis(t *testing.T) {
	real := storetest.Redis(t).Admin()
	ours, _ := kept(t, 2)
	for seed := range uint64(600) {
		text := randomScript{rand.New(rand.NewPCG(seed, 1))}.text()
		answer := func(c redis.UniversalClient) string {
			v, err := c.Eval(t.Context(), text, nil).Result()
			return fmt.Sprint(v, err)
		}
		if want, got := answer(real), answer(ours); want != got {
			t.Fatalf("seed %d: %s answers %s, want %s", seed, text, got, want)
		}
	}
}

// TestGlobalsOfScriptsAgreeWithRedis: a script that gives a global's name another meaning, or looks a global up in a
// function of its own, is answered as by a server.
func TestGlobalsOfScriptsAgreeWithRedis(t *testing.T) {
	real := storetest.Redis(t).Admin()
	ours, _ := kept(t, 2)
	many := ""
	for i := range 50 {
		many += fmt.Sprintf("if math.f%d then return 0 end ", i)
	}
	for _, script := range []string{
		`local redis = {call = function() return 7 end} return redis.call('GET', 'k')`,
		`local function call(redis) return redis.call('x') end return call({call = function(x) return x end})`,
		`local function first(KEYS) return KEYS[1] end return first({'mine'}) .. KEYS[1] .. ARGV[1]`,
		`local function later() return redis.call('INCRBY', KEYS[1], ARGV[1]) end later() return later()`,
		`for tonumber = 1, 2 do if tonumber == 2 then return tonumber end end`,
		`for _, type in ipairs({'a'}) do return type .. tostring(tonumber('0x10')) end`,
		`tonumber = 5 return 1`,
		`redis.call = 5 return 1`,
		`function tostring() return 'mine' end return tostring(1)`,
		`return type(redis.nothing) .. type(math.floor) .. string.format('%d', math.floor(2.5))`,
		`return redis.pcall('NOTHING')['err']`,
		many + "return {#KEYS, #ARGV, unpack(ARGV)}",
	} {
		var answers []string
		for _, client := range []redis.UniversalClient{real, ours} {
			reply, err := client.Eval(t.Context(), script, []string{"key"}, 3).Result()
			if err != nil { // texts differ in the numbers of lines and scripts
				err = redis.Nil
			}
			answers = append(answers, fmt.Sprint(reply, err))
		}
		if answers[0] != answers[1] {
			t.Errorf("%s: a server says %s, and the table %s", script, answers[0], answers[1])
		}
	}
}
