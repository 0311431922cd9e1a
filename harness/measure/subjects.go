package measure

import (
	"iter"
	"sync/atomic"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/workloads"
)

// subjects are the holders of the policy in a pass, by number. Memory is taken for
// those that are asked about, a group of neighbours at a time: how many trials a
// long run will need is not known in advance.
type subjects struct {
	stream workloads.Stream
	count  int
	groups []atomic.Pointer[[groupLen]subject]
}

const (
	groupBits = 8
	groupLen  = 1 << groupBits // 48 KiB
)

// newSubjects makes a table of n subjects, and the first ready ones of them: the
// others are made when a request first asks for one.
func newSubjects(stream workloads.Stream, n, ready int) *subjects {
	t := &subjects{stream: stream, count: n, groups: make([]atomic.Pointer[[groupLen]subject], (n+groupLen-1)/groupLen)}
	for i := 0; i < min(n, ready); i += groupLen {
		t.at(uint32(i))
	}
	return t
}

// at returns the subject with a number below n.
func (t *subjects) at(number uint32) *subject {
	g := t.groups[number>>groupBits].Load()
	if g == nil {
		g = t.open(number >> groupBits)
	}
	return &g[number%groupLen]
}

func (t *subjects) open(group uint32) *[groupLen]subject {
	made := new([groupLen]subject)
	for i := range made {
		if number := int(group)<<groupBits + i; number < t.count {
			made[i].name = quota.Subject(t.stream.Name(uint32(number)))
		}
	}
	if !t.groups[group].CompareAndSwap(nil, made) {
		return t.groups[group].Load() // another worker was first
	}
	return made
}

// all yields the subjects that memory was taken for, by number.
func (t *subjects) all() iter.Seq2[uint32, *subject] {
	return func(yield func(uint32, *subject) bool) {
		for k := range t.groups {
			g := t.groups[k].Load()
			for i := 0; g != nil && i < groupLen && k<<groupBits+i < t.count; i++ {
				if !yield(uint32(k<<groupBits+i), &g[i]) {
					return
				}
			}
		}
	}
}

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
	for cell := s.cells.Load(); cell != nil; cell = cell.next {
		if cell.Tally().Asked != 0 {
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
	for cell := head; cell != nil; cell = cell.next {
		if cell.index == index {
			return cell
		}
	}
	return s.addCell(index)
}

func (s *subject) addCell(index int64) *windowCell {
	var cell *windowCell
	if s.first.used.CompareAndSwap(false, true) {
		cell = &s.first
	} else {
		cell = new(windowCell)
	}
	cell.index = index
	for {
		head := s.cells.Load()
		for windowCell := head; windowCell != nil; windowCell = windowCell.next {
			if windowCell.index == index {
				return windowCell // another worker was first; a spare first cell stays unused
			}
		}
		cell.next = head
		if s.cells.CompareAndSwap(head, cell) {
			return cell
		}
	}
}

// window is the window in force, in nanoseconds of the run's clock.
type window struct {
	index      int64
	start, end int64 // [start, end); end is the largest int64 if there is none
}
