// Package monitor watches a run on the wall clock: whether threads got a core ([Cores]), whether calls of the strategy
// return ([WatchCalls]), whether the stores are there and keep what was put there ([Stores]), and how many keys they hold
// ([Keys]).
package monitor

import "time"

// The distance between two looks at a store, and how long it may take to answer one. Tests of faults look more often, so
// that their runs can be short.
var (
	Every   = 100 * time.Millisecond
	Timeout = 1500 * time.Millisecond
)

// Aside runs f on a goroutine of its own. f waits by what it is given, which reports false at once
// when the returned function is called. That returns when f has.
func Aside(f func(wait func(d time.Duration) bool)) (end func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		f(func(d time.Duration) bool { return waitOr(d, done) })
	}()
	return func() {
		close(done)
		<-ended
	}
}

// waitOr waits for d and reports true, or false if done came first.
func waitOr(d time.Duration, done <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-done:
		return false
	}
}
