package memredis

import (
	"slices"
	"strings"
	"time"
)

// Key is one key as it is stored, for those who look at a table from outside.
type Key struct {
	Name string
	// Deadline in milliseconds since 1970, 0 for none.
	Deadline int64
	// Content is a string's value, a hash's fields each with its value after it,
	// a set's members, or a sorted set's members each with its score after it.
	// Fields and the members of sets are sorted, those of sorted sets in their order.
	Content []string
	// Set is true for sets and sorted sets, whose members are names and never counts.
	Set bool
}

// Reset empties the table and sets its clock, backwards too. Scripts stay loaded.
func (t *Table) Reset(unixNano int64) {
	for _, e := range t.keys {
		e.removed = true
	}
	clear(t.keys)
	clear(t.due)
	t.due, t.now, t.commands = t.due[:0], unixNano, 0
}

// ExpireDue removes the keys whose deadline is now, which a server keeps to the
// end of that millisecond.
func (t *Table) ExpireDue() {
	now := t.ms()
	for _, e := range t.keys {
		if e.deadline != 0 && e.deadline <= now {
			t.remove(e)
		}
	}
}

// Remove drops a key.
func (t *Table) Remove(name string) {
	if e := t.keys[name]; e != nil {
		t.remove(e)
	}
}

// Left is the time that a key has left, 0 for one without a deadline.
func (t *Table) Left(k *Key) time.Duration {
	if k.Deadline == 0 {
		return 0
	}
	return time.Duration(k.Deadline*1e6 - t.now)
}

// Keys appends all keys to buf, by name. What buf holds beyond its length is used
// again.
func (t *Table) Keys(buf []Key) []Key {
	for _, e := range t.keys {
		n := len(buf)
		buf = slices.Grow(buf, 1)[:n+1]
		k := &buf[n]
		*k = Key{Name: e.key, Deadline: e.deadline, Content: k.Content[:0], Set: e.kind == kindSet || e.kind == kindZset}
		switch e.kind {
		case kindString:
			k.Content = append(k.Content, e.text.String())
		case kindSet:
			k.Content = append(k.Content, e.members.keys...)
			slices.Sort(k.Content)
		case kindZset:
			for _, s := range e.sorted.order {
				k.Content = append(k.Content, s.member, scoreText(s.score))
			}
		case kindHash:
			fields := slices.Sorted(slices.Values(e.fields.keys))
			for _, f := range fields {
				k.Content = append(k.Content, f, e.fields.vals[e.fields.find(f)].String())
			}
		}
	}
	slices.SortFunc(buf, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	return buf
}
