package memredis

import "math"

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
