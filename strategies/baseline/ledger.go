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
	if ledger, ok := s.windows[index]; ok {
		return ledger
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

// ledger holds the admitted requests of one window, oldest first. Policies whose
// windows do not follow each other have a single one.
//
// Every request is kept, not just their sum: only so can a refund be told from
// its repetition, and a rolling window from a tumbling one.
type ledger struct {
	used    int64
	entries []entry
	// holds are the reservations that end by themselves unless they are settled, in
	// the order of their making.
	holds []ending
	// begun is when the window began, of those that begin with their first request.
	begun time.Time
	pail  *pail // of a bucket, whose missing units are those used
}

// ending says when a request's reservation ends.
type ending struct {
	id    uint64
	until time.Time
}

type entry struct {
	id      uint64
	units   int64
	at      time.Time
	initial bool // set up by an operator, not by a request
	settled bool // committed, so it ends only by a refund or with the window
}

func (l *ledger) add(e entry) {
	if l.begun.IsZero() {
		l.begun = e.at
	}
	if l.pail != nil {
		l.pail.take(e.at, e.units)
	}
	l.used += e.units
	l.entries = append(l.entries, e)
}

// bringUp brings the ledger up to the present, before anything else is done with it.
func (l *ledger) bringUp(window quota.Window, now time.Time) {
	if window.Kind == quota.Bucket && l.pail == nil {
		l.pail = &pail{flow: window.Flow(), origin: now}
	}
	l.expire(window, now)
	l.lapse(now)
	if l.pail != nil {
		l.used = l.pail.missing(now)
	}
}

// expire drops what a rolling window has left behind, what a window held that is
// over, and what was taken from a bucket that is full again. A request admitted at t
// counts during [t, t+length).
func (l *ledger) expire(window quota.Window, now time.Time) {
	switch over := !l.begun.IsZero() && now.Sub(l.begun) >= window.RealLength(); {
	case window.Kind == quota.FirstRequest && over, window.Kind == quota.Bucket && l.pail.missing(now) == 0:
		l.used = 0
		l.entries = l.entries[:0]
		l.begun = time.Time{}
	}
	if window.Kind != quota.Rolling {
		return
	}
	length := window.RealLength()
	gone := 0
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
		entry := &l.entries[i]
		if entry.id != id || entry.initial {
			continue
		}
		l.used += units - entry.units
		entry.units = units
		entry.settled = true
		if units == 0 {
			l.entries = slices.Delete(l.entries, i, i+1)
		}
		if l.pail != nil {
			l.pail.refill(l.entries)
		}
		return
	}
}

// lapse ends the reservations that were not settled in time. All have the same
// life in practice; if one has a longer life, those behind it wait for it.
func (l *ledger) lapse(now time.Time) {
	n := 0
	for n < len(l.holds) && !now.Before(l.holds[n].until) {
		if entry := l.find(l.holds[n].id); entry != nil && !entry.settled {
			l.set(entry.id, 0)
		}
		n++
	}
	l.holds = slices.Delete(l.holds, 0, n)
}

// find returns the entry of a request, or nil.
func (l *ledger) find(id uint64) *entry {
	for i := range l.entries {
		if entry := &l.entries[i]; entry.id == id && !entry.initial {
			return entry
		}
	}
	return nil
}

// pail is a bucket, without rounding. It counts how much has flowed in since the
// origin, and how much must have until the bucket is full.
type pail struct {
	flow   quota.Flow
	origin time.Time
	full   quota.Level
}

// now is the amount that has flowed in by a moment.
func (p *pail) now(t time.Time) quota.Level { return p.flow.At(int64(t.Sub(p.origin))) }

// take takes units out.
func (p *pail) take(at time.Time, units int64) {
	if now := p.now(at); now.Compare(p.full) > 0 {
		p.full = now
	}
	p.full = p.full.Plus(units)
}

// missing is what is missing from the bucket, in units rounded up.
func (p *pail) missing(t time.Time) int64 {
	return max(0, p.flow.Less(p.full, p.now(t)).Ceil())
}

// until is how long it takes until no more is missing than now, less the units
// given as a negative number; 0 if that is so already.
func (p *pail) until(more int64, t time.Time) time.Duration {
	missing := p.flow.Less(p.full, p.now(t))
	if missing.Units < 0 {
		missing = quota.Level{}
	}
	return time.Duration(p.flow.Until(missing.Plus(more)))
}

// refill makes the bucket what it is if only these requests have taken from it.
func (p *pail) refill(entries []entry) {
	p.full = quota.Level{}
	for i := range entries {
		p.take(entries[i].at, entries[i].units)
	}
}
