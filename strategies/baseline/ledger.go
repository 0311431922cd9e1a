package baseline

import (
	"slices"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// subject is one subject's account under one policy.
type subject struct {
	limit   int64
	limited bool
	windows map[int64]*ledger
}

func (s *subject) limitOr(limit int64) int64 {
	if s.limited {
		return s.limit
	}
	return limit
}

// open returns the ledger of a window. Windows before the previous one are
// forgotten: nothing can be charged to them any more.
func (s *subject) open(index int64) *ledger {
	if l, ok := s.windows[index]; ok {
		return l
	}
	if s.windows == nil {
		s.windows = map[int64]*ledger{}
	}
	for i := range s.windows {
		if i < index-1 {
			delete(s.windows, i)
		}
	}
	l := &ledger{}
	s.windows[index] = l
	return l
}

// ledger holds the admitted requests of one window, oldest first. Standing and
// rolling policies have a single one.
//
// Every request is kept, not just their sum: only so can a refund be told from
// its repetition, and a rolling window from a tumbling one.
type ledger struct {
	used    int64
	entries []entry
	// holds are the reservations that end by themselves unless they are settled, in
	// the order of their making.
	holds []hold
}

// hold says when a request's reservation ends.
type hold struct {
	id    uint64
	until time.Time
}

type entry struct {
	id      uint64
	units   int64
	at      time.Time
	initial bool // set up by an operator, not by a request
	settled bool // committed, so that it ends only by a refund or with the window
}

func (l *ledger) add(e entry) {
	l.used += e.units
	l.entries = append(l.entries, e)
}

// expire drops what a rolling window has left behind. A request admitted at t
// counts during [t, t+length).
func (l *ledger) expire(w quota.Window, now time.Time) {
	if w.Kind != quota.Rolling {
		return
	}
	length, gone := w.RealLength(), 0
	for gone < len(l.entries) && now.Sub(l.entries[gone].at) >= length {
		l.used -= l.entries[gone].units
		gone++
	}
	l.entries = slices.Delete(l.entries, 0, gone)
}

// set changes what the request with that id holds; 0 ends the hold. Unknown
// requests change nothing. It searches from the newest, which is where requests
// that fail are found.
func (l *ledger) set(id uint64, units int64) {
	for i := len(l.entries) - 1; i >= 0; i-- {
		e := &l.entries[i]
		if e.id != id || e.initial {
			continue
		}
		l.used += units - e.units
		e.units, e.settled = units, true
		if units == 0 {
			l.entries = slices.Delete(l.entries, i, i+1)
		}
		return
	}
}

// lapse ends the reservations that were not settled in time. All have the same
// life in practice; where one has a longer life, those behind it wait for it.
func (l *ledger) lapse(now time.Time) {
	n := 0
	for n < len(l.holds) && !now.Before(l.holds[n].until) {
		if e := l.find(l.holds[n].id); e != nil && !e.settled {
			l.set(e.id, 0)
		}
		n++
	}
	l.holds = slices.Delete(l.holds, 0, n)
}

// find returns the entry of a request, or nil.
func (l *ledger) find(id uint64) *entry {
	for i := range l.entries {
		if e := &l.entries[i]; e.id == id && !e.initial {
			return e
		}
	}
	return nil
}
