package memredis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// command is one entry of the command table.
type command struct {
	name string
	// arity counts the name; a negative one is the least, as Redis has it.
	arity int
	run   func(t *Table, args []string) Reply
	// script commands cannot be called from scripts.
	script bool
	// noted commands are those of the list of this name.
	noted bool
}

// table of all commands, by name in lower and in upper case, which is how
// clients and scripts write them.
var table map[string]*command

func init() {
	table = map[string]*command{}
	for _, c := range []struct {
		name  string
		arity int
		run   func(t *Table, args []string) Reply
	}{
		{"get", 2, get}, {"set", -3, set}, {"setnx", 3, setnx},
		{"incr", 2, func(t *Table, a []string) Reply { return t.incr(a[1], 1) }},
		{"decr", 2, func(t *Table, a []string) Reply { return t.incr(a[1], -1) }},
		{"incrby", 3, incrBy}, {"decrby", 3, decrBy}, {"mget", -2, mget},
		{"del", -2, del}, {"unlink", -2, del}, {"exists", -2, exists}, {"type", 2, typeOf},
		{"expire", -3, expireIn(1000, false)}, {"pexpire", -3, expireIn(1, false)},
		{"expireat", -3, expireIn(1000, true)}, {"pexpireat", -3, expireIn(1, true)},
		{"ttl", 2, ttl}, {"pttl", 2, pttl}, {"pexpiretime", 2, pexpireTime}, {"persist", 2, persist},
		{"hget", 3, of(kindHash, nilReply, hget)}, {"hset", -4, hset}, {"hmget", -3, hmget}, {"hincrby", 4, hincrby},
		{"hgetall", 2, of(kindHash, emptyArray, hgetall)}, {"hdel", -3, removal(kindHash)}, {"hsetnx", 4, hsetnx},
		{"hexists", 3, of(kindHash, intReply(0), hexists)}, {"hlen", 2, length(kindHash)},
		{"sadd", -3, sadd}, {"srem", -3, removal(kindSet)}, {"smembers", 2, of(kindSet, emptyArray, smembers)},
		{"scard", 2, length(kindSet)}, {"sismember", 3, of(kindSet, intReply(0), sismember)},
		{"setex", 4, setWithExpiry("EX", "setex")}, {"psetex", 4, setWithExpiry("PX", "psetex")},
		{"getset", 3, getset}, {"getdel", 2, getdel}, {"getex", -2, getex},
		{"zadd", -4, zadd}, {"zincrby", 4, zincrby}, {"zrem", -3, removal(kindZset)}, {"zcard", 2, length(kindZset)},
		{"zscore", 3, of(kindZset, nilReply, zscore)},
		{"zrank", 3, zrank(false)}, {"zrevrank", 3, zrank(true)}, {"zcount", 4, zcount},
		{"zremrangebyscore", 4, zremrangebyscore}, {"zremrangebyrank", 4, zremrangebyrank},
		{"zrange", -4, zrange(rangeOptions{}, false)}, {"zrevrange", -4, zrange(rangeOptions{reverse: true}, true)},
		{"zrangebyscore", -4, zrange(rangeOptions{byScore: true}, true)},
		{"zrevrangebyscore", -4, zrange(rangeOptions{byScore: true, reverse: true}, true)},
		{"time", 1, timeNow}, {"ping", -1, ping}, {"wait", 3, wait},
		{"dbsize", 1, func(t *Table, _ []string) Reply { return intReply(int64(len(t.keys))) }},
		{"flushall", -1, flush}, {"flushdb", -1, flush},
		{"eval", -3, eval}, {"evalsha", -3, evalSHA}, {"script", -2, scriptCommand},
	} {
		script := c.name == "eval" || c.name == "evalsha" || c.name == "script"
		c := command{name: c.name, arity: c.arity, run: c.run, script: script, noted: slices.Contains(noted, c.name)}
		for _, name := range []string{c.name, strings.ToUpper(c.name)} {
			table[name] = &c
		}
	}
}

// Do runs one command. Its name comes first, in any case.
func (t *Table) Do(args []string) Reply {
	c := lookup(args[0])
	if c == nil {
		t.lacks(strings.ToLower(args[0]))
		return unknownCommand(args)
	}
	return t.carryOut(c, args)
}

// options are those of the known words that args begin with, and what follows them.
func options(args []string, known ...string) (set map[string]bool, rest []string) {
	for i, a := range args {
		word := strings.ToUpper(a)
		if !slices.Contains(known, word) {
			return set, args[i:]
		}
		if set == nil {
			set = map[string]bool{}
		}
		set[word] = true
	}
	return set, nil
}

// lacks notes that the table was given what it does not have.
func (t *Table) lacks(what string) Reply {
	if t.unknown == "" {
		t.unknown = what
	}
	return fault("ERR the table has no " + what)
}

// lookup finds a command by its name in any case, or returns nil.
func lookup(name string) *command {
	if c := table[name]; c != nil {
		return c
	}
	return table[strings.ToLower(name)]
}

// carryOut runs a command that is known.
func (t *Table) carryOut(c *command, args []string) Reply {
	if t.trace != nil {
		t.trace.carries(c)
	}
	if len(args) != c.arity && (c.arity > 0 || len(args) < -c.arity) {
		return wrongArity(c.name)
	}
	r := c.run(t, args)
	if len(t.watchers) > 0 && changes(c, r) {
		t.touch(args[1])
	}
	return r
}

func wrongArity(name string) Reply {
	return fault("ERR wrong number of arguments for '" + name + "' command")
}

func unknownCommand(args []string) Reply {
	var b strings.Builder
	for _, a := range args[1:] {
		fmt.Fprintf(&b, "'%s' ", a)
	}
	return fault(fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", args[0], b.String()))
}

func del(t *Table, args []string) Reply {
	var n int64
	for _, k := range args[1:] {
		if e := t.get(k); e != nil {
			t.remove(e)
			n++
		}
	}
	return intReply(n)
}

func exists(t *Table, args []string) Reply {
	var n int64
	for _, k := range args[1:] {
		if t.get(k) != nil {
			n++
		}
	}
	return intReply(n)
}

func typeOf(t *Table, args []string) Reply {
	if e := t.get(args[1]); e != nil {
		return status(e.kind.String())
	}
	return status("none")
}

func flush(t *Table, _ []string) Reply {
	for _, e := range t.keys {
		e.removed = true
		t.touch(e.key)
	}
	clear(t.keys)
	t.mortal = 0
	t.due = nil
	return okReply
}

func timeNow(t *Table, _ []string) Reply {
	return Reply{Kind: Array, Array: []Reply{
		bulk(numeric(t.now / 1e9).String()), bulk(numeric(t.now % 1e9 / 1e3).String()),
	}}
}

func ping(_ *Table, args []string) Reply {
	switch len(args) {
	case 1:
		return status("PONG")
	case 2:
		return bulk(args[1])
	default:
		return wrongArity("ping")
	}
}

// wait says how many replicas have what this connection has written.
func wait(t *Table, args []string) Reply {
	for _, a := range args[1:] {
		if n, err := strconv.ParseInt(a, 10, 64); err != nil || n < 0 {
			return notInteger
		}
	}
	return intReply(t.Replicas)
}
