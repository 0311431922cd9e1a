// Package clock is the wall clock: the one place, with its tests, that may ask
// the operating system what time it is.
package clock

import (
	"context"
	"sync"
	"time"

	"github.com/quotabench/quotabench/quota"
)

var epoch = time.Now()

// Nano is monotonic time in nanoseconds since the process started: one cheap
// reading of the same clock that [Wall] uses.
func Nano() int64 { return int64(time.Since(epoch)) }

// Time converts a [Nano] reading to a moment.
func Time(nano int64) time.Time { return epoch.Add(time.Duration(nano)) }

// Wall is the wall clock. It satisfies [quota.Clock].
type Wall struct{}

var (
	_ quota.Clock     = Wall{}
	_ quota.Deadliner = Wall{}
)

// Now is the present moment, with a monotonic reading: the wall clock of the
// process's start, advanced by the monotonic clock. A step of the wall clock in
// mid-run would move strategies' windows and not those that they are judged by.
func (Wall) Now() time.Time { return Time(Nano()) }

// Sleep waits for duration or until ctx is done.
func (Wall) Sleep(ctx context.Context, duration time.Duration) error {
	if duration <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(duration):
		return nil
	}
}

// Aside runs f on a goroutine of its own. f waits by what it is given, which reports false at once
// when the returned function is called. That returns when f has.
func Aside(f func(wait func(duration time.Duration) bool)) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		f(func(duration time.Duration) bool { return Wall{}.Sleep(ctx, duration) == nil })
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// WithTimeout implements [quota.Deadliner].
func (Wall) WithTimeout(ctx context.Context, duration time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, duration)
}

// NewMutex makes a mutex that can be given up on.
func (Wall) NewMutex() quota.Mutex { return mutex(make(chan struct{}, 1)) }

// NewEvent makes a one-shot event.
func (Wall) NewEvent() quota.Event { return &event{done: make(chan struct{})} }

type mutex chan struct{}

func (m mutex) Lock(ctx context.Context) error {
	select {
	case m <- struct{}{}:
		return nil
	default:
	}
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m mutex) Unlock() {
	select {
	case <-m:
	default:
		panic("clock: unlock of an unlocked mutex")
	}
}

type event struct {
	once sync.Once
	done chan struct{}
}

func (e *event) Set() { e.once.Do(func() { close(e.done) }) }

func (e *event) Wait(ctx context.Context) error {
	select {
	case <-e.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Runtime is the clock of package time as it stands: within a bubble of
// testing/synctest that is the bubble's, which [Wall] does not follow.
type Runtime struct{ Wall }

// Now is the present moment without a monotonic reading.
func (Runtime) Now() time.Time { return time.Now().Round(0).UTC() }
