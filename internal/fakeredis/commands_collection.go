package fakeredis

import "slices"

// made finds a key of the kind, or makes one; ok is false if it is of another.
func (t *Table) made(key string, k kind) (e *entry, ok bool) {
	e, ok = t.find(key, k)
	if ok && e == nil {
		e = t.create(key, k)
	}
	return e, ok
}

// of makes a command about a key of the kind from what it does with one that is there. Without
// the key the command answers what is missing.
func of(k kind, missing Reply, run func(table *Table, e *entry, args []string) Reply) func(*Table, []string) Reply {
	return func(table *Table, args []string) Reply {
		entry, answer := table.present(args[1], k, missing)
		if entry == nil {
			return answer
		}
		return run(table, entry, args)
	}
}

// present finds a key of the kind. If it is nil, the command answers what is missing, or that
// the key is of another kind.
func (t *Table) present(key string, k kind, missing Reply) (e *entry, answer Reply) {
	e, ok := t.find(key, k)
	if !ok {
		return nil, wrongType
	}
	return e, missing
}

// length makes HLEN, SCARD and ZCARD.
func length(k kind) func(*Table, []string) Reply {
	return of(k, intReply(0), func(_ *Table, e *entry, _ []string) Reply { return intReply(int64(e.len())) })
}

// removal makes HDEL, SREM and ZREM.
func removal(k kind) func(*Table, []string) Reply {
	return of(k, intReply(0), func(table *Table, e *entry, args []string) Reply {
		var n int64
		for _, name := range args[2:] {
			if e.delete(name) {
				n++
			}
		}
		table.dropEmpty(e)
		return intReply(n)
	})
}

// len is the number of fields of a hash, or of members of a set.
func (e *entry) len() int {
	switch e.kind {
	case kindHash:
		return len(e.fields.keys)
	case kindSet:
		return len(e.members.keys)
	default:
		return len(e.sorted.order)
	}
}

// delete removes a field of a hash, or a member of a set, and reports whether it was there.
func (e *entry) delete(name string) bool {
	switch e.kind {
	case kindHash:
		return e.fields.delete(name)
	case kindSet:
		return e.members.delete(name)
	default:
		return e.sorted.remove(name)
	}
}

func (t *Table) dropEmpty(e *entry) {
	if e.len() == 0 {
		t.remove(e)
	}
}

func (e *entry) field(name string) (value, bool) {
	if e == nil {
		return value{}, false
	}
	if i := e.fields.find(name); i >= 0 {
		return e.fields.vals[i], true
	}
	return value{}, false
}

func hget(_ *Table, e *entry, args []string) Reply {
	value, ok := e.field(args[2])
	if !ok {
		return nilReply
	}
	return bulk(value.String())
}

func hmget(table *Table, args []string) Reply {
	entry, ok := table.find(args[1], kindHash)
	if !ok {
		return wrongType
	}
	out := make([]Reply, len(args)-2)
	for i, text := range args[2:] {
		if value, ok := entry.field(text); ok {
			out[i] = bulk(value.String())
		}
	}
	return Reply{Kind: Array, Array: out}
}

func hset(table *Table, args []string) Reply {
	if len(args)%2 != 0 {
		return wrongArity("hset")
	}
	entry, ok := table.made(args[1], kindHash)
	if !ok {
		return wrongType
	}
	var n int64
	for i := 2; i < len(args); i += 2 {
		if entry.fields.set(args[i], valueOf(args[i+1])) {
			n++
		}
	}
	return intReply(n)
}

func hsetnx(table *Table, args []string) Reply {
	entry, ok := table.made(args[1], kindHash)
	if !ok {
		return wrongType
	}
	if _, has := entry.field(args[2]); has {
		return intReply(0)
	}
	return hset(table, args)
}

func hincrby(table *Table, args []string) Reply {
	by, ok := parseInt(args[3])
	if !ok {
		return notInteger
	}
	entry, ok := table.find(args[1], kindHash)
	if !ok {
		return wrongType
	}
	n := int64(0)
	if value, has := entry.field(args[2]); has {
		n, ok = value.int()
		if !ok {
			return notAHashInt
		}
	}
	n, ok = add(n, by)
	if !ok {
		return overflow
	}
	if entry == nil {
		entry = table.create(args[1], kindHash)
	}
	entry.fields.set(args[2], numeric(n))
	return intReply(n)
}

func hgetall(_ *Table, e *entry, _ []string) Reply {
	out := emptyArray
	for i, k := range e.fields.keys {
		out.Array = append(out.Array, bulk(k), bulk(e.fields.vals[i].String()))
	}
	return out
}

func hexists(_ *Table, e *entry, args []string) Reply {
	_, has := e.field(args[2])
	return boolReply(has)
}

func sadd(table *Table, args []string) Reply {
	entry, ok := table.made(args[1], kindSet)
	if !ok {
		return wrongType
	}
	var n int64
	for _, text := range args[2:] {
		if entry.members.set(text, struct{}{}) {
			n++
		}
	}
	return intReply(n)
}

func smembers(_ *Table, e *entry, _ []string) Reply {
	all := make([]Reply, len(e.members.keys))
	for i, text := range e.members.keys {
		all[i] = bulk(text)
	}
	return Reply{Kind: Array, Array: all}
}

func sismember(_ *Table, e *entry, args []string) Reply {
	return boolReply(e.members.find(args[2]) >= 0)
}

// dict is a small map that remembers the order in which its keys came, so that
// whatever walks it gives the same answer in every run.
type dict[V any] struct {
	keys  []string
	vals  []V
	index map[string]int // once there are many
}

// scanned is up to how many keys looking at each is as fast as a map.
const scanned = 8

func (d *dict[V]) find(key string) int {
	if d.index != nil {
		if i, ok := d.index[key]; ok {
			return i
		}
		return -1
	}
	return slices.Index(d.keys, key)
}

// set reports whether the key is new.
func (d *dict[V]) set(key string, v V) bool {
	if i := d.find(key); i >= 0 {
		d.vals[i] = v
		return false
	}
	d.keys = append(d.keys, key)
	d.vals = append(d.vals, v)
	if d.index != nil {
		d.index[key] = len(d.keys) - 1
	} else if len(d.keys) > scanned {
		d.index = make(map[string]int, 2*scanned)
		for i, k := range d.keys {
			d.index[k] = i
		}
	}
	return true
}

// delete reports whether the key was there. The last key takes its place.
func (d *dict[V]) delete(key string) bool {
	i := d.find(key)
	if i < 0 {
		return false
	}
	last := len(d.keys) - 1
	if i != last {
		d.keys[i], d.vals[i] = d.keys[last], d.vals[last]
		if d.index != nil {
			d.index[d.keys[i]] = i
		}
	}
	delete(d.index, key)
	d.keys = d.keys[:last]
	d.vals = d.vals[:last]
	return true
}
