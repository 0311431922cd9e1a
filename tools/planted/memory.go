package planted

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// block is how much is leased at once.
const block = 4

// lease takes blocks of units from Redis, and spends them from memory.
type lease struct{ *state }

// Allow implements [strategies.Allower].
func (l lease) Allow(ctx context.Context, key string) (bool, error) {
	decision, err := l.Decide(ctx, key)
	return decision.Admitted, err
}

// Decide implements [strategies.Decider].
func (l lease) Decide(ctx context.Context, key string) (quota.Decision, error) {
	key = l.window(key)
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if l.used[key] > 0 {
		l.used[key]--
		return quota.Decision{Admitted: true, Tier: quota.TierProcess, Remaining: -1}, nil
	}
	pipeliner := l.rdb.TxPipeline()
	end := pipeliner.IncrBy(ctx, key, block)
	pipeliner.PExpire(ctx, key, l.length())
	if _, err := pipeliner.Exec(ctx); err != nil {
		return quota.Decision{}, err
	}
	got := min(block, l.policy.Limit-(end.Val()-block))
	if got > 0 {
		l.used[key] = got - 1
	}
	return quota.Decision{Admitted: got > 0, Remaining: -1}, nil
}

func caches() []Limiter {
	careless := func(open bool) do {
		return func(ctx context.Context, s *state, key string) (bool, error) {
			key = s.window(key)
			if s.used[key] > 0 { // of what was leased
				s.used[key]--
				return true, nil
			}
			end, err := s.rdb.IncrBy(ctx, key, block).Result()
			if err == nil {
				err = s.rdb.PExpire(ctx, key, s.length()).Err()
			}
			if err != nil {
				return open, nil //nolint:nilerr // the defect
			}
			got := min(block, s.policy.Limit-(end-block))
			if got <= 0 {
				return false, nil
			}
			s.used[key] += got - 1
			return true, nil
		}
	}
	cache := func(life func(s *state) time.Duration) do {
		return func(ctx context.Context, s *state, key string) (bool, error) {
			s.mu.RLock()
			until := s.moment[key]
			s.mu.RUnlock()
			if s.now().Before(until) {
				return false, nil
			}
			ok, err := counted(ctx, s, s.window(key), s.length())
			if err == nil && !ok {
				s.mu.Lock()
				s.moment[key] = s.now().Add(life(s))
				s.mu.Unlock()
			}
			return ok, err
		}
	}
	return []Limiter{
		of("lease", "", quota.Fixed, func(s *state) strategies.Allower { return lease{s} }, foreign, mayReject),
		limiter("lease-open", "it admits without the store, and two callers share a map without a lock", quota.Fixed,
			careless(true), mayReject),
		limiter("cached", "", quota.Fixed, cache(func(s *state) time.Duration {
			return s.policy.Window.At(s.now()).End.Sub(s.now())
		})),
		limiter("cached-too-long", "it remembers a rejection for a whole window, also into the next one", quota.Fixed,
			cache(func(s *state) time.Duration {
				return s.length()
			})),
		limiter("cached-count", "it trusts its own copy of the count for a tenth of a window", quota.Fixed,
			func(ctx context.Context, s *state, key string) (bool, error) {
				key = s.window(key)
				s.mu.Lock()
				fresh := s.now().Before(s.moment[key])
				s.used[key]++
				n := s.used[key]
				s.mu.Unlock()
				if fresh && n <= s.policy.Limit {
					return true, s.rdb.Incr(ctx, key).Err()
				}
				ok, err := counted(ctx, s, key, s.length())
				if err != nil {
					return false, err
				}
				seen, err := number(ctx, s.rdb, key)
				s.mu.Lock()
				s.used[key], s.moment[key] = seen, s.now().Add(s.length()/10)
				s.mu.Unlock()
				return ok && err == nil, err
			}),
	}
}

// everywhere is state of the whole program.
var everywhere struct {
	sync.Mutex
	used map[string]int64
}

func memory() []Limiter {
	within := func(s *state, key string) string { return s.window(key) }
	return []Limiter{
		limiter("memory", "", quota.Fixed, func(_ context.Context, s *state, key string) (bool, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			key = within(s, key)
			s.used[key]++
			return s.used[key] <= s.policy.Limit, nil
		}, inMemory),
		limiter("memory-no-reset", "it never forgets what was used", quota.Fixed,
			func(_ context.Context, s *state, key string) (bool, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.used[key]++
				return s.used[key] <= s.policy.Limit, nil
			}, inMemory),
		limiter("memory-read-lock", "it reads under one lock, and writes under another", quota.Fixed,
			func(_ context.Context, s *state, key string) (bool, error) {
				key = within(s, key)
				s.mu.RLock()
				n := s.used[key]
				s.mu.RUnlock()
				if n >= s.policy.Limit {
					return false, nil
				}
				s.mu.Lock()
				s.used[key] = n + 1
				s.mu.Unlock()
				return true, nil
			}, inMemory),
		limiter("memory-atomic", "", quota.Fixed, func(_ context.Context, s *state, key string) (bool, error) {
			n, _ := s.shared.LoadOrStore(within(s, key), new(atomic.Int64))
			return n.(*atomic.Int64).Add(1) <= s.policy.Limit, nil
		}, inMemory),
		limiter("memory-load-store", "it loads from a sync.Map, and stores the next count", quota.Fixed,
			func(_ context.Context, s *state, key string) (bool, error) {
				key = within(s, key)
				n, _ := s.shared.LoadOrStore(key, int64(0))
				if n.(int64) >= s.policy.Limit {
					return false, nil
				}
				s.shared.Store(key, n.(int64)+1)
				return true, nil
			}, inMemory),
		limiter("memory-package", "", quota.Fixed, func(_ context.Context, s *state, key string) (bool, error) {
			everywhere.Lock()
			defer everywhere.Unlock()
			if everywhere.used == nil {
				everywhere.used = map[string]int64{}
			}
			key = within(s, key)
			everywhere.used[key]++
			return everywhere.used[key] <= s.policy.Limit, nil
		}, shared),
		limiter("memory-edge", "a request at the very end of a window is counted in the one before", quota.FirstRequest,
			memoryFirst(func(past, length time.Duration) bool {
				return past > length
			}), inMemory),
		limiter("memory-first", "", quota.FirstRequest, memoryFirst(func(past, length time.Duration) bool {
			return past >= length
		}), inMemory),
		limiter("memory-log", "", quota.Rolling, func(_ context.Context, s *state, key string) (bool, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			now := s.now()
			log := slices.DeleteFunc(s.times[key], func(at time.Time) bool { return now.Sub(at) >= s.length() })
			ok := int64(len(log)) < s.policy.Limit
			if ok {
				log = append(log, now)
			}
			s.times[key] = log
			return ok, nil
		}, inMemory),
		limiter("memory-weighted", "", quota.Rolling, memoryWeighted(false), inMemory, approximateEach),
		limiter("memory-weighted-stale", "after a rest the window before has a weight below zero", quota.Rolling,
			memoryWeighted(true), inMemory, approximateEach),
		limiter("memory-gcra", "", quota.Bucket, func(_ context.Context, s *state, key string) (bool, error) {
			window := s.policy.Window
			value, _ := s.shared.LoadOrStore(key, new(atomic.Int64))
			tat := value.(*atomic.Int64)
			per := window.RealLength().Microseconds()
			now := s.now().UnixMicro() * window.Refill
			for {
				old := tat.Load()
				next := max(old, now) + per
				if next-now > s.policy.Limit*per {
					return false, nil
				}
				if tat.CompareAndSwap(old, next) {
					return true, nil
				}
			}
		}, inMemory),
		limiter("memory-bucket", "", quota.Bucket, memoryBucket(func(parts int64) int64 { return parts }), inMemory),
		limiter("memory-bucket-clamped", "", quota.Bucket, memoryBucket(func(parts int64) int64 { return parts }), keepsTime),
		limiter("memory-bucket-negative", "a clock that steps back takes out what has not flowed in", quota.Bucket,
			negativeBucket, keepsTime),
		limiter("memory-bucket-float", "it rounds to thousandths of a unit, upwards", quota.Bucket,
			memoryBucket(func(parts int64) int64 {
				return parts + parts/50
			}), inMemory),
	}
}

// memoryFirst is a window that begins with its first request, and is over by a test of its age.
func memoryFirst(over func(past, length time.Duration) bool) do {
	return func(_ context.Context, s *state, key string) (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if now := s.now(); s.used[key] == 0 || over(now.Sub(s.moment[key]), s.length()) {
			s.used[key], s.moment[key] = 0, now
		}
		if s.used[key] >= s.policy.Limit {
			return false, nil
		}
		s.used[key]++
		return true, nil
	}
}

// approximateEach is for limiters of which each process counts the window before by a share.
func approximateEach(meta *strategies.Meta) {
	each := quota.Clause{Property: quota.PropertyLeak, Formula: "instances x (2 L - 1) - L",
		Bound: func(params quota.Params) int64 { return params.Instances*(2*params.Limit-1) - params.Limit }}
	meta.Guarantee = []quota.Clause{each, quota.MayReject()}
}

// memoryWeighted counts the last window by the share of it that is left. A stale one takes the window that it has for
// the one before, however long ago that was.
func memoryWeighted(stale bool) do {
	return func(_ context.Context, s *state, key string) (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		now := s.now()
		before := key + ":before"
		end, known := s.moment[key]
		over := now.Sub(end)
		switch {
		case !known || over >= s.length() && !stale:
			s.used[before] = 0
			s.used[key] = 0
			end = now.Add(s.length())
		case over >= 0:
			s.used[before] = s.used[key]
			s.used[key] = 0
			end = end.Add(s.length())
		}
		s.moment[key] = end
		weighted := s.used[before] * int64(end.Sub(now)) // in parts of a unit, of which the window has as many as ns
		if room := s.policy.Limit - s.used[key] - 1; weighted > room*int64(s.length()) {
			return false, nil
		}
		s.used[key]++
		return true, nil
	}
}

// memoryBucket counts in parts of a unit, as many as its rate has ns.
func memoryBucket(flown func(parts int64) int64) do {
	return func(_ context.Context, s *state, key string) (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		window := s.policy.Window
		now := s.now()
		per := int64(window.RealLength())
		if at, ok := s.moment[key]; !ok {
			s.used[key] = s.policy.Limit * per
		} else if past := min(now.Sub(at),
			window.RealLength()*time.Duration(s.policy.Limit)/time.Duration(window.Refill)+1); past > 0 {
			s.used[key] = min(s.policy.Limit*per, s.used[key]+flown(int64(past)*window.Refill))
		}
		s.moment[key] = now
		if s.used[key] < per {
			return false, nil
		}
		s.used[key] -= per
		return true, nil
	}
}

// negativeBucket takes what has flowed in from the clock alone.
func negativeBucket(_ context.Context, s *state, key string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	window := s.policy.Window
	per := int64(window.RealLength())
	now := s.now()
	if at, ok := s.moment[key]; ok {
		longest := window.RealLength()*time.Duration(s.policy.Limit)/time.Duration(window.Refill) + 1
		s.used[key] = min(s.policy.Limit*per, s.used[key]+int64(min(now.Sub(at), longest))*window.Refill)
	} else {
		s.used[key] = s.policy.Limit * per
	}
	s.moment[key] = now
	if s.used[key] < per {
		return false, nil
	}
	s.used[key] -= per
	return true, nil
}

// owner has a goroutine that alone knows what was used, and is asked over a channel.
type owner struct {
	*state
	ask  chan question
	done chan struct{}
}

type question struct {
	key      string
	admitted chan bool
}

func newOwner(s *state) strategies.Allower {
	o := owner{s, make(chan question), make(chan struct{})}
	go func() {
		defer close(o.done)
		for question := range o.ask {
			key := o.window(question.key)
			o.used[key]++
			question.admitted <- o.used[key] <= o.policy.Limit
		}
	}()
	return o
}

// Allow implements [strategies.Allower].
func (o owner) Allow(_ context.Context, key string) (bool, error) {
	q := question{key, make(chan bool)}
	o.ask <- q
	return <-q.admitted, nil
}

// Close ends the goroutine.
func (o owner) Close() error {
	close(o.ask)
	<-o.done
	return nil
}

func goroutines() []Limiter {
	return []Limiter{
		limiter("turn", "", quota.Fixed, func(ctx context.Context, s *state, key string) (bool, error) {
			s.turn <- struct{}{}
			defer func() { <-s.turn }()
			return counted(ctx, s, s.window(key), s.length())
		}, foreign),
		limiter("turn-kept", "a caller whose command fails keeps its turn, and the others wait for ever", quota.Fixed,
			func(ctx context.Context, s *state, key string) (bool, error) {
				s.turn <- struct{}{}
				ok, err := counted(ctx, s, s.window(key), s.length())
				if err != nil {
					return false, err
				}
				<-s.turn
				return ok, nil
			}, foreign),
		of("owner", "", quota.Fixed, newOwner, inMemory, foreign),
		limiter("counts-later", "it reads, and counts on a goroutine of its own", quota.Fixed,
			func(ctx context.Context, s *state, key string) (bool, error) {
				key = s.window(key)
				n, err := number(ctx, s.rdb, key)
				if err != nil || n >= s.policy.Limit {
					return false, err
				}
				go func() { _, _ = counted(context.WithoutCancel(ctx), s, key, s.length()) }()
				return true, nil
			}),
	}
}
