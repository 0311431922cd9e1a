package quota

import (
	"sync/atomic"
	"time"
)

// Memo remembers the window that it was asked for last, with its label:
// calendar arithmetic costs more than everything else that a caller does before
// its store is asked, and its answer hardly ever changes. The zero value is ready
// to use, also concurrently.
type Memo struct{ last atomic.Pointer[remembered] }

type remembered struct {
	window Window
	span   Span
	label  string
}

// At returns the same as w.At(t) and the window's label.
func (m *Memo) At(w *Window, t time.Time) (Span, string) {
	if r := m.last.Load(); r != nil && r.window == *w && r.span.Contains(t) {
		return r.span, r.label
	}
	r := &remembered{window: *w, span: w.At(t)}
	r.label = w.Label(r.span.Index)
	m.last.Store(r)
	return r.span, r.label
}
