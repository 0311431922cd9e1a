package oracle

import (
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
)

// Cell judges one window of one subject while the run goes on. It is one cache
// line of counters; its methods take no lock and allocate nothing.
//
// What it finds is sound only if Begin is called before the clock is read for
// the call, and all others after it was read for the reply: then whatever the
// timestamps put before a request is in the counters, and nothing is taken out
// of them that the timestamps put later. A request stays with the cell of the
// window that it was called in; if its reply falls into another one, Crossed
// must be called on the cells of all windows in between, whose false rejects
// then count for nothing.
type Cell struct {
	asked    atomic.Int64 // initial units and those of every request begun
	admitted atomic.Int64
	// idle are units of requests that ended without holding any.
	idle       atomic.Int64
	gaveBack   atomic.Int64
	initial    atomic.Int64
	falseCount atomic.Int64
	crossed    atomic.Int64
	_          [8]byte // to the end of the line
}

// Fill sets the units in use before the first request.
func (c *Cell) Fill(units int64) {
	c.initial.Add(units)
	c.asked.Add(units)
}

// Begin notes a request that is about to be made. The mark is for [Cell.Reject]:
// what had been given back by then.
func (c *Cell) Begin(units int64) (mark int64) {
	c.asked.Add(units)
	return c.gaveBack.Load()
}

// Withdraw takes a Begin back: by its clock reading, the request belongs to the
// next window.
func (c *Cell) Withdraw(units int64) { c.asked.Add(-units) }

// Admit notes that a request was admitted.
func (c *Cell) Admit(units int64) { c.admitted.Add(units) }

// Reject notes that a request was rejected. It reports whether that was certainly
// wrong: everything asked for up to now, less what came to nothing, and less what
// had been given back before the request began, fits into the limit. What was
// given back later does not count, for the decision may have come before it. If
// the limit changes, it is the lower of those at the request's call and its reply.
func (c *Cell) Reject(units, mark, limit int64) (falseReject bool) {
	// In this order: a request whose end is seen here must be seen to begin below.
	idle := c.idle.Load()
	falseReject = c.asked.Load()-idle-mark <= limit
	if falseReject {
		c.falseCount.Add(1)
	}
	c.idle.Add(units)
	return falseReject
}

// Fail notes that a request ended in an error and holds nothing.
func (c *Cell) Fail(units int64) { c.idle.Add(units) }

// GiveBack notes that units of an admitted request were given back. It belongs
// to the cell of the window that the request was charged to.
func (c *Cell) GiveBack(units int64) { c.gaveBack.Add(units) }

// Overrun notes a commit that is about to use so many units more than were
// reserved. It belongs to the cell of the window that the request was charged to.
func (c *Cell) Overrun(units int64) { c.asked.Add(units) }

// Crossed marks a window whose boundary a request crossed: only the history can
// judge it.
func (c *Cell) Crossed() { c.crossed.Store(1) }

// cellTally is what a cell has counted, in units except FalseRejects. Asked contains
// what commits used beyond reservations.
type cellTally struct {
	Initial, Asked, Admitted, GaveBack int64
	FalseRejects                       int64
	Crossed                            bool
}

// Tally reads the counters. They belong together only when no request is in
// flight.
func (c *Cell) Tally() cellTally {
	initial := c.initial.Load()
	return cellTally{
		Initial: initial, Asked: c.asked.Load() - initial,
		Admitted: c.admitted.Load(), GaveBack: c.gaveBack.Load(),
		FalseRejects: c.falseCount.Load(), Crossed: c.crossed.Load() != 0,
	}
}

// Leak is the units admitted over the limit. It is exact if no request
// crossed the window's boundary and nothing was given back, and means nothing
// under a rolling window.
func (t cellTally) Leak(limit int64) int64 {
	return max(0, min(t.Initial+t.Admitted-limit, t.Admitted))
}

// Key names a subject-window.
type Key struct {
	Subject uint32
	Index   int64
}

// Agree compares what the cells of a run counted with the verdict on its history,
// and returns an error that says precisely where they contradict each other:
// then one of them is wrong, and the run proves nothing.
//
// Admitted units must be equal everywhere, and the leak in windows that no
// request crossed, of subjects that gave nothing back, unless the policy is
// rolling. A false reject that a cell found must be one for the verdict, except
// in windows that were crossed. If units were given back, the cell knows the
// order of two operations that share a timestamp and the history does not: there
// the false reject need only be possible. The same holds in windows in which the limit
// changed, for the cell knows which limit a request saw; their leak is not compared.
func Agree(verdict Verdict, cfg Config, cells iter.Seq2[Key, *Cell]) error {
	windows := make(map[Key]*windowVerdict, len(verdict.Windows))
	for i := range verdict.Windows {
		windowVerdict := &verdict.Windows[i]
		windows[Key{windowVerdict.Subject, windowVerdict.Index}] = windowVerdict
	}
	var found []string
	report := func(k Key, format string, args ...any) {
		found = append(found, fmt.Sprintf("subject %d, window %d: ", k.Subject, k.Index)+fmt.Sprintf(format, args...))
	}
	for k, cell := range cells {
		tally := cell.Tally()
		windowVerdict := windows[k]
		delete(windows, k)
		if windowVerdict == nil {
			if tally.Asked != 0 {
				report(k, "%d units asked online, no request in the history", tally.Asked)
			}
			continue
		}
		if tally.Admitted != windowVerdict.Admitted {
			report(k, "admitted %d units online, %d in the history", tally.Admitted, windowVerdict.Admitted)
		}
		if windowVerdict.Crossed && !tally.Crossed {
			report(k, "a request crossed its boundary, unnoticed online")
		}
		if windowVerdict.Crossed || tally.Crossed {
			continue
		}
		gaveBack := windowVerdict.GaveBack || tally.GaveBack != 0
		limit, steady := cfg.within(k.Index)
		if leak := tally.Leak(limit); leak != windowVerdict.Leak && !gaveBack && steady && cfg.leakIsPlain() {
			report(k, "leak of %d units online, %d in the history", leak, windowVerdict.Leak)
		}
		bound := windowVerdict.FalseRejects
		what := "certain"
		if gaveBack || !steady {
			bound = windowVerdict.FalseRejectsPossible
			what = "possible"
		}
		if tally.FalseRejects > bound {
			report(k, "%d false rejects online, only %d %s in the history", tally.FalseRejects, bound, what)
		}
	}
	for i := range verdict.Windows {
		windowVerdict := &verdict.Windows[i]
		k := Key{windowVerdict.Subject, windowVerdict.Index}
		// A window that was only passed through was no request's at the call.
		if windows[k] != nil && (windowVerdict.Admitted != 0 || !windowVerdict.Crossed) {
			report(k, "in the history, but not counted online")
		}
	}
	if len(found) == 0 {
		return nil
	}
	const shown = 5
	n := len(found)
	if n > shown {
		found = append(found[:shown], fmt.Sprintf("and %d more", n-shown))
	}
	return fmt.Errorf("the online count and the history disagree in %d places: %s", n, strings.Join(found, "; "))
}
