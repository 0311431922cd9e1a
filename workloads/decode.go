package workloads

import (
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// apacheTime has the length of every time that it matches.
const apacheTime = "02/Jan/2006:15:04:05 -0700"

// decodeApache reads a line of the common or the combined log format. The client
// address is the subject, and every request costs 1. Only the address and the
// time are needed; the rest is read to tell whether the row is whole.
func decodeApache(text string) parsed {
	host, rest, ok := strings.Cut(text, " ")
	if !ok || host == "" || host == "-" {
		return lost("no client address")
	}
	// The names between address and time are not quoted and may hold spaces.
	_, rest, ok = strings.Cut(rest, " [")
	if !ok || len(rest) < len(apacheTime) {
		return lost("no time in brackets")
	}
	stamp := rest[:len(apacheTime)]
	rest = rest[len(apacheTime):]
	at, err := time.Parse(apacheTime, stamp)
	if err != nil {
		return lost("time %.40q is not like %s", stamp, apacheTime)
	}
	if !inRange(at) {
		return lost("time %.40q is out of range", stamp)
	}
	return parsed{at: at.UnixNano(), subject: host, units: 1, damage: apacheDamage(rest)}
}

// apacheDamage says what is wrong after the time: ] "request" status bytes and,
// in the combined format, "referrer" "user agent". Further fields are a server's
// extension.
func apacheDamage(rest string) string {
	rest, ok := strings.CutPrefix(rest, "]")
	if !ok {
		return "no bracket after the time"
	}
	rest, why := quoted(rest, "request")
	if why != "" {
		return why
	}
	status, rest, _ := strings.Cut(strings.TrimPrefix(rest, " "), " ")
	if len(status) != 3 || !digits(status) {
		return "status is not a number of three digits"
	}
	size, rest, more := strings.Cut(rest, " ")
	if size != "-" && !digits(size) {
		return "size is not a number"
	}
	if !more {
		return ""
	}
	rest, why = quoted(" "+rest, "referrer")
	if why != "" {
		return why
	}
	_, why = quoted(rest, "user agent")
	return why
}

// quoted reads a space and a field in quotation marks, in which a backslash
// escapes, and returns what follows it.
func quoted(text, field string) (rest, damage string) {
	text, ok := strings.CutPrefix(text, ` "`)
	if !ok {
		return "", "no " + field
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[i+1:], ""
		}
	}
	return "", "unterminated " + field
}

func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// csvFormat recognises a header; nil means that the line is none.
func csvFormat(header string) *dialect {
	names, _ := fields(header)
	column := map[string]int{}
	for i, n := range names {
		n = strings.ToLower(strings.TrimSpace(n))
		if _, twice := column[n]; !twice {
			column[n] = i
		}
	}
	find := func(name string) int {
		if i, ok := column[name]; ok {
			return i
		}
		return -1
	}
	stamp := find("timestamp")
	in := find("contexttokens")
	out := find("generatedtokens")
	if stamp >= 0 && in >= 0 && out >= 0 {
		t := azure{columns: len(names), time: stamp, in: in, out: out}
		return &dialect{label: "Azure LLM CSV", unit: "tokens", costIs: "its context tokens plus its generated tokens",
			anonymous: true, header: true, decode: t.decode}
	}
	p := plain{columns: len(names), time: find("time"), subject: find("subject"), cost: find("cost")}
	if p.time >= 0 && p.subject >= 0 {
		return &dialect{label: "CSV", header: true, decode: p.decode}
	}
	return nil
}

// fields splits a line. If its quotation marks do not match they are taken as
// they stand, and damage says so.
func fields(text string) (cells []string, damage string) {
	if !strings.Contains(text, `"`) {
		return strings.Split(text, ","), ""
	}
	reader := csv.NewReader(strings.NewReader(text))
	reader.FieldsPerRecord = -1
	if cells, err := reader.Read(); err == nil {
		return cells, ""
	}
	return strings.Split(text, ","), "quotation marks do not match"
}

// cells splits a row and compares its length with the header's.
func cells(text string, columns int) (texts []string, damage string) {
	texts, damage = fields(text)
	if damage == "" && len(texts) != columns {
		damage = fmt.Sprintf("%d fields instead of %d", len(texts), columns)
	}
	return texts, damage
}

// cell is the field of a column, or "" if the row is too short for it or the
// header has no such column (-1).
func cell(texts []string, column int) string {
	if column < 0 || column >= len(texts) {
		return ""
	}
	return strings.TrimSpace(texts[column])
}

// azure reads the columns of the Azure LLM inference traces.
type azure struct{ columns, time, in, out int }

// decode takes the tokens that can be read: a damaged row still arrived.
func (t azure) decode(text string) parsed {
	texts, damage := cells(text, t.columns)
	stamp := cell(texts, t.time)
	// Later traces of the family add the zone; without it they are in UTC.
	at, err := time.Parse(time.DateTime, stamp)
	if err != nil {
		at, err = time.Parse(time.DateTime+"Z07:00", stamp)
	}
	if err != nil {
		return lost("time %.40q is not like %s", stamp, time.DateTime)
	}
	if !inRange(at) {
		return lost("time %.40q is out of range", stamp)
	}
	rec := parsed{at: at.UnixNano(), damage: damage}
	for _, c := range [...]struct {
		name   string
		column int
	}{{"context", t.in}, {"generated", t.out}} {
		n, err := strconv.ParseInt(cell(texts, c.column), 10, 64)
		if err != nil || n < 0 || n > maxCost {
			rec.note("%s tokens %.40q are not a whole number from 0 to %d, counted as 0", c.name, cell(texts, c.column),
				int64(maxCost))
			continue
		}
		rec.units += n
	}
	if rec.units == 0 {
		rec.note("no tokens, counted as 1")
		rec.units = 1
	}
	return rec
}

// plain reads the columns of the documented CSV format.
type plain struct{ columns, time, subject, cost int }

func (t plain) decode(text string) parsed {
	texts, damage := cells(text, t.columns)
	stamp := cell(texts, t.time)
	at, err := plainTime(stamp)
	if err != nil {
		return lost("time %.40q is neither RFC 3339 nor seconds since 1970", stamp)
	}
	if !inRange(at) {
		return lost("time %.40q is out of range", stamp)
	}
	rec := parsed{at: at.UnixNano(), subject: cell(texts, t.subject), units: 1, damage: damage}
	if t.cost < 0 {
		return rec
	}
	cost := cell(texts, t.cost)
	if n, err := strconv.ParseInt(cost, 10, 64); err == nil && n >= 1 && n <= maxCost {
		rec.units = n
	} else {
		rec.note("cost %.40q is not a whole number from 1 to %d, counted as 1", cost, int64(maxCost))
	}
	return rec
}

// plainTime reads seconds digit by digit: floating point would move moments.
func plainTime(text string) (time.Time, error) {
	whole, frac, dotted := strings.Cut(text, ".")
	if !digits(whole) || dotted && !digits(frac) {
		return time.Parse(time.RFC3339, text)
	}
	sec, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	nano, err := strconv.ParseInt((frac + "000000000")[:9], 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(sec, nano), nil
}

// note adds to the damage.
func (r *parsed) note(format string, args ...any) {
	if r.damage != "" {
		r.damage += "; "
	}
	r.damage += fmt.Sprintf(format, args...)
}
