package measure

import (
	"fmt"
	"math"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// across is what the audit remembers from run to run: some findings show only
// where runs are held beside each other.
type across struct {
	// requests are a hash of what each complete run of a round was asked, in any
	// order, and whose it was.
	round    int
	requests map[int64]asked
	// streams maps the fingerprint of each generated stream to its round.
	streams map[string]int
	// thirds has, for each strategy, the last third's decisions by the first's, of
	// every round.
	thirds map[string][]float64
}

type asked struct {
	hash     uint64
	strategy string
}

func newAcross() *across {
	return &across{requests: map[int64]asked{}, streams: map[string]int{}, thirds: map[string][]float64{}}
}

// sameRequests reports a run that was asked something else than the other runs of
// its round that were asked as much.
func (a *across) sameRequests(r *results.Run, events []oracle.Event) {
	if a.round != r.Repetition {
		a.round, a.requests = r.Repetition, map[int64]asked{}
	}
	var hash uint64
	for i := range events {
		if e := &events[i]; e.Kind == oracle.Take {
			hash += mix(uint64(e.Subject)<<32 ^ uint64(e.Units))
		}
	}
	first, ok := a.requests[r.Issued]
	if !ok {
		a.requests[r.Issued] = asked{hash, r.Params.Label}
		return
	}
	if first.hash != hash {
		r.Audit.Strike("streams-differ", results.StrikesCorrectness,
			fmt.Sprintf("its %d requests were not those that %s was asked in the same round", r.Issued, first.strategy))
	}
}

// mix spreads the bits of x (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// freshStream reports a generated stream that another round has had already: its
// rounds would be one sample, taken several times.
func (a *across) freshStream(r *results.Run, random bool) {
	if !random {
		return
	}
	if other, ok := a.streams[r.Params.Stream]; ok && other != r.Repetition {
		r.Audit.Strike("streams-coincide", results.StrikesCorrectness,
			fmt.Sprintf("the request stream is the same as in round %d: the random source repeats itself", other))
		return
	}
	a.streams[r.Params.Stream] = r.Repetition
}

// stationary notes how the run's last third compares with its first.
func (a *across) stationary(r *results.Run, events []oracle.Event) {
	if r.Partial || r.ElapsedNS <= 0 || !r.Audit.Valid {
		return
	}
	var first, last float64
	for i := range events {
		switch e := &events[i]; {
		case e.Kind != oracle.Take:
		case e.Reply < r.ElapsedNS/3:
			first++
		case e.Reply >= 2*r.ElapsedNS/3:
			last++
		}
	}
	if first > 0 && last > 0 {
		a.thirds[r.Params.Label] = append(a.thirds[r.Params.Label], last/first)
	}
}

// Thresholds for runs that change while they last.
const (
	minTrendRounds = 6   // all in one direction by chance: 1 in 32
	minTrend       = 0.1 // by which the thirds must differ
)

// trends strikes the timings of strategies whose last third differed from the
// first in the same direction in every round: they had not settled, and how long
// a run lasts decides its figures. Thirds always scatter more than whole rounds
// do, so their size alone would prove nothing.
func (a *across) trends(runs []results.Run) {
	for label, ratios := range a.thirds {
		if len(ratios) < minTrendRounds {
			continue
		}
		lo, hi := math.Inf(1), 0.0
		for _, x := range ratios {
			lo, hi = min(lo, x), max(hi, x)
		}
		if lo < 1+minTrend && hi > 1-minTrend {
			continue
		}
		for i := range runs {
			if r := &runs[i]; r.Params.Label == label {
				r.Audit.Strike("not-stationary", results.StrikesTimings, fmt.Sprintf(
					"in every round the last third of the time had %.2f to %.2f times the decisions of the first: the run had not settled", lo, hi))
			}
		}
	}
}

// sqlRestarted reports a PostgreSQL that was started anew during the run.
func (p *pass) sqlRestarted() bool {
	return p.s.sel.NeedsStore(strategies.NeedPostgres) && p.sqlBefore.Incarnation != "" && p.sqlAfter.Incarnation != p.sqlBefore.Incarnation
}
