package sim

import (
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/virtual/sched"
)

// traceHash condenses every step of a run: who did what when, and what a store
// answered. Equal hashes mean equal runs.
type traceHash struct {
	h uint64
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func newTraceHash() *traceHash { return &traceHash{h: fnvOffset} }

func (t *traceHash) number(n int64) {
	t.h = (t.h ^ uint64(n)) * fnvPrime
	t.h ^= t.h >> 29
}

func (t *traceHash) text(s string) { t.number(int64(digest(s))) }

// digest takes eight bytes at a time; a run hashes gigabytes.
func digest(s string) uint64 {
	h := uint64(fnvOffset) ^ uint64(len(s))
	for len(s) >= 8 {
		x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		h = (h ^ x) * fnvPrime
		h ^= h >> 32
		s = s[8:]
	}
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

// observe is for [sched.Config].
func (t *traceHash) observe(e *sched.Event) {
	t.number(int64(e.Since))
	t.number(int64(e.Actor.ID)<<8 | int64(e.Op.Kind))
	switch e.Op.Kind {
	case sched.Command:
		t.command(e.Op.Cmd, e.Err)
	case sched.Transaction:
		for _, c := range e.Op.Cmds {
			t.command(c, c.Err())
		}
	case sched.SQL:
		t.text(e.Op.SQL)
		if e.Err != nil {
			t.text(e.Err.Error())
		}
	}
}

// command adds a command and its reply.
func (t *traceHash) command(c redis.Cmder, err error) {
	for _, a := range c.Args() {
		t.any(a)
	}
	if err != nil {
		t.text(err.Error())
		return
	}
	switch c := c.(type) {
	case *redis.IntCmd:
		t.number(c.Val())
	case *redis.StringCmd:
		t.text(c.Val())
	case *redis.StatusCmd:
		t.text(c.Val())
	case *redis.BoolCmd:
		if c.Val() {
			t.number(1)
		} else {
			t.number(0)
		}
	case *redis.StringSliceCmd:
		// Redis gives the members of a set in any order, so theirs must not matter.
		var sum uint64
		for _, s := range c.Val() {
			sum += seed.Mix(digest(s))
		}
		t.number(int64(sum))
	case *redis.DurationCmd: // what a real server's clock has left it
	case *redis.Cmd:
		t.any(c.Val())
	default:
		t.text(c.String())
	}
}

// any adds an argument, or a part of a script's reply.
func (t *traceHash) any(v any) {
	switch v := v.(type) {
	case string:
		t.text(v)
	case int64:
		t.number(v)
	case int:
		t.number(int64(v))
	case []any:
		t.number(int64(len(v)))
		for _, x := range v {
			t.any(x)
		}
	default:
		t.text(fmt.Sprint(v))
	}
}
