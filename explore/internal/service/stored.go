package service

import (
	"fmt"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/fakeredis"
)

// contents returns the moment, in milliseconds, and of every key its name, the moment at which it expires (0 for
// never), the value of a string, and how many members or fields it has otherwise.
const contents = `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local count = {set = 'SCARD', zset = 'ZCARD', hash = 'HLEN', list = 'LLEN'}
local out = {now}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local expires, value, members = redis.call('PTTL', key), '', 0
  if expires >= 0 then expires = now + expires else expires = 0 end
  if kind == 'string' then value = redis.call('GET', key) end
  if count[kind] then members = redis.call(count[kind], key) end
  out[#out + 1] = {key, expires, value, members}
end
return out`

// look returns what the Redis of the service stores, for people. Times to live are those of the schedule, whose clock
// stands while a real Redis' goes on.
func (w *Engine) look() []fakeredis.Key {
	rows, err := w.cmd.Redis.Eval(w.base, contents, nil).Slice()
	if err != nil {
		if w.Err == nil {
			w.Err = fmt.Errorf("look at what Redis stores: %w", err)
		}
		return nil
	}
	if w.looked == 0 {
		w.looked = rows[0].(int64)
	}
	passed := w.now.Sub(w.Setup.Begins())
	var out []fakeredis.Key
	for _, row := range rows[1:] {
		cells := row.([]any)
		name := cells[0].(string)
		if w.kept[name] || w.earlier(name) {
			continue
		}
		key := fakeredis.Key{Name: name, Members: int(cells[3].(int64))}
		if expires := cells[1].(int64); expires > 0 {
			key.Left = time.Duration(expires-w.looked)*time.Millisecond - passed
		}
		if key.Members == 0 {
			key.Content = []string{cells[2].(string)}
		}
		out = append(out, key)
	}
	return out
}

// sees has the steps of recorded schedules say what is stored after them.
func (w *Engine) sees() {
	w.Run.Timeline.Stored = engine.Stored{Look: w.look, Readable: w.plain}
}
