// Package confirm repeats each finding of the track record against the library alone:
// nothing of quotabench is imported here. A confirmation takes a few lines, so that a
// maintainer can paste it into a program of their own:
//
//	go run ./cmd/confirm throttled-ttl
//	go run ./cmd/confirm -redis localhost:6379 throttled-ttl
package confirm

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Confirmation is one finding, repeated.
type Confirmation struct {
	// Name of the finding.
	Name string
	// Redis is set if it needs a server.
	Redis bool
	// Run says in one line what it observed, and whether that is the finding.
	Run func(env Env) (observed string, confirmed bool, err error)
}

// Env is what a confirmation runs on.
type Env struct {
	// Redis is a client of an empty server, nil if none is needed.
	Redis *redis.Client
	// Wait lets time pass on the server.
	Wait func(time.Duration)
}

// All are the confirmations in the order of the track record.
func All() []Confirmation {
	return []Confirmation{
		throttledTTL, throttledExpire, redisRateAtMost, ginRace, ginMemoryRace, ginWindow, ginCleaner, httprateLate,
		ginSeconds, zeroTTL, zeroSeconds, zeroLate, fiberRace, beegoBurst, jaegerBurst, oxyFraction, oxyForgets,
		sethvargoInterval,
		mennanovTTL, mennanovOverflow, mennanovFixed, mennanovBuffer,
	}
}

// Lookup returns the confirmation of a name.
func Lookup(name string) (Confirmation, error) {
	var names []string
	for _, confirmation := range All() {
		if confirmation.Name == name {
			return confirmation, nil
		}
		names = append(names, confirmation.Name)
	}
	return Confirmation{}, fmt.Errorf("no confirmation is named %q: there are %v", name, names)
}

// Embedded runs a confirmation on a Redis in memory whose time it moves.
func Embedded(confirmation Confirmation) (observed string, confirmed bool, err error) {
	var env Env
	if confirmation.Redis {
		s, err := miniredis.Run()
		if err != nil {
			return "", false, err
		}
		defer s.Close()
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		s.SetTime(now)
		env.Redis = redis.NewClient(&redis.Options{Addr: s.Addr(), DisableIdentity: true})
		defer func() { _ = env.Redis.Close() }()
		env.Wait = func(duration time.Duration) {
			now = now.Add(duration)
			s.SetTime(now)
			s.FastForward(duration)
		}
	}
	return confirmation.Run(env)
}

// Server runs a confirmation on a Redis that is there and empty, and waits as time passes.
// It leaves its keys there.
func Server(confirmation Confirmation, addr string) (observed string, confirmed bool, err error) {
	env := Env{Wait: time.Sleep}
	if confirmation.Redis {
		env.Redis = redis.NewClient(&redis.Options{Addr: addr})
		defer func() { _ = env.Redis.Close() }()
		n, err := env.Redis.DBSize(context.Background()).Result()
		if err != nil {
			return "", false, err
		}
		if n > 0 {
			return "", false, fmt.Errorf("the Redis at %s holds %d keys: give an empty one, e.g. after FLUSHDB", addr, n)
		}
	}
	return confirmation.Run(env)
}
