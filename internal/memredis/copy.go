package memredis

import (
	"maps"
	"slices"
)

// Copy keeps what the table holds at this moment. The returned function puts it back as
// often as it is called: a key whose deadline has passed meanwhile is gone all the same.
func (t *Table) Copy() (restore func()) {
	kept := make([]*entry, 0, len(t.keys))
	for _, e := range t.keys {
		kept = append(kept, e.clone())
	}
	return func() {
		now := t.now
		t.empty(now)
		for _, k := range kept {
			e := k.clone()
			t.keys[e.key] = e
			if e.deadline != 0 {
				t.mortal++
				t.setDeadline(e, e.deadline)
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
