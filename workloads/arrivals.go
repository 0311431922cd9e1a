package workloads

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/quotabench/quotabench/internal/kit/seed"
)

// Arrivals is the sequence of intended starts of an open loop. It is not safe
// for concurrent use.
type Arrivals interface {
	// Next returns the next intended start, counted from the beginning of the
	// run and never before the one returned last; ok is false after the last.
	Next() (at time.Duration, ok bool)
}

// Bounds of rates, per second.
const (
	minRate = 1e-9
	maxRate = 1e9
)

func checkRate(rate float64) error {
	if !(rate >= minRate && rate <= maxRate) {
		return fmt.Errorf("rate %v is not from %v to %v per second", rate, minRate, int64(maxRate))
	}
	return nil
}

// Constant arrives at equal distances, the first at 0. Rate is per second.
func Constant(rate float64) (Arrivals, error) {
	if err := checkRate(rate); err != nil {
		return nil, err
	}
	return &constant{rate: rate}, nil
}

type constant struct {
	rate float64
	n    int64
}

// Next multiplies instead of adding up, so that rounding does not accumulate.
func (c *constant) Next() (time.Duration, bool) {
	at := time.Duration(float64(c.n) * float64(time.Second) / c.rate)
	c.n++
	return at, true
}

// Poisson arrives at random, independently of what came before: the distances
// are exponentially distributed. Rate is the mean per second; from is the seed. It computes in
// integers, so that one seed gives one sequence on every architecture.
func Poisson(rate float64, from uint64) (Arrivals, error) {
	if err := checkRate(rate); err != nil {
		return nil, err
	}
	perLog := math.Ln2 * float64(time.Second) / rate
	return &poisson{
		random: newStream(from, seed.Arrivals),
		perLog: uint64(math.Round(perLog * (1 << 16))),
	}, nil
}

type poisson struct {
	random stream
	perLog uint64 // ns per unit of -log2, in 2^-16
	n      uint64
	at     time.Duration
	rest   uint64 // part of a nanosecond, in 2^-48
}

// Next draws the distance as mean x -ln(u), u uniform in (0, 1].
func (p *poisson) Next() (time.Duration, bool) {
	hi, lo := bits.Mul64(negLog2(p.random.at(p.n)), p.perLog)
	p.n++
	lo, carry := bits.Add64(lo, p.rest, 0)
	hi += carry
	p.at += time.Duration(hi<<16 | lo>>48)
	p.rest = lo & (1<<48 - 1)
	return p.at, true
}

// negLog2 is -log2((x+1) / 2^64) in units of 2^-32, rounded down in its last bit.
func negLog2(x uint64) uint64 {
	if x == math.MaxUint64 {
		return 0
	}
	x++
	zeros := bits.LeadingZeros64(x)
	m := x << zeros // in 2^-63, from 1 to below 2
	var frac uint64
	for range 32 { // squaring doubles the logarithm: its next binary digit shows
		hi, lo := bits.Mul64(m, m)
		digit := hi >> 63 // as likely 1 as 0, so that a branch would be guessed wrong
		frac = frac<<1 | digit
		m = hi<<(1-digit) | lo>>63&(digit-1)
	}
	return uint64(zeros+1)<<32 - frac
}

// FromTrace arrives at the recorded moments of a bounded stream, speed times as
// fast as recorded.
func FromTrace(stream Stream, speed float64) (Arrivals, error) {
	if !(speed > 0) || math.IsInf(speed, 0) {
		return nil, fmt.Errorf("speed %v is not a number above 0", speed)
	}
	if stream.Len() == 0 {
		return nil, fmt.Errorf("the stream has no recorded moments")
	}
	return &recorded{stream: stream, speed: speed}, nil
}

type recorded struct {
	stream Stream
	speed  float64
	n      int64
}

func (r *recorded) Next() (time.Duration, bool) {
	if r.n >= r.stream.Len() {
		return 0, false
	}
	var op Op
	r.stream.At(r.n, &op)
	r.n++
	at := float64(op.At) / r.speed
	if at >= math.MaxInt64 {
		return math.MaxInt64, true
	}
	return time.Duration(at), true
}
