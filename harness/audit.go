package harness

import (
	"fmt"
	"math"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// maxErrorShare of the requests may end in an error that nothing explains and that is
// no result of the strategy's.
const maxErrorShare = 0.001

func (j *judgement) discard(code, format string, args ...any) {
	j.run.Audit.Discard(code, codes.DiscardsCorrectness, fmt.Sprintf(format, args...))
}

func (j *judgement) note(code, detail string) {
	j.run.Audit.Discard(code, codes.DiscardsNothing, detail)
}

// audit looks for reasons not to believe the figures.
func (j *judgement) audit() {
	j.auditCounts()
	j.auditErrors()
	j.auditWorkload()
	j.auditControl()
	if j.FailedRounds > 0 {
		j.note("jobs-failed", fmt.Sprintf("%s of background jobs failed, the first: %v",
			format.Number(j.FailedRounds, "round"), j.JobError))
		j.run.Audit.Reasons[len(j.run.Audit.Reasons)-1].Stack = guard.Stack(j.JobError)
	}
	if j.drift.saturated {
		j.note("drift-saturated", fmt.Sprintf("a sum of drift is larger than %d %s, and is given as that",
			int64(math.MaxInt64), j.run.Params.Unit))
	}
	if j.TiersFolded > 0 {
		j.note("tiers-folded",
			fmt.Sprintf("%s of tiers beyond those that a run tells apart; they are counted under no name",
				format.Number(j.TiersFolded, "decision")))
	}
}

// leaveToPeers is audit for a process that saw some of the requests alone. Whether its clauses were kept follows from
// the histories of all.
func (j *judgement) leaveToPeers() {
	run := j.run
	for _, clauses := range [][]results.Clause{run.Guarantee, run.Record} {
		for i := range clauses {
			if clause := &clauses[i]; clause.Verdict != results.NoPromise {
				clause.Certain = 0
				clause.Possible = 0
				clause.Verdict = results.Undecided
			}
		}
	}
	run.Drift = nil
	j.auditCounts()
	j.auditErrors()
	j.Plan.Peers.Judged(run, j.Facts)
}

// auditCounts compares independent counts of the same things.
func (j *judgement) auditCounts() {
	run := j.run
	verdict := j.verdict
	if verdict.Issued.Requests != run.Issued || verdict.Admitted.Requests != run.Admitted ||
		verdict.Rejected.Requests != run.Rejected ||
		verdict.Failed.Requests != run.Errors || verdict.Malformed > 0 {
		j.discard("count-mismatch", "callers counted %d issued, %d admitted, %d rejected, %d errors; the history holds "+
			"%d, %d, %d, %d and %d malformed",
			run.Issued, run.Admitted, run.Rejected, run.Errors, verdict.Issued.Requests, verdict.Admitted.Requests,
			verdict.Rejected.Requests, verdict.Failed.Requests, verdict.Malformed)
	}
	if j.Cells != nil {
		if err := oracle.Agree(*verdict, j.cfg, j.Cells); err != nil {
			j.discard("oracles-disagree", "%v", err)
		}
	}
	if run.Issued == 0 && !run.Partial {
		j.discard("nothing-issued", "no request was issued")
	}
}

// auditErrors asks whether the errors of takes are explained. Those of commits and
// refunds are counted apart.
func (j *judgement) auditErrors() {
	run := j.run
	prescribed := j.Counts.Prescribed.Total()
	first := run.FirstError
	if err := j.Counts.Suspect; err != nil {
		first = err.Error()
	}
	if share := float64(run.Errors-j.results()-j.planned) / float64(max(run.Issued, 1)); share > maxErrorShare {
		j.discard("errors", "%s of requests ended in an error, the first: %s", format.Pct(100*share), first)
	}
	if j.planned > 0 {
		j.note("planned-errors", format.Number(j.planned, "request")+" ended in an error during a planned outage or restart")
	}
	if n, replies := run.LostRequests, run.LostReplies; n+replies > 0 {
		j.note("network-lost", fmt.Sprintf("the network lost %s to a store before it had arrived, and %s of others after "+
			"they took effect, as planned", format.Number(n, "request"), format.Plural(replies, "reply", "replies")))
	}
	switch {
	case prescribed == 0:
	case strategies.IsCrossSlot(j.Counts.FirstError):
		j.note("prescribed-errors",
			fmt.Sprintf("%s failed: the strategy's source names keys of several slots in one command, "+
				"which a Redis Cluster refuses: %s", format.Number(prescribed, "request"), run.FirstError))
	default:
		j.note("prescribed-errors", fmt.Sprintf("%s ended in an error that the strategy's source asks for: %s",
			format.Number(prescribed, "request"), run.FirstError))
	}
}

// results counts the errors that are results of the strategy's: those that its source
// asks for, contention, killed callers, and, if nothing else explains them, time-outs. While a
// planned outage lasts, or a store could stop to answer without being noticed, a
// time-out may be the store's.
func (j *judgement) results() int64 {
	ours := j.Counts.Prescribed
	all := j.Counts.Errors
	ours.Contention = all.Contention
	ours.Killed = all.Killed
	if len(j.Outages) == 0 && !j.Unwatched {
		ours.TimeOuts = all.TimeOuts
	}
	return ours.Total()
}

// auditWorkload asks whether the requests were what the workload promises.
func (j *judgement) auditWorkload() {
	if meta := j.Plan.Workload; !j.run.Partial {
		switch run := j.run; {
		case !meta.Crosses || j.verdict.Crossings > 0:
		case run.Issued > 0 && j.Counts.Prescribed.Total() == run.Issued:
			j.note("nothing-admitted", "every request ended in an error that the strategy's source asks for: "+
				"nothing was admitted, so the leak of 0 says nothing")
		case j.asked > j.Policy.Limit && j.results() > 0:
			j.note(codes.NeverCrossed, fmt.Sprintf("no subject was asked for more than its limit of %s except by requests "+
				"that ended in an error of the strategy, %d in all: nothing could leak",
				format.Units(j.Policy.Limit, j.Policy.Unit), j.results()))
		default:
			j.discard(codes.NeverCrossed, "no subject was asked for more than its limit of %s, so nothing could leak; "+
				"give a smaller --limit or a longer --duration",
				format.Units(j.Policy.Limit, j.Policy.Unit))
		}
		if meta.Boundary && !j.leftFirstWindow() {
			j.discard("boundary-missed", "no request came after the window's end, which was to be in mid-run; give a longer "+
				"--duration")
		}
	}
	if j.Selection.Reset == strategies.ResetsNever && j.leftFirstWindow() {
		j.discard("window-crossed", "the run crossed into another %s window, which this strategy has no reset for",
			j.Policy.Window.Kind)
	}
}

// leftFirstWindow reports whether a request was called, or answered, in another
// window than the one that the run began in.
func (j *judgement) leftFirstWindow() bool {
	first := j.Policy.Window.At(j.Epoch).Index
	touched := &j.verdict.Touched
	return touched.Windows > 0 && (touched.First != first || touched.Last != first || touched.Crossed)
}

// auditControl asks whether strategies behave that are known to behave in a
// certain way whatever the machine does.
func (j *judgement) auditControl() {
	verdict := j.verdict
	switch j.Selection.Control {
	case strategies.ControlExact:
		if verdict.LeakUnits > 0 || verdict.FalseRejects > 0 {
			j.discard("control-failed", "the exact control leaked %s and rejected %s wrongly: "+
				"the instrument is wrong",
				format.Units(verdict.LeakUnits, "units"), format.Units(verdict.FalseRejects, "requests"))
		}
		if drift := j.run.Drift; drift != nil && drift.Units != 0 {
			j.discard("control-failed", "the exact control drifted by %s: the instrument is wrong",
				format.Units(drift.Units, "units"))
		}
	case strategies.ControlOpen:
		if j.run.Rejected > 0 {
			j.discard("control-failed", "the control that admits everything rejected %s",
				format.Number(j.run.Rejected, "request"))
		}
	}
}
