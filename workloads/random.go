package workloads

import "math/bits"

// stream is a random stream that can be read at any position: SplitMix64, whose
// state is a multiple of its position. Position and seed alone give a value, so
// workers share no state and the order in which they draw changes nothing.
type stream uint64

// golden is the odd number next to 2^64 divided by the golden ratio.
const golden = 0x9E3779B97F4A7C15

// newStream starts the stream of a purpose. Purposes must differ where values
// are to be independent.
func newStream(seed, purpose uint64) stream {
	return stream(mix(mix(seed+golden) ^ mix(purpose)))
}

func (s stream) at(i uint64) uint64 { return mix(uint64(s) + (i+1)*golden) }

// below maps a uniform value to 0..n-1.
func below(x, n uint64) uint64 {
	hi, _ := bits.Mul64(x, n)
	return hi
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// The purposes of random streams.
const (
	forSubjects = iota + 1
	forCosts
	forFull
	forArrivals
	forOrder
	forFates
	forActual
	forSettle
	forHold
	purposes // one more than the last
)
