package sched

import (
	"errors"
	"fmt"
	"slices"
)

// Tree enumerates every sequence of choices of a program that is run again and
// again, depth first. The zero value begins with the first sequence.
//
//	for ok := true; ok; ok = tree.Next() {
//		// a fresh run, with every choice made by tree.Choose
//	}
type Tree struct {
	path  []int // choices of this run
	width []int // out of how many
	depth int
	floor int // choices before it are those of all sequences
	err   error
}

// errChoices says that a program is no function of its choices.
var errChoices = errors.New("not deterministic")

// Choose returns a number in [0, n). n must depend on earlier choices only.
func (t *Tree) Choose(n int) int {
	if t.depth == len(t.path) {
		t.path = append(t.path, 0)
		t.width = append(t.width, n)
	} else if t.width[t.depth] != n && t.err == nil {
		t.err = fmt.Errorf("%w: choice %d was out of %d and is out of %d after the same choices",
			errChoices, t.depth, t.width[t.depth], n)
	}
	t.depth++
	return min(t.path[t.depth-1], n-1)
}

// Next moves on to the next sequence and reports whether there is one. After an
// error there is none.
func (t *Tree) Next() bool {
	if t.err == nil && t.depth < len(t.path) {
		t.err = fmt.Errorf("%w: %d choices were made where there were %d before", errChoices, t.depth, len(t.path))
	}
	if t.err != nil {
		return false
	}
	for last := len(t.path) - 1; last >= t.floor; last-- {
		if t.path[last]+1 < t.width[last] {
			t.path[last]++
			t.path = t.path[:last+1]
			t.width = t.width[:last+1]
			t.depth = 0
			return true
		}
	}
	return false
}

// Rest parts the sequences that are left, that at hand among them, into trees of their
// own, in their order. It must be called before the first choice of a run, and t has no
// sequences any more. Between them the trees have as many as t had.
func (t *Tree) Rest() []*Tree {
	n := len(t.path)
	out := []*Tree{{path: slices.Clone(t.path), width: slices.Clone(t.width), floor: n}}
	for i := n - 1; i >= t.floor; i-- {
		if t.path[i]+1 < t.width[i] {
			rest := &Tree{path: slices.Clone(t.path[:i+1]), width: slices.Clone(t.width[:i+1]), floor: i}
			rest.path[i]++
			out = append(out, rest)
		}
	}
	return out
}

// Clone is a tree with the same sequences left. It must be called before the first choice
// of a run.
func (t *Tree) Clone() *Tree {
	return &Tree{path: slices.Clone(t.path), width: slices.Clone(t.width), floor: t.floor}
}

// Share is the part of all sequences that lies before the present one, 0 to 1, if
// every choice is taken to lead to as many as its alternatives.
func (t *Tree) Share() float64 {
	share := 0.0
	part := 1.0
	for i, at := range t.path {
		part /= float64(t.width[i])
		share += float64(at) * part
	}
	return share
}

// Err is not nil if two runs differed although their choices did not.
func (t *Tree) Err() error { return t.err }
