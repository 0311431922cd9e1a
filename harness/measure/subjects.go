package measure

import (
	"sync/atomic"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
)

// subject is one holder of the policy in a run, with the oracle's counters of
// its windows.
type subject struct {
	name    quota.Subject
	initial int64 // units used before the first request
	// cells lists the windows touched so far, newest first. Nearly always there
	// is one.
	cells atomic.Pointer[windowCell]
	_     [32]byte   // the counters are written all the time, and the name only read
	first windowCell // saves an allocation, and a cache miss, for the first window
}

// touched reports whether any request asked for the subject.
func (s *subject) touched() bool {
	for c := s.cells.Load(); c != nil; c = c.next {
		if c.Tally().Asked != 0 {
			return true
		}
	}
	return false
}

type windowCell struct {
	index int64
	next  *windowCell
	used  atomic.Bool // first only: set once the cell has been given a window
	_     [40]byte    // see subject
	oracle.Cell
}

// cell returns the counters of one window.
func (s *subject) cell(index int64) *windowCell {
	head := s.cells.Load()
	for c := head; c != nil; c = c.next {
		if c.index == index {
			return c
		}
	}
	return s.addCell(index)
}

func (s *subject) addCell(index int64) *windowCell {
	var c *windowCell
	if s.first.used.CompareAndSwap(false, true) {
		c = &s.first
	} else {
		c = new(windowCell)
	}
	c.index = index
	for {
		head := s.cells.Load()
		for o := head; o != nil; o = o.next {
			if o.index == index {
				return o // another worker was first; a spare first cell stays unused
			}
		}
		c.next = head
		if s.cells.CompareAndSwap(head, c) {
			return c
		}
	}
}

// window is the window in force, in nanoseconds of the run's clock.
type window struct {
	index      int64
	start, end int64 // [start, end); end is the largest int64 where there is none
}
