package measure

import (
	"fmt"
	"time"

	"github.com/quotabench/quotabench/internal/format"
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
)

// audit looks for reasons not to believe the run that only a measurement can
// have: in its recording, its stores and its machine. Each finding discards what it
// touches.
func (p *pass) audit() {
	p.auditRecording()
	p.auditPart()
	for _, st := range p.s.stores {
		p.auditStore(st)
	}
	if p.s.strays > 0 {
		p.discard("keys-under-prefix", results.DiscardsCorrectness, "%d keys were under this run's prefix before its first request", p.s.strays)
	}
	p.auditTimings()
}

func (p *pass) discard(code, discards, format string, args ...any) {
	p.run.Audit.Discard(code, discards, fmt.Sprintf(format, args...))
}

// auditRecording asks whether everything that happened was recorded.
func (p *pass) auditRecording() {
	r, d := p.run, p.d
	if d.full.Load() {
		p.discard("ended-early", results.DiscardsNothing,
			"the run ended after %d requests, when its history was nearly full; a longer one needs fewer --requests or a larger history", r.Issued)
	}
	c := p.m.cfg
	if per := workloads.OpsPerCrossing(d.stream); per > 0 && c.Requests == 0 && d.stream.Len() == 0 &&
		r.Issued >= d.requests && r.ElapsedNS < int64(c.Duration)*9/10 {
		p.discard("ended-early", results.DiscardsNothing,
			"the run ended after %v, when the last of the %d trials prepared for it was over: it became much faster than in its warm-up",
			time.Duration(r.ElapsedNS).Round(time.Millisecond), d.requests/per)
	}
	if want := r.Issued + d.lateness.unfinished; r.Latency().Samples != want {
		p.discard("sample-mismatch", results.DiscardsCorrectness, "%d latencies for %d requests", r.Latency().Samples, want)
	}
	names, touched := map[quota.Subject]struct{}{}, 0
	for _, s := range d.subjects.all() {
		if s.touched() {
			names[s.name] = struct{}{}
			touched++
		}
	}
	if len(names) != touched {
		p.discard("subjects-collapsed", results.DiscardsCorrectness, "%d subjects share %d names", touched, len(names))
	}
}

// auditStore asks whether a store was ours alone and did as it should.
func (p *pass) auditStore(st *siteStore) {
	if st.traffic.Unparsed > 0 {
		p.discard("meter-lost", results.DiscardsNothing, "the traffic of %d connections to %s could not be followed: "+
			"commands and statements are too low", st.traffic.Unparsed, st.name)
	}
	b, a := st.before, st.after
	if !p.canCompare(st) || a.Incarnation != b.Incarnation { // it, or some of its servers, is another one or did not answer
		return
	}
	if n := a.Evicted - b.Evicted; n > 0 && p.s.evicts(st) {
		p.discard("store-evicted", results.DiscardsNothing, "%s evicted %s during the run, as it was to",
			st.name, format.Number(n, "key"))
	}
	if a.Forks > b.Forks || a.Forking {
		p.discard("store-forked", results.DiscardsRound, "%s forked to save during the run", st.name)
	}
	if ours := st.traffic.Commands; a.Commands > 0 && a.Commands-b.Commands < ours && !asksSQL(st) {
		p.discard("store-counts-less", results.DiscardsNothing, "%s processed %d commands, fewer than the %d that were sent",
			st.name, a.Commands-b.Commands, ours)
	}
}

// auditTimings asks whether the machine and the instrument left the timings alone.
func (p *pass) auditTimings() {
	r := p.run
	if n := r.Latency().OutOfRange; n > 0 {
		p.discard("histogram-overflow", results.DiscardsTimings, "%d latencies were beyond the histogram's range", n)
	}
	if s := p.machine.Share(); s > maxSteal {
		p.discard("cpu-steal", results.DiscardsRound, "at least %.1f %% of the processor time went to other machines of the host", 100*s)
	}
	switch s, ok := p.others(); {
	case p.accompanied:
		p.discard("other-measurements", results.DiscardsTimings, "this process made other measurements at the same time, on the same cores")
	case !ok || s <= maxOthers:
	case p.d.part.Shared: // merge knows how much of it other generators used
		r.OthersShare = s
	default:
		p.discard("machine-busy", results.DiscardsRound,
			"other programs used %.0f %% of the processor time during the run: the machine was not quiet", 100*s)
	}
	l := r.Lateness
	if l == nil {
		return
	}
	if limit := float64(r.Latency().P50) * maxPacerShare; float64(l.PacerP50) > limit {
		p.discard("pacer-late", results.DiscardsResponse,
			"requests were released %d µs late in the median, more than 5 %% of the median response: the response time "+
				"does not count, the service time does", l.PacerP50/1000)
	}
	if l.Saturated {
		p.discard("saturated", results.DiscardsNothing,
			"the backlog grew from %d to %d requests: the strategy cannot keep up with this rate, and its latency grows "+
				"with the duration", l.BacklogHalf, l.BacklogEnd)
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
	for _, st := range p.s.stores {
		used := st.after.CPU - st.before.CPU
		if st.after.Known && st.after.CPU == 0 || p.s.failedOver(st.name) {
			return 0, false
		}
		mine += max(0, used)
	}
	return (p.machine.Busy - mine.Seconds()) / p.machine.Total, true
}
