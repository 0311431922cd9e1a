package tiered

import (
	"slices"
	"sync"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// writeBack tells the table what a count has become: the absolute value, as the
// record has it, so the order of arrival matters.
type writeBack struct {
	subject quota.Subject
	use     *use
	count   int64
	// queued is when the charge was made and due when the job may run, in nanoseconds
	// since 1970.
	queued, due int64
}

// queue holds an instance's write-backs in the order in which they were made. It
// is in memory, and what is left in it when the instance closes is lost.
type queue struct {
	mu    sync.Mutex
	items []writeBack

	// Totals for Measures. longest is how many items there have been at a time,
	// waited the sum of the times from charge to table in microseconds, and latest the
	// longest of them.
	longest, waited, latest strategies.Tally
}

func (q *queue) put(w writeBack) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, w)
	q.longest.Most(int64(len(q.items)))
}

// next is when the first item is due; ok is false if there is none.
func (q *queue) next() (due int64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return 0, false
	}
	return q.items[0].due, true
}

// take removes and returns the first items, at most n, all of one kind of use and
// none that is due later than the first or now, whichever is later.
func (q *queue) take(n int, now int64) []writeBack {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.items))
	for i := 1; i < n; i++ {
		if q.items[i].use != q.items[0].use || q.items[i].due > max(now, q.items[0].due) {
			n = i
		}
	}
	// Cloned, so that the batch does not keep the memory of the whole queue.
	taken := slices.Clone(q.items[:n])
	q.items = q.items[n:]
	if len(q.items) == 0 {
		q.items = nil
	}
	return taken
}

// putBack returns what could not be delivered to the head of the queue.
func (q *queue) putBack(items []writeBack) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(items, q.items...)
}

// delivered notes that items reached the table at the moment now.
func (q *queue) delivered(items []writeBack, now int64) {
	for _, w := range items {
		late := max(0, now-w.queued) / 1_000 // the clock may have been set back
		q.waited.Add(late)
		q.latest.Most(late)
	}
}

func (q *queue) pending() bool { return q.depth() > 0 }

func (q *queue) depth() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int64(len(q.items))
}
