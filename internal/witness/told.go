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
	var reply any
	switch c := cmd.(type) {
	case *redis.TimeCmd:
		reply = c.Val()
	case *redis.Cmd:
		reply = c.Val()
	case *redis.IntCmd:
		reply = c.Val()
	case *redis.StringCmd:
		reply = c.Val()
	case *redis.SliceCmd:
		reply = c.Val()
	case *redis.StringSliceCmd:
		reply = anyOf(c.Val())
	case *redis.MapStringStringCmd:
		var all []any
		for _, v := range c.Val() {
			all = append(all, v)
		}
		reply = all
	}
	if w.tells(reply) {
		w.told.Store(true)
	}
}

// Told reports whether a store has answered the wall clock's time.
func (w *Witness) Told() bool { return w != nil && w.told.Load() }

func (w *Witness) tells(reply any) bool {
	if list, ok := reply.([]any); ok {
		return slices.ContainsFunc(list, w.tells)
	}
	return w.timestamp(reply) != ""
}

func anyOf(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

// Postpone has a store answer the wall clock's time as it will be after by. What a
// strategy then sends near the wall clock's present time is its own and not the store's.
// Times within a longer text, and beyond the replies that [Witness.Answered] looks at,
// stay unchanged.
func (w *Witness) Postpone(cmd redis.Cmder, by time.Duration) {
	if w == nil || !w.stamps || cmd.Err() != nil {
		return
	}
	switch c := cmd.(type) {
	case *redis.TimeCmd:
		c.SetVal(c.Val().Add(by))
	case *redis.Cmd:
		c.SetVal(w.later(c.Val(), by))
	case *redis.IntCmd:
		c.SetVal(w.later(c.Val(), by).(int64))
	case *redis.StringCmd:
		c.SetVal(w.later(c.Val(), by).(string))
	case *redis.SliceCmd:
		c.SetVal(w.later(c.Val(), by).([]any))
	case *redis.StringSliceCmd:
		for i, text := range c.Val() {
			c.Val()[i] = w.later(text, by).(string)
		}
	case *redis.MapStringStringCmd:
		for k, text := range c.Val() {
			c.Val()[k] = w.later(text, by).(string)
		}
	}
}

// later is a reply, of the same type, with the wall clock's times in it moved.
func (w *Witness) later(reply any, by time.Duration) any {
	switch v := reply.(type) {
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
