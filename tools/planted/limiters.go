package planted

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
)

// All are the limiters of the set, each right one before those with its defects.
func All() []Limiter {
	var all []Limiter
	for _, group := range [][]Limiter{counters(), transactions(), firsts(), cells(), logs(), weigheds(), buckets(),
		clocks(), caches(), memory(), goroutines(), settling(), tables(), underWay(), bursts(),
		tablesInMemory()} {
		all = append(all, group...)
	}
	return all
}

const once = `local n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if n > tonumber(ARGV[1]) then return 0 end
return 1`

func counters() []Limiter {
	return []Limiter{
		limiter("counter", "", quota.Fixed, lua(perWindow, once)),
		limiter("counter-expires-late", "", quota.Fixed, func(ctx context.Context, s *state, key string) (bool, error) {
			return counted(ctx, s, s.window(key), s.length()+time.Hour)
		}),
		limiter("counter-no-ttl", "its keys never expire", quota.Fixed, lua(perWindow,
			"return redis.call('INCR', KEYS[1]) > tonumber(ARGV[1]) and 0 or 1")),
		limiter("counter-reads-first", "", quota.Fixed, lua(perWindow, `local n = tonumber(redis.call('GET', KEYS[1]) or '0')
if n >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], n + 1, 'PX', ARGV[2])
return 1`)),
		limiter("counter-of-what-is-left", "", quota.Fixed, lua(perWindow, `redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if tonumber(redis.call('GET', KEYS[1])) <= 0 then return 0 end
redis.call('DECR', KEYS[1])
return 1`)),
		limiter("counter-hash", "", quota.Fixed, lua(plain, `local window = string.format('%.0f', math.floor(ARGV[3] / 1000 / ARGV[2]))
if redis.call('HGET', KEYS[1], 'window') ~= window then redis.call('HSET', KEYS[1], 'window', window, 'n', 0) end
if tonumber(redis.call('HGET', KEYS[1], 'n')) >= tonumber(ARGV[1]) then return 0 end
redis.call('HINCRBY', KEYS[1], 'n', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`)),
		limiter("counter-set", "", quota.Fixed, lua(perWindow, `if redis.call('SCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('SADD', KEYS[1], redis.call('SCARD', KEYS[1]))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`)),
		limiter("counter-off-by-one", "it admits one request more than the limit", quota.Fixed, lua(perWindow, `local n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if n > tonumber(ARGV[1]) + 1 then return 0 end
return 1`)),
		limiter("counter-month", "", quota.CalendarMonth, func(ctx context.Context, s *state, key string) (bool, error) {
			return counted(ctx, s, key+s.now().Format("2006-01"), 32*24*time.Hour)
		}),
		limiter("counter-expireat", "", quota.Fixed, func(ctx context.Context, s *state, key string) (bool, error) {
			key = s.window(key)
			pipeliner := s.rdb.TxPipeline()
			n := pipeliner.Incr(ctx, key)
			pipeliner.PExpireAt(ctx, key, s.policy.Window.At(s.now()).End)
			_, err := pipeliner.Exec(ctx)
			return err == nil && n.Val() <= s.policy.Limit, err
		}),
		limiter("counter-30-days", "its month is 30 days since 1970", quota.CalendarMonth,
			func(ctx context.Context, s *state, key string) (bool, error) {
				const month = 30 * 24 * time.Hour
				return counted(ctx, s, key+strconv.FormatInt(s.now().UnixNano()/int64(month), 10), month)
			}),
		limiter("counter-day-of-month", "its key has the day and not the month, and lives for 40 days", quota.CalendarDay,
			func(ctx context.Context, s *state, key string) (bool, error) {
				return counted(ctx, s, key+s.now().Format("02"), 40*24*time.Hour)
			}),
		limiter("counter-day", "", quota.CalendarDay, func(ctx context.Context, s *state, key string) (bool, error) {
			return counted(ctx, s, key+s.now().Format("2006-01-02"), 25*time.Hour)
		}),
		limiter("counter-rounded", "it rounds to the nearest window, and not down", quota.Fixed,
			func(ctx context.Context, s *state, key string) (bool, error) {
				return counted(ctx, s, key+s.now().Round(s.length()).Format(time.RFC3339Nano), s.length())
			}),
		limiter("counter-get-incr", "it reads, decides and counts in three steps", quota.Fixed,
			func(ctx context.Context, s *state, key string) (bool, error) {
				n, err := number(ctx, s.rdb, s.window(key))
				if err != nil || n >= s.policy.Limit {
					return false, err
				}
				_, err = counted(ctx, s, s.window(key), s.length())
				return err == nil, err
			}),
		limiter("counter-undone", "", quota.Fixed,
			undoing(1, "if redis.call('EXISTS', KEYS[1]) == 1 then return redis.call('DECRBY', KEYS[1], ARGV[1]) end return 0")),
		limiter("counter-undone-twice", "it takes a rejected request back twice", quota.Fixed,
			undoing(2, "return redis.call('DECRBY', KEYS[1], ARGV[1])")),
		limiter("counter-undone-late", "what it takes back after the key has expired makes one that never does", quota.Fixed,
			undoing(1, "return redis.call('DECRBY', KEYS[1], ARGV[1])")),
		limiter("counter-short-key", "its key is the first 20 bytes of the subject's, so that subjects share a limit",
			quota.Fixed, func(ctx context.Context, s *state, key string) (bool, error) {
				return counted(ctx, s, s.window(key[:min(len(key), 20)]), s.length())
			}),
		limiter("counter-notes-failures", "", quota.Fixed, func(ctx context.Context, s *state, key string) (bool, error) {
			ok, err := counted(ctx, s, s.window(key), s.length())
			s.mu.Lock()
			s.failed = err // for whoever asks how its store is
			s.mu.Unlock()
			return ok, err
		}),
		limiter("counter-gives-up", "once its store has failed it answers with an error for ever", quota.Fixed,
			func(ctx context.Context, s *state, key string) (bool, error) {
				s.mu.Lock()
				failed := s.failed
				s.mu.Unlock()
				if failed != nil {
					return false, failed
				}
				ok, err := counted(ctx, s, s.window(key), s.length())
				s.mu.Lock()
				s.failed = err
				s.mu.Unlock()
				return ok, err
			}),
		limiter("counter-open", "it admits everything if the store answers with an error", quota.Fixed,
			func(ctx context.Context, s *state, key string) (bool, error) {
				ok, err := counted(ctx, s, s.window(key), s.length())
				return ok || err != nil, nil
			}),
	}
}

// counted adds one to a key that lives for so long, and reports whether there was room.
func counted(ctx context.Context, s *state, key string, life time.Duration) (bool, error) {
	pipeliner := s.rdb.TxPipeline()
	n := pipeliner.Incr(ctx, key)
	pipeliner.PExpire(ctx, key, life)
	_, err := pipeliner.Exec(ctx)
	return err == nil && n.Val() <= s.policy.Limit, err
}

func undoing(times int64, source string) do {
	script := redis.NewScript(source)
	return func(ctx context.Context, s *state, key string) (bool, error) {
		key = s.window(key)
		ok, err := counted(ctx, s, key, s.length())
		if err == nil && !ok {
			err = script.Run(ctx, s.rdb, []string{key}, times).Err()
		}
		return ok, err
	}
}

// watching counts by WATCH, and tries again after a conflict, or takes it for a success.
func watching(conflict bool) do {
	return func(ctx context.Context, s *state, key string) (ok bool, err error) {
		key = s.window(key)
		for range 20 {
			err = s.rdb.Watch(ctx, func(tx *redis.Tx) error {
				n, err := number(ctx, tx, key)
				ok = err == nil && n < s.policy.Limit
				if !ok {
					return err
				}
				_, err = tx.TxPipelined(ctx, func(pipeliner redis.Pipeliner) error {
					pipeliner.Set(ctx, key, n+1, s.length())
					return nil
				})
				return err
			}, key)
			if conflict && errors.Is(err, redis.TxFailedErr) {
				return ok, nil
			}
			if !errors.Is(err, redis.TxFailedErr) {
				return ok && err == nil, err
			}
		}
		return false, err
	}
}

func transactions() []Limiter {
	return []Limiter{
		limiter("watch", "", quota.Fixed, watching(false)),
		limiter("watch-conflict", "it takes a transaction that did not happen for one that did", quota.Fixed, watching(true)),
		limiter("lock", "", quota.Fixed, (&locked{life: 30 * time.Second}).allow),
		limiter("lock-reads-twice", "", quota.Fixed,
			(&locked{life: 30 * time.Second, readsFirst: true, readsAgain: true}).allow),
		limiter("lock-reads-first", "it reads before it has the lock", quota.Fixed,
			(&locked{life: 30 * time.Second, readsFirst: true}).allow),
		limiter("lock-forever", "a process that dies leaves its lock, which never expires", quota.Fixed,
			(&locked{}).allow),
	}
}

// locked reads and writes under a lock in Redis. Who does not get it in 200 tries is answered with an error.
type locked struct {
	life       time.Duration // of the lock; 0 for ever
	readsFirst bool
	readsAgain bool // what it has read first is not used then
}

var unlock = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`)

func (l *locked) allow(ctx context.Context, s *state, key string) (bool, error) {
	mine := strconv.FormatUint(s.env.Rand.Uint64(), 16)
	var before int64
	if l.readsFirst {
		var err error
		before, err = number(ctx, s.rdb, s.window(key))
		if err != nil {
			return false, err
		}
	}
	for tries := 0; ; tries++ {
		got, err := s.rdb.SetNX(ctx, key+":lock", mine, l.life).Result()
		if err != nil {
			return false, err
		}
		if got {
			break
		}
		if tries == 200 {
			return false, errors.New("somebody else has the lock")
		}
		if err := s.env.Clock.Sleep(ctx, 10*time.Millisecond); err != nil {
			return false, err
		}
	}
	n, err := number(ctx, s.rdb, s.window(key))
	if l.readsFirst && !l.readsAgain {
		n = before
	}
	if err == nil && n < s.policy.Limit {
		err = s.rdb.Set(ctx, s.window(key), n+1, s.length()).Err()
	}
	return err == nil && n < s.policy.Limit, errors.Join(err, unlock.Run(ctx, s.rdb, []string{key + ":lock"}, mine).Err())
}

func firsts() []Limiter {
	return []Limiter{
		limiter("first", "", quota.FirstRequest, lua(plain, once)),
		limiter("first-two-steps", "a process that dies between INCR and PEXPIRE leaves a key for ever", quota.FirstRequest,
			func(ctx context.Context, s *state, key string) (bool, error) {
				n, err := s.rdb.Incr(ctx, key).Result()
				if err == nil && n == 1 {
					err = s.rdb.PExpire(ctx, key, s.length()).Err()
				}
				return err == nil && n <= s.policy.Limit, err
			}),
		limiter("first-extended", "each request makes the window longer", quota.FirstRequest,
			func(ctx context.Context, s *state, key string) (bool, error) {
				return counted(ctx, s, key, s.length())
			}),
		limiter("first-no-deadline-yet", "", quota.FirstRequest, lua(plain, `local n = redis.call('INCR', KEYS[1])
if redis.call('PTTL', KEYS[1]) < 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if n > tonumber(ARGV[1]) then return 0 end
return 1`)),
		limiter("first-last-millisecond", "a count in the last millisecond of its life gets another life", quota.FirstRequest,
			lua(plain, `local n = redis.call('INCR', KEYS[1])
if redis.call('PTTL', KEYS[1]) <= 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if n > tonumber(ARGV[1]) then return 0 end
return 1`)),
		limiter("first-seconds", "its windows are cut to whole seconds", quota.FirstRequest, lua(plain, `local n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('EXPIRE', KEYS[1], math.max(1, math.floor(ARGV[2] / 1000))) end
if n > tonumber(ARGV[1]) then return 0 end
return 1`)),
		limiter("first-set-then-incr", "the key may expire between SET NX and INCR, which then makes one for ever",
			quota.FirstRequest, func(ctx context.Context, s *state, key string) (bool, error) {
				if err := s.rdb.SetNX(ctx, key, 0, s.length()).Err(); err != nil {
					return false, err
				}
				n, err := s.rdb.Incr(ctx, key).Result()
				return err == nil && n <= s.policy.Limit, err
			}),
		limiter("first-set-and-incr", "", quota.FirstRequest, func(ctx context.Context, s *state, key string) (bool, error) {
			pipeliner := s.rdb.TxPipeline()
			pipeliner.SetNX(ctx, key, 0, s.length())
			n := pipeliner.Incr(ctx, key)
			_, err := pipeliner.Exec(ctx)
			return err == nil && n.Val() <= s.policy.Limit, err
		}),
		limiter("first-expire-nx", "", quota.FirstRequest, func(ctx context.Context, s *state, key string) (bool, error) {
			pipeliner := s.rdb.TxPipeline()
			n := pipeliner.Incr(ctx, key)
			pipeliner.Do(ctx, "PEXPIRE", key, s.length().Milliseconds(), "NX")
			_, err := pipeliner.Exec(ctx)
			return err == nil && n.Val() <= s.policy.Limit, err
		}),
		limiter("first-two-keys", "two callers that find the window over both begin a new one", quota.FirstRequest,
			func(ctx context.Context, s *state, key string) (bool, error) {
				began, err := number(ctx, s.rdb, key+":began")
				if err != nil {
					return false, err
				}
				if now := s.now().UnixMicro(); now-began >= s.length().Microseconds() {
					pipeliner := s.rdb.TxPipeline()
					pipeliner.Set(ctx, key+":began", now, s.length())
					pipeliner.Set(ctx, key, 1, s.length())
					_, err := pipeliner.Exec(ctx)
					return err == nil, err
				}
				n, err := s.rdb.Incr(ctx, key).Result()
				return err == nil && n <= s.policy.Limit, err
			}),
	}
}

const reserve = `local n = tonumber(redis.call('GET', KEYS[1]) or '0')
if n >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], n + 1, 'PX', ARGV[2])
return 1`

// cells split the limit over keys, so that no key is asked by all. A request looks for room in all of them.
func cells() []Limiter {
	const count = 4
	script := redis.NewScript(reserve)
	split := func(share func(limit int64, cell int) int64) do {
		return func(ctx context.Context, s *state, key string) (bool, error) {
			first := s.env.Rand.IntN(count)
			for i := range count {
				cell := (first + i) % count
				key := s.window(key) + ":" + strconv.Itoa(cell)
				n, err := script.Run(ctx, s.rdb, []string{key}, share(s.policy.Limit, cell), s.length().Milliseconds()).Int64()
				if err != nil || n == 1 {
					return err == nil, err
				}
			}
			return false, nil
		}
	}
	return []Limiter{
		limiter("cells", "", quota.Fixed, split(func(limit int64, cell int) int64 { return (limit + int64(cell)) / count })),
		limiter("cells-rounded-up", "the share of each cell is rounded up", quota.Fixed,
			split(func(limit int64, _ int) int64 {
				return (limit + count - 1) / count
			})),
	}
}
