package measure

import (
	"fmt"
	"iter"
	"slices"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// Thresholds of the audit.
const (
	maxErrorShare = 0.001 // of requests, unplanned
	maxSteal      = 0.01  // of processor time, taken by the hypervisor
	maxForeign    = 0.01  // of the reference loop's commands, sent by others
	// maxReferenceDrift is how much the reference loop may change in a round.
	maxReferenceDrift = 0.1
	maxPacerShare     = 0.05 // of the median response, by which releases may be late
)

// audit looks for reasons not to believe the run. Each finding strikes what it
// touches: figures that may be wrong, or timings that do not count.
func (p *pass) audit(v *oracle.Verdict, cfg oracle.Config) {
	p.auditCounts(v, cfg)
	p.auditWorkload(v)
	p.auditStores()
	p.auditTimings()
}

func (p *pass) strike(code, strikes, format string, args ...any) {
	p.run.Audit.Strike(code, strikes, fmt.Sprintf(format, args...))
}

// plural is a count of things, e.g. "1 request" or "2 requests".
func plural(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// auditCounts holds independent counts of the same things against each other.
func (p *pass) auditCounts(v *oracle.Verdict, cfg oracle.Config) {
	r, d := p.run, p.d
	if d.history.Overflowed() {
		p.strike("history-overflow", results.StrikesCorrectness,
			"more than %d decisions in one run: leak and false rejects cannot be judged exactly; give fewer --requests or a shorter --duration", p.m.cfg.HistoryLimit)
		return
	}
	if v.Issued.Requests != r.Issued || v.Admitted.Requests != r.Admitted || v.Rejected.Requests != r.Rejected || v.Failed.Requests != r.Errors || v.Malformed > 0 {
		p.strike("count-mismatch", results.StrikesCorrectness,
			"workers counted %d issued, %d admitted, %d rejected, %d errors; the history holds %d, %d, %d, %d and %d malformed",
			r.Issued, r.Admitted, r.Rejected, r.Errors, v.Issued.Requests, v.Admitted.Requests, v.Rejected.Requests, v.Failed.Requests, v.Malformed)
	}
	if want := r.Issued + d.lateness.unfinished; r.Latency.Samples != want {
		p.strike("sample-mismatch", results.StrikesCorrectness, "%d latencies for %d requests", r.Latency.Samples, want)
	}
	if err := oracle.Agree(*v, cfg, p.cells()); err != nil {
		p.strike("oracles-disagree", results.StrikesCorrectness, "%v", err)
	}
	prescribed := d.counts.prescribed.Load()
	if share := float64(r.Errors-prescribed-p.planned) / float64(max(r.Issued, 1)); share > maxErrorShare {
		p.strike("errors", results.StrikesCorrectness, "%.2g %% of requests ended in an error, the first: %s", 100*share, r.FirstError)
	}
	if p.planned > 0 {
		p.strike("planned-errors", results.StrikesNote, "%s ended in an error during the planned outage", plural(p.planned, "request"))
	}
	if prescribed > 0 {
		p.strike("prescribed-errors", results.StrikesNote, "%s ended in an error that the strategy's source asks for: %s", plural(prescribed, "request"), r.FirstError)
	}
	if r.Issued == 0 && !r.Partial {
		p.strike("nothing-issued", results.StrikesCorrectness, "no request was issued")
	}
}

// cells are the online counters of every window touched.
func (p *pass) cells() iter.Seq2[oracle.Key, *oracle.Cell] {
	return func(yield func(oracle.Key, *oracle.Cell) bool) {
		for i := range p.d.subjects {
			for c := p.d.subjects[i].cells.Load(); c != nil; c = c.next {
				if !yield(oracle.Key{Subject: uint32(i), Index: c.index}, &c.Cell) {
					return
				}
			}
		}
	}
}

// auditWorkload asks whether the requests were what the workload promises.
func (p *pass) auditWorkload(v *oracle.Verdict) {
	r := p.run
	if p.m.cfg.Workload.Crosses && v.Crossings == 0 && !r.Partial {
		p.strike("limit-never-crossed", results.StrikesCorrectness,
			"no subject was asked for more than its limit of %d %s, so nothing could leak; give a smaller --limit or a longer --duration", p.policy.Limit, p.policy.Unit)
	}
	if p.m.cfg.Workload.Boundary && !r.Partial && !p.leftFirstWindow(v) {
		p.strike("boundary-missed", results.StrikesCorrectness, "no request came after the window's end, which was to be in mid-run; give a longer --duration")
	}
	names := make(map[quota.Subject]struct{}, len(p.d.subjects))
	for i := range p.d.subjects {
		names[p.d.subjects[i].name] = struct{}{}
	}
	if len(names) != len(p.d.subjects) {
		p.strike("subjects-collapsed", results.StrikesCorrectness, "%d subjects share %d names", len(p.d.subjects), len(names))
	}
	meta := p.s.sel.Meta
	if meta.Reset == strategies.ResetsNever && p.leftFirstWindow(v) {
		p.strike("window-crossed", results.StrikesCorrectness, "the run crossed into another %s window, which this strategy has no reset for", p.policy.Window.Kind)
	}
	switch meta.Control {
	case strategies.ControlExact:
		if v.LeakUnits > 0 || v.FalseRejects > 0 {
			p.strike("control-failed", results.StrikesCorrectness, "the exact control leaked %d units and rejected %d requests wrongly: the instrument is wrong", v.LeakUnits, v.FalseRejects)
		}
	case strategies.ControlOpen:
		if r.Rejected > 0 {
			p.strike("control-failed", results.StrikesCorrectness, "the control that admits everything rejected %d requests", r.Rejected)
		}
	}
	if n := p.s.jobs.failed.Load(); n > 0 {
		p.strike("jobs-failed", results.StrikesNote, "%s of background jobs failed", plural(n, "round"))
	}
}

// leftFirstWindow reports whether a request was called, or answered, in another
// window than the one that the pass began in.
func (p *pass) leftFirstWindow(v *oracle.Verdict) bool {
	return slices.ContainsFunc(v.Windows, func(w oracle.WindowVerdict) bool { return w.Index != p.d.firstWindow || w.Crossed })
}

// auditStores asks whether the stores were ours alone and did as they should.
func (p *pass) auditStores() {
	if p.strays > 0 {
		p.strike("keys-under-prefix", results.StrikesCorrectness, "%d keys existed under this run's prefix before its first request", p.strays)
	}
	if n := p.cost.redis.Unparsed + p.cost.sql.Unparsed; n > 0 {
		p.strike("meter-lost", results.StrikesNote, "the traffic of %d connections could not be followed: commands and statements are too low", n)
	}
	if p.sqlRestarted() {
		p.strike("postgres-restarted", results.StrikesCorrectness, "PostgreSQL was restarted during the run")
	}
	b, a := p.redisBefore, p.redisAfter
	if !b.Known || !a.Known {
		return
	}
	if a.Incarnation != b.Incarnation {
		p.strike("redis-restarted", results.StrikesCorrectness, "Redis was restarted during the run")
		return
	}
	if n := a.Evicted - b.Evicted; n > 0 {
		p.strike("redis-evicted", results.StrikesCorrectness, "Redis evicted %d keys during the run: it is out of memory", n)
	}
	if a.Forks > b.Forks || a.Forking {
		p.strike("redis-forked", results.StrikesTimings, "Redis forked to save during the run")
	}
	if ours := p.cost.redis.Commands; a.Commands-b.Commands < ours {
		p.strike("redis-counts-less", results.StrikesNote, "Redis processed %d commands, fewer than the %d that were sent", a.Commands-b.Commands, ours)
	}
}

// auditTimings asks whether the machine and the instrument left the timings alone.
func (p *pass) auditTimings() {
	r := p.run
	if n := r.Latency.OutOfRange; n > 0 {
		p.strike("histogram-overflow", results.StrikesTimings, "%d latencies were beyond the histogram's range", n)
	}
	if s := p.steal.Share(); s > maxSteal {
		p.strike("cpu-steal", results.StrikesTimings, "%.1f %% of the processor time went to other machines of the host", 100*s)
	}
	l := r.Lateness
	if l == nil {
		return
	}
	if limit := float64(r.Latency.P50) * maxPacerShare; float64(l.PacerP50) > limit {
		p.strike("pacer-late", results.StrikesResponse,
			"requests were released %d µs late in the median, more than 5 %% of the median response: the response time does not count, the service time does", l.PacerP50/1000)
	}
	if l.Saturated {
		p.strike("saturated", results.StrikesNote,
			"the backlog grew from %d to %d requests: the strategy cannot keep up with this rate, and its latency grows with the duration", l.BacklogHalf, l.BacklogEnd)
	}
}

// strikeZeroLeaks takes back every conclusion that nothing leaks, where a
// control that is known to race did not leak either: the load was too weak to
// tell.
func strikeZeroLeaks(runs []results.Run, control string) {
	for i := range runs {
		r := &runs[i]
		if r.Leak.Units > 0 {
			continue
		}
		r.Audit.Strike("racy-control-clean", results.StrikesNote,
			control+" races and leaked nothing under this load, so a leak of 0 shows nothing either: give more --workers")
		for j := range r.Guarantee {
			if c := &r.Guarantee[j]; c.Property == string(quota.PropertyLeak) && c.Verdict == results.Kept {
				c.Verdict = results.Undecided
			}
		}
	}
}
