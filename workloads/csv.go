package workloads

import (
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"
)

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
	stamp, in, out := find("timestamp"), find("contexttokens"), find("generatedtokens")
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

// fields splits a line. Where its quotation marks do not match they are taken as
// they stand, and damage says so.
func fields(text string) (cells []string, damage string) {
	if !strings.Contains(text, `"`) {
		return strings.Split(text, ","), ""
	}
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	if cells, err := r.Read(); err == nil {
		return cells, ""
	}
	return strings.Split(text, ","), "quotation marks do not match"
}

// cells splits a row and compares its length with the header's.
func cells(text string, columns int) (f []string, damage string) {
	f, damage = fields(text)
	if damage == "" && len(f) != columns {
		damage = fmt.Sprintf("%d fields instead of %d", len(f), columns)
	}
	return f, damage
}

// cell is the field of a column, or "" if the row is too short for it or the
// header has no such column (-1).
func cell(f []string, column int) string {
	if column < 0 || column >= len(f) {
		return ""
	}
	return strings.TrimSpace(f[column])
}

// azure reads the columns of the Azure LLM inference traces.
type azure struct{ columns, time, in, out int }

// decode takes the tokens that can be read: a damaged row still arrived.
func (t azure) decode(text string) record {
	f, damage := cells(text, t.columns)
	stamp := cell(f, t.time)
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
	rec := record{at: at.UnixNano(), damage: damage}
	for _, c := range [...]struct {
		name   string
		column int
	}{{"context", t.in}, {"generated", t.out}} {
		n, err := strconv.ParseInt(cell(f, c.column), 10, 64)
		if err != nil || n < 0 || n > maxCost {
			rec.note("%s tokens %.40q are not a whole number from 0 to %d, counted as 0", c.name, cell(f, c.column), int64(maxCost))
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

func (t plain) decode(text string) record {
	f, damage := cells(text, t.columns)
	stamp := cell(f, t.time)
	at, err := plainTime(stamp)
	if err != nil {
		return lost("time %.40q is neither RFC 3339 nor seconds since 1970", stamp)
	}
	if !inRange(at) {
		return lost("time %.40q is out of range", stamp)
	}
	rec := record{at: at.UnixNano(), subject: cell(f, t.subject), units: 1, damage: damage}
	if t.cost < 0 {
		return rec
	}
	cost := cell(f, t.cost)
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
func (r *record) note(format string, args ...any) {
	if r.damage != "" {
		r.damage += "; "
	}
	r.damage += fmt.Sprintf(format, args...)
}
