package harness

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/verdict"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/quota/trouble"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// notPromised are the faults that happened and under which no clause bounds the leak.
func notPromised(declared []quota.Clause, kind quota.Kind, happened []quota.Fault) (out []string) {
	leak := slices.DeleteFunc(slices.Clone(declared), func(clause quota.Clause) bool {
		return clause.Property != quota.PropertyLeak || !clause.Applies(kind)
	})
	if len(leak) == 0 {
		return nil
	}
	for _, fault := range happened {
		tolerated := slices.ContainsFunc(leak, func(clause quota.Clause) bool {
			return slices.Contains(clause.Tolerates, fault)
		})
		if !tolerated && !slices.Contains(out, string(fault)) {
			out = append(out, string(fault))
		}
	}
	return out
}

// guarantee judges the clauses by the clocks that instances have: a clock that is
// ahead makes deadlines pass early, and only a strategy that tolerates that is judged.
func (j *judgement) guarantee(own, rolling *oracle.Verdict) {
	j.run.Guarantee = []results.Clause{}
	if j.StoresApart {
		if len(j.Selection.Guarantee) > 0 {
			j.note("guarantee-not-judged", "what it declares is about one store, and here each region counts in its own")
		}
		if slices.ContainsFunc(j.Selection.Guarantee, func(clause quota.Clause) bool {
			return clause.Property == quota.PropertyLeak
		}) {
			j.run.NotPromised = []string{results.SeveralRegions}
		}
		return
	}
	if j.Selection.Control == strategies.ControlExact { // it goes by one clock, whatever its instances' clocks show
		own = j.verdict
	}
	if tampered := j.Plan.Trouble.Of(trouble.Tamper); len(tampered) > 0 {
		n := j.Overwritten
		j.run.Overwritten = n
		j.note("overwritten", fmt.Sprintf("somebody else changed %s in Redis, as planned (%s): no clause holds then",
			format.Number(n, "value"), strings.Join(tampered.Strings(), ", ")))
		j.Noticed = append(j.Noticed, Notice{})
	}
	var happened []quota.Fault
	outages := j.Plan.Trouble.Of(trouble.Outage)
	for _, event := range append(outages, j.Plan.Trouble.Of(trouble.Network)...) {
		happened = append(happened, event.Faults()...)
	}
	// The connections that an outage ends may have carried a command whose reply is then lost.
	if j.run.Params.Retries > 0 && (len(outages) > 0 || slices.Contains(happened, quota.FaultLostReply)) {
		happened = append(happened, quota.FaultRetry)
	}
	if j.Evicts {
		happened = append(happened, quota.FaultEviction)
	}
	if len(j.LimitChanges) > 0 {
		happened = append(happened, quota.FaultLimit)
	}
	if len(j.Restarts) > 0 || j.Plan.Trouble.Has(trouble.Killed) {
		happened = append(happened, quota.FaultCrash)
	}
	params := verdict.Params(j.Policy, j.verdict)
	for _, change := range j.LimitChanges {
		params.Limit = max(params.Limit, change.Limit)
	}
	params.Instances, params.SyncPeriod, params.Skew = int64(j.Instances), j.SyncPeriod, max(j.skew(), j.Apart)
	params.Options = j.Selection.Options
	params.Pause = j.Pause
	if params.Skew > 0 || params.Pause > 0 {
		happened = append(happened, quota.FaultClock)
	}
	judged := func(declared []quota.Clause) []results.Clause {
		return j.noticed(happened, func(happened []quota.Fault) []results.Clause {
			return verdict.Clauses(declared, j.Policy.Window.Kind, happened, params,
				verdict.Verdicts{Own: own, Stores: j.verdict, Rolling: rolling})
		})
	}
	j.run.Guarantee, j.run.Record = judged(j.Selection.Guarantee), judged(j.Selection.Record)
	j.run.NotPromised = notPromised(j.Selection.Guarantee, j.Policy.Window.Kind, happened)
	for _, n := range j.Noticed {
		if n.Code != "" {
			j.discard(n.Code, "%s", n.Detail)
		}
	}
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
