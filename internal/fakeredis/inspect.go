package fakeredis

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Reset implements [Redis].
func (t *Table) Reset(unixNano int64) {
	t.unload()
	t.empty(unixNano)
}

func (t *Table) empty(unixNano int64) {
	for key := range t.watchers {
		t.touch(key)
	}
	t.spare, t.last = t.spare[:0], [2]*entry{}
	for _, entry := range t.keys {
		if len(t.spare) == mostSpare {
			break
		}
		t.spare = append(t.spare, entry)
	}
	clear(t.keys)
	clear(t.due)
	t.mortal = 0
	t.due = t.due[:0]
	t.now = unixNano
}

// mostSpare is how many entries are kept for the next run.
const mostSpare = 64

// ExpireDue implements [Redis].
func (t *Table) ExpireDue() {
	for _, entry := range t.keys {
		if entry.deadline != 0 && t.left(entry) <= 0 {
			t.remove(entry)
		}
	}
}

// Remove implements [Redis].
func (t *Table) Remove(name string) {
	if entry := t.get(name); entry != nil {
		t.remove(entry)
	}
}

// left is the time that a key has left, 0 for one without a deadline.
func (t *Table) left(e *entry) time.Duration {
	if e.deadline == 0 {
		return 0
	}
	return time.Duration(e.deadline*1e6 + e.phase - t.now)
}

// Keys implements [Redis].
func (t *Table) Keys(buf []Key) []Key {
	for _, entry := range t.keys {
		n := len(buf)
		buf = slices.Grow(buf, 1)[:n+1]
		k := &buf[n]
		*k = Key{Name: entry.key, Left: t.left(entry), Content: k.Content[:0], Set: entry.kind == kindSet ||
			entry.kind == kindZset}
		if entry.deadline != 0 {
			k.Left = max(k.Left, Lingering)
		}
		switch entry.kind {
		case kindString:
			k.Content = append(k.Content, entry.text.String())
		case kindSet:
			k.Content = append(k.Content, entry.members.keys...)
			k.Members = len(entry.members.keys)
			slices.Sort(k.Content)
		case kindZset:
			k.Members = len(entry.sorted.order)
			for _, scored := range entry.sorted.order {
				k.Content = append(k.Content, scored.member, cFormat(scored.score))
			}
		case kindHash:
			t.sorted = append(t.sorted[:0], entry.fields.keys...)
			slices.Sort(t.sorted)
			k.Members = len(t.sorted)
			for _, text := range t.sorted {
				k.Content = append(k.Content, text, entry.fields.vals[entry.fields.find(text)].String())
			}
		}
	}
	slices.SortFunc(buf, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	return buf
}

// Copy keeps what the table holds at this moment. The returned function puts it back as
// often as it is called: a key whose deadline has passed meanwhile is gone all the same.
func (t *Table) Copy() (restore func()) {
	kept := make([]*entry, 0, len(t.keys))
	for _, entry := range t.keys {
		kept = append(kept, entry.clone())
	}
	return func() {
		now := t.now
		t.empty(now)
		for _, k := range kept {
			entry := k.clone()
			t.keys[entry.key] = entry
			if entry.deadline != 0 {
				t.mortal++
				t.setDeadline(entry, entry.deadline)
			}
		}
		t.last = [2]*entry{}
		t.expire()
	}
}

// clone is an entry that no queue knows.
func (e *entry) clone() *entry {
	c := *e
	c.queued = 0
	c.fields = e.fields.clone()
	if e.members != nil {
		members := e.members.clone()
		c.members = &members
	}
	if e.sorted != nil {
		c.sorted = &zset{order: slices.Clone(e.sorted.order), scores: maps.Clone(e.sorted.scores)}
	}
	return &c
}

func (d *dict[V]) clone() dict[V] {
	return dict[V]{keys: slices.Clone(d.keys), vals: slices.Clone(d.vals), index: maps.Clone(d.index)}
}
