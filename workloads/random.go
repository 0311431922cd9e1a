package workloads

import "github.com/quotabench/quotabench/internal/seed"

// stream is the start of a random stream, which can be read at any position.
type stream uint64

func newStream(s uint64, p seed.Purpose) stream { return stream(seed.Stream(s, p)) }

func (s stream) at(i uint64) uint64 { return seed.At(uint64(s), i) }

// below maps a uniform value to 0..n-1.
func below(x, n uint64) uint64 { return seed.Below(x, n) }
