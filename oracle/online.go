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
	comparison := newComparison(verdict, cfg)
	for key, cell := range cells {
		comparison.compare(key, cell.Tally())
	}
	comparison.findUncounted()
	return comparison.err()
}

// comparison is of cells with the verdict on the same run.
type comparison struct {
	cfg     Config
	windows []windowVerdict
	// left are the windows of which no cell has come yet.
	left map[Key]*windowVerdict
	// contradictions are the places at which cells and history disagree.
	contradictions []string
}

func newComparison(verdict Verdict, cfg Config) *comparison {
	c := &comparison{
		cfg:     cfg,
		windows: verdict.Windows,
		left:    make(map[Key]*windowVerdict, len(verdict.Windows)),
	}
	for i := range c.windows {
		window := &c.windows[i]
		c.left[window.key()] = window
	}
	return c
}

func (w *windowVerdict) key() Key { return Key{w.Subject, w.Index} }

// compare compares one cell with the verdict on its window.
func (c *comparison) compare(key Key, tally cellTally) {
	window := c.left[key]
	delete(c.left, key)
	if window == nil {
		if tally.Asked != 0 {
			c.report(key, "%d units asked online, no request in the history", tally.Asked)
		}
		return
	}
	if tally.Admitted != window.Admitted {
		c.report(key, "admitted %d units online, %d in the history", tally.Admitted, window.Admitted)
	}
	if window.Crossed && !tally.Crossed {
		c.report(key, "a request crossed its boundary, unnoticed online")
	}
	if window.Crossed || tally.Crossed {
		return
	}
	limit, steady := c.cfg.within(key.Index)
	exact := steady && !window.GaveBack && tally.GaveBack == 0
	leak := tally.Leak(limit)
	if exact && c.cfg.leakIsPlain() && leak != window.Leak {
		c.report(key, "leak of %d units online, %d in the history", leak, window.Leak)
	}
	c.compareFalseRejects(key, tally.FalseRejects, window, exact)
}

// compareFalseRejects compares the false rejects of a cell with those of its window:
// the certain ones, if the history knows the order of its operations as exactly as
// the cell, and otherwise the possible ones.
func (c *comparison) compareFalseRejects(key Key, online int64, window *windowVerdict, exact bool) {
	bound := window.FalseRejectsPossible
	kind := "possible"
	if exact {
		bound = window.FalseRejects
		kind = "certain"
	}
	if online > bound {
		c.report(key, "%d false rejects online, only %d %s in the history", online, bound, kind)
	}
}

// findUncounted reports windows of the history that no cell has counted.
func (c *comparison) findUncounted() {
	for i := range c.windows {
		window := &c.windows[i]
		// No request was called in a window that requests only passed through.
		passedThrough := window.Crossed && window.Admitted == 0
		if c.left[window.key()] != nil && !passedThrough {
			c.report(window.key(), "in the history, but not counted online")
		}
	}
}

// report notes a contradiction.
func (c *comparison) report(key Key, format string, args ...any) {
	place := fmt.Sprintf("subject %d, window %d: ", key.Subject, key.Index)
	c.contradictions = append(c.contradictions, place+fmt.Sprintf(format, args...))
}

// err is an error with the first contradictions, or nil if there are none.
func (c *comparison) err() error {
	const shown = 5
	number := len(c.contradictions)
	if number == 0 {
		return nil
	}
	texts := c.contradictions
	if number > shown {
		texts = append(texts[:shown], fmt.Sprintf("and %d more", number-shown))
	}
	list := strings.Join(texts, "; ")
	return fmt.Errorf("the online count and the history disagree in %d places: %s", number, list)
}
