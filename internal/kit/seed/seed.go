// Package seed derives every random stream of the module from one recorded seed.
// A stream belongs to a purpose, so that no two uses of one seed share numbers.
package seed

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
)

// Golden is the odd number next to 2^64 divided by the golden ratio, the step of
// SplitMix64.
const Golden = 0x9E3779B97F4A7C15

// Purpose names what a random stream decides.
type Purpose uint64

// The purposes. New ones are added at the end: the numbers are part of what a
// recorded seed reproduces.
const (
	// Subjects of a workload's requests.
	Subjects Purpose = iota + 1
	// Costs of a workload's requests.
	Costs
	// Full chooses the subjects that start with their quota used up.
	Full
	// Arrivals of an open loop.
	Arrivals
	// Order of the requests within a block of a workload.
	Order
	// Fates of admitted requests.
	Fates
	// Actual units of commits that misjudged their request.
	Actual
	// Settle draws the times from admission to commit or failure.
	Settle
	// Hold draws the times from commit to deletion.
	Hold
	// The seed of a round's request stream is [Golden] further for each round before it, and has no purpose. This was its
	// number.
	_
	// RoundOrder is the order of the strategies in a round; more is the round.
	RoundOrder
	// Instance is the random source of a strategy's instance; more are the round
	// and the instance.
	Instance
	// DriftSample chooses the subjects whose state is read back; more is the round.
	DriftSample
	// Network draws the simulated latencies.
	Network
	// Placement sends the requests of a simulation to regions and instances.
	Placement
	// Rush draws the arrivals of a rush; more is its number.
	Rush
	// PacedOrder is the order of the strategies in a round's open loops at the common
	// rate; more is the round.
	PacedOrder
	// Sides is which of two programs comes first in a pair of rounds; more are the stage
	// and the pair.
	Sides
	// PointOrder is the order of the configurations in a round of a sweep; more is the
	// round.
	PointOrder
	// Schedules draws the steps of schedules that are run at random.
	Schedules
	// Holders are those of the second quota that each request is charged to.
	Holders
	// Kills chooses the requests whose callers are killed.
	Kills
	// Conditions of a network draw which requests it loses, and its jitter; more are the round, the instance and the
	// store.
	Conditions
)

// Stream is the start of the stream of a purpose, which is itself a random number
// and may serve as the seed of something else. More tells the streams of one
// purpose apart, such as a round and an instance.
func Stream(seed uint64, purpose Purpose, more ...uint64) uint64 {
	s := Mix(Mix(seed+Golden) ^ Mix(uint64(purpose)))
	for _, m := range more {
		s = Mix(Mix(s+Golden) ^ Mix(m))
	}
	return s
}

// At is number i, from 0, of the stream that starts at start. Position and start
// alone give it, so workers share no state and the order in which they draw
// changes nothing.
func At(start, i uint64) uint64 { return Mix(start + (i+1)*Golden) }

// Below maps a uniform value to 0..n-1.
func Below(x, n uint64) uint64 {
	hi, _ := bits.Mul64(x, n)
	return hi
}

// Mix is the finaliser of SplitMix64, a bijection. Mix(0) is 0.
func Mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// Rand is a generator over a [Source]. It is safe for concurrent use.
func Rand(seed uint64, purpose Purpose, more ...uint64) *rand.Rand {
	return rand.New(NewSource(seed, purpose, more...))
}

// Source reads a stream in order: its first number is At(start, 0). It is safe
// for concurrent use; with one goroutine at a time, it repeats.
type Source struct{ state atomic.Uint64 }

// NewSource makes the source of a stream.
func NewSource(seed uint64, purpose Purpose, more ...uint64) *Source {
	source := new(Source)
	source.SetState(Stream(seed, purpose, more...))
	return source
}

// Uint64 implements [rand.Source].
func (s *Source) Uint64() uint64 { return Mix(s.state.Add(Golden)) }

// State is all that decides the numbers to come.
func (s *Source) State() uint64 { return s.state.Load() }

// SetState goes back to a state, or to the start of a [Stream].
func (s *Source) SetState(state uint64) { s.state.Store(state) }
