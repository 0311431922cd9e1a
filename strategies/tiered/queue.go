package tiered

import (
	"sync"

	"github.com/quotabench/quotabench/quota"
)

// writeBack tells the table what a count has become: the absolute value, as the
// record has it, so that the order of arrival matters.
type writeBack struct {
	subject quota.Subject
	use     *use
	count   int64
}

// queue holds an instance's write-backs in the order in which they were made. It
// is in memory, and what is left in it when the instance closes is lost.
type queue struct {
	mu    sync.Mutex
	items []writeBack
}

func (q *queue) put(w writeBack) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, w)
}

// take removes and returns the first items, at most n and all of one kind of use.
func (q *queue) take(n int) []writeBack {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.items))
	for i := 1; i < n; i++ {
		if q.items[i].use != q.items[0].use {
			n = i
		}
	}
	taken := q.items[:n:n]
	q.items = q.items[n:]
	return taken
}

// putBack returns what could not be delivered to the head of the queue.
func (q *queue) putBack(items []writeBack) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(items, q.items...)
}

func (q *queue) pending() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) > 0
}
