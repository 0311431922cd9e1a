package memredis

// hash finds a hash, or makes one.
func (t *Table) hash(key string, create bool) (*entry, bool) {
	e, ok := t.find(key, kindHash)
	if ok && e == nil && create {
		e = t.create(key, kindHash)
	}
	return e, ok
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

func hget(t *Table, args []string) Reply {
	e, ok := t.find(args[1], kindHash)
	if !ok {
		return wrongType
	}
	v, ok := e.field(args[2])
	if !ok {
		return nilReply
	}
	return bulk(v.String())
}

func hmget(t *Table, args []string) Reply {
	e, ok := t.find(args[1], kindHash)
	if !ok {
		return wrongType
	}
	out := make([]Reply, len(args)-2)
	for i, f := range args[2:] {
		if v, ok := e.field(f); ok {
			out[i] = bulk(v.String())
		}
	}
	return Reply{Kind: Array, Array: out}
}

func hset(t *Table, args []string) Reply {
	if len(args)%2 != 0 {
		return wrongArity("hset")
	}
	e, ok := t.hash(args[1], true)
	if !ok {
		return wrongType
	}
	var n int64
	for i := 2; i < len(args); i += 2 {
		v := textual(args[i+1])
		if x, ok := parseInt(args[i+1]); ok {
			v = numeric(x)
		}
		if e.fields.set(args[i], v) {
			n++
		}
	}
	return intReply(n)
}

func hsetnx(t *Table, args []string) Reply {
	e, ok := t.hash(args[1], true)
	if !ok {
		return wrongType
	}
	if _, has := e.field(args[2]); has {
		return intReply(0)
	}
	return hset(t, args)
}

func hincrby(t *Table, args []string) Reply {
	by, ok := parseInt(args[3])
	if !ok {
		return notInteger
	}
	e, ok := t.hash(args[1], false)
	if !ok {
		return wrongType
	}
	n := int64(0)
	if v, has := e.field(args[2]); has {
		if n, ok = v.int(); !ok {
			return notAHashInt
		}
	}
	if n, ok = add(n, by); !ok {
		return overflow
	}
	if e == nil {
		e, _ = t.hash(args[1], true)
	}
	e.fields.set(args[2], numeric(n))
	return intReply(n)
}

func hgetall(t *Table, args []string) Reply {
	e, ok := t.find(args[1], kindHash)
	if !ok {
		return wrongType
	}
	out := Reply{Kind: Array}
	if e != nil {
		for i, k := range e.fields.keys {
			out.Array = append(out.Array, bulk(k), bulk(e.fields.vals[i].String()))
		}
	}
	return out
}

func hdel(t *Table, args []string) Reply {
	e, ok := t.find(args[1], kindHash)
	switch {
	case !ok:
		return wrongType
	case e == nil:
		return intReply(0)
	}
	var n int64
	for _, f := range args[2:] {
		if e.fields.delete(f) {
			n++
		}
	}
	if len(e.fields.keys) == 0 {
		t.remove(e)
	}
	return intReply(n)
}

func hexists(t *Table, args []string) Reply {
	e, ok := t.find(args[1], kindHash)
	if !ok {
		return wrongType
	}
	_, has := e.field(args[2])
	return boolReply(has)
}

func hlen(t *Table, args []string) Reply {
	e, ok := t.find(args[1], kindHash)
	switch {
	case !ok:
		return wrongType
	case e == nil:
		return intReply(0)
	}
	return intReply(int64(len(e.fields.keys)))
}

func sadd(t *Table, args []string) Reply {
	e, ok := t.find(args[1], kindSet)
	if !ok {
		return wrongType
	}
	if e == nil {
		e = t.create(args[1], kindSet)
	}
	var n int64
	for _, m := range args[2:] {
		if e.members.set(m, struct{}{}) {
			n++
		}
	}
	return intReply(n)
}

func srem(t *Table, args []string) Reply {
	e, ok := t.find(args[1], kindSet)
	switch {
	case !ok:
		return wrongType
	case e == nil:
		return intReply(0)
	}
	var n int64
	for _, m := range args[2:] {
		if e.members.delete(m) {
			n++
		}
	}
	if len(e.members.keys) == 0 {
		t.remove(e)
	}
	return intReply(n)
}

func smembers(t *Table, args []string) Reply {
	e, ok := t.find(args[1], kindSet)
	if !ok {
		return wrongType
	}
	out := Reply{Kind: Array}
	if e != nil {
		out.Array = make([]Reply, len(e.members.keys))
		for i, m := range e.members.keys {
			out.Array[i] = bulk(m)
		}
	}
	return out
}

func scard(t *Table, args []string) Reply {
	e, ok := t.find(args[1], kindSet)
	switch {
	case !ok:
		return wrongType
	case e == nil:
		return intReply(0)
	}
	return intReply(int64(len(e.members.keys)))
}

func sismember(t *Table, args []string) Reply {
	e, ok := t.find(args[1], kindSet)
	if !ok {
		return wrongType
	}
	return boolReply(e != nil && e.members.find(args[2]) >= 0)
}
