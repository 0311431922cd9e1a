package fakeredis

import (
	"math"
	"strings"
)

var get = of(kindString, nilReply, func(_ *Table, e *entry, _ []string) Reply { return bulk(e.text.String()) })

func mget(table *Table, args []string) Reply {
	out := make([]Reply, len(args)-1)
	for i, k := range args[1:] {
		if entry, ok := table.find(k, kindString); ok && entry != nil {
			out[i] = bulk(entry.text.String())
		}
	}
	return Reply{Kind: Array, Array: out}
}

// put writes a string over whatever the key was.
func (t *Table) put(key, text string, at int64) {
	entry := t.get(key)
	if entry == nil || entry.kind != kindString {
		if entry != nil {
			t.remove(entry)
		}
		entry = t.create(key, kindString)
	}
	t.wrote(key)
	entry.text = valueOf(text)
	t.setDeadline(entry, at)
}

func setnx(table *Table, args []string) Reply {
	if table.get(args[1]) != nil {
		return intReply(0)
	}
	table.put(args[1], args[2], 0)
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

func parseSet(args []string) (options setOptions, ok bool) {
	for i := 0; i < len(args); i++ {
		switch text := strings.ToUpper(args[i]); text {
		case "NX":
			options.nx = true
		case "XX":
			options.xx = true
		case "GET":
			options.get = true
		case "KEEPTTL":
			if options.unit != "" {
				return options, false
			}
			options.keep = true
		case unitPersist:
			if options != (setOptions{}) {
				return options, false
			}
			options.unit = text
		case "EX", "PX", "EXAT", "PXAT":
			if options.unit != "" || options.keep || i+1 == len(args) {
				return options, false
			}
			i++
			options.unit = text
			options.expiry = args[i]
		default:
			return options, false
		}
	}
	return options, !options.nx || !options.xx
}

func set(table *Table, args []string) Reply {
	options, ok := parseSet(args[3:])
	if !ok || options.unit == unitPersist {
		return syntaxError
	}
	at := int64(0)
	if options.unit != "" {
		var bad *Reply
		at, bad = table.deadlineOf(options.unit, options.expiry, "set")
		if bad != nil {
			return *bad
		}
	}
	entry := table.get(args[1])
	old := okReply
	if options.get {
		if entry != nil && entry.kind != kindString {
			return wrongType
		}
		old = nilReply
		if entry != nil {
			old = bulk(entry.text.String())
		}
	}
	if options.nx && entry != nil || options.xx && entry == nil {
		if options.get {
			return old
		}
		return nilReply
	}
	if options.keep && entry != nil {
		at = entry.deadline
	}
	table.put(args[1], args[2], at)
	if at != 0 && at <= table.ms() { // EXAT and PXAT may name the past
		table.remove(table.get(args[1]))
	}
	return old
}

func (t *Table) incr(key string, by int64) Reply {
	entry, ok := t.find(key, kindString)
	if !ok {
		return wrongType
	}
	n := int64(0)
	if entry != nil {
		n, ok = entry.text.int()
		if !ok {
			return notInteger
		}
	}
	n, ok = add(n, by)
	if !ok {
		return overflow
	}
	if entry == nil {
		entry = t.create(key, kindString)
	}
	entry.text = numeric(n)
	return intReply(n)
}

func incrBy(table *Table, args []string) Reply {
	n, ok := parseInt(args[2])
	if !ok {
		return notInteger
	}
	return table.incr(args[1], n)
}

func decrBy(table *Table, args []string) Reply {
	n, ok := parseInt(args[2])
	switch {
	case !ok:
		return notInteger
	case n == math.MinInt64:
		return decrOverflow
	}
	return table.incr(args[1], -n)
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
		reply := fault("ERR invalid expire time in '" + command + "' command")
		return 0, &reply
	}
	return base + n*scale, nil
}

// setWithExpiry makes SETEX and PSETEX.
func setWithExpiry(unit, command string) func(*Table, []string) Reply {
	return func(table *Table, args []string) Reply {
		at, bad := table.deadlineOf(unit, args[2], command)
		if bad != nil {
			return *bad
		}
		table.put(args[1], args[3], at)
		return okReply
	}
}

func getset(table *Table, args []string) Reply {
	old := get(table, args[:2])
	if old.Kind != Err {
		table.put(args[1], args[2], 0)
	}
	return old
}

func getdel(table *Table, args []string) Reply {
	old := get(table, args)
	if old.Kind == Bulk {
		table.remove(table.get(args[1]))
	}
	return old
}

func getex(table *Table, args []string) Reply {
	options, ok := parseSet(args[2:])
	if !ok || options != (setOptions{unit: options.unit, expiry: options.expiry}) {
		return syntaxError
	}
	value := get(table, args[:2])
	if value.Kind != Bulk || options.unit == "" {
		return value
	}
	entry := table.get(args[1])
	if options.unit == unitPersist {
		table.setDeadline(entry, 0)
		return value
	}
	at, bad := table.deadlineOf(options.unit, options.expiry, "getex")
	if bad != nil {
		return *bad
	}
	if at <= table.ms() { // EXAT and PXAT may name the past
		table.remove(entry)
	} else {
		table.setDeadline(entry, at)
	}
	return value
}
