package sched

import (
	"sync"
)

// heapRoom is how much may be allocated between two collections, in bytes, at least, and
// as much again when time is simulated.
const heapRoom = 32 << 20

// heapBlock is the size of one block of it.
const heapBlock = 1 << 20

// makeRoom has the garbage collector run less often. What a search or a simulation
// keeps is small, and what it makes and drops is much: the collector, which waits for
// the heap to double, would run some hundred times a second. A block that is never
// written to counts as heap, and takes no memory; but what may be allocated next to
// it does, and more room than this makes a search no faster.
//
// A single block would now and then begin in memory that was used before, and all of it
// would be cleared, which takes memory after all. Of many, that happens to the first.
var makeRoom, makeMoreRoom = sync.OnceValue(room), sync.OnceValue(room)

func room() [][]byte {
	blocks := make([][]byte, heapRoom/heapBlock)
	for i := range blocks {
		blocks[i] = make([]byte, heapBlock)
	}
	return blocks
}
