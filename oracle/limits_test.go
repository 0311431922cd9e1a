package oracle

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
)

// The chunks of one worker hold 64, 128, 256 takes and so on up to 4096, and 16,
// 32, 64 give-backs and so on. A chunk is counted when the next event needs
// another one.

// TestExactLimits: a history keeps as many events as its limit says, up to a chunk
// more, counts every one that it loses, and calls itself full when so many are
// left as may be under way, or a quarter of the limit.
func TestExactLimits(t *testing.T) {
	take, refund := Event{Units: 1}, Event{Kind: Refund, Units: 1}
	for _, c := range []struct {
		name       string
		event      Event
		workers    int
		limit      int64
		keeps      int
		fullAppend int // the append that makes it full
	}{
		{"one chunk", take, 1, 64, 64, 65},
		{"one more", take, 1, 65, 192, 65},
		{"two chunks", take, 1, 192, 192, 193},
		{"a quarter is left", take, 1, 256, 448, 193},
		{"more than a quarter is left", take, 1, 257, 448, 449},
		{"two full chunks are left", take, 1, 8128 + 8*4096, 8128 + 8*4096, 8128 + 6*4096 + 1},
		{"more than two are left", take, 1, 8128 + 8*4096 + 1, 8128 + 9*4096, 8128 + 7*4096 + 1},
		{"two for each worker are left", take, 2, 8128 + 20*4096, 8128 + 20*4096, 8128 + 16*4096 + 1},
		{"give-backs", refund, 1, 48, 48, 49},
		{"one more give-back", refund, 1, 49, 112, 49},
		{"many give-backs", refund, 1, 8176 + 8*4096, 8176 + 8*4096, 8176 + 6*4096 + 1},
	} {
		for _, dir := range []string{"", t.TempDir()} {
			h := NewHistory(HistoryOptions{Workers: c.workers, Limit: c.limit, Dir: dir})
			const appends = 100_000
			full := 0
			for i := 1; i <= appends; i++ {
				h.Append(0, c.event)
				if full == 0 && h.Full() {
					full = i
				}
			}
			if h.Len() != c.keeps || h.Lost() != int64(appends-c.keeps) || full != c.fullAppend {
				t.Errorf("%s, on disk %t: keeps %d and loses %d, full at %d; should keep %d, full at %d", c.name, dir != "", h.Len(), h.Lost(), full, c.keeps, c.fullAppend)
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
		{"a quarter is left", Take, 256, 1, 193},
		{"more than a quarter is left", Take, 257, 1, 449},
		{"give-backs", Refund, 64, 1, 49},
		{"two full chunks are left", Take, 8128 + 8*4096, 1, 8128 + 6*4096 + 1},
		{"half of them are of another subject", Take, 128, 2, 193},
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
			if n := h.Spilled(); n != spilled || before != 0 || (files(t, dir) == 1) != (spilled > 0) {
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

// TestWorkersWaitForTheDisk: where the disk cannot keep up, workers go on until a
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
			if lost := h.Lost(); n != appends || h.Err() == nil || !h.Full() || lost == 0 || int64(h.Len())+lost != appends || h.Spilled() != 64 {
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
	h, g := NewHistory(HistoryOptions{Workers: 1, Dir: t.TempDir(), Memory: memory}), &gate{f, make(chan bool)}
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
