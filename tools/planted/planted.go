// Package planted has limiters as teams write them, in pairs: a right one, and others with a
// defect each. What the tools of this module say of them is in a table; see its test.
package planted

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Limiter is one of the set.
type Limiter struct {
	Name string
	// Defect says what is wrong; empty for a right one.
	Defect string
	// Exceeds is set if it exceeds its limit by what it declares.
	Exceeds bool
	Meta    strategies.Meta
}

// state is what one instance has. Most limiters use a part of it.
type state struct {
	env    strategies.Env
	rdb    redis.UniversalClient
	policy *quota.Policy
	allow  func(ctx context.Context, s *state, key string) (bool, error)

	mu     sync.RWMutex
	used   map[string]int64
	moment map[string]time.Time
	turn   chan struct{}
	shared *sync.Map
	times  map[string][]time.Time
	failed error
	oldest []string // the keys of a table, in the order in which they came
}

// Allow implements [strategies.Allower].
func (s *state) Allow(ctx context.Context, key string) (bool, error) { return s.allow(ctx, s, key) }

func (s *state) now() time.Time { return s.env.Clock.Now().UTC() }

// window is the key of the policy's window in force, and its length.
func (s *state) window(key string) string {
	return key + ":" + strconv.FormatInt(s.policy.Window.At(s.now()).Start.UnixMilli(), 10)
}

func (s *state) length() time.Duration { return s.policy.Window.RealLength() }

// do is a limiter's code.
type do = func(ctx context.Context, s *state, key string) (bool, error)

// limiter makes an entry. It promises to keep the limit.
func limiter(name, defect string, kind quota.Kind, allow do, change ...func(*strategies.Meta)) Limiter {
	return of(name, defect, kind, func(s *state) strategies.Allower {
		s.allow = allow
		return s
	}, change...)
}

func of(name, defect string, kind quota.Kind, allower func(*state) strategies.Allower,
	change ...func(*strategies.Meta)) Limiter {
	meta := strategies.FromFunc(name, []quota.Kind{kind},
		func(_ context.Context, env strategies.Env, policy *quota.Policy) (strategies.Allower, error) {
			s := &state{env: env, rdb: strategies.Redis(env), policy: policy, used: map[string]int64{},
				moment: map[string]time.Time{}, turn: make(chan struct{}, 1), shared: &sync.Map{}, times: map[string][]time.Time{}}
			return allower(s), nil
		})
	meta.Guarantee = []quota.Clause{quota.Exactly()}
	for _, c := range change {
		c(&meta)
	}
	return Limiter{Name: name, Defect: defect, Meta: meta}
}

// inMemory is for limiters without a store.
func inMemory(meta *strategies.Meta) {
	meta.Needs, meta.PerProcess, meta.Guarantee = nil, true, quota.PerInstance()
}

// shared is for limiters without a store whose instances share memory.
func shared(meta *strategies.Meta) { meta.Needs = nil }

// foreign is for code that waits on channels, or goes by package time.
func foreign(meta *strategies.Meta) { meta.Foreign = true }

// undeclared is for limiters of which nothing is declared.
func undeclared(meta *strategies.Meta) { meta.Guarantee = nil }

// keepsTime is for limiters in memory that reject nobody wrongly, whatever their clock does.
func keepsTime(meta *strategies.Meta) {
	inMemory(meta)
	none := quota.Clause{Property: quota.PropertyFalseReject, Tolerates: []quota.Fault{quota.FaultClock}, Formula: "0",
		Bound: func(quota.Params) int64 { return 0 }}
	meta.Guarantee = append(quota.PerInstance(quota.FaultClock), none)
}

// mayReject is for limiters that reject although there is room, as their authors know.
func mayReject(meta *strategies.Meta) { meta.Guarantee = append(meta.Guarantee, quota.MayReject()) }

// lua is a limiter that is one script, which answers 1 if it admits. Its arguments are the
// limit, the window's length in ms, and the present in µs.
func lua(keyed func(s *state, key string) string, source string) do {
	script := redis.NewScript(source)
	return func(ctx context.Context, s *state, key string) (bool, error) {
		n, err := script.Run(ctx, s.rdb, []string{keyed(s, key)}, s.policy.Limit, s.length().Milliseconds(),
			s.now().UnixMicro()).Int64()
		return n == 1, err
	}
}

func perWindow(s *state, key string) string { return s.window(key) }
func plain(_ *state, key string) string     { return key }

// bucket is a script whose arguments are the size, and the µs and units of its rate.
func bucket(source string) do {
	script := redis.NewScript(source)
	return func(ctx context.Context, s *state, key string) (bool, error) {
		window := s.policy.Window
		n, err := script.Run(ctx, s.rdb, []string{key}, s.policy.Limit, window.RealLength().Microseconds(), window.Refill,
			s.now().UnixMicro()).Int64()
		return n == 1, err
	}
}

// number reads a counter; one that is not there is 0.
func number(ctx context.Context, rdb redis.Cmdable, key string) (int64, error) {
	n, err := rdb.Get(ctx, key).Int64()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return n, err
}
