// Package parallel does independent pieces of work on several processors, and hands
// their results over in order.
package parallel

import (
	"iter"
	"sync"
	"sync/atomic"
)

// Do yields what work returns for 0 to n-1, in that order. Up to parallel calls of it
// run at the same time; further ones begin while earlier results are being used, or, if
// parallel is 1 or less, after that. If the loop over it ends early, calls that have
// begun are waited for.
func Do[T any](parallel, n int, work func(i int) T) iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		if parallel <= 1 {
			for i := range n {
				if !yield(i, work(i)) {
					return
				}
			}
			return
		}
		done := make([]chan T, n)
		for i := range done {
			done[i] = make(chan T, 1)
		}
		var next atomic.Int64
		var workers sync.WaitGroup
		defer workers.Wait()
		defer next.Store(int64(n))
		for range min(parallel, n) {
			workers.Go(func() {
				for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
					done[i] <- work(int(i))
				}
			})
		}
		for i := range done {
			if !yield(i, <-done[i]) {
				return
			}
		}
	}
}
