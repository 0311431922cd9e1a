package measure

import (
	"fmt"
	"math"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/workloads"
)

// Thresholds of the audit.
const (
	maxSteal   = 0.01 // of processor time, taken by the hypervisor
	maxOthers  = 0.1  // of processor time, used by other programs during the pass
	maxForeign = 0.01 // of the reference loop's commands, sent by others
	// maxReferenceDrift is how much the reference loop may change while a strategy
	// runs, if it does not change by as much anyway.
	maxReferenceDrift = 0.1
	maxPacerShare     = 0.05 // of the median response, by which releases may be late
	// maxStill is for how long the process may stand still. A longer time is no work of
	// other programs.
	maxStill = time.Second
)

// audit looks for reasons not to believe the run that only a measurement can
// have: in its recording, its stores and its machine. Each finding discards or marks what
// it touches.
func (p *pass) audit() {
	p.auditRecording()
	p.auditBegin()
	for _, store := range p.site.stores {
		p.auditStore(store)
	}
	if p.site.strays > 0 {
		p.discard("keys-under-prefix", codes.DiscardsCorrectness,
			"%d keys were under this run's prefix before its first request", p.site.strays)
	}
	p.auditTimings()
}

// auditStrangers says for which strategies a change of a counter by another program is not seen, as far as there can be
// one.
func (p *pass) auditStrangers() {
	seen := p.watchesCounters() && len(p.drive.readings) > 0
	if p.shared() && !seen && !p.measurement.latencyOnly {
		p.discard("changes-unseen", codes.DiscardsNothing, "other programs have access to its store, and a counter "+
			"that one of them changed would not be told from one that the strategy counts wrong: a server of the run's own "+
			"shows which it is")
	}
}

func (p *pass) discard(code, discards, format string, args ...any) {
	p.run.Audit.Discard(code, discards, fmt.Sprintf(format, args...))
}

// auditRecording asks whether everything that happened was recorded.
func (p *pass) auditRecording() {
	run := p.run
	drive := p.drive
	if drive.full.Load() {
		p.discard("ended-early", codes.DiscardsNothing,
			"the run ended after %d requests, when its history was nearly full; a longer one needs fewer --requests or a "+
				"larger history", run.Issued)
	}
	config := p.measurement.cfg
	if per := workloads.OpsPerCrossing(drive.stream); per > 0 && config.Requests == 0 && drive.stream.Len() == 0 &&
		run.Issued >= drive.requests && run.ElapsedNS < int64(config.Duration)*9/10 {
		p.discard("ended-early", codes.DiscardsNothing,
			"the run ended after %v, when the last of the %d trials prepared for it was over: it became much faster than in "+
				"its warm-up",
			time.Duration(run.ElapsedNS).Round(time.Millisecond), drive.requests/per)
	}
	if want := run.Issued + drive.lateness.unfinished; run.Latency().Samples != want {
		p.discard("sample-mismatch", codes.DiscardsCorrectness, "%d latencies for %d requests", run.Latency().Samples, want)
	}
	names := map[quota.Subject]struct{}{}
	touched := 0
	for _, subject := range drive.subjects.all() {
		if subject.touched() {
			names[subject.name] = struct{}{}
			touched++
		}
	}
	if len(names) != touched {
		p.discard("subjects-collapsed", codes.DiscardsCorrectness, "%d subjects share %d names", touched, len(names))
	}
}

// auditStore asks whether a store was ours alone and did as it should.
func (p *pass) auditStore(store *siteStore) {
	if store.traffic.Unparsed > 0 {
		p.discard("meter-lost", codes.DiscardsNothing, "the traffic of %d connections to %s could not be followed: "+
			"commands and statements are too low", store.traffic.Unparsed, store.name)
	}
	before := store.before
	after := store.after
	// it, or some of its servers, is another one or did not answer
	if !p.canCompare(store) || after.Incarnation != before.Incarnation {
		return
	}
	if n := after.Evicted - before.Evicted; n > 0 && p.site.evicts(store) {
		p.discard("store-evicted", codes.DiscardsNothing, "%s evicted %s during the run, as it was to",
			store.name, format.Number(n, "key"))
	}
	if after.Forks > before.Forks || after.Forking {
		p.discard("store-forked", codes.Disturbs, "%s forked to save during the run", store.name)
	}
	if ours := store.traffic.Commands; after.Commands > 0 && after.Commands-before.Commands < ours && !asksSQL(store) {
		p.discard("store-counts-less", codes.DiscardsNothing, "%s processed %d commands, fewer than the %d that were sent",
			store.name, after.Commands-before.Commands, ours)
	}
}

// auditTimings asks whether the machine and the instrument left the timings alone.
func (p *pass) auditTimings() {
	run := p.run
	if n := run.Latency().OutOfRange; n > 0 {
		p.discard("histogram-overflow", codes.DisturbsTimings, "%d latencies were beyond the histogram's range", n)
	}
	if s := p.machine.Share(); s > maxSteal {
		p.discard("cpu-steal", codes.Disturbs, "at least %.1f %% of the processor time went to other machines of the host",
			100*s)
	}
	share, ok := p.others()
	if ok {
		run.OthersShare = max(0, share)
	}
	switch {
	case p.accompanied:
		p.discard("other-measurements", codes.DisturbsTimings,
			"this process made other measurements at the same time, on the same cores")
	case p.measurement.cfg.Peers != nil: // who joins the runs knows how much of it peers used
	case run.OthersShare > maxOthers:
		used := fmt.Sprintf("other programs used %.0f %% of the processor time during the run", 100*share)
		run.Audit.Observe("machine-busy", codes.Disturbs, used, "the machine was not quiet")
	}
	if waiting := run.Waiting; waiting != nil && waiting.HiccupMax > int64(maxStill) {
		p.discard("stood-still", codes.DiscardsRound, "this process stood still for %v: it was suspended",
			time.Duration(waiting.HiccupMax).Round(time.Millisecond))
	}
	lateness := run.Lateness
	if lateness == nil {
		return
	}
	if limit := float64(run.Latency().P50) * maxPacerShare; float64(lateness.PacerP50) > limit {
		late := fmt.Sprintf("requests were released %d µs late in the median, more than 5 %% of the median response",
			lateness.PacerP50/1000)
		run.Audit.Observe("pacer-late", codes.DisturbsResponse, late,
			"that is part of the response time, and not of the service time")
	}
	if lateness.Saturated {
		p.discard("saturated", codes.DiscardsNothing,
			"the backlog grew from %d to %d requests: the strategy cannot keep up with this rate, and its latency grows "+
				"with the duration", lateness.BacklogHalf, lateness.BacklogEnd)
	}
}

// minMachineTime is the processor time, in seconds, from which the share of other
// programs can be read: the system counts in hundredths, and shorter stretches
// differ by as much from one reading to the next.
const minMachineTime = 0.2

// others is the share of the processor time of all programs that are neither this
// one nor servers of ours. ok is false if that cannot be told: the system does
// not say, or a store on this machine does not say what it used.
func (p *pass) others() (share float64, ok bool) {
	if p.machine.Total < minMachineTime {
		return 0, false
	}
	mine := p.own.used
	for _, store := range p.site.stores {
		used := store.after.CPU - store.before.CPU
		if store.after.Known && store.after.CPU == 0 || p.site.failedOver(store.name) {
			return 0, false
		}
		mine += max(0, used)
	}
	return (p.machine.Busy - mine.Seconds()) / p.machine.Total, true
}

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
func (a *crossRunAudit) sameRequests(run *results.Run, hash uint64) {
	if a.round != run.Repetition {
		a.round = run.Repetition
		a.requests = map[int64]asked{}
	}
	first, ok := a.requests[run.Issued]
	if !ok {
		a.requests[run.Issued] = asked{hash, run.Params.Label}
		return
	}
	if first.hash != hash {
		run.Audit.Discard("streams-differ", codes.DiscardsCorrectness,
			fmt.Sprintf("its %d requests were not those that %s was asked in the same round", run.Issued, first.strategy))
	}
}

// askedHash is a hash of all requests, in any order.
type askedHash struct{ hash uint64 }

func (a *askedHash) take(event *oracle.Event) {
	a.hash += seed.Mix(uint64(event.Subject)<<32 ^ uint64(event.Units))
}

// freshStream reports a generated stream that another round has had already: its
// rounds would be one sample, taken several times.
func (a *crossRunAudit) freshStream(run *results.Run, random bool) {
	if !random {
		return
	}
	if other, ok := a.streams[run.Params.Stream]; ok && other != run.Repetition {
		run.Audit.Discard("streams-coincide", codes.DiscardsCorrectness,
			fmt.Sprintf("the request stream is the same as in round %d: the random source repeats itself", other))
		return
	}
	a.streams[run.Params.Stream] = run.Repetition
}

// thirds counts the decisions in the first and in the last third of a run.
type thirds struct {
	elapsed     int64
	first, last float64
}

func thirdsOf(run *results.Run) *thirds { return &thirds{elapsed: run.ElapsedNS} }

func (t *thirds) take(event *oracle.Event) {
	switch {
	case event.Reply < t.elapsed/3:
		t.first++
	case event.Reply >= 2*t.elapsed/3:
		t.last++
	}
}

// stationary notes how the run's last third compares with its first.
func (a *crossRunAudit) stationary(run *results.Run, t *thirds) {
	if run.Partial || run.ElapsedNS <= 0 || !run.Audit.Valid {
		return
	}
	if t.first > 0 && t.last > 0 {
		a.thirds[run.Params.Label] = append(a.thirds[run.Params.Label], t.last/t.first)
	}
}

// discardZeroLeaks takes back every conclusion that nothing leaks, if a
// control that is known to race did not leak either: the load was too weak to
// tell.
func discardZeroLeaks(runs []results.Run, control string) {
	for i := range runs {
		run := &runs[i]
		if run.Leak.Units > 0 {
			continue
		}
		run.Audit.Discard("racy-control-clean", codes.DiscardsNothing,
			control+" races and leaked nothing under this load, so a leak of 0 shows nothing either: give more --workers")
		for _, clauses := range [][]results.Clause{run.Guarantee, run.Record} {
			for j := range clauses {
				if clause := &clauses[j]; clause.Property == string(quota.PropertyLeak) && clause.Verdict == results.Kept {
					clause.Verdict = results.Undecided
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

// trends marks the timings of strategies whose last third differed from the
// first in the same direction in every round: they had not settled, and how long
// a run lasts decides its figures. Thirds always scatter more than whole rounds
// do, so their size alone would prove nothing.
func (a *crossRunAudit) trends(runs []results.Run) {
	for label, ratios := range a.thirds {
		if len(ratios) < minTrendRounds {
			continue
		}
		lowest := math.Inf(1)
		highest := 0.0
		for _, value := range ratios {
			lowest = min(lowest, value)
			highest = max(highest, value)
		}
		if lowest < 1+minTrend && highest > 1-minTrend {
			continue
		}
		for i := range runs {
			if run := &runs[i]; run.Params.Label == label {
				thirds := fmt.Sprintf(
					"in every round the last third of the time had %.2f to %.2f times the decisions of the first", lowest, highest)
				run.Audit.Observe("not-stationary", codes.DisturbsTimings, thirds, "the run had not settled")
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

// drifted marks the timings of runs while which the reference loop changed by more
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
		run := &runs[i]
		if run.ReferenceChange == 0 || math.Abs(math.Log(run.ReferenceChange)) <= limit {
			continue
		}
		before := 2 * run.ReferencePerS / (1 + run.ReferenceChange)
		changed := fmt.Sprintf("the reference loop went from %.0f to %.0f commands/s while the strategy ran", before,
			before*run.ReferenceChange)
		follows := "the machine was not quiet"
		if known {
			follows += fmt.Sprintf("; from one loop to the next it usually changes by %.0f %%", 100*math.Expm1(usual))
		}
		run.Audit.Observe("reference-drift", codes.Disturbs, changed, follows)
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

// CrossedElsewhere makes a note of the finding that a round asked no subject for more than its
// limit, if others of the strategy did: a short round on a busy machine says nothing, and takes
// nothing back that the others say.
func CrossedElsewhere(runs []results.Run) {
	crossed := map[string]bool{}
	for i := range runs {
		if runs[i].Leak.Trials > 0 {
			crossed[runs[i].Key()] = true
		}
	}
	for i := range runs {
		run := &runs[i]
		if !crossed[run.Key()] {
			continue
		}
		run.Audit.Soften(codes.NeverCrossed)
		if run.Paced != nil {
			run.Paced.Audit.Soften(codes.NeverCrossed)
		}
	}
}
