package workloads

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// dialect is a format as it was recognised in one file.
type dialect struct {
	label string // for people
	shape rowShape
	// fromSyslog lines have a header before them.
	fromSyslog bool
	time       field
	layout     timeLayout // of the times
	subject    field
	cost       field // nil if every row costs 1
	// anonymous traces name no subjects.
	anonymous bool
	// unit of the costs and a description of them; empty if the file does not say.
	unit, costIs string
}

// String is the label, with the fields as --trace-fields would give them.
func (d *dialect) String() string {
	text := d.label + " (time=" + d.time.String()
	if d.subject != nil {
		text += ",subject=" + d.subject.String()
	}
	if d.cost != nil {
		text += ",cost=" + d.cost.String()
	}
	return text + ")"
}

// parsed is one row as far as it could be read.
type parsed struct {
	at      int64 // ns since the Unix epoch
	subject string
	units   int64
	// damage says what is wrong with the row; empty if nothing is.
	damage string
	// lost rows have no usable time or subject.
	lost bool
}

// lost is a row that cannot be used.
func lost(reason string, args ...any) parsed {
	return parsed{damage: fmt.Sprintf(reason, args...), lost: true}
}

// decode reads a row. A damaged one still arrived, if it has a time and a subject.
func (d *dialect) decode(text string) parsed {
	if d.fromSyslog {
		text = withoutSyslog(text)
	}
	row, damage := d.shape.split(text)
	stamp := d.time.text(row)
	if missing(stamp) && damage != "" {
		return lost("%s", damage)
	}
	if missing(stamp) {
		return lost("no %s", d.time)
	}
	at, err := d.layout.moment(stamp)
	if err != nil {
		return lost("%v", err)
	}
	out := parsed{at: at, units: 1, damage: damage}
	if !d.anonymous {
		out.subject = d.who(row)
		if out.subject == "" {
			return lost("no %s", d.subject)
		}
	}
	if d.cost != nil {
		d.price(row, &out)
	}
	return out
}

// who is the subject of a row; "" if the row names none. Of an address the port is left out, and of the addresses of
// a client and its proxies all but the first.
func (d *dialect) who(row values) string {
	text := d.subject.text(row)
	if missing(text) {
		return ""
	}
	if first, _, list := strings.Cut(text, ","); list {
		if _, err := netip.ParseAddr(first); err == nil {
			return first
		}
	}
	if !strings.Contains(text, ":") {
		return text
	}
	if address, err := netip.ParseAddrPort(text); err == nil {
		return address.Addr().String()
	}
	return text
}

// price adds up the cost of a row. What cannot be read counts nothing, but a request costs 1 at least.
func (d *dialect) price(row values, out *parsed) {
	total := int64(0)
	for _, name := range d.cost {
		text := row.value(name)
		units, err := strconv.ParseInt(text, 10, 64)
		if err != nil || units < 0 || units > maxCost {
			reason := fmt.Sprintf("%s %.40q is not a whole number from 0 to %d", name, text, int64(maxCost))
			out.damage = joined(out.damage, reason)
			continue
		}
		total += units
	}
	if total == 0 {
		out.damage = joined(out.damage, "no cost, counted as 1")
	}
	out.units = max(1, total)
}
