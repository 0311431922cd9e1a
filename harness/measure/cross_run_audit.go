package measure

import (
	"fmt"
	"math"

	"github.com/quotabench/quotabench/internal/seed"
	"github.com/quotabench/quotabench/internal/stat"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// crossRunAudit is what the audit remembers from run to run: some findings show only
// if runs are compared with each other.
type crossRunAudit struct {
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

func newCrossRunAudit() *crossRunAudit {
	return &crossRunAudit{requests: map[int64]asked{}, streams: map[string]int{}, thirds: map[string][]float64{}}
}

// sameRequests reports a run that was asked something else than the other runs of
// its round that were asked as much.
func (a *crossRunAudit) sameRequests(r *results.Run, hash uint64) {
	if a.round != r.Repetition {
		a.round, a.requests = r.Repetition, map[int64]asked{}
	}
	first, ok := a.requests[r.Issued]
	if !ok {
		a.requests[r.Issued] = asked{hash, r.Params.Label}
		return
	}
	if first.hash != hash {
		r.Audit.Discard("streams-differ", results.DiscardsCorrectness,
			fmt.Sprintf("its %d requests were not those that %s was asked in the same round", r.Issued, first.strategy))
	}
}

// askedHash is a hash of what was asked, in any order.
type askedHash struct{ hash uint64 }

func (a *askedHash) take(e *oracle.Event) {
	a.hash += seed.Mix(uint64(e.Subject)<<32 ^ uint64(e.Units))
}

// freshStream reports a generated stream that another round has had already: its
// rounds would be one sample, taken several times.
func (a *crossRunAudit) freshStream(r *results.Run, random bool) {
	if !random {
		return
	}
	if other, ok := a.streams[r.Params.Stream]; ok && other != r.Repetition {
		r.Audit.Discard("streams-coincide", results.DiscardsCorrectness,
			fmt.Sprintf("the request stream is the same as in round %d: the random source repeats itself", other))
		return
	}
	a.streams[r.Params.Stream] = r.Repetition
}

// thirds counts the decisions in the first and in the last third of a run.
type thirds struct {
	elapsed     int64
	first, last float64
}

func thirdsOf(r *results.Run) *thirds { return &thirds{elapsed: r.ElapsedNS} }

func (t *thirds) take(e *oracle.Event) {
	switch {
	case e.Reply < t.elapsed/3:
		t.first++
	case e.Reply >= 2*t.elapsed/3:
		t.last++
	}
}

// stationary notes how the run's last third compares with its first.
func (a *crossRunAudit) stationary(r *results.Run, t *thirds) {
	if r.Partial || r.ElapsedNS <= 0 || !r.Audit.Valid {
		return
	}
	if t.first > 0 && t.last > 0 {
		a.thirds[r.Params.Label] = append(a.thirds[r.Params.Label], t.last/t.first)
	}
}

// discardZeroLeaks takes back every conclusion that nothing leaks, if a
// control that is known to race did not leak either: the load was too weak to
// tell.
func discardZeroLeaks(runs []results.Run, control string) {
	for i := range runs {
		r := &runs[i]
		if r.Leak.Units > 0 {
			continue
		}
		r.Audit.Discard("racy-control-clean", results.DiscardsNothing,
			control+" races and leaked nothing under this load, so a leak of 0 shows nothing either: give more --workers")
		for _, clauses := range [][]results.Clause{r.Guarantee, r.Record} {
			for j := range clauses {
				if c := &clauses[j]; c.Property == string(quota.PropertyLeak) && c.Verdict == results.Kept {
					c.Verdict = results.Undecided
				}
			}
		}
	}
}

// Thresholds for runs that change while they last.
const (
	minTrendRounds = 6   // all in one direction by chance: 1 in 32
	minTrend       = 0.1 // by which the thirds must differ
)

// trends discards the timings of strategies whose last third differed from the
// first in the same direction in every round: they had not settled, and how long
// a run lasts decides its figures. Thirds always scatter more than whole rounds
// do, so their size alone would prove nothing.
func (a *crossRunAudit) trends(runs []results.Run) {
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
				r.Audit.Discard("not-stationary", results.DiscardsTimings, fmt.Sprintf(
					"in every round the last third of the time had %.2f to %.2f times the decisions of the first: the run had not settled", lo, hi))
			}
		}
	}
}

// Thresholds for a reference loop that changes.
const (
	minChanges = 6 // from which the usual change is known
	// driftFactor is by how many times the usual change one that drifted exceeds it: what
	// Iglewicz and Hoaglin (1993) advise for outliers by the median of deviations.
	driftFactor = 3.5
)

// drifted discards the timings of runs while which the reference loop changed by more
// than a tenth, and by more than twice as much as it usually does from one loop to
// the next. If the loop scatters by more than a tenth by itself, a tenth says
// nothing about the moment.
func drifted(runs []results.Run) {
	limit := -math.Log(1 - maxReferenceDrift)
	usual, known := usualChange(runs)
	if known {
		limit = max(limit, driftFactor*usual)
	}
	for i := range runs {
		r := &runs[i]
		if r.ReferenceChange == 0 || math.Abs(math.Log(r.ReferenceChange)) <= limit {
			continue
		}
		before := 2 * r.ReferencePerS / (1 + r.ReferenceChange)
		text := fmt.Sprintf("the reference loop went from %.0f to %.0f commands/s while the strategy ran: "+
			"the machine was not quiet", before, before*r.ReferenceChange)
		if known {
			text += fmt.Sprintf("; from one loop to the next it usually changes by %.0f %%", 100*math.Expm1(usual))
		}
		r.Audit.Discard("reference-drift", results.DiscardsRound, text)
	}
}

// usualChange is by how much the reference loop changes from one to the next, as a
// logarithm: the standard deviation if changes are normal, taken from their
// median, which some disturbances do not move.
func usualChange(runs []results.Run) (usual float64, ok bool) {
	var changes []float64
	for i := range runs {
		if c := runs[i].ReferenceChange; c > 0 {
			changes = append(changes, math.Abs(math.Log(c)))
		}
	}
	if len(changes) < minChanges {
		return 0, false
	}
	return 1.4826 * stat.Median(changes), true
}
