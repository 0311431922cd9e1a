package planted

import (
	"context"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// plantedStrategy is a limiter that gives units back, or charges them after the work. Each function has the key of the
// subject.
type plantedStrategy struct {
	env  strategies.Env
	take func(ctx context.Context, s *plantedStrategy, key string, req quota.Request) (bool, error)
	// back gives units back, and charge those of work that is done; nil for none.
	back, charge func(ctx context.Context, s *plantedStrategy, req *quota.Request, units int64) error
}

func (s *plantedStrategy) rdb() redis.UniversalClient { return strategies.Redis(s.env) }

// key is that of the subject, in the window in force if windows follow each other.
func (s *plantedStrategy) key(req *quota.Request) string {
	key := s.env.Prefix + req.Policy.Name + ":" + string(req.Subject)
	if req.Policy.Window.Kind == quota.Fixed {
		key += ":" + strconv.FormatInt(req.Policy.Window.At(s.env.Clock.Now()).Index, 10)
	}
	return key
}

// Take implements [strategies.Strategy].
func (s *plantedStrategy) Take(ctx context.Context, req quota.Request) (decision quota.Decision, err error) {
	ok, err := s.take(ctx, s, s.key(&req), req)
	decision.Admitted = ok
	decision.Tier = quota.TierRedis
	decision.Remaining = -1
	if ok {
		decision.Reservation = quota.Reservation{Request: req}
	}
	return decision, err
}

// Refund implements [strategies.Refunder].
func (s *plantedStrategy) Refund(ctx context.Context, res quota.Reservation) error {
	if s.charge != nil && res.Request.Settles && !res.Committed { // nothing was charged yet
		return nil
	}
	return s.back(ctx, s, &res.Request, res.Request.Units)
}

// Close implements [strategies.Strategy].
func (s *plantedStrategy) Close(context.Context) error { return nil }

// charging is such a limiter that charges after the work.
type charging struct{ *plantedStrategy }

// Commit implements [strategies.Committer].
func (s charging) Commit(ctx context.Context, res quota.Reservation, actual int64) error {
	return s.charge(ctx, s.plantedStrategy, &res.Request, actual)
}

// givesBack makes an entry of a limiter that gives units back.
func givesBack(name, defect string, kind quota.Kind, limiter *plantedStrategy, clauses ...quota.Clause) Limiter {
	meta := strategies.Meta{
		Name: name, Doc: "counts units, which can be given back", Form: strategies.Library, GivesBack: true,
		Needs: []strategies.Need{strategies.NeedRedis}, Kinds: []quota.Kind{kind}, Counts: quota.CountsNothing,
		Guarantee: clauses,
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			own := *limiter
			own.env = env
			if own.charge != nil {
				return charging{&own}, nil
			}
			return &own, nil
		},
	}
	return Limiter{Name: name, Defect: defect, Meta: meta}
}

// evaluated runs a script on the key, and reports whether it answers 1.
func evaluated(ctx context.Context, s *plantedStrategy, script *redis.Script, key string, args ...any) (bool, error) {
	n, err := script.Run(ctx, s.rdb(), []string{key}, args...).Int64()
	return n == 1, err
}

var (
	occupy = redis.NewScript(`local n = tonumber(redis.call('GET', KEYS[1]) or '0')
if n + ARGV[2] > tonumber(ARGV[1]) then return 0 end
redis.call('INCRBY', KEYS[1], ARGV[2])
if n == 0 and ARGV[3] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return 1`)
	leave = redis.NewScript(`if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
return redis.call('DECRBY', KEYS[1], ARGV[1])`)
	below = redis.NewScript(`return redis.call('DECRBY', KEYS[1], ARGV[1])`)
	// missing takes a count that is not there for one of nothing, and compares no request with the limit then.
	missing = redis.NewScript(`local n = redis.call('GET', KEYS[1])
if n and n + ARGV[2] > tonumber(ARGV[1]) then return 0 end
redis.call('INCRBY', KEYS[1], ARGV[2])
if not n then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return 1`)
	afterwards = redis.NewScript(`redis.call('INCRBY', KEYS[1], ARGV[1])
if redis.call('PTTL', KEYS[1]) < 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1`)
)

// occupying takes units by a script, which is told how long its key lives.
func occupying(script *redis.Script, life func(*quota.Policy) time.Duration) func(context.Context, *plantedStrategy,
	string, quota.Request) (bool, error) {
	return func(ctx context.Context, s *plantedStrategy, key string, req quota.Request) (bool, error) {
		return evaluated(ctx, s, script, key, req.Policy.Limit, req.Units, life(req.Policy).Milliseconds())
	}
}

func giving(script *redis.Script) func(context.Context, *plantedStrategy, *quota.Request, int64) error {
	return func(ctx context.Context, s *plantedStrategy, req *quota.Request, units int64) error {
		return script.Run(ctx, s.rdb(), []string{s.key(req)}, units).Err()
	}
}

var (
	// hold has a member for each unit, whose score is when its lease ends.
	hold = redis.NewScript(`redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[3])
if redis.call('ZCARD', KEYS[1]) + ARGV[2] > tonumber(ARGV[1]) then return 0 end
for i = 1, tonumber(ARGV[2]) do redis.call('ZADD', KEYS[1], ARGV[4], ARGV[5] .. ':' .. i) end
return 1`)
	endHold = redis.NewScript(`for i = 1, tonumber(ARGV[1]) do redis.call('ZREM', KEYS[1], ARGV[2] .. ':' .. i) end
return 1`)
)

// leaseEnd is when units are free again that a request takes now, as a score of a sorted set.
func leaseEnd(now time.Time, req *quota.Request) string {
	if req.Settles && req.Life > 0 {
		return strconv.FormatInt(now.Add(req.Life).UnixMilli(), 10)
	}
	return "+inf"
}

// leased takes units until the life of the request is over.
func leased(ctx context.Context, s *plantedStrategy, key string, req quota.Request) (bool, error) {
	now := s.env.Clock.Now()
	return evaluated(ctx, s, hold, key, req.Policy.Limit, req.Units, now.UnixMilli(), leaseEnd(now, &req), req.ID)
}

// leasedAndSeen notes when somebody asked last before it takes units.
func leasedAndSeen(ctx context.Context, s *plantedStrategy, key string, req quota.Request) (bool, error) {
	now := s.env.Clock.Now()
	if err := s.rdb().Set(ctx, key+":seen", now.UnixMilli(), time.Hour).Err(); err != nil {
		return false, err
	}
	return leased(ctx, s, key, req)
}

func endLease(ctx context.Context, s *plantedStrategy, req *quota.Request, units int64) error {
	return endHold.Run(ctx, s.rdb(), []string{s.key(req)}, units, req.ID).Err()
}

var (
	// count takes units in a counter, from which it takes those whose lease has ended.
	count = redis.NewScript(`local gone = redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[3])
if gone > 0 then redis.call('DECRBY', KEYS[1], gone) end
if tonumber(redis.call('GET', KEYS[1]) or '0') + ARGV[2] > tonumber(ARGV[1]) then return 0 end
redis.call('INCRBY', KEYS[1], ARGV[2])
return 1`)
	// lend notes when the lease of units ends.
	lend = redis.NewScript(`for i = 1, tonumber(ARGV[1]) do redis.call('ZADD', KEYS[1], ARGV[2], ARGV[3] .. ':' .. i) end
return 1`)
	endLoan = redis.NewScript(`local gone = 0
for i = 1, tonumber(ARGV[1]) do gone = gone + redis.call('ZREM', KEYS[2], ARGV[2] .. ':' .. i) end
return redis.call('DECRBY', KEYS[1], gone)`)
)

// counting takes units, and then notes until when.
func counting(ctx context.Context, s *plantedStrategy, key string, req quota.Request) (bool, error) {
	now := s.env.Clock.Now()
	n, err := count.Run(ctx, s.rdb(), []string{key, key + ":leases"}, req.Policy.Limit, req.Units, now.UnixMilli()).Int64()
	if err != nil || n != 1 {
		return false, err
	}
	return evaluated(ctx, s, lend, key+":leases", req.Units, leaseEnd(now, &req), req.ID)
}

func endLoans(ctx context.Context, s *plantedStrategy, req *quota.Request, units int64) error {
	key := s.key(req)
	return endLoan.Run(ctx, s.rdb(), []string{key, key + ":leases"}, units, req.ID).Err()
}

// underWay are limits of what is under way, counters of first requests, and limiters that charge after the work.
func underWay() []Limiter {
	never := func(*quota.Policy) time.Duration { return 0 }
	minute := func(*quota.Policy) time.Duration { return time.Minute }
	window := func(policy *quota.Policy) time.Duration { return policy.Window.RealLength() }
	exactly := quota.Exactly()
	return []Limiter{
		givesBack("slots", "", quota.Standing, &plantedStrategy{take: leased, back: endLease}, exactly),
		givesBack("slots-declared", "", quota.Standing,
			&plantedStrategy{take: occupying(occupy, never), back: giving(leave)}, exactly, quota.MayReject()),
		givesBack("slots-kept", "the slot of a caller that has died is never free again", quota.Standing,
			&plantedStrategy{take: occupying(occupy, never), back: giving(leave)}, exactly),
		givesBack("slots-two-commands", "", quota.Standing, &plantedStrategy{take: leasedAndSeen, back: endLease}, exactly),
		givesBack("slots-two-steps", "a caller that dies before it has noted its lease keeps its slot for ever",
			quota.Standing, &plantedStrategy{take: counting, back: endLoans}, exactly),
		givesBack("slots-expire", "its count expires a minute after the first request, whatever is still under way",
			quota.Standing, &plantedStrategy{take: occupying(occupy, minute), back: giving(leave)}, exactly),
		givesBack("first-refund", "", quota.FirstRequest,
			&plantedStrategy{take: occupying(occupy, window), back: giving(leave)}, exactly),
		givesBack("first-refund-later", "what is given back after its key has expired makes a count below zero",
			quota.FirstRequest, &plantedStrategy{take: occupying(occupy, window), back: giving(below)}, exactly),
		givesBack("first-large", "a request is not compared with the limit if there is no count yet", quota.FirstRequest,
			&plantedStrategy{take: occupying(missing, window), back: giving(leave)}, exactly),
		postPaid("post-paid", "", func(used, limit int64) bool { return used < limit }),
		postPaid("post-paid-at-limit", "a request passes also if the limit is used up exactly",
			func(used, limit int64) bool { return used <= limit }),
	}
}

// postPaid looks whether there is anything left, and charges after the work.
func postPaid(name, defect string, passes func(used, limit int64) bool) Limiter {
	limiter := &plantedStrategy{
		take: func(ctx context.Context, s *plantedStrategy, key string, req quota.Request) (bool, error) {
			used, err := number(ctx, s.rdb(), key)
			ok := err == nil && passes(used, req.Policy.Limit)
			if ok && !req.Settles { // no work follows
				err = s.charge(ctx, s, &req, req.Units)
			}
			return ok && err == nil, err
		},
		back: giving(leave),
		charge: func(ctx context.Context, s *plantedStrategy, req *quota.Request, units int64) error {
			life := req.Policy.Window.RealLength().Milliseconds()
			return afterwards.Run(ctx, s.rdb(), []string{s.key(req)}, units, life).Err()
		},
	}
	crossing := quota.Clause{Property: quota.PropertyLeak, Formula: "in flight x largest cost - 1",
		Bound: func(params quota.Params) int64 { return max(1, params.InFlight)*params.MaxCost - 1 }}
	planted := givesBack(name, defect, quota.Fixed, limiter, crossing)
	planted.Exceeds = true
	return planted
}

// bursts have a window of a second besides that of the policy, and no more than a request in it.
func bursts() []Limiter {
	both := func(source string) do {
		script := redis.NewScript(source)
		return func(ctx context.Context, s *state, key string) (bool, error) {
			second := key + ":" + s.now().Truncate(time.Second).Format(time.RFC3339)
			n, err := script.Run(ctx, s.rdb, []string{s.window(key), second}, s.policy.Limit, 1, s.length().Milliseconds(),
				1000).Int64()
			return n == 1, err
		}
	}
	return []Limiter{
		limiter("burst", "", quota.Fixed, both(`for i = 1, 2 do
	if tonumber(redis.call('GET', KEYS[i]) or '0') >= tonumber(ARGV[i]) then return 0 end
end
for i = 1, 2 do
	if redis.call('INCR', KEYS[i]) == 1 then redis.call('PEXPIRE', KEYS[i], ARGV[i + 2]) end
end
return 1`), mayReject),
		limiter("burst-undone", "", quota.Fixed, both(`for i = 1, 2 do
	local n = redis.call('INCR', KEYS[i])
	if n == 1 then redis.call('PEXPIRE', KEYS[i], ARGV[i + 2]) end
	if n > tonumber(ARGV[i]) then
		for k = 1, i do redis.call('DECR', KEYS[k]) end
		return 0
	end
end
return 1`), mayReject),
		limiter("burst-charged", "what its second window rejects stays charged to the first", quota.Fixed, both(`for i = 1, 2 do
	local n = redis.call('INCR', KEYS[i])
	if n == 1 then redis.call('PEXPIRE', KEYS[i], ARGV[i + 2]) end
	if n > tonumber(ARGV[i]) then return 0 end
end
return 1`), mayReject),
	}
}

// tablesInMemory are limiters whose subjects meet in a table.
func tablesInMemory() []Limiter {
	return []Limiter{
		limiter("memory-cleared", "its map is emptied when it has more than 10,000 subjects", quota.Fixed,
			func(_ context.Context, s *state, key string) (bool, error) {
				const many = 10_000
				key = s.window(key)
				s.mu.Lock()
				defer s.mu.Unlock()
				if len(s.used) > many {
					clear(s.used)
				}
				s.used[key]++
				return s.used[key] <= s.policy.Limit, nil
			}, inMemory),
		limiter("cached-oldest-dropped", "", quota.Fixed, func(ctx context.Context, s *state, key string) (bool, error) {
			key = s.window(key)
			s.mu.Lock()
			full := s.used[key] > 0
			s.mu.Unlock()
			if full {
				return false, nil
			}
			ok, err := counted(ctx, s, key, s.length()) // Redis knows what the table has dropped
			if err == nil && !ok {
				s.enter(key)
			}
			return ok, err
		}),
		limiter("memory-oldest-dropped", "its table has 10,000 subjects, and drops the one that came first for the next",
			quota.Fixed, func(_ context.Context, s *state, key string) (bool, error) {
				key = s.window(key)
				return s.enter(key) <= s.policy.Limit, nil
			}, inMemory),
		limiter("memory-swept", "", quota.Fixed, func(_ context.Context, s *state, key string) (bool, error) {
			const many, swept = 10_000, "swept"
			key = s.window(key)
			s.mu.Lock()
			defer s.mu.Unlock()
			if n := int64(len(s.used)); n > max(many, 2*s.used[swept]) { // what is of an earlier window goes
				for other, until := range s.moment {
					if !s.now().Before(until) {
						delete(s.used, other)
						delete(s.moment, other)
					}
				}
				s.used[swept] = int64(len(s.used))
			}
			s.used[key]++
			s.moment[key] = s.policy.Window.At(s.now()).End
			return s.used[key] <= s.policy.Limit, nil
		}, inMemory),
		limiter("memory-chained", "", quota.Fixed, func(_ context.Context, s *state, key string) (bool, error) {
			slot := slotOf(key)
			key = slot + ":" + s.window(key) // the subjects of a slot have a count each
			s.mu.Lock()
			defer s.mu.Unlock()
			s.used[key]++
			return s.used[key] <= s.policy.Limit, nil
		}, inMemory),
		limiter("memory-slots", "subjects whose hashes are equal reset each other's count", quota.Fixed,
			func(_ context.Context, s *state, key string) (bool, error) {
				slot := slotOf(key)
				key = s.window(key)
				s.mu.Lock()
				defer s.mu.Unlock()
				if owner, _ := s.shared.Swap(slot, key); owner != key {
					s.used[slot] = 0
				}
				s.used[slot]++
				return s.used[slot] <= s.policy.Limit, nil
			}, inMemory),
	}
}

// enter adds one to the count of a key in a table of 10,000, which drops the key that came first for another one.
func (s *state) enter(key string) int64 {
	const most = 10_000
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used[key] == 0 {
		s.oldest = append(s.oldest, key)
	}
	if len(s.oldest) > most {
		delete(s.used, s.oldest[0])
		s.oldest = s.oldest[1:]
	}
	s.used[key]++
	return s.used[key]
}

// slotOf is the slot of a table in which a subject is looked for.
func slotOf(key string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key))
	return strconv.Itoa(int(hash.Sum32() % 1024))
}
