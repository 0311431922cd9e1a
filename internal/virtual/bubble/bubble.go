// Package bubble makes bubbles of testing/synctest in programs that are no test: their
// clock stands still while anything in them runs, and then moves to the next timer.
package bubble

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/quotabench/quotabench/internal/kit/stacks"
)

// Enter runs f in a bubble of its own, and returns once all goroutines of the bubble have
// ended.
//
// A bubble belongs to a test, and a program that is no test has none. A zero testing.T
// serves: the bubble's own T is made from it, and of the parent no more is used than
// whether its cleanup has begun. testing.Main would give a T, too, but reads the
// program's flags and arguments, prints PASS and ends the program. The tests of
// foreign strategies fail with a version of Go for which that is no longer so.
func Enter(f func()) { synctest.Test(new(testing.T), func(*testing.T) { f() }) }

// Asked is a context for code in a bubble, whose end is asked for and never announced: what
// announces it would be outside of the bubble.
type Asked struct{ context.Context }

// Done implements [context.Context].
func (Asked) Done() <-chan struct{} { return nil }

// Mark is in the head of the stack of each goroutine of the bubble that it is called in.
func Mark() string {
	var buf [80]byte
	head := string(buf[:runtime.Stack(buf[:], false)])
	i := strings.Index(head, "synctest bubble ")
	if i < 0 {
		return ""
	}
	n, _, _ := strings.Cut(head[i:], "]")
	return ", " + n + "]"
}

// Members are the goroutines of the bubble with that mark.
func Members(mark string) (out []stacks.Goroutine) {
	for _, goroutine := range stacks.All() {
		if head, _, _ := strings.Cut(goroutine.Text, "\n"); strings.Contains(head, mark) {
			out = append(out, goroutine)
		}
	}
	return out
}

// Left is how many goroutines there are in the bubble other than that with the number root,
// which works in it, and those from which it descends, which are the bubble's own.
func Left(mark string, root uint64) int {
	members := map[uint64]uint64{} // each with the one that started it
	for _, goroutine := range Members(mark) {
		members[goroutine.ID] = goroutine.Parent
	}
	for id, in := root, true; in; {
		parent, member := members[id]
		delete(members, id)
		id = parent
		in = member
	}
	return len(members)
}

// Run has f run in a bubble and returns when f has. left is how many goroutines f has left
// behind: they keep the bubble, in which no time passes any more. A panic of f is passed
// on, as are that of a bubble in which everything waits for something that cannot come,
// and the end of the goroutine that f is called on.
func Run(f func()) (left int) {
	type result struct {
		left   int
		panics any
	}
	done := make(chan result, 1)
	over := make(chan struct{})
	end := make(chan struct{}) // no channels of the bubble's
	go func() {
		defer close(end)
		defer func() {
			if value := recover(); value != nil { // everything in the bubble waits for what cannot come
				done <- result{panics: value}
			}
		}()
		Enter(func() {
			r := result{panics: "the strategy has ended the goroutine that it was called on"}
			ended := make(chan struct{})
			go func() { // the bubble's own does not survive runtime.Goexit
				defer close(ended)
				defer func() {
					if value := recover(); value != nil {
						r.panics = value
					}
				}()
				f()
				r.panics = nil
			}()
			<-ended
			synctest.Wait()
			r.left = Left(Mark(), stacks.Current())
			done <- r
			<-over
		})
	}()
	r := <-done
	if r.left == 0 {
		close(over)
		<-end
	}
	if r.panics != nil {
		panic(r.panics)
	}
	return r.left
}
