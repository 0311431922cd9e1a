package sim

import (
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/virtual/sched"
)

// stepHash condenses every step of a run: who did what when, and what a store
// answered. Equal hashes mean equal runs.
type stepHash struct {
	h uint64
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func newStepHash() *stepHash { return &stepHash{h: fnvOffset} }

func (t *stepHash) number(n int64) {
	t.h = (t.h ^ uint64(n)) * fnvPrime
	t.h ^= t.h >> 29
}

func (t *stepHash) text(text string) { t.number(int64(digest(text))) }

// digest takes eight bytes at a time; a run hashes gigabytes.
func digest(text string) uint64 {
	h := uint64(fnvOffset) ^ uint64(len(text))
	for len(text) >= 8 {
		x := uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 |
			uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56
		h = (h ^ x) * fnvPrime
		h ^= h >> 32
		text = text[8:]
	}
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * fnvPrime
	}
	return h
}

// observe is for [sched.Config].
func (t *stepHash) observe(event *sched.Event) {
	t.number(int64(event.Since))
	t.number(int64(event.Actor.ID)<<8 | int64(event.Op.Kind))
	switch event.Op.Kind {
	case sched.Command:
		t.command(event.Op.Cmd, event.Err)
	case sched.Transaction:
		for _, cmd := range event.Op.Cmds {
			t.command(cmd, cmd.Err())
		}
	case sched.SQL:
		t.text(event.Op.SQL)
		if event.Err != nil {
			t.text(event.Err.Error())
		}
	}
}

// command adds a command and its reply.
func (t *stepHash) command(cmd redis.Cmder, err error) {
	for _, value := range cmd.Args() {
		t.any(value)
	}
	if err != nil {
		t.text(err.Error())
		return
	}
	switch c := cmd.(type) {
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
		for _, text := range c.Val() {
			sum += seed.Mix(digest(text))
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
func (t *stepHash) any(value any) {
	switch v := value.(type) {
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
