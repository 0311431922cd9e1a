package sched

import "sync"

// heapRoom is how much may be allocated between two collections, in bytes, at least, and
// as much again is where time is simulated.
const heapRoom = 32 << 20

// makeRoom has the garbage collector run less often. What a search or a simulation
// keeps is small, and what it makes and drops is much: the collector, which waits for
// the heap to double, would run some hundred times a second. A block that is never
// written to counts as heap, and takes no memory; but what may be allocated beside it
// does, and more room than this makes a search no faster.
var makeRoom, makeMoreRoom = sync.OnceValue(room), sync.OnceValue(room)

func room() []byte { return make([]byte, heapRoom) }
