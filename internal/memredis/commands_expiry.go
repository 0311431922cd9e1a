package memredis

import (
	"math"
	"strings"
)

// expireIn makes a command of the EXPIRE family; unit is in milliseconds.
func expireIn(unit int64, absolute bool) func(*Table, []string) Reply {
	return func(t *Table, args []string) Reply {
		set, rest := options(args[3:], "NX", "XX", "GT", "LT")
		nx, xx := set["NX"], set["XX"]
		earlier, later := set["LT"], set["GT"]
		switch {
		case len(rest) > 0:
			return fault("ERR Unsupported option " + rest[0])
		case nx && (xx || later || earlier):
			return fault("ERR NX and XX, GT or LT options at the same time are not compatible")
		case later && earlier:
			return fault("ERR GT and LT options at the same time are not compatible")
		}
		n, ok := parseInt(args[2])
		if !ok {
			return notInteger
		}
		base := t.ms()
		if absolute {
			base = 0
		}
		if n > math.MaxInt64/unit || n < math.MinInt64/unit || n*unit > math.MaxInt64-base {
			return fault("ERR invalid expire time in '" + strings.ToLower(args[0]) + "' command")
		}
		at := base + n*unit
		e := t.get(args[1])
		switch {
		case e == nil,
			nx && e.deadline != 0,
			xx && e.deadline == 0,
			later && (e.deadline == 0 || at <= e.deadline),
			earlier && e.deadline != 0 && at >= e.deadline:
			return intReply(0)
		}
		if at <= t.ms() {
			t.remove(e)
			return intReply(1)
		}
		t.setDeadline(e, at)
		return intReply(1)
	}
}

// msLeft is the time that a key has left in milliseconds: -2 without key, -1 without deadline.
func (t *Table) msLeft(key string) int64 {
	e := t.get(key)
	switch {
	case e == nil:
		return -2
	case e.deadline == 0:
		return -1
	default:
		return max(0, e.deadline-t.ms())
	}
}

func ttl(t *Table, args []string) Reply {
	n := t.msLeft(args[1])
	if n >= 0 {
		n = (n + 500) / 1000
	}
	return intReply(n)
}

func pttl(t *Table, args []string) Reply { return intReply(t.msLeft(args[1])) }

func pexpireTime(t *Table, args []string) Reply {
	if n := t.msLeft(args[1]); n < 0 {
		return intReply(n)
	}
	return intReply(t.get(args[1]).deadline)
}

func persist(t *Table, args []string) Reply {
	e := t.get(args[1])
	if e == nil || e.deadline == 0 {
		return intReply(0)
	}
	t.setDeadline(e, 0)
	return intReply(1)
}
