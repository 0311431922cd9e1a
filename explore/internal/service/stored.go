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

// deadline is when a key expires.
type deadline struct {
	at   int64         // in milliseconds of the clock of Redis
	left time.Duration // from the beginning of the schedule
}

// look returns what the Redis of the service stores, for people. Times to live are those of the schedule, whose clock
// stands while a real Redis' goes on: each is what it was at the first look after its deadline was set.
func (w *Engine) look() []fakeredis.Key {
	rows, err := w.cmd.Redis.Eval(w.base, contents, nil).Slice()
	if err != nil {
		if w.Err == nil {
			w.Err = fmt.Errorf("look at what Redis stores: %w", err)
		}
		return nil
	}
	now := rows[0].(int64)
	passed := w.now.Sub(w.Setup.Begins())
	deadlines := map[string]deadline{}
	var out []fakeredis.Key
	for _, row := range rows[1:] {
		cells := row.([]any)
		name := cells[0].(string)
		if w.kept[name] || w.earlier(name) {
			continue
		}
		key := fakeredis.Key{Name: name, Members: int(cells[3].(int64))}
		if expires := cells[1].(int64); expires > 0 {
			known := w.deadlines[name]
			if moved := expires - known.at; moved < -sameDeadline || moved > sameDeadline {
				known = deadline{at: expires, left: passed + w.timeToLive(expires-now)}
			}
			deadlines[name] = known
			key.Left = known.left - passed
		}
		if key.Members == 0 {
			key.Content = []string{cells[2].(string)}
		}
		out = append(out, key)
	}
	w.deadlines = deadlines
	return out
}

// sameDeadline is by how many milliseconds two readings of one deadline differ at most: the time and what is left to it
// are not read at the same moment.
const sameDeadline = 2

// timeToLive is what was left to a key when its deadline was set. On a real Redis some of it has passed since.
func (w *Engine) timeToLive(milliseconds int64) time.Duration {
	left := time.Duration(milliseconds) * time.Millisecond
	if w.memory != nil {
		return left
	}
	unit := time.Second
	if left < unit {
		unit = 100 * time.Millisecond
	}
	return (left + unit - 1).Truncate(unit)
}

// sees has the steps of recorded schedules say what is stored after them.
func (w *Engine) sees() {
	w.Run.Timeline.Stored = engine.Stored{
		Look:     func() []fakeredis.Key { return append(w.look(), w.sql.look(w.base)...) },
		Readable: w.plain,
		Row:      func(name string) bool { return w.sql.isRow(name) },
	}
}
