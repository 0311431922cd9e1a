package witness

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// units in which timestamps are told: seconds, milliseconds, microseconds and
// nanoseconds since 1970.
const units = 4

var unitNames = [units]string{"seconds", "milliseconds", "microseconds", "nanoseconds"}

func inUnit(t time.Time, unit int) float64 {
	ns := float64(t.UnixNano())
	return [units]float64{ns / 1e9, ns / 1e6, ns / 1e3, ns}[unit]
}

// timestamp is the unit in which an argument tells a time near the wall clock's,
// or empty if it tells none.
func (w *Witness) timestamp(arg any) string {
	var n float64
	switch v := arg.(type) {
	case int64:
		n = float64(v)
	case int:
		n = float64(v)
	case uint64:
		n = float64(v)
	case float64:
		n = v
	case string:
		return w.digits(v)
	case []byte:
		return w.digits(string(v))
	case time.Time:
		if v.Sub(w.cfg.Real).Abs() < near {
			return "full"
		}
		return ""
	default:
		return ""
	}
	return w.unit(n)
}

// isTTL reports whether an argument of a Redis command, whose name is the first, is how
// long a key lives: 20.7 days in milliseconds look like the wall clock's seconds.
func isTTL(args []any, i int) bool {
	if i < 2 {
		return false
	}
	switch before, _ := args[i-1].(string); strings.ToLower(before) {
	case "ex", "px":
		return true
	}
	if i > 2 {
		return false
	}
	switch name, _ := args[0].(string); strings.ToLower(name) {
	case "expire", "pexpire", "setex", "psetex":
		return true
	}
	return false
}

// digits reads a text: the real year and month as in 2026-11, a number as a whole,
// and every run of digits in it, since
// limiters put the time, or the number of the minute or the hour, into their keys.
func (w *Witness) digits(text string) string {
	if strings.Contains(text, w.month) {
		return "text"
	}
	if len(text) < leastDigits {
		return ""
	}
	if len(text) <= 32 && text[0] >= '1' && text[0] <= '9' {
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return w.unit(n)
		}
	}
	// A run that is long enough has a digit at one of these places.
	for i := leastDigits - 1; i < len(text); i += leastDigits {
		if !digit(text[i]) {
			continue
		}
		from := i
		to := i + 1
		for from > 0 && digit(text[from-1]) {
			from--
		}
		for to < len(text) && digit(text[to]) {
			to++
		}
		i = to - 1
		if to-from < leastDigits {
			continue
		}
		var n float64
		for _, c := range []byte(text[from:to]) {
			n = 10*n + float64(c-'0')
		}
		if unit := w.unit(n); unit != "" {
			return unit
		}
	}
	return ""
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// leastDigits is how many digits the number of the hour has.
const leastDigits = 6

func (w *Witness) unit(n float64) string {
	if n < w.lowest[0] {
		// The number of a minute or an hour since 1970 is too short to allow for more
		// than a few around the present one.
		now := inUnit(w.cfg.Real, 0)
		switch {
		case n == math.Trunc(n) && math.Abs(n-now/60) < 10:
			return "minutes"
		case n == math.Trunc(n) && math.Abs(n-now/3600) < 2:
			return "hours"
		}
		return ""
	}
	for i := range units {
		if n >= w.lowest[i] && n <= w.highest[i] {
			return unitNames[i]
		}
	}
	return ""
}

// Answered looks at what a store has answered. A server on the wall clock tells its time,
// by TIME or by what a script has stored, and a strategy that sends it back takes the
// time from the store, which its clock says nothing about: timestamps are not looked for
// any more. Its own would have been sent before any reply could hold it.
func (w *Witness) Answered(cmd redis.Cmder) {
	if w == nil || !w.stamps || w.told.Load() || cmd.Err() != nil {
		return
	}
	replace(cmd, func(value any) any {
		if w.tells(value) {
			w.told.Store(true)
		}
		return value
	})
}

// Told reports whether a store has answered the wall clock's time.
func (w *Witness) Told() bool { return w != nil && w.told.Load() }

func (w *Witness) tells(reply any) bool {
	if list, ok := reply.([]any); ok {
		return slices.ContainsFunc(list, w.tells)
	}
	return w.timestamp(reply) != ""
}

// replace puts what it is changed to in place of each value of a reply, which has the same type.
func replace(cmd redis.Cmder, change func(value any) any) {
	switch c := cmd.(type) {
	case *redis.TimeCmd:
		c.SetVal(change(c.Val()).(time.Time))
	case *redis.Cmd:
		c.SetVal(change(c.Val()))
	case *redis.IntCmd:
		c.SetVal(change(c.Val()).(int64))
	case *redis.StringCmd:
		c.SetVal(change(c.Val()).(string))
	case *redis.SliceCmd:
		c.SetVal(change(c.Val()).([]any))
	case *redis.StringSliceCmd:
		for i, text := range c.Val() {
			c.Val()[i] = change(text).(string)
		}
	case *redis.MapStringStringCmd:
		for k, text := range c.Val() {
			c.Val()[k] = change(text).(string)
		}
	}
}

// Postpone has a store answer the wall clock's time as it will be after by. What a
// strategy then sends near the wall clock's present time is its own and not the store's.
// Times within a longer text, and beyond the replies that [Witness.Answered] looks at,
// stay unchanged.
func (w *Witness) Postpone(cmd redis.Cmder, duration time.Duration) {
	if w == nil || !w.stamps || cmd.Err() != nil {
		return
	}
	replace(cmd, func(value any) any { return w.later(value, duration) })
}

// later is a reply, of the same type, with the wall clock's times in it moved.
func (w *Witness) later(reply any, duration time.Duration) any {
	switch v := reply.(type) {
	case time.Time:
		return v.Add(duration)
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = w.later(value, duration)
		}
		return out
	case int64:
		if per, ok := perUnit[w.timestamp(v)]; ok {
			return v + int64(duration/per)
		}
	case string:
		per, ok := perUnit[w.timestamp(v)]
		if whole, err := strconv.ParseInt(v, 10, 64); ok && err == nil {
			return strconv.FormatInt(whole+int64(duration/per), 10)
		}
		if part, err := strconv.ParseFloat(v, 64); ok && err == nil {
			return strconv.FormatFloat(part+float64(duration)/float64(per), 'f', -1, 64)
		}
	}
	return reply
}

// perUnit is the length of each unit that timestamps are told in.
var perUnit = map[string]time.Duration{
	"seconds": time.Second, "milliseconds": time.Millisecond, "microseconds": time.Microsecond,
	"nanoseconds": time.Nanosecond,
	"minutes":     time.Minute, "hours": time.Hour,
}
