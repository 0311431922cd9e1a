package machine

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/quotabench/quotabench/internal/host/cores"
)

// How often threads are looked for, in nanoseconds, and in how many of these times
// processes are looked for too, which costs more.
const (
	refreshThreads   = 50_000_000
	refreshProcesses = 5
)

// RunQueue reads how long the threads of some processes, and of their descendants,
// ran and how long they waited for a processor. It is for one goroutine at a time.
type RunQueue struct {
	nano      func() int64
	roots     []int
	processes []int
	threads   []queued
	known     map[int]bool // threads, by number
	next      int64        // refresh
	refreshed int
	buf       [128]byte
}

type queued struct {
	file int // its schedstat, open
	wait Wait
}

// NewRunQueue watches the processes and their descendants, those to come too. nano
// is a monotonic clock in nanoseconds: new threads are found within 50 ms, new
// processes within 250 ms. The caller closes what is returned. A system that does
// not tell is an error.
func NewRunQueue(nano func() int64, pids ...int) (*RunQueue, error) {
	if _, err := os.Stat("/proc/thread-self/schedstat"); err != nil {
		return nil, fmt.Errorf("read run-queue delays: %w", err)
	}
	queue := &RunQueue{nano: nano, roots: slices.Clone(pids), known: map[int]bool{}}
	queue.refresh(nano())
	return queue, nil
}

// Sample returns what every living thread has had so far, in the memory of dst,
// whose contents are lost. The order of threads stays from sample to sample.
func (q *RunQueue) Sample(dst []Wait) []Wait {
	if now := q.nano(); now >= q.next {
		q.refresh(now)
	}
	dst = dst[:0]
	kept := q.threads[:0]
	for _, queued := range q.threads {
		n, err := unix.Pread(queued.file, q.buf[:], 0)
		if err != nil || !queued.wait.parse(q.buf[:n]) {
			_ = unix.Close(queued.file) // the thread has ended
			delete(q.known, queued.wait.Thread)
			continue
		}
		kept = append(kept, queued)
		dst = append(dst, queued.wait)
	}
	q.threads = kept
	return dst
}

// Close ends the watching.
func (q *RunQueue) Close() (err error) {
	for _, queued := range q.threads {
		err = errors.Join(err, unix.Close(queued.file))
	}
	return err
}

// refresh looks for new threads. Those that end are noticed when they are read.
func (q *RunQueue) refresh(now int64) {
	q.next = now + refreshThreads
	if q.refreshed%refreshProcesses == 0 {
		q.processes = q.processes[:0]
		for _, pid := range q.roots {
			q.processes = append(q.processes, cores.Tree(pid)...)
		}
		slices.Sort(q.processes)
		q.processes = slices.Compact(q.processes) // a server is a child of ours
	}
	q.refreshed++
	for _, pid := range q.processes {
		for _, tid := range cores.Threads(pid) {
			if q.known[tid] {
				continue
			}
			file, err := unix.Open(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				continue // the thread has ended
			}
			q.known[tid] = true
			q.threads = append(q.threads, queued{file, Wait{Process: pid, Thread: tid}})
		}
	}
}

// parse reads the three numbers of a schedstat.
func (w *Wait) parse(line []byte) bool {
	into := [3]*int64{&w.Ran, &w.Waited, &w.Switches}
	field := 0
	digits := 0
	var n int64
	for _, c := range line {
		switch {
		case c >= '0' && c <= '9':
			n = 10*n + int64(c-'0')
			digits++
		case digits == 0 || field == len(into):
			return false
		default:
			*into[field] = n
			field = field + 1
			n = 0
			digits = 0
		}
	}
	return field == len(into) && digits == 0
}
