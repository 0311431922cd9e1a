package oracle

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

// spill is the file that takes up the events that do not fit into a history's memory. It
// holds frames of events as a history file does.
type spill struct {
	file *os.File
	to   io.Writer // the file, but in tests
	done chan struct{}
	gone bool // from its directory
	// size is the bytes that were written in whole frames, takes and gives their events.
	size, takes, gives int64
}

// removeOpen removes a file that is open. It fails on some systems, and in tests.
var removeOpen = os.Remove

// startSpill makes the file and starts to write. The caller holds the lock.
func (h *History) startSpill() {
	file, err := os.CreateTemp(h.options.Dir, "history-*.part")
	if err != nil {
		h.fail(err)
		return
	}
	// If an open file can be removed, nothing is left of it however the process ends.
	gone := removeOpen(file.Name()) == nil
	h.spill = &spill{file: file, to: file, gone: gone, done: make(chan struct{})}
	go h.write()
}

// fail ends writing. The caller holds the lock.
func (h *History) fail(err error) {
	h.err = fmt.Errorf("the history cannot be written: %w", err)
	h.full.Store(true)
	h.changed.Broadcast()
}

// write moves the oldest blocks to the file while there are too many.
func (h *History) write() {
	defer close(h.spill.done)
	var writer frameWriter
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		for h.kept <= h.options.Memory && !h.sealed {
			h.changed.Wait()
		}
		if h.sealed {
			return
		}
		b := h.blocks[0]
		h.mu.Unlock()
		err := writer.events(h.spill.to, &b)
		h.mu.Lock()
		if err != nil {
			h.fail(err)
			return
		}
		h.spill.size = writer.written
		h.spill.takes = writer.takes
		h.spill.gives = writer.gives
		h.blocks[0] = block{}
		h.blocks = h.blocks[1:]
		h.kept -= b.len()
		if len(b.takes) == h.chunk {
			h.spare.Put(&b.takes)
		}
		h.changed.Broadcast()
	}
}

// seal stops the writer. Nothing may be appended any more.
func (h *History) seal() {
	h.mu.Lock()
	h.sealed = true
	h.changed.Broadcast()
	spill := h.spill
	h.mu.Unlock()
	if spill != nil {
		<-spill.done
	}
}

// Close removes the temporary file. The history is of no use afterwards.
func (h *History) Close() error {
	h.seal()
	if h.spill == nil || h.spill.file == nil {
		return nil
	}
	file := h.spill.file
	h.spill.file = nil
	if h.spill.gone {
		return file.Close()
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// reader reads the frames that were written whole.
func (s *spill) reader() io.Reader { return io.NewSectionReader(s.file, 0, s.size) }

// frames visits the payloads that were written whole.
func (s *spill) frames(visit func(payload []byte) error) error {
	if s.file == nil {
		return os.ErrClosed
	}
	reader := frameReader{reader: bufio.NewReaderSize(s.reader(), readBuffer)}
	for {
		_, payload, err := reader.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = visit(payload)
		}
		if err != nil {
			return fmt.Errorf("read back the history: %w", err)
		}
	}
}

func (s *spill) each(want extent, visit func(*Event) error) error {
	return s.frames(func(payload []byte) error { return decodeEvents(payload, want, visit) })
}
