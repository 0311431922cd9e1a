package fakeredis

import (
	"container/heap"
	"math"
	"strings"
)

// deadlines is a heap of moments at which keys have to be looked at. A key whose
// deadline moves later keeps its place and is put back when its turn comes: the
// hashes of a cache get another hour with every request, and moving them every
// time would cost more than the request.
type deadlines []deadline

type deadline struct {
	at    int64 // milliseconds since 1970
	entry *entry
}

// setDeadline makes a key expire, or with 0 never.
func (t *Table) setDeadline(e *entry, at int64) {
	if e.deadline != at {
		t.wrote(e.key)
		if e.deadline != 0 && (at == 0 || at > e.deadline) {
			t.Extended++
		}
		switch {
		case e.deadline == 0:
			t.mortal++
		case at == 0:
			t.mortal--
		}
		e.deadline = at
		e.phase = t.now % 1e6
	} else if at != 0 {
		t.touch(e.key) // the same moment once more is a change to those that watch the key
	}
	if at != 0 && (e.queued == 0 || at < e.queued) {
		e.queued = at
		heap.Push(&t.due, deadline{at, e})
	}
}

// expire removes what is past its deadline. As in Redis, a key is still there in
// the millisecond of its deadline.
func (t *Table) expire() {
	now := t.ms()
	for len(t.due) > 0 && t.due[0].at < now {
		d := heap.Pop(&t.due).(deadline)
		entry := d.entry
		if entry.removed || d.at != entry.queued {
			continue // gone, or another entry stands for it
		}
		entry.queued = 0
		switch {
		case entry.deadline == 0:
		case entry.deadline < now:
			t.remove(entry)
			if t.Expired != nil {
				t.Expired(entry.key)
			}
		default:
			t.setDeadline(entry, entry.deadline)
		}
	}
}

func (h deadlines) Len() int           { return len(h) }
func (h deadlines) Less(i, j int) bool { return h[i].at < h[j].at }
func (h deadlines) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *deadlines) Push(value any)    { *h = append(*h, value.(deadline)) }

func (h *deadlines) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = deadline{}
	*h = (*h)[:last]
	return d
}

// expireIn makes a command of the EXPIRE family; unit is in milliseconds.
func expireIn(unit int64, absolute bool) func(*Table, []string) Reply {
	return func(table *Table, args []string) Reply {
		set, rest := options(args[3:], "NX", "XX", "GT", "LT")
		nx := set["NX"]
		xx := set["XX"]
		earlier := set["LT"]
		later := set["GT"]
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
		base := table.ms()
		if absolute {
			base = 0
		}
		if n > math.MaxInt64/unit || n < math.MinInt64/unit || n*unit > math.MaxInt64-base {
			return fault("ERR invalid expire time in '" + strings.ToLower(args[0]) + "' command")
		}
		at := base + n*unit
		entry := table.get(args[1])
		switch {
		case entry == nil,
			nx && entry.deadline != 0,
			xx && entry.deadline == 0,
			later && (entry.deadline == 0 || at <= entry.deadline),
			earlier && entry.deadline != 0 && at >= entry.deadline:
			return intReply(0)
		}
		if at <= table.ms() {
			table.remove(entry)
			return intReply(1)
		}
		table.setDeadline(entry, at)
		return intReply(1)
	}
}

// msLeft is the time that a key has left in milliseconds: -2 without key, -1 without deadline.
func (t *Table) msLeft(key string) int64 {
	entry := t.get(key)
	switch {
	case entry == nil:
		return -2
	case entry.deadline == 0:
		return -1
	default:
		return max(0, entry.deadline-t.ms())
	}
}

func ttl(table *Table, args []string) Reply {
	n := table.msLeft(args[1])
	if n >= 0 {
		n = (n + 500) / 1000
	}
	return intReply(n)
}

func pttl(table *Table, args []string) Reply { return intReply(table.msLeft(args[1])) }

func pexpireTime(table *Table, args []string) Reply {
	if n := table.msLeft(args[1]); n < 0 {
		return intReply(n)
	}
	return intReply(table.get(args[1]).deadline)
}

func persist(table *Table, args []string) Reply {
	entry := table.get(args[1])
	if entry == nil || entry.deadline == 0 {
		return intReply(0)
	}
	table.setDeadline(entry, 0)
	return intReply(1)
}
