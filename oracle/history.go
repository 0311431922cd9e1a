package oracle

import (
	"slices"
	"sync/atomic"
)

const (
	firstChunk = 64   // events: ten thousand workers must not cost gigabytes
	lastChunk  = 4096 // events: 128 KiB
)

// History records the events of a run. Each worker appends to chunks of its own,
// without a lock; only a new chunk allocates.
type History struct {
	max     int64
	full    atomic.Int64 // events in chunks that were left behind
	workers []recorder
}

// recorder is one cache line, so that workers do not share one.
type recorder struct {
	chunk []Event
	done  [][]Event
	lost  int64
	_     [8]byte
}

// NewHistory makes a history for that many workers. It keeps at least maxEvents
// events, and at most one chunk per worker more.
func newHistory(workers int, maxEvents int64) *History {
	return &History{max: maxEvents, workers: make([]recorder, workers)}
}

// Append records an event. One worker number must not be used from two
// goroutines at once.
func (h *History) Append(worker int, e Event) {
	r := &h.workers[worker]
	if len(r.chunk) == cap(r.chunk) && !h.grow(r) {
		r.lost++
		return
	}
	r.chunk = append(r.chunk, e)
}

func (h *History) grow(r *recorder) bool {
	n := firstChunk
	if len(r.chunk) > 0 {
		h.full.Add(int64(len(r.chunk)))
		r.done = append(r.done, r.chunk)
		n = min(2*len(r.chunk), lastChunk)
		r.chunk = nil
	}
	if h.full.Load() >= h.max {
		return false
	}
	r.chunk = make([]Event, 0, n)
	return true
}

// Lost is the number of events that did not fit. Call it when all workers have
// stopped.
func (h *History) Lost() int64 {
	var n int64
	for i := range h.workers {
		n += h.workers[i].lost
	}
	return n
}

// Overflowed reports whether events were lost; no verdict may be based on such a
// history.
func (h *History) Overflowed() bool { return h.Lost() > 0 }

// Len is the number of events recorded. Call it when all workers have stopped.
func (h *History) Len() int {
	n := 0
	for i := range h.workers {
		r := &h.workers[i]
		for _, c := range r.done {
			n += len(c)
		}
		n += len(r.chunk)
	}
	return n
}

// Events returns all events, ordered by subject and then by call, as [Judge]
// likes them best. Call it when all workers have stopped.
func (h *History) Events() []Event {
	out := make([]Event, 0, h.Len())
	for i := range h.workers {
		r := &h.workers[i]
		for _, c := range r.done {
			out = append(out, c...)
		}
		out = append(out, r.chunk...)
	}
	return ordered(out)
}

// ordered returns the events by subject and call. It returns the slice it was
// given where that is in order already, and a copy otherwise.
func ordered(events []Event) []Event {
	if slices.IsSortedFunc(events, compare) {
		return events
	}
	out := make([]Event, len(events))
	var top uint32
	for i := range events {
		top = max(top, events[i].Subject)
	}
	if int64(top) > 4*int64(len(events))+1024 { // numbers too sparse to count
		copy(out, events)
		slices.SortFunc(out, compare)
		return out
	}
	next := make([]int, int(top)+2)
	for i := range events {
		next[events[i].Subject+1]++
	}
	for i := 1; i < len(next); i++ {
		next[i] += next[i-1]
	}
	from := slices.Clone(next)
	for i := range events {
		s := events[i].Subject
		out[next[s]] = events[i]
		next[s]++
	}
	for s := 0; s <= int(top); s++ {
		if part := out[from[s]:from[s+1]]; !slices.IsSortedFunc(part, compare) {
			slices.SortFunc(part, compare)
		}
	}
	return out
}

// compare is a total order but for events that differ in nothing that matters.
func compare(a, b Event) int {
	switch {
	case a.Subject != b.Subject:
		return sign(int64(a.Subject) - int64(b.Subject))
	case a.Call != b.Call:
		return sign(a.Call - b.Call)
	case a.Reply != b.Reply:
		return sign(a.Reply - b.Reply)
	case a.Kind != b.Kind:
		return sign(int64(a.Kind) - int64(b.Kind))
	case a.Outcome != b.Outcome:
		return sign(int64(a.Outcome) - int64(b.Outcome))
	default:
		return sign(a.Units - b.Units)
	}
}

func sign(d int64) int {
	switch {
	case d < 0:
		return -1
	case d > 0:
		return 1
	default:
		return 0
	}
}
