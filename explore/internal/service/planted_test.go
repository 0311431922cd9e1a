package service_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore/internal/service"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	_ "github.com/quotabench/quotabench/strategies/all"
)

// plantedVariable names the planted service that the test program is to be, and pidVariable a
// file to which it adds the number of its process.
const plantedVariable, pidVariable = "QUOTABENCH_PLANTED", "QUOTABENCH_PIDS"

// portVariable names a port on which it listens whatever PORT says.
const portVariable = "QUOTABENCH_PORT"

func TestMain(m *testing.M) {
	if kind := os.Getenv(plantedVariable); kind != "" {
		if err := servePlanted(kind); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	service.AnswerTime = 10 * time.Millisecond // most services of these tests do nothing after their answers
	service.CrowdSize = 4 * mostRemembered
	storetest.Main(m)
}

// planted is a service with a limiter.
type planted struct {
	*redis.Client
	limit int64
	mu    sync.Mutex
	one   sync.Mutex // in the hands of the request that is decided
	asked int64
	cache map[string]int64
	names []string     // of the subjects in the cache, the oldest first
	left  atomic.Value // key of the request that was answered last
	sql   *pgxpool.Pool
	// started is how many instances had started on the database, with this one.
	started int64
}

const window = time.Minute

// firstSchedule is the number of an instance's request in the first schedule of a search: a greeting, and three
// controls, come before.
const firstSchedule = 5

const presetKey = "preset"

var minute = redis.NewScript("local key = KEYS[1] .. ':' .. math.floor(redis.call('TIME')[1] / 60) " +
	"local n = redis.call('INCR', key) redis.call('EXPIRE', key, 60) return n")

var giveBack = redis.NewScript("local key = KEYS[1] .. ':' .. math.floor(redis.call('TIME')[1] / 60) " +
	"redis.call('DECR', key) return redis.call('EXPIRE', key, 60)")

var script = redis.NewScript("local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('EXPIRE', KEYS[1], " +
	"60) end return n")

var renew = redis.NewScript("local n = redis.call('INCR', KEYS[1]) redis.call('PEXPIRE', KEYS[1], 60000) return n")

var renewLast = redis.NewScript("local n = redis.call('INCR', KEYS[1]) " +
	"if redis.call('PTTL', KEYS[1]) <= 0 then redis.call('PEXPIRE', KEYS[1], 60000) end return n")

var hour = redis.NewScript("local now = tonumber(redis.call('TIME')[1]) local key = KEYS[1] .. ':' .. " +
	"math.floor(now / 3600) local n = redis.call('INCR', key) redis.call('EXPIRE', key, 3600 - now % 3600) return n")

// slides is a sliding log of a minute, of all requests or of those that it admits.
var slides = redis.NewScript(`local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 60000)
local n = redis.call('ZCARD', KEYS[1])
if n < tonumber(ARGV[1]) or ARGV[2] == 'all' then
  redis.call('ZADD', KEYS[1], now, now .. ':' .. n)
  redis.call('PEXPIRE', KEYS[1], 60001)
end
if n < tonumber(ARGV[1]) then return 1 end
return 0`)

// costs is the key by which a limiter's context tells what a request costs.
type costs struct{}

// countsUnits counts what requests cost; with "any" it compares none with the limit if there is no count yet.
var countsUnits = redis.NewScript(`local n = redis.call('GET', KEYS[1])
if (n or ARGV[3] == 'all') and (n or 0) + ARGV[1] > tonumber(ARGV[2]) then return 0 end
redis.call('INCRBY', KEYS[1], ARGV[1])
if not n then redis.call('EXPIRE', KEYS[1], 60) end
return 1`)

func unitsLimiter(which string) func(context.Context, *planted, string) (bool, error) {
	return func(ctx context.Context, p *planted, key string) (bool, error) {
		cost, _ := ctx.Value(costs{}).(string)
		n, err := countsUnits.Run(ctx, p, []string{key}, cmp.Or(cost, "1"), p.limit, which).Int64()
		return n == 1, err
	}
}

// limiters decide about a key. Each is right or wrong in its own way.
var limiters map[string]func(ctx context.Context, p *planted, key string) (bool, error)

func init() { limiters = planteds }

var planteds = map[string]func(ctx context.Context, p *planted, key string) (bool, error){
	"units":       unitsLimiter("all"),
	"large-units": unitsLimiter("any"),
	// The counter of a subject begins with that of another one removed, whose name is shorter.
	"clears": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := p.Incr(ctx, key).Result()
		if err == nil && n == 1 {
			err = errors.Join(p.Expire(ctx, key, time.Minute).Err(), p.Del(ctx, key[:len(key)-1]).Err())
		}
		return n <= p.limit, err
	},
	// Of the subjects that it knows, the oldest loses its counter.
	"forgets": func(ctx context.Context, p *planted, key string) (bool, error) {
		if oldest := p.remember(key); oldest != "" {
			if err := p.Del(ctx, oldest).Err(); err != nil {
				return false, err
			}
		}
		return limiters["lua"](ctx, p, key)
	},
	// Its script gives two variables each other's value.
	"swaps": func(ctx context.Context, p *planted, key string) (bool, error) {
		return swapping.Run(ctx, p, []string{key}, p.limit).Bool()
	},
	// The window of a subject, of its own clock, ends while others ask, each of which takes long.
	"short-window": func(ctx context.Context, p *planted, key string) (bool, error) {
		now := clock.Wall{}.Now().UnixMilli()
		p.mu.Lock()
		slow := p.asked > 2*firstSchedule
		if now-p.cache[key] > 2000 {
			p.cache[key] = now
		}
		began := p.cache[key]
		p.mu.Unlock()
		if slow {
			time.Sleep(50 * time.Millisecond)
		}
		n, err := script.Run(ctx, p, []string{fmt.Sprintf("%s:%d", key, began)}).Int64()
		return n <= p.limit, err
	},
	// Names are cut, so that subjects share a counter.
	"shares": func(ctx context.Context, p *planted, key string) (bool, error) {
		return limiters["lua"](ctx, p, key[:min(len(key), len("s000000x0000000"))])
	},
	// What it rejects is in the log, too.
	"log-rejected": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := slides.Run(ctx, p, []string{key}, p.limit, "all").Int64()
		return n == 1, err
	},
	"log": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := slides.Run(ctx, p, []string{key}, p.limit, "admitted").Int64()
		return n == 1, err
	},
	"get-set": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := p.Get(ctx, key).Int64()
		if ignoreNil(err) != nil || n >= p.limit {
			return false, ignoreNil(err)
		}
		return true, p.Set(ctx, key, n+1, window).Err()
	},
	"incr-expire": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := p.Incr(ctx, key).Result()
		if n == 1 {
			err = p.Expire(ctx, key, window).Err()
		}
		return n <= p.limit, err
	},
	// Of two callers at once, none sees that the count is 1.
	"incr-get-expire": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := p.Incr(ctx, key).Result()
		if err != nil {
			return false, err
		}
		if first, err := p.Get(ctx, key).Int64(); err != nil || first > 1 {
			return n <= p.limit, err
		}
		return n <= p.limit, p.Expire(ctx, key, window).Err()
	},
	// Who is rejected is kept out, and for ever if the process ends before the block has a deadline.
	"blocks-in-two": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := script.Run(ctx, p, []string{key}).Int64()
		if n <= p.limit || err != nil {
			return err == nil, err
		}
		if err := p.Set(ctx, key+":blocked", 1, 0).Err(); err != nil {
			return false, err
		}
		return false, p.Expire(ctx, key+":blocked", window).Err()
	},
	"pipeline": func(ctx context.Context, p *planted, key string) (bool, error) {
		var n *redis.IntCmd
		_, err := p.TxPipelined(ctx, func(tx redis.Pipeliner) error {
			n = tx.Incr(ctx, key)
			tx.Expire(ctx, key, window)
			return nil
		})
		return n.Val() <= p.limit, err
	},
	// Both commands have left when the first takes effect.
	"pipelined": func(ctx context.Context, p *planted, key string) (bool, error) {
		var n *redis.IntCmd
		_, err := p.Pipelined(ctx, func(tx redis.Pipeliner) error {
			n = tx.Incr(ctx, key)
			tx.Expire(ctx, key, window)
			return nil
		})
		return n.Val() <= p.limit, err
	},
	// The time is part of what is stored, and of the reply to the second SET.
	"get-set-time": func(ctx context.Context, p *planted, key string) (bool, error) {
		stored, err := p.Get(ctx, key).Result()
		count, _, _ := strings.Cut(stored, "@")
		n, _ := strconv.ParseInt(count, 10, 64)
		if ignoreNil(err) != nil || n >= p.limit {
			return false, ignoreNil(err)
		}
		old := p.SetArgs(ctx, key, fmt.Sprintf("%d@%d", n+1, clock.Nano()), redis.SetArgs{Get: true, TTL: window}).Err()
		return true, ignoreNil(old)
	},
	"lua": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := script.Run(ctx, p, []string{key}).Int64()
		return n <= p.limit, err
	},
	// It does not read LIMIT.
	"five": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := script.Run(ctx, p, []string{key}).Int64()
		return n <= 5, err
	},
	// It admits one more than LIMIT.
	"one-more": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := script.Run(ctx, p, []string{key}).Int64()
		return n <= p.limit+1, err
	},
	// It counts the requests of all subjects together.
	"all-alike": func(ctx context.Context, p *planted, _ string) (bool, error) {
		n, err := script.Run(ctx, p, []string{"everybody"}).Int64()
		return n <= p.limit, err
	},
	// It does not count.
	"counts-none": func(ctx context.Context, p *planted, key string) (bool, error) {
		return true, p.Set(ctx, key, 1, window).Err()
	},
	// The connection of its first request ends without an answer, as if another program had had the port.
	"cut": func(ctx context.Context, p *planted, key string) (bool, error) {
		if p.asked == 1 {
			panic(http.ErrAbortHandler)
		}
		n, err := script.Run(ctx, p, []string{key}).Int64()
		return n <= p.limit, err
	},
	// Redis tells which minute it is.
	"redis-time": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := minute.Run(ctx, p, []string{key}).Int64()
		return n <= p.limit, err
	},
	// What is counted is never forgotten.
	"no-ttl": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := p.Incr(ctx, key).Result()
		return n <= p.limit, err
	},
	// The window is that of the process' own clock.
	"own-time": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := script.Run(ctx, p, []string{fmt.Sprintf("%s:%d", key, clock.Wall{}.Now().Unix()/60)}).Int64()
		return n <= p.limit, err
	},
	// It admits what it cannot count, and loads its script once.
	"loaded": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := p.EvalSha(ctx, script.Hash(), []string{key}).Int64()
		return n <= p.limit || err != nil, nil
	},
	// It loads its script once, and does not without it.
	"loaded-once": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := p.EvalSha(ctx, script.Hash(), []string{key}).Int64()
		return n <= p.limit, err
	},
	// It loads its script once, and rejects all without it.
	"loaded-closed": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := p.EvalSha(ctx, script.Hash(), []string{key}).Int64()
		return n <= p.limit && err == nil, nil
	},
	// It admits what it cannot count.
	"open": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := script.Run(ctx, p, []string{key}).Int64()
		return n <= p.limit || err != nil, nil
	},
	// It rejects all without a setting that it makes once.
	"preset": func(ctx context.Context, p *planted, key string) (bool, error) {
		if err := p.Get(ctx, presetKey).Err(); err != nil {
			return false, ignoreNil(err)
		}
		n, err := script.Run(ctx, p, []string{key}).Int64()
		return n <= p.limit, err
	},
	// A timeline shortens its keys: the first characters of the subject are all that it shows of it.
	"long-keys": func(ctx context.Context, p *planted, key string) (bool, error) {
		return limiters["get-set"](ctx, p, strings.Repeat("p", 19)+key+strings.Repeat("z", 9))
	},
	// Only the first of its two commands has a short key.
	"blocked-long-keys": func(ctx context.Context, p *planted, key string) (bool, error) {
		if err := p.Get(ctx, "blocked:"+key).Err(); ignoreNil(err) != nil {
			return false, err
		}
		return limiters["long-keys"](ctx, p, key)
	},
	// A long way to the last read makes its race deep.
	"long-get-set": func(ctx context.Context, p *planted, key string) (bool, error) {
		for range 5 {
			p.Get(ctx, key+":a")
		}
		return limiters["get-set"](ctx, p, key)
	},
	// Of one process one request at a time is decided.
	"locked-get-set": func(ctx context.Context, p *planted, key string) (bool, error) {
		p.one.Lock()
		defer p.one.Unlock()
		return limiters["get-set"](ctx, p, key)
	},
	// It has its keys in the first database, whatever it is given.
	"select": func(ctx context.Context, p *planted, key string) (bool, error) {
		conn := p.Conn()
		defer conn.Close() //nolint:errcheck // of a test
		if err := conn.Select(ctx, 0).Err(); err != nil {
			return false, err
		}
		n, err := conn.Incr(ctx, key).Result()
		conn.Expire(ctx, key, window)
		return n <= p.limit, err
	},
	// What it rejects it gives back.
	"undo": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := p.Incr(ctx, key).Result()
		if n <= p.limit || err != nil {
			return err == nil, err
		}
		return false, p.Decr(ctx, key).Err()
	},
	"set-incr": func(ctx context.Context, p *planted, key string) (bool, error) {
		if err := p.SetNX(ctx, key, 0, window).Err(); err != nil {
			return false, err
		}
		n, err := p.Incr(ctx, key).Result()
		return n <= p.limit, err
	},
	// Two callers at one moment are one member.
	"sorted-set": func(ctx context.Context, p *planted, key string) (bool, error) {
		const now = 1_700_000_000
		if err := p.ZAdd(ctx, key, redis.Z{Score: now, Member: now}).Err(); err != nil {
			return false, err
		}
		n, err := p.ZCard(ctx, key).Result()
		p.Expire(ctx, key, window)
		return n <= p.limit, err
	},
	"cache": func(ctx context.Context, p *planted, key string) (bool, error) {
		p.mu.Lock()
		p.cache[key]++
		n := p.cache[key]
		p.mu.Unlock()
		return n <= p.limit, p.Set(ctx, key, n, window).Err()
	},
	// Whoever holds the lock and dies keeps the others out forever.
	"lock": func(ctx context.Context, p *planted, key string) (bool, error) {
		for {
			ok, err := p.SetNX(ctx, key+":lock", 1, 0).Result()
			if err != nil {
				return false, err
			}
			if ok {
				break
			}
		}
		n, err := p.Incr(ctx, key).Result()
		p.Expire(ctx, key, window)
		p.Del(ctx, key+":lock")
		return n <= p.limit, err
	},
	"memory": func(_ context.Context, p *planted, key string) (bool, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.cache[key]++
		return p.cache[key] <= p.limit, nil
	},
	// Once, in the first schedule of a search, a request is admitted as if a window had ended.
	"window-ends": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := p.Incr(ctx, key).Result()
		p.Expire(ctx, key, window)
		return n <= p.limit || p.asked == firstSchedule, err
	},
	// A request is answered before its last command is sent, which the next request of the instance finds left.
	"afterwards": func(ctx context.Context, p *planted, key string) (bool, error) {
		if left, _ := p.left.Swap("").(string); left != "" {
			if err := p.Expire(ctx, left, window).Err(); err != nil {
				return false, err
			}
		}
		n, err := p.Incr(ctx, key).Result()
		if n == 1 {
			p.left.Store(key)
		}
		return n <= p.limit, err
	},
	// Each request renews the deadline.
	"renews": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := renew.Run(ctx, p, []string{key}).Int64()
		return n <= p.limit, err
	},
	// A count whose deadline is this millisecond gets a new one.
	"last-millisecond": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := renewLast.Run(ctx, p, []string{key}).Int64()
		return n <= p.limit, err
	},
	// The key of an hour lives to its end, which most hours that a search begins in are far from.
	"hours": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := hour.Run(ctx, p, []string{key}).Int64()
		return n <= p.limit, err
	},
	// Who is rejected is kept out for an hour.
	"blocks": func(ctx context.Context, p *planted, key string) (bool, error) {
		blocked, err := p.Exists(ctx, key+":blocked").Result()
		if blocked > 0 || err != nil {
			return false, err
		}
		n, err := script.Run(ctx, p, []string{key}).Int64()
		if n <= p.limit || err != nil {
			return err == nil, err
		}
		return false, p.Set(ctx, key+":blocked", 1, time.Hour).Err()
	},
	// Whom it has rejected it rejects again without asking Redis, for a minute of its own clock.
	"remembers": func(ctx context.Context, p *planted, key string) (bool, error) {
		p.mu.Lock()
		known := p.cache[key]
		p.mu.Unlock()
		if known > 0 {
			return false, nil
		}
		n, err := script.Run(ctx, p, []string{key}).Int64()
		if n > p.limit {
			p.mu.Lock()
			p.cache[key] = 1
			p.mu.Unlock()
		}
		return n <= p.limit, err
	},
	// What it has admitted it gives back once it has answered.
	"gives-back-later": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := script.Run(ctx, p, []string{key}).Int64()
		time.AfterFunc(time.Millisecond, func() { p.Decr(context.Background(), key) })
		return n <= p.limit, err
	},
	// What it has admitted is counted nobody knows when.
	"does-not-wait": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := p.Get(ctx, key).Int64()
		if ignoreNil(err) == nil && n < p.limit {
			go p.Set(context.Background(), key, n+1, window)
		}
		return n < p.limit, ignoreNil(err)
	},
	// Functions are for servers, and what it cannot count it admits.
	"function": func(ctx context.Context, p *planted, key string) (bool, error) {
		return p.Do(ctx, "FCALL", "limit", 1, key).Err() != nil, nil
	},
	// A blocking command is no step.
	"blocking": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := p.RPush(ctx, key, 1).Result()
		p.Expire(ctx, key, window)
		p.BLPop(ctx, window, key)
		return n <= p.limit, err
	},
	// Clocks that are read at once may be in any order: once, in the second run of the control, a request is rejected that
	// was on its way when another ended.
	"caller-clock": func(ctx context.Context, p *planted, key string) (bool, error) {
		began := clock.Wall{}.Now().UnixNano()
		ended, err := p.Get(ctx, key).Int64()
		if ignoreNil(err) != nil || began < ended && p.asked == firstSchedule-1 {
			return false, ignoreNil(err)
		}
		return true, p.Set(ctx, key, clock.Wall{}.Now().UnixNano(), window).Err()
	},
	// What it rejects it gives back to the minute that it is then.
	"refund": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := minute.Run(ctx, p, []string{key}).Int64()
		if n <= p.limit || err != nil {
			return err == nil, err
		}
		return false, giveBack.Run(ctx, p, []string{key}).Err()
	},
	// It rejects all from its seventh request on.
	"tired": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := p.Incr(ctx, key).Result()
		p.Expire(ctx, key, window)
		return n <= p.limit && p.asked < 7, err
	},
	// The whole service rejects all after some requests, also when it has started anew.
	"weary": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := p.Incr(ctx, key).Result()
		p.Expire(ctx, key, window)
		f, ferr := os.OpenFile(os.Getenv(pidVariable)+".asked", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if ferr != nil {
			return false, ferr
		}
		defer f.Close() //nolint:errcheck // of a test
		if _, err := f.WriteString("x"); err != nil {
			return false, err
		}
		info, ferr := f.Stat()
		if ferr != nil {
			return false, ferr
		}
		return n <= p.limit && info.Size() < 20, err
	},
	"garbled": func(_ context.Context, _ *planted, _ string) (bool, error) { return false, fmt.Errorf("no idea") },
	// It answers its first request alone.
	"failing": func(ctx context.Context, p *planted, key string) (bool, error) {
		err := p.Incr(ctx, key).Err()
		if p.asked > 1 {
			err = errors.New("it cannot go on")
		}
		return true, err
	},
	"foul": func(ctx context.Context, p *planted, key string) (bool, error) {
		if p.asked > 1 {
			c, err := net.Dial("tcp", os.Getenv("REDIS_HOST")+":"+os.Getenv("REDIS_PORT"))
			if err != nil {
				return false, err
			}
			defer c.Close() //nolint:errcheck // of a test
			if _, err := c.Write([]byte("*1\r\n:x\r\n")); err != nil {
				return false, err
			}
			_, _ = c.Read(make([]byte, 1)) // until it is closed
		}
		n, err := p.Incr(ctx, key).Result()
		return n <= p.limit, err
	},
	"crash": func(ctx context.Context, p *planted, key string) (bool, error) {
		n, err := p.Incr(ctx, key).Result()
		if p.asked > 1 {
			fmt.Println("panic: it is broken")
			os.Exit(2)
		}
		return n <= p.limit, err
	},
	"hang": func(ctx context.Context, _ *planted, _ string) (bool, error) {
		<-ctx.Done()
		return false, ctx.Err()
	},
}

var swapping = redis.NewScript(`
	local used, base = 0, tonumber(redis.call('get', KEYS[1]) or '0')
	used, base = base, used
	if used - base >= tonumber(ARGV[1]) then return 0 end
	redis.call('set', KEYS[1], used + 1, 'EX', 3600)
	return 1`)

// mostRemembered is how many subjects the limiter that forgets remembers.
const mostRemembered = 100

// remember adds a subject, and returns the one that is forgotten for it; empty if there is none.
func (p *planted) remember(key string) (oldest string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cache[key] > 0 {
		return ""
	}
	p.cache[key] = 1
	p.names = append(p.names, key)
	if len(p.names) <= mostRemembered {
		return ""
	}
	oldest = p.names[0]
	p.names = p.names[1:]
	delete(p.cache, oldest)
	return oldest
}

func ignoreNil(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// servePlanted is the service.
func servePlanted(kind string) error {
	if f, err := os.OpenFile(os.Getenv(pidVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		fmt.Fprintln(f, os.Getpid())
		_ = f.Close()
	}
	switch kind {
	case "exit":
		return fmt.Errorf("the configuration is missing")
	case "deaf":
		for {
			time.Sleep(time.Hour) // without cgo, a program in which nothing can happen any more is ended
		}
	}
	limit, err := strconv.ParseInt(os.Getenv("LIMIT"), 10, 64)
	if err != nil {
		return err
	}
	o, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	o.DialerRetryTimeout = time.Millisecond // what dials again and again without Redis fails soon
	p := &planted{Client: redis.NewClient(o), limit: limit, cache: map[string]int64{}}
	if strings.HasPrefix(kind, "sql-") {
		if err := p.openSQL(os.Getenv("DATABASE_URL")); err != nil {
			return err
		}
	}
	address := "127.0.0.1:" + cmp.Or(os.Getenv(portVariable), os.Getenv("PORT"))
	switch kind {
	case "visited":
		err = visited(address)
		kind = "lua"
	case "loaded", "loaded-once", "loaded-closed":
		err = script.Load(context.Background(), p).Err()
	case "preset":
		err = p.Set(context.Background(), presetKey, limit, 0).Err()
	}
	if err != nil {
		return err
	}
	return http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked++
		p.mu.Unlock()
		ctx := context.WithValue(r.Context(), costs{}, r.URL.Query().Get("cost"))
		switch ok, err := limiters[kind](ctx, p, r.URL.Query().Get("key")); {
		case err != nil:
			w.WriteHeader(http.StatusInternalServerError)
		case !ok:
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
}

// visited plays another program that listens on a port for a moment before the service does.
func visited(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	c, err := l.Accept()
	if err != nil {
		return err
	}
	_ = c.Close()
	err = l.Close()
	if err == nil {
		time.Sleep(200 * time.Millisecond) // so that the first request finds nobody
	}
	return err
}
