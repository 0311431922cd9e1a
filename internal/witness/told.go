package witness

import (
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

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
func (w *Witness) Postpone(cmd redis.Cmder, by time.Duration) {
	if w == nil || !w.stamps || cmd.Err() != nil {
		return
	}
	replace(cmd, func(value any) any { return w.later(value, by) })
}

// later is a reply, of the same type, with the wall clock's times in it moved.
func (w *Witness) later(reply any, by time.Duration) any {
	switch v := reply.(type) {
	case time.Time:
		return v.Add(by)
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = w.later(x, by)
		}
		return out
	case int64:
		if per, ok := perUnit[w.timestamp(v)]; ok {
			return v + int64(by/per)
		}
	case string:
		per, ok := perUnit[w.timestamp(v)]
		if whole, err := strconv.ParseInt(v, 10, 64); ok && err == nil {
			return strconv.FormatInt(whole+int64(by/per), 10)
		}
		if part, err := strconv.ParseFloat(v, 64); ok && err == nil {
			return strconv.FormatFloat(part+float64(by)/float64(per), 'f', -1, 64)
		}
	}
	return reply
}

// perUnit is the length of each unit that timestamps are told in.
var perUnit = map[string]time.Duration{
	"seconds": time.Second, "milliseconds": time.Millisecond, "microseconds": time.Microsecond, "nanoseconds": time.Nanosecond,
	"minutes": time.Minute, "hours": time.Hour,
}
