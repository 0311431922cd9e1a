package sched

import "sync"

// heapRoom is how much may be allocated between two collections, in bytes, at least.
const heapRoom = 64 << 20

// makeRoom has the garbage collector run less often. What a search or a simulation
// keeps is small, and what it makes and drops is much: the collector, which waits for
// the heap to double, would run some hundred times a second. A block that is never
// written to counts as heap, and takes no memory.
var makeRoom = sync.OnceValue(func() []byte { return make([]byte, heapRoom) })
