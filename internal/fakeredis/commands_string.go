package fakeredis

import (
	"math"
	"strings"
)

var get = of(kindString, nilReply, func(_ *Table, e *entry, _ []string) Reply { return bulk(e.text.String()) })

func mget(t *Table, args []string) Reply {
	out := make([]Reply, len(args)-1)
	for i, k := range args[1:] {
		if e, ok := t.find(k, kindString); ok && e != nil {
			out[i] = bulk(e.text.String())
		}
	}
	return Reply{Kind: Array, Array: out}
}

// put writes a string over whatever the key was.
func (t *Table) put(key, text string, at int64) {
	e := t.get(key)
	if e == nil || e.kind != kindString {
		if e != nil {
			t.remove(e)
		}
		e = t.create(key, kindString)
	}
	t.wrote(key)
	e.text = valueOf(text)
	t.setDeadline(e, at)
}

func setnx(t *Table, args []string) Reply {
	if t.get(args[1]) != nil {
		return intReply(0)
	}
	t.put(args[1], args[2], 0)
	return intReply(1)
}

// setOptions are what follows SET key value.
type setOptions struct {
	nx, xx, get, keep bool
	unit              string // of the expiry, or [unitPersist]; empty for none
	expiry            string
}

// unitPersist takes an expiry away.
const unitPersist = "PERSIST"

func parseSet(args []string) (o setOptions, ok bool) {
	for i := 0; i < len(args); i++ {
		switch w := strings.ToUpper(args[i]); w {
		case "NX":
			o.nx = true
		case "XX":
			o.xx = true
		case "GET":
			o.get = true
		case "KEEPTTL":
			if o.unit != "" {
				return o, false
			}
			o.keep = true
		case unitPersist:
			if o != (setOptions{}) {
				return o, false
			}
			o.unit = w
		case "EX", "PX", "EXAT", "PXAT":
			if o.unit != "" || o.keep || i+1 == len(args) {
				return o, false
			}
			i++
			o.unit = w
			o.expiry = args[i]
		default:
			return o, false
		}
	}
	return o, !o.nx || !o.xx
}

func set(t *Table, args []string) Reply {
	o, ok := parseSet(args[3:])
	if !ok || o.unit == unitPersist {
		return syntaxError
	}
	at := int64(0)
	if o.unit != "" {
		var bad *Reply
		at, bad = t.deadlineOf(o.unit, o.expiry, "set")
		if bad != nil {
			return *bad
		}
	}
	e := t.get(args[1])
	old := okReply
	if o.get {
		if e != nil && e.kind != kindString {
			return wrongType
		}
		old = nilReply
		if e != nil {
			old = bulk(e.text.String())
		}
	}
	if o.nx && e != nil || o.xx && e == nil {
		if o.get {
			return old
		}
		return nilReply
	}
	if o.keep && e != nil {
		at = e.deadline
	}
	t.put(args[1], args[2], at)
	if at != 0 && at <= t.ms() { // EXAT and PXAT may name the past
		t.remove(t.get(args[1]))
	}
	return old
}

func (t *Table) incr(key string, by int64) Reply {
	e, ok := t.find(key, kindString)
	if !ok {
		return wrongType
	}
	n := int64(0)
	if e != nil {
		n, ok = e.text.int()
		if !ok {
			return notInteger
		}
	}
	n, ok = add(n, by)
	if !ok {
		return overflow
	}
	if e == nil {
		e = t.create(key, kindString)
	}
	e.text = numeric(n)
	return intReply(n)
}

func incrBy(t *Table, args []string) Reply {
	n, ok := parseInt(args[2])
	if !ok {
		return notInteger
	}
	return t.incr(args[1], n)
}

func decrBy(t *Table, args []string) Reply {
	n, ok := parseInt(args[2])
	switch {
	case !ok:
		return notInteger
	case n == math.MinInt64:
		return decrOverflow
	}
	return t.incr(args[1], -n)
}

// deadlineOf is the moment that an expiry given as EX, PX, EXAT or PXAT stands
// for, in milliseconds since 1970, or the error of the command.
func (t *Table) deadlineOf(unit, text, command string) (at int64, bad *Reply) {
	n, ok := parseInt(text)
	if !ok {
		return 0, &notInteger
	}
	scale := int64(1)
	if unit[0] == 'E' {
		scale = 1000
	}
	base := t.ms()
	if len(unit) == 4 {
		base = 0
	}
	if n <= 0 || n > (math.MaxInt64-base)/scale {
		r := fault("ERR invalid expire time in '" + command + "' command")
		return 0, &r
	}
	return base + n*scale, nil
}

// setWithExpiry makes SETEX and PSETEX.
func setWithExpiry(unit, command string) func(*Table, []string) Reply {
	return func(t *Table, args []string) Reply {
		at, bad := t.deadlineOf(unit, args[2], command)
		if bad != nil {
			return *bad
		}
		t.put(args[1], args[3], at)
		return okReply
	}
}

func getset(t *Table, args []string) Reply {
	old := get(t, args[:2])
	if old.Kind != Err {
		t.put(args[1], args[2], 0)
	}
	return old
}

func getdel(t *Table, args []string) Reply {
	old := get(t, args)
	if old.Kind == Bulk {
		t.remove(t.get(args[1]))
	}
	return old
}

func getex(t *Table, args []string) Reply {
	o, ok := parseSet(args[2:])
	if !ok || o != (setOptions{unit: o.unit, expiry: o.expiry}) {
		return syntaxError
	}
	value := get(t, args[:2])
	if value.Kind != Bulk || o.unit == "" {
		return value
	}
	e := t.get(args[1])
	if o.unit == unitPersist {
		t.setDeadline(e, 0)
		return value
	}
	at, bad := t.deadlineOf(o.unit, o.expiry, "getex")
	if bad != nil {
		return *bad
	}
	if at <= t.ms() { // EXAT and PXAT may name the past
		t.remove(e)
	} else {
		t.setDeadline(e, at)
	}
	return value
}
