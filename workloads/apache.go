package workloads

import (
	"strings"
	"time"
)

// apacheTime has the length of every time that it matches.
const apacheTime = "02/Jan/2006:15:04:05 -0700"

// decodeApache reads a line of the common or the combined log format. The client
// address is the subject, and every request costs 1. Only the address and the
// time are needed; the rest is read to tell whether the row is whole.
func decodeApache(text string) record {
	host, rest, ok := strings.Cut(text, " ")
	if !ok || host == "" || host == "-" {
		return lost("no client address")
	}
	// The names between address and time are not quoted and may hold spaces.
	_, rest, ok = strings.Cut(rest, " [")
	if !ok || len(rest) < len(apacheTime) {
		return lost("no time in brackets")
	}
	stamp, rest := rest[:len(apacheTime)], rest[len(apacheTime):]
	at, err := time.Parse(apacheTime, stamp)
	if err != nil {
		return lost("time %.40q is not like %s", stamp, apacheTime)
	}
	if !inRange(at) {
		return lost("time %.40q is out of range", stamp)
	}
	return record{at: at.UnixNano(), subject: host, units: 1, damage: apacheDamage(rest)}
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
	if rest, why = quoted(" "+rest, "referrer"); why != "" {
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

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
