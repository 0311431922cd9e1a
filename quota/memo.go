package quota

import (
	"sync/atomic"
	"time"
)

// Memo remembers the window that it was asked for last, with its label:
// calendar arithmetic costs more than everything else that a caller does before
// its store is asked, and its answer hardly ever changes. The zero value is ready
// to use, also concurrently.
type Memo struct{ last atomic.Pointer[labelled] }

// labelled is a window's span and label. It is shared and must not be changed.
type labelled struct {
	Span
	Label string // as [Window.Label] has it

	window Window
}

// At returns the same as w.At(t), and the window's label.
func (m *Memo) At(w *Window, t time.Time) *labelled {
	if r := m.last.Load(); r != nil && r.window == *w && r.Contains(t) {
		return r
	}
	r := &labelled{Span: w.At(t), window: *w}
	r.Label = w.Label(r.Index)
	m.last.Store(r)
	return r
}
