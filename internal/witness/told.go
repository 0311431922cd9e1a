package witness

import (
	"slices"

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
