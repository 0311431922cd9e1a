package fakeredis

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
	traits
	run func(table *Table, args []string) Reply
}

// traits of a command.
type traits uint8

const (
	// noted commands change nothing, or nothing but by way of functions that note it. All others may have changed what
	// they have looked at.
	noted traits = 1 << iota
	// ifAny commands have changed nothing if they answer 0.
	ifAny
	// touches has a command tell those that watch its key by itself.
	touches
	// unscripted commands cannot be called from scripts.
	unscripted
)

// has reports whether a command has one of the traits.
func (t traits) has(any traits) bool { return t&any != 0 }

// table of all commands, by name in lower and in upper case, which is how
// clients and scripts write them.
var table map[string]*command

func init() {
	table = map[string]*command{}
	for _, c := range []command{
		{"get", 2, noted, get}, {"set", -3, noted, set}, {"setnx", 3, noted, setnx},
		{"incr", 2, 0, func(table *Table, texts []string) Reply { return table.incr(texts[1], 1) }},
		{"decr", 2, 0, func(table *Table, texts []string) Reply { return table.incr(texts[1], -1) }},
		{"incrby", 3, 0, incrBy}, {"decrby", 3, 0, decrBy}, {"mget", -2, noted, mget},
		{"del", -2, noted, forEach((*Table).remove)}, {"unlink", -2, noted, forEach((*Table).remove)},
		{"exists", -2, noted, forEach(func(*Table, *entry) {})}, {"type", 2, noted, typeOf},
		{"expire", -3, noted, expireIn(1000, false)}, {"pexpire", -3, noted, expireIn(1, false)},
		{"expireat", -3, noted, expireIn(1000, true)}, {"pexpireat", -3, noted, expireIn(1, true)},
		{"ttl", 2, noted, ttl}, {"pttl", 2, noted, pttl}, {"pexpiretime", 2, noted, pexpireTime},
		{"persist", 2, noted, persist},
		{"hget", 3, noted, of(kindHash, nilReply, hget)}, {"hset", -4, 0, hset}, {"hmget", -3, noted, hmget},
		{"hincrby", 4, 0, hincrby},
		{"hgetall", 2, noted, of(kindHash, emptyArray, hgetall)}, {"hdel", -3, ifAny, removal(kindHash)},
		{"hsetnx", 4, ifAny, hsetnx},
		{"hexists", 3, noted, of(kindHash, intReply(0), hexists)}, {"hlen", 2, noted, length(kindHash)},
		{"sadd", -3, ifAny, sadd}, {"srem", -3, ifAny, removal(kindSet)},
		{"smembers", 2, noted, of(kindSet, emptyArray, smembers)},
		{"scard", 2, noted, length(kindSet)}, {"sismember", 3, noted, of(kindSet, intReply(0), sismember)},
		{"setex", 4, noted, setWithExpiry("EX", "setex")}, {"psetex", 4, noted, setWithExpiry("PX", "psetex")},
		{"getset", 3, noted, getset}, {"getdel", 2, noted, getdel}, {"getex", -2, noted, getex},
		{"zadd", -4, touches, zadd}, {"zincrby", 4, touches, zincrby}, {"zrem", -3, ifAny, removal(kindZset)},
		{"zcard", 2, noted, length(kindZset)},
		{"zscore", 3, noted, of(kindZset, nilReply, zscore)},
		{"zrank", 3, noted, zrank(false)}, {"zrevrank", 3, noted, zrank(true)},
		{"zcount", 4, noted, spanned(parseBound, badBound, (*zset).between, false)},
		{"zremrangebyscore", 4, ifAny, spanned(parseBound, badBound, (*zset).between, true)},
		{"zremrangebyrank", 4, ifAny, spanned(parseInt, notInteger, (*zset).ranks, true)},
		{"zrange", -4, noted, zrange(rangeOptions{}, false)},
		{"zrevrange", -4, noted, zrange(rangeOptions{reverse: true}, true)},
		{"zrangebyscore", -4, noted, zrange(rangeOptions{byScore: true}, true)},
		{"zrevrangebyscore", -4, noted, zrange(rangeOptions{byScore: true, reverse: true}, true)},
		{"time", 1, noted, timeNow}, {"ping", -1, noted, ping}, {"wait", 3, noted, wait},
		{"dbsize", 1, noted, func(table *Table, _ []string) Reply { return intReply(int64(len(table.keys))) }},
		{"flushall", -1, noted, flush}, {"flushdb", -1, noted, flush},
		{"eval", -3, noted | unscripted, eval}, {"evalsha", -3, noted | unscripted, evalSHA},
		{"script", -2, noted | unscripted, scriptCommand},
	} {
		for _, name := range []string{c.name, strings.ToUpper(c.name)} {
			table[name] = &c
		}
	}
}

// Do runs one command. Its name comes first, in any case.
func (t *Table) Do(args []string) Reply {
	command := lookup(args[0])
	if command == nil {
		t.lacks(strings.ToLower(args[0]))
		return unknownCommand(args)
	}
	return t.carryOut(command, args)
}

// options are those of the known words that args begin with, and what follows them.
func options(args []string, known ...string) (set map[string]bool, rest []string) {
	for i, text := range args {
		word := strings.ToUpper(text)
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
	if command := table[name]; command != nil {
		return command
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
	reply := c.run(t, args)
	if len(t.watchers) > 0 && changes(c, reply) {
		t.touch(args[1])
	}
	return reply
}

func wrongArity(name string) Reply {
	return fault("ERR wrong number of arguments for '" + name + "' command")
}

func unknownCommand(args []string) Reply {
	var builder strings.Builder
	for _, text := range args[1:] {
		fmt.Fprintf(&builder, "'%s' ", text)
	}
	return fault(fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", args[0], builder.String()))
}

// forEach makes a command that does something with each of its keys that is there, and counts them.
func forEach(do func(table *Table, e *entry)) func(*Table, []string) Reply {
	return func(table *Table, args []string) Reply {
		var n int64
		for _, k := range args[1:] {
			if entry := table.get(k); entry != nil {
				do(table, entry)
				n++
			}
		}
		return intReply(n)
	}
}

func typeOf(table *Table, args []string) Reply {
	if entry := table.get(args[1]); entry != nil {
		return status(entry.kind.String())
	}
	return status("none")
}

func flush(table *Table, _ []string) Reply {
	for _, entry := range table.keys {
		entry.removed = true
		table.touch(entry.key)
	}
	clear(table.keys)
	table.mortal = 0
	table.due = nil
	return okReply
}

func timeNow(table *Table, _ []string) Reply {
	return Reply{Kind: Array, Array: []Reply{
		bulk(numeric(table.now / 1e9).String()), bulk(numeric(table.now % 1e9 / 1e3).String()),
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
func wait(table *Table, args []string) Reply {
	for _, text := range args[1:] {
		if n, err := strconv.ParseInt(text, 10, 64); err != nil || n < 0 {
			return notInteger
		}
	}
	return intReply(table.Replicas)
}
