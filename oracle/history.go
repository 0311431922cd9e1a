package oracle

import (
	"iter"
	"math"
	"sync"
	"sync/atomic"
)

const (
	firstChunk = 64   // events: ten thousand workers must not cost gigabytes
	lastChunk  = 4096 // events, at most: 128 KiB
	giveChunk  = 16   // events, at first
	// fewestChunks is how many full chunks each worker fills up to a limit, at least.
	fewestChunks = 16
	// memoryEvents are kept in memory unless options say otherwise: 128 MiB.
	memoryEvents = 4 << 20
)

// HistoryOptions say how much a history keeps, and where.
type HistoryOptions struct {
	Workers int
	// Limit is the number of events to keep, at least; at most two chunks per worker
	// more are kept, which is an eighth. It should be 16 per worker or more. 0 means
	// as many as Memory, and without bound if there is a Dir.
	Limit int64
	// Dir is a directory for a temporary file that takes up what does not fit into
	// memory. Without one, everything stays in memory.
	Dir string
	// Memory is the number of events to keep in memory if there is a Dir; 0
	// means about 4 million, which take 128 MiB.
	Memory int64
	// SubjectLimit is the number of events of one subject that a history with a Dir
	// takes before it calls itself full; 0 means 4 Mi.
	SubjectLimit int64
}

// History records the events of a run. Each worker appends to chunks of its own,
// without a lock; only a new chunk allocates. Full chunks stay in memory up to a
// bound; beyond it, the oldest are written to a file by one goroutine. Only if
// that cannot keep up do workers wait for it.
type History struct {
	options HistoryOptions
	chunk   int   // events of a full chunk
	slack   int64 // events that may still come when the history is called full
	full    atomic.Bool
	workers []recorder

	mu      sync.Mutex
	changed sync.Cond
	blocks  []block    // in memory, the oldest first
	kept    int64      // events in blocks
	total   int64      // events of all full chunks
	counts  perSubject // of full chunks; with a Dir
	spare   sync.Pool  // of *[]compact, full chunks that were written
	spill   *spill
	sealed  bool
	err     error
}

// recorder is one cache line, so that workers do not share one.
type recorder struct {
	chunk []compact
	gives []Event
	lost  int64
	_     [8]byte
}

// NewHistory makes a history. With a Dir, it must be closed.
func NewHistory(options HistoryOptions) *History {
	if options.Memory <= 0 {
		options.Memory = memoryEvents
	}
	if options.SubjectLimit <= 0 {
		options.SubjectLimit = subjectLimit
	}
	if options.Limit <= 0 {
		options.Limit = options.Memory
		if options.Dir != "" {
			options.Limit = math.MaxInt64
		}
	}
	history := &History{options: options, workers: make([]recorder, options.Workers)}
	workers := int64(max(1, options.Workers))
	history.chunk = int(min(max(1, min(options.Limit, options.SubjectLimit)/(fewestChunks*workers)), lastChunk))
	// Each worker has one of takes and one of give-backs under way, and one chunk
	// makes the history full.
	history.slack = 3 * workers * int64(history.chunk)
	history.changed.L = &history.mu
	return history
}

// Append records an event. One worker number must not be used from two
// goroutines at once. Subjects should be numbered from 0 on.
func (h *History) Append(worker int, event Event) {
	recorder := &h.workers[worker]
	if event.Kind != Take {
		h.appendGive(recorder, &event)
		return
	}
	if len(recorder.chunk) == cap(recorder.chunk) && !h.grow(recorder) {
		recorder.lost++
		return
	}
	recorder.chunk = append(recorder.chunk,
		compact{event.Call, event.Reply, event.Units, event.Subject, event.Kind, event.Outcome, event.Tier, event.Instance})
}

func (h *History) appendGive(r *recorder, event *Event) {
	if n := len(r.gives); n == cap(r.gives) {
		kept, more := h.put(block{gives: r.gives})
		if kept {
			r.gives = nil
		}
		if !more {
			r.lost++
			return
		}
		r.gives = make([]Event, 0, min(max(2*n, giveChunk), h.chunk))
	}
	r.gives = append(r.gives, *event)
}

func (h *History) grow(r *recorder) bool {
	n := min(max(2*len(r.chunk), firstChunk), h.chunk)
	kept, more := h.put(block{takes: r.chunk})
	if kept {
		r.chunk = nil
	}
	if !more {
		return false
	}
	if spare, ok := h.spare.Get().(*[]compact); ok {
		r.chunk = (*spare)[:0]
	} else {
		r.chunk = make([]compact, 0, n)
	}
	return true
}

// put takes over a full chunk, or leaves it to its worker if it is not kept, and
// says whether there is room for more.
func (h *History) put(b block) (kept, more bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.total >= h.options.Limit || h.err != nil && h.crowded() {
		return false, false
	}
	if b.len() == 0 {
		return true, true
	}
	h.blocks = append(h.blocks, b)
	h.kept += b.len()
	h.total += b.len()
	if h.total >= h.options.Limit-h.slack {
		h.full.Store(true)
	}
	if h.options.Dir != "" {
		h.count(&b)
		h.makeRoom()
	}
	return true, h.total < h.options.Limit
}

// makeRoom has the oldest blocks written if there are too many, and waits
// while there are far too many. The caller holds the lock.
func (h *History) makeRoom() {
	if h.kept <= h.options.Memory || h.err != nil {
		return
	}
	if h.spill == nil {
		h.startSpill()
	}
	h.changed.Broadcast()
	for h.crowded() && h.err == nil && !h.sealed {
		h.changed.Wait()
	}
}

// crowded reports whether no more blocks may come before some are written.
func (h *History) crowded() bool { return h.kept >= h.options.Memory+h.options.Memory/4 }

// count notes how much each subject has, as only so much of one can be judged.
func (h *History) count(b *block) {
	var most uint32
	for i := range b.takes {
		most = max(most, h.counts.add(b.takes[i].subject))
	}
	for i := range b.gives {
		most = max(most, h.counts.add(b.gives[i].Subject))
	}
	if int64(most) >= h.options.SubjectLimit-h.slack {
		h.full.Store(true)
	}
}

// Full reports whether the run should end now: the history is nearly full, has
// nearly as much of one subject as can be judged, or cannot be written. It may be
// called at any time; it costs one atomic load.
func (h *History) Full() bool { return h.full.Load() }

// Err is the error that kept the history from being written to its directory.
// What was recorded up to then, and what still fits into memory, is kept.
func (h *History) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// Lost is the number of events that did not fit; if there are any, no verdict may be based
// on the history. Call it, and all that follow,
// when all workers have stopped.
func (h *History) Lost() int64 {
	var n int64
	for i := range h.workers {
		n += h.workers[i].lost
	}
	return n
}

// Len is the number of events recorded.
func (h *History) Len() int {
	n := h.total
	for i := range h.workers {
		n += int64(len(h.workers[i].chunk) + len(h.workers[i].gives))
	}
	return int(n)
}

// memory yields what is in memory, once nothing is written any more.
func (h *History) memory() iter.Seq[block] {
	h.seal()
	return func(yield func(block) bool) {
		for _, block := range h.blocks {
			if !yield(block) {
				return
			}
		}
		for i := range h.workers {
			recorder := &h.workers[i]
			if !yield(block{recorder.chunk, recorder.gives}) {
				return
			}
		}
	}
}

// each visits the events of the subjects wanted, in no order, and may visit
// others.
func (h *History) each(want extent, visit func(*Event) error) error {
	h.seal()
	if h.spill != nil {
		if err := h.spill.each(want, visit); err != nil {
			return err
		}
	}
	for block := range h.memory() {
		if err := block.each(visit); err != nil {
			return err
		}
	}
	return nil
}

// index counts the events of each subject.
func (h *History) index() (*index, error) {
	x, err := newIndex(h.each)
	if err == nil && h.spill == nil {
		x.blocks = h.memory
	}
	return x, err
}

// Subjects yields the events of one subject after the other, by number, each
// ordered by call. The slice is used again for the next one. An error ends it.
func (h *History) Subjects() iter.Seq2[[]Event, error] {
	return func(yield func([]Event, error) bool) {
		index, err := h.index()
		if err != nil {
			yield(nil, err)
			return
		}
		index.subjects(h.subjectLimit(), yield)
	}
}

// Visitor is shown one subject's events, ordered by call, and must not keep or
// change them. An error ends the pass.
type Visitor func(events []Event) error

// Judge is [Judge] on the history, a group of subjects at a time. Visitors see
// each subject's events in the same pass.
func (h *History) Judge(cfg Config, visit ...Visitor) (Verdict, error) {
	if err := validChanges(&cfg.Window, cfg.Changes); err != nil {
		return Verdict{}, err
	}
	index, err := h.index()
	if err != nil {
		return Verdict{}, err
	}
	return index.judge(cfg, h.subjectLimit(), visit)
}

// subjectLimit is none if everything is in memory anyway.
func (h *History) subjectLimit() int64 {
	h.seal()
	if h.spill == nil {
		return math.MaxInt64
	}
	return h.options.SubjectLimit
}

// compact is a take as a history keeps it, in 32 bytes. Of a give-back, subject
// numbers the take that it is about; see [group].
type compact struct {
	call, reply, units int64
	subject            uint32
	kind               Kind
	outcome            Outcome
	tier, instance     uint8
}

func pack(event *Event) compact {
	return compact{event.Call, event.Reply, event.Units, event.Subject, event.Kind, event.Outcome, event.Tier,
		event.Instance}
}

func (r *compact) event() Event {
	return Event{
		Call: r.call, Reply: r.reply, Units: r.units, Subject: r.subject,
		Kind: r.kind, Outcome: r.outcome, Tier: r.tier, Instance: r.instance,
	}
}

// block is a full chunk of a worker, of one of the two kinds.
type block struct {
	takes []compact
	gives []Event
}

func (b *block) len() int64 { return int64(len(b.takes) + len(b.gives)) }

// each visits the events of a block. The event is the visitor's until it returns.
func (b *block) each(visit func(*Event) error) error {
	var event Event
	for i := range b.takes {
		event = b.takes[i].event()
		if err := visit(&event); err != nil {
			return err
		}
	}
	for i := range b.gives {
		if err := visit(&b.gives[i]); err != nil {
			return err
		}
	}
	return nil
}
