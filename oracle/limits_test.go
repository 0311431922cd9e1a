package oracle

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// The chunks of a worker hold 64, 128, 256 takes and so on, and 16, 32, 64
// give-backs and so on, up to 4096 or a 16th of its share of the limit. A chunk is
// counted when the next event needs another one.

// TestExactLimits: a history keeps as many events as its limit says, up to a chunk
// more, counts every one that it loses, and calls itself full when three chunks of
// each worker are left.
func TestExactLimits(t *testing.T) {
	testenv.Sequential(t)
	take := Event{Units: 1}
	refund := Event{Kind: Refund, Units: 1}
	for _, c := range []struct {
		name       string
		event      Event
		workers    int
		limit      int64
		keeps      int
		fullAppend int // the append that makes it full
	}{
		{"chunks of 1", take, 1, 15, 15, 13},
		{"chunks of 4", take, 1, 64, 64, 53},
		{"one more", take, 1, 65, 68, 57},
		{"chunks of 2", take, 2, 64, 64, 53},
		{"chunks of 64", take, 1, 1024, 1024, 833},
		{"chunks of 63", take, 1, 1023, 1071, 883},
		{"chunks of 4096", take, 1, 8128 + 20*4096, 8128 + 20*4096, 8128 + 17*4096 + 1},
		{"chunks of 4096 and one more", take, 1, 8128 + 20*4096 + 1, 8128 + 21*4096, 8128 + 18*4096 + 1},
		{"chunks of 4096 for two", take, 2, 8128 + 40*4096, 8128 + 40*4096, 8128 + 34*4096 + 1},
		{"give-backs in chunks of 64", refund, 1, 1024, 112 + 15*64, 112 + 12*64 + 1},
		{"give-backs in chunks of 4096", refund, 1, 8176 + 20*4096, 8176 + 20*4096, 8176 + 17*4096 + 1},
	} {
		for _, dir := range []string{"", t.TempDir()} {
			h := NewHistory(HistoryOptions{Workers: c.workers, Limit: c.limit, Dir: dir})
			const appends = 180_000
			full := 0
			for i := 1; i <= appends; i++ {
				h.Append(0, c.event)
				if full == 0 && h.Full() {
					full = i
				}
			}
			if h.Len() != c.keeps || h.Lost() != int64(appends-c.keeps) || full != c.fullAppend {
				t.Errorf("%s, on disk %t: keeps %d and loses %d, full at %d; should keep %d, full at %d", c.name, dir != "",
					h.Len(), h.Lost(), full, c.keeps, c.fullAppend)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestSubjectLimits: a history that goes to disk calls itself full before any
// subject, of whatever number, has more events than can be judged.
func TestSubjectLimits(t *testing.T) {
	for _, c := range []struct {
		name       string
		kind       Kind
		limit      int64
		subjects   uint32
		fullAppend int
	}{
		{"chunks of 4", Take, 64, 1, 53},
		{"one more", Take, 65, 1, 57},
		{"give-backs", Refund, 1024, 1, 112 + 12*64 + 1},
		{"chunks of 4096", Take, 8128 + 20*4096, 1, 8128 + 17*4096 + 1},
		{"half of them are of another subject", Take, 64, 2, 105},
	} {
		for _, first := range []uint32{0, 7, denseSubjects} {
			h := NewHistory(HistoryOptions{Workers: 1, Dir: t.TempDir(), SubjectLimit: c.limit})
			full := 0
			for i := 1; full == 0 && i < 100_000; i++ {
				h.Append(0, Event{Kind: c.kind, Units: 1, Subject: first + uint32(i)%c.subjects})
				if h.Full() {
					full = i
				}
			}
			if full != c.fullAppend {
				t.Errorf("%s, from subject %d: full at %d, should be at %d", c.name, first, full, c.fullAppend)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestToldInTime: however many workers there are and however small the limit is, a
// run that ends when its history is full loses nothing of what is under way, and
// its one subject can be judged.
func TestToldInTime(t *testing.T) {
	for _, workers := range []int{1, 7, 50, 1000} {
		for _, per := range []int64{16, 60, 700} {
			limit := per * int64(workers)
			for name, o := range map[string]HistoryOptions{
				"in memory":   {Workers: workers, Limit: limit},
				"on disk":     {Workers: workers, Limit: limit, Dir: t.TempDir()},
				"one subject": {Workers: workers, SubjectLimit: limit, Dir: t.TempDir()},
			} {
				h := NewHistory(o)
				add := func(n int) {
					h.Append(n%workers, Event{Call: int64(n), Reply: int64(n), Units: 1})
					if n/workers%5 == 4 {
						h.Append(n%workers, Event{Kind: Refund, Call: int64(n), Reply: int64(n), Units: 1})
					}
				}
				n := 0
				for ; !h.Full(); n++ {
					add(n)
				}
				for range workers { // one more of each
					add(n)
					n++
				}
				if most := int64(h.Len()); h.Lost() != 0 || n < int(limit)/2 || o.SubjectLimit > 0 && most > limit {
					t.Errorf("%s, %d workers, limit %d: full with %d events, %d lost", name, workers, limit, most, h.Lost())
				}
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// TestMemoryIsFilledFirst: nothing is written as long as everything fits into
// memory, and then no more than what does not fit, the oldest first.
func TestMemoryIsFilledFirst(t *testing.T) {
	const events = 8128 + 3*4096
	for memory, spilled := range map[int64]int64{
		events:        0,
		events - 64:   64,
		events - 65:   64 + 128,
		events - 4096: 4032 + 4096, // all smaller chunks are not enough
	} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			h := NewHistory(HistoryOptions{Workers: 1, Dir: dir, Memory: memory})
			for range events {
				h.Append(0, Event{Units: 1})
			}
			before := files(t, dir)
			h.Append(0, Event{Units: 1})
			synctest.Wait() // until the writer has nothing to do
			if n := h.Spilled(); n != spilled || before != 0 || files(t, dir) != 0 {
				t.Errorf("memory for %d: %d were written, should be %d", memory, n, spilled)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func files(t *testing.T, dir string) int {
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// gate is a file that takes one write for each value sent.
type gate struct {
	*os.File
	open chan bool
}

func (g *gate) Write(b []byte) (int, error) {
	if !<-g.open {
		return 0, errors.New("no space left")
	}
	return g.File.Write(b)
}

// TestWorkersWaitForTheDisk: if the disk cannot keep up, workers go on until a
// quarter more than the memory is taken, and wait then; nothing is lost.
func TestWorkersWaitForTheDisk(t *testing.T) {
	const memory = 13_056 // 16320, which is three chunks of 4096, is a quarter more
	for _, c := range []struct {
		memory      int64
		waits, then int // after so many appends
	}{{memory, 8128 + 2*4096, 8128 + 3*4096}, {memory + 1, 8128 + 3*4096, 8128 + 3*4096}} {
		synctest.Test(t, func(t *testing.T) {
			h, g := gated(t, c.memory)
			n := 0
			const appends = 60_000
			go func() {
				for ; n < appends; n++ {
					h.Append(0, Event{Call: int64(n), Reply: int64(n), Units: 1})
				}
			}()
			synctest.Wait()
			if n != c.waits {
				t.Errorf("memory for %d: a worker waits after %d events, should after %d", c.memory, n, c.waits)
			}
			g.open <- true // the oldest, of 64 events
			synctest.Wait()
			if n != c.then {
				t.Errorf("memory for %d: a worker waits after %d events then, should after %d", c.memory, n, c.then)
			}
			close(g.open) // all others fail
			synctest.Wait()
			if lost := h.Lost(); n != appends || h.Err() == nil || !h.Full() || lost == 0 || int64(h.Len())+lost != appends ||
				h.Spilled() != 64 {
				t.Errorf("%d appended, %d lost, %d kept, %d written, full %t: %v", n, lost, h.Len(), h.Spilled(), h.Full(), h.Err())
			}
			v, err := h.Judge(Config{Limit: appends})
			if err != nil || v.Issued.Requests != int64(h.Len()) {
				t.Errorf("%d judged of %d: %v", v.Issued.Requests, h.Len(), err)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// gated is a history whose file takes up what it is told to.
func gated(t *testing.T, memory int64) (*History, *gate) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	h := NewHistory(HistoryOptions{Workers: 1, Dir: t.TempDir(), Memory: memory})
	g := &gate{f, make(chan bool)}
	h.spill = &spill{file: f, to: g, done: make(chan struct{})}
	go h.write()
	return h, g
}

// TestNoDirectory: what cannot be written stays in memory as long as a quarter more
// than was asked for is enough.
func TestNoDirectory(t *testing.T) {
	for memory, keeps := range map[int64]int{13_056: 8128 + 3*4096, 13_057: 8128 + 4*4096} {
		h := NewHistory(HistoryOptions{Workers: 1, Dir: filepath.Join(t.TempDir(), "missing"), Memory: memory})
		const appends = 50_000
		for range appends {
			h.Append(0, Event{Units: 1})
		}
		if h.Len() != keeps || h.Lost() != int64(appends-keeps) || !h.Full() {
			t.Errorf("memory for %d: %d kept, %d lost", memory, h.Len(), h.Lost())
		}
	}
}

// TestDefaultLimits: what is not said, or negative, is as the options' comments say.
func TestDefaultLimits(t *testing.T) {
	type limits struct{ limit, memory, subject int64 }
	for _, c := range []struct {
		options HistoryOptions
		want    limits
	}{
		{HistoryOptions{}, limits{4 << 20, 4 << 20, 4 << 20}},
		{HistoryOptions{Limit: -1, Memory: -1, SubjectLimit: -1}, limits{4 << 20, 4 << 20, 4 << 20}},
		{HistoryOptions{Limit: 1, Memory: 1, SubjectLimit: 1}, limits{1, 1, 1}},
		{HistoryOptions{Memory: 5}, limits{5, 5, 4 << 20}},
		{HistoryOptions{Dir: "d"}, limits{math.MaxInt64, 4 << 20, 4 << 20}},
		{HistoryOptions{Dir: "d", Limit: 7}, limits{7, 4 << 20, 4 << 20}},
	} {
		h := NewHistory(c.options)
		if got := (limits{h.options.Limit, h.options.Memory, h.options.SubjectLimit}); got != c.want {
			t.Errorf("%+v: %+v, should be %+v", c.options, got, c.want)
		}
	}
}

// Spilled is the number of events that were written to the directory.
func (h *History) Spilled() int64 {
	n := int64(h.Len())
	for b := range h.memory() {
		n -= b.len()
	}
	return n
}
