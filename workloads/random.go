package workloads

import (
	"math"
	"math/bits"
	"time"

	"github.com/quotabench/quotabench/internal/kit/seed"
)

// stream is the start of a random stream, which can be read at any position.
type stream uint64

func newStream(s uint64, purpose seed.Purpose) stream { return stream(seed.Stream(s, purpose)) }

func (s stream) at(i uint64) uint64 { return seed.At(uint64(s), i) }

// below maps a uniform value to 0..n-1.
func below(x, n uint64) uint64 { return seed.Below(x, n) }

// threshold is a share of all uniform values.
type threshold struct {
	below uint64
	all   bool // the share 1, which below cannot hold
}

func share(s float64) threshold {
	if s >= 1 {
		return threshold{all: true}
	}
	return threshold{below: uint64(math.Ldexp(s, 64))}
}

// above reports whether x is inside of the share.
func (t threshold) above(x uint64) bool { return t.all || x < t.below }

// exponential draws times of an exponential distribution. It is ln 2 times the
// mean, in 2^-16 ns.
type exponential uint64

func newExponential(mean time.Duration) exponential {
	return exponential(math.Round(math.Ln2 * float64(mean) * (1 << 16)))
}

// draw maps a uniform value to a time, in integers as [Poisson] does.
func (e exponential) draw(x uint64) time.Duration {
	hi, lo := bits.Mul64(quickNegLog2(x), uint64(e))
	return time.Duration(hi<<16 | lo>>48)
}

// logs are log2(1 + j/256) in units of 2^-32.
var logs = func() (t [257]uint64) {
	for j := range uint64(256) {
		t[j] = 1<<32 - negLog2((256+j)<<55-1)
	}
	t[256] = 1 << 32
	return t
}()

// quickNegLog2 is negLog2 to within 2^-18, by straight lines between the entries
// of a table: times are drawn between requests, where every nanosecond is taken
// from the system under test.
func quickNegLog2(x uint64) uint64 {
	if x == math.MaxUint64 {
		return 0
	}
	x++
	zeros := bits.LeadingZeros64(x)
	m := x << zeros // from 1 to below 2, in 2^-63
	j := m >> 55 & 255
	part := m << 9 >> 32
	return uint64(zeros+1)<<32 - logs[j] - (logs[j+1]-logs[j])*part>>32
}
