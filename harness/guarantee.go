package harness

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/internal/verdict"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// notPromised are the faults that happened and that no bound on the leak tolerates, each once. There are
// none if the leak has no bound: then nothing was promised at all.
func notPromised(declared []quota.Clause, kind quota.Kind, happened []quota.Fault) (faults []string) {
	bounded := false
	var tolerated []quota.Fault
	for _, clause := range declared {
		if clause.Property == quota.PropertyLeak && clause.Applies(kind) {
			bounded = true
			tolerated = append(tolerated, clause.Tolerates...)
		}
	}
	if !bounded {
		return nil
	}
	for _, fault := range happened {
		if slices.Contains(tolerated, fault) || slices.Contains(faults, string(fault)) {
			continue
		}
		faults = append(faults, string(fault))
	}
	return faults
}

// guarantee judges the clauses by the clocks that instances have: a clock that is
// ahead makes deadlines pass early, and only a strategy that tolerates that is judged. If somebody else changed
// counters of some subjects, a clause that others show as broken is broken.
func (j *judgement) guarantee(own, rolling, others *oracle.Verdict) {
	j.run.Guarantee = []results.Clause{}
	if j.StoresApart {
		j.notJudged()
		return
	}
	if j.Selection.Control == strategies.ControlExact { // it goes by one clock, whatever its instances' clocks show
		own = j.verdict
	}
	j.tampered()
	verdicts := verdict.Verdicts{Own: own, Stores: j.verdict, Rolling: rolling}
	params := j.params()
	happened := j.happened(&params)
	kind := j.Policy.Window.Kind
	judged := func(declared []quota.Clause) []results.Clause {
		clauses := j.noticed(happened, func(happened []quota.Fault) []results.Clause {
			return verdict.Clauses(declared, kind, happened, params, verdicts)
		})
		if others != nil {
			ofOthers := verdict.Clauses(declared, kind, happened, params, verdict.Verdicts{Own: others, Stores: others,
				Rolling: rolling})
			for i, clause := range ofOthers {
				if clause.Verdict == results.Broken {
					clauses[i] = clause
				}
			}
		}
		return clauses
	}
	j.run.Guarantee = judged(j.Selection.Guarantee)
	j.run.Record = judged(j.Selection.Record)
	j.run.NotPromised = notPromised(j.Selection.Guarantee, kind, happened)
	for _, notice := range j.Noticed {
		if notice.Code != "" {
			j.discard(notice.Code, "%s", notice.Detail)
		}
	}
}

// notJudged says that nothing is judged if each region counts in a store of its own.
func (j *judgement) notJudged() {
	declared := j.Selection.Guarantee
	if len(declared) > 0 {
		j.note("guarantee-not-judged", "what it declares is about one store, and here each region counts in its own")
	}
	aboutLeak := func(clause quota.Clause) bool { return clause.Property == quota.PropertyLeak }
	if slices.ContainsFunc(declared, aboutLeak) {
		j.run.NotPromised = []string{codes.SeveralRegions}
	}
}

// tampered tells of counters that were overwritten as planned, which no clause tolerates.
func (j *judgement) tampered() {
	planned := j.Plan.Trouble.Of(trouble.Tamper)
	if len(planned) == 0 {
		return
	}
	j.run.Overwritten = j.Overwritten
	j.note("overwritten", fmt.Sprintf("somebody else changed %s in Redis, as planned (%s): no clause holds then",
		format.Number(j.Overwritten, "value"), strings.Join(planned.Strings(), ", ")))
	j.Noticed = append(j.Noticed, Notice{})
}

// params are what bounds of clauses are worked out from.
func (j *judgement) params() quota.Params {
	params := verdict.Params(j.Policy, j.verdict)
	for _, change := range j.LimitChanges {
		params.Limit = max(params.Limit, change.Limit)
	}
	params.Instances = int64(j.Instances)
	params.SyncPeriod = j.SyncPeriod
	params.Skew = max(j.skew(), j.Apart)
	params.Pause = j.Pause
	params.Options = j.Selection.Options
	return params
}

// happened are the faults of the run, as far as they were planned.
func (j *judgement) happened(params *quota.Params) (faults []quota.Fault) {
	planned := j.Plan.Trouble
	outages := planned.Of(trouble.Outage)
	for _, event := range append(outages, planned.Of(trouble.Network)...) {
		faults = append(faults, event.Faults()...)
	}
	// The connections that an outage ends may have carried a command whose reply is then lost.
	losesReplies := len(outages) > 0 || slices.Contains(faults, quota.FaultLostReply)
	if losesReplies && j.run.Params.Retries > 0 {
		faults = append(faults, quota.FaultRetry)
	}
	if j.Evicts {
		faults = append(faults, quota.FaultEviction)
	}
	if len(j.LimitChanges) > 0 {
		faults = append(faults, quota.FaultLimit)
	}
	if len(j.Restarts) > 0 || planned.Has(trouble.Killed) {
		faults = append(faults, quota.FaultCrash)
	}
	if params.Skew > 0 || params.Pause > 0 {
		faults = append(faults, quota.FaultClock)
	}
	return faults
}

// Notice is something that happened to a store and that no plan asked for.
type Notice struct {
	// Fault is what it was to a strategy; "" is one that no clause tolerates.
	Fault quota.Fault
	// Code of the finding, which discards the correctness figures; "" if another
	// finding tells of it.
	Code string
	// Detail is one line, with the time.
	Detail string
}

// noticed returns the clauses under what was planned, and leaves those undecided that do not tolerate what happened to
// the stores: whether a strategy would have kept them is not known.
func (j *judgement) noticed(happened []quota.Fault, clauses func([]quota.Fault) []results.Clause) []results.Clause {
	promised := clauses(happened)
	happened = slices.Clip(happened)
	for _, n := range j.Noticed {
		happened = append(happened, n.Fault)
	}
	left := clauses(happened)
	for i, clause := range promised {
		if !slices.ContainsFunc(left, func(x results.Clause) bool { return reflect.DeepEqual(x, clause) }) {
			promised[i].Verdict = results.Undecided
		}
	}
	return promised
}
