package workloads

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// timeLayout is a way to write moments: a layout of package time, or one of the following.
type timeLayout string

const (
	// sinceEpoch is a number of seconds since 1970, or of milli-, micro- or nanoseconds.
	sinceEpoch timeLayout = "seconds since 1970"
	// noLayout fits nothing.
	noLayout timeLayout = ""
)

// timeLayouts are tried in this order. Without a zone a time is in UTC. A fraction of a second may follow any of them.
var timeLayouts = []timeLayout{
	sinceEpoch,
	"02/Jan/2006:15:04:05 -0700",
	"02/Jan/2006:15:04:05",
	time.RFC3339,
	"2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04:05",
	"2006-01-02 15:04:05",
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05 -0700",
	"2006-01-02 15:04:05 UTC",
	"2006/01/02 15:04:05",
}

// likeliest is the layout that most of the texts have, and how many have it.
func likeliest(texts []string) (layout timeLayout, fitting int) {
	for _, candidate := range timeLayouts {
		count := 0
		for _, text := range texts {
			if _, ok := candidate.parse(text); ok {
				count++
			}
		}
		if count > fitting {
			layout = candidate
			fitting = count
		}
	}
	return layout, fitting
}

// moment reads a time, in nanoseconds since 1970. Other layouts than the file's own count if they leave no zone open: a
// time whose zone was cut off is not in UTC.
func (l timeLayout) moment(text string) (int64, error) {
	at, ok := l.parse(text)
	for i := 0; !ok && i < len(timeLayouts); i++ {
		if other := timeLayouts[i]; other.certain() {
			at, ok = other.parse(text)
		}
	}
	switch {
	case !ok && l == noLayout:
		return 0, fmt.Errorf("time %.40q is neither RFC 3339 nor seconds since 1970", text)
	case !ok && l == sinceEpoch:
		return 0, fmt.Errorf("time %.40q is no number of seconds since 1970", text)
	case !ok:
		return 0, fmt.Errorf("time %.40q is not like %s", text, l)
	case !inRange(at):
		return 0, fmt.Errorf("time %.40q is out of range", text)
	}
	return at.UnixNano(), nil
}

// certain reports whether the layout says in which zone a time is.
func (l timeLayout) certain() bool {
	zone := []string{"0700", "07:00", "UTC"}
	return l == sinceEpoch || slices.ContainsFunc(zone, func(end string) bool { return strings.HasSuffix(string(l), end) })
}

func (l timeLayout) parse(text string) (time.Time, bool) {
	switch l {
	case noLayout:
		return time.Time{}, false
	case sinceEpoch:
		return epochTime(text)
	}
	at, err := time.Parse(string(l), text)
	return at, err == nil
}

// epochTime reads a number digit by digit: floating point would move moments. Its size tells the unit, which is right
// from 1973 on.
func epochTime(text string) (at time.Time, ok bool) {
	whole, fraction, dotted := strings.Cut(text, ".")
	if !digits(whole) || dotted && !digits(fraction) {
		return at, false
	}
	count, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return at, false
	}
	places := 0 // of the whole number that are below a second
	perSecond := int64(1)
	for places < 9 && count/perSecond >= 1e11 {
		places += 3
		perSecond *= 1000
	}
	below := whole[len(whole)-places:] + fraction + "000000000"
	nano, err := strconv.ParseInt(below[:9], 10, 64)
	if err != nil {
		return at, false
	}
	return time.Unix(count/perSecond, nano), true
}
