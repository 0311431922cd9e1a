package ranking

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// MaxBound is the largest bound on the leak of one window, as a share of the limit, with
// which a strategy still enforces it.
const MaxBound = 0.1

const (
	// mostRejected is the share in percent of what had to be admitted from which on wrong
	// rejections make a strategy unusable, and of all requests from which on its first error
	// is named.
	mostRejected = 90
	// mostErrors is the share of requests in percent above which errors do.
	mostErrors = 10
	// fewTrials is how many it takes for a leak of one trial in ten to show with 95 %
	// confidence.
	fewTrials = 30
)

// Classify says which group a strategy belongs to, and why. The open loop at the common
// rate counts as well: the worse group stands.
func Classify(summary *results.Summary) Strategy {
	out := classify(summary)
	out.Broken = ofDesignRecord(summary)
	if summary.Paced == nil || out.Group == Baseline || summary.Paced.Counts() && summary.Paced.Leak.Trials == 0 {
		return out
	}
	paced := classify(summary.Paced)
	out.TakeWorse(&paced, "in the open loop")
	return out
}

// TakeWorse replaces the group, and what it follows from, by those of the same strategy under another load,
// if that group is worse. where says which load, such as "in the open loop", and ends the reason.
func (s *Strategy) TakeWorse(other *Strategy, where string) {
	if rank(other.Group) <= rank(s.Group) {
		return
	}
	s.Group = other.Group
	s.Reason = other.Reason + " (" + where + ")"
	s.Judged = other.Judged
}

// judgement is what a strategy declares, next to the summary that shows whether it holds.
type judgement struct {
	*results.Summary
	leak, mayReject bound
	// planned names the trouble of the run that explains wrong rejections; "" for none.
	planned string
}

// classify groups by one load. The first of these that applies is the group.
func classify(summary *results.Summary) Strategy {
	j := judgement{
		Summary:   summary,
		leak:      boundOn(summary, string(quota.PropertyLeak)),
		mayReject: boundOn(summary, string(quota.PropertyFalseReject)),
		planned:   troubled(summary),
	}
	out := Strategy{
		Label: summary.Label, PerProcess: summary.PerProcess, Declares: j.leak.declared, Survives: j.leak.survives,
		Summary: summary, Judged: summary,
	}
	for _, groupOf := range []func() (Group, string){j.unusable, j.fails, j.tooLoose, j.disturbed} {
		group, reason := groupOf()
		if group != "" {
			out.setGroup(group, reason)
			return out
		}
	}
	out.Known = knownOf(summary)
	parts := j.bounded()
	found := out.WithoutFault()
	switch {
	case parts != nil:
		out.setGroup(Bounded, strings.Join(parts, "; "))
	case found != "":
		out.setGroup(Fails, "held the limit here, but a search found "+found+" without any fault")
		return out
	default:
		out.setGroup(Enforces, clean(summary, j.leak))
	}
	out.Conditions = append(conditions(summary, j.leak), knownText(out.Known)...)
	return out
}

// setGroup sets the group and its reason, with what else has to be known of the figures.
func (s *Strategy) setGroup(group Group, reason string) {
	if s.Summary.PerProcess {
		reason += "; counts per process"
	}
	if s.Summary.Outside && group != Baseline {
		reason += "; measured from outside"
	}
	s.Group = group
	s.Reason = format.Plain(reason)
}

// Unreached reports whether nobody asked for more than the limit, so that it was not seen whether it holds.
func (s *Strategy) Unreached() bool { return unreached(s.Judged) }

func unreached(summary *results.Summary) bool {
	return summary.Leak.Trials == 0 && summary.Leak.Units == 0 && summary.FalseRejects.Count == 0
}

// unusable is the group of a strategy whose figures do not show whether it enforces the policy.
func (j *judgement) unusable() (Group, string) {
	switch {
	case j.Form == string(strategies.Baseline):
		return Baseline, "marks the floor or the ceiling"
	case !j.Counts() && j.Audit.Has(codes.NeverCrossed):
		return Undecided, j.Audit.Discarded()
	case !j.Counts():
		return Unusable, "its figures do not count: " + j.Audit.Discarded()
	case errorsPct(j.Summary, false) > mostErrors:
		return Unusable, failing(j.Summary)
	case notGivenPct(j.Summary) >= mostRejected:
		return Unusable, rejects(j.Summary)
	case unreached(j.Summary) && timedOut(j.Summary):
		return Undecided, busyText(j.Summary)
	case unreached(j.Summary):
		return Undecided, "nothing was asked beyond the limit, so no leak could show"
	}
	return "", ""
}

// fails is the group of a strategy that does not keep what it declares.
func (j *judgement) fails() (Group, string) {
	switch {
	case j.Leak.Units > 0 && (!j.leak.finite() || j.Leak.WorstUnits > j.leak.units):
		return Fails, leaks(j.Summary) + ", " + j.leak.passed(j.Params.Unit)
	case j.FalseRejects.Count > 0 && !j.mayReject.declared && j.planned == "":
		return Fails, rejects(j.Summary) + ", and declares no bound"
	}
	clause := violated(j.Summary)
	if clause == nil {
		return "", ""
	}
	return Fails, fmt.Sprintf("breaks its guarantee: %s of at most %s, %s beyond it", property(clause.Property),
		clause.Formula, format.Units(clause.Certain, j.Params.Unit))
}

// tooLoose is the group of a strategy whose bound on the leak is larger than [MaxBound].
func (j *judgement) tooLoose() (Group, string) {
	if !j.leak.finite() || float64(j.leak.units) <= MaxBound*float64(j.Params.Limit) {
		return "", ""
	}
	parts := j.bounded()
	parts[0] += fmt.Sprintf(", which is more than %.4g %% of the limit", 100*MaxBound)
	group := Loose
	if j.Leak.Units > 0 {
		group = Fails
	}
	return group, strings.Join(parts, "; ")
}

// disturbed is the group of a strategy whose requests timed out, perhaps because of the machine.
func (j *judgement) disturbed() (Group, string) {
	if !timedOut(j.Summary) {
		return "", ""
	}
	return Undecided, busyText(j.Summary)
}

// bounded says within which bounds the strategy enforces the policy; nil if it has no need of any.
func (j *judgement) bounded() (parts []string) {
	switch {
	case j.Leak.Units > 0:
		parts = append(parts, leaks(j.Summary)+", "+j.leak.text(j.Params.Unit))
	case j.leak.declared && j.leak.units > 0:
		parts = append(parts, "no leak found, "+j.leak.text(j.Params.Unit))
	}
	switch {
	case j.FalseRejects.Count > 0 && !j.mayReject.declared:
		parts = append(parts, rejects(j.Summary)+" "+j.planned)
	case j.FalseRejects.Count > 0:
		parts = append(parts, rejects(j.Summary)+", as it declares")
	case j.mayReject.declared && j.mayReject.units > 0:
		parts = append(parts, "may reject wrongly, as it declares")
	}
	return parts
}

// bound is the strictest of the declared clauses on one property.
type bound struct {
	declared bool
	units    int64
	survives int // faults that it tolerates
	clause   *results.Clause
	without  []string // faults that were injected and that no bound tolerates
}

func boundOn(summary *results.Summary, property string) bound {
	b := bound{units: quota.Unbounded}
	if property == string(quota.PropertyLeak) {
		b.without = summary.NotPromised
	}
	for _, clause := range summary.Guarantee {
		if clause.Property == property {
			if clause.Bound < b.units || clause.Bound == b.units && len(clause.Tolerates) > b.survives {
				b.units = clause.Bound
				b.survives = len(clause.Tolerates)
				b.clause = &clause
			}
			b.declared = true
		}
	}
	return b
}

// conditions of a promise, from its declaration, and the drift at rest.
func conditions(summary *results.Summary, leak bound) (out []string) {
	if leak.clause != nil {
		if leak.clause.Condition != "" {
			out = append(out, leak.clause.Condition)
		}
		var breaks []string
		for _, fault := range quota.Faults() {
			if !slices.Contains(leak.clause.Tolerates, string(fault)) {
				breaks = append(breaks, cmp.Or(map[quota.Fault]string{quota.FaultLimit: "a changed limit"}[fault], string(fault)))
			}
		}
		switch {
		case len(breaks) == len(quota.Faults()):
			out = append(out, "it promises nothing under faults")
		case breaks != nil:
			out = append(out, "it promises nothing under "+format.Or(breaks))
		}
	}
	if drift, ok := summary.AtRest(); ok && drift.Units != 0 {
		out = append(out, fmt.Sprintf("drift %+d %s at rest", drift.Units, summary.Params.Unit))
	}
	return out
}

// ofDesignRecord is the first promise of the design record that the run broke, if any.
func ofDesignRecord(summary *results.Summary) string {
	for _, x := range []*results.Summary{summary, summary.Paced} {
		if x == nil || !x.Counts() {
			continue
		}
		for _, clause := range x.Record {
			if clause.Verdict == results.Broken {
				return contradicted(&clause, summary.Params.Unit)
			}
		}
	}
	return ""
}

// contradicted says what a design record allows, and by how much that was passed.
func contradicted(clause *results.Clause, unit string) string {
	allowed := clause.Formula
	if allowed == "L" {
		allowed = "the limit"
	}
	beyond := format.Units(clause.Certain-clause.Bound, unit)
	if clause.Property == string(quota.PropertyLeak) {
		return clause.Source + " promises at most " + allowed + ", and " + beyond + " more were admitted"
	}
	what := property(clause.Property) + " of at most " + allowed
	return clause.Source + " promises " + what + ", and there are " + beyond + " more"
}

// finite reports whether the strategy declares a bound that can be exceeded. Any number is declared as
// [quota.Unbounded].
func (b bound) finite() bool { return b.declared && b.units != quota.Unbounded }

func (b bound) text(unit string) string {
	switch {
	case !b.declared && len(b.without) > 0:
		return "promises nothing under " + strings.Join(b.without, " or ")
	case !b.declared:
		return "declares no bound"
	case !b.finite():
		return "declares no bound in this setting"
	default:
		return "bounded by " + format.Units(b.units, unit) + " per window"
	}
}

// passed says that the leak is beyond it.
func (b bound) passed(unit string) string {
	switch {
	case b.finite() && b.units == 0:
		return "and declares that none leak"
	case b.finite():
		return "beyond the declared " + format.Count(b.units)
	default:
		return b.text(unit)
	}
}

// leaks says by how much the limit was passed.
func leaks(summary *results.Summary) string {
	text := "over-admits " + format.Pct(summary.Leak.PctOfLimit) + " of the limit"
	if summary.Leak.WorstUnits > 0 {
		text += ", " + format.Units(summary.Leak.WorstUnits, summary.Params.Unit) + " in the worst window"
	}
	return text
}

// troubled is the planned trouble that may have a strategy reject valid requests: what is charged for a caller
// that was killed stays charged. It is empty if none was planned.
func troubled(summary *results.Summary) string {
	planned := summary.Params.Trouble
	switch {
	case len(planned.Of(trouble.Outage, trouble.Pause, trouble.Restart)) > 0:
		return "while its store is away or after that"
	case len(planned.Of(trouble.Network)) > 0:
		return "while the network is as bad as was planned"
	case planned.Has(trouble.Killed):
		return "after callers were killed"
	case len(planned.Of(trouble.Tamper)) > 0:
		return "after counters were overwritten"
	}
	return ""
}

// rejects says how often valid requests are rejected, and how much room that kept from callers
// for good: the share counts a unit again for each attempt.
func rejects(summary *results.Summary) string {
	text := "rejects " + format.Pct(summary.FalseRejects.PctOfValid) + " of valid requests"
	if n := summary.FalseRejects.NeverGiven; n != nil {
		text += " (room never given: " + format.Units(*n, summary.Params.Unit) + ")"
	}
	return text
}

// notGivenPct is the share in percent of what had to be admitted and never was. Units become
// requests by the mean cost of the wrongly rejected ones. If the room is not known, it is the share of
// valid requests.
func notGivenPct(summary *results.Summary) float64 {
	rejects := &summary.FalseRejects
	if rejects.NeverGiven == nil || rejects.Units == 0 {
		return rejects.PctOfValid
	}
	requests := float64(*rejects.NeverGiven) * float64(rejects.Count) / float64(rejects.Units)
	return stat.Percent(requests, requests+float64(summary.Admitted-summary.Leak.Requests))
}

// clean says how much evidence there is that nothing leaks.
func clean(summary *results.Summary, leak bound) string {
	text := "never over the limit in " + format.Number(summary.Leak.Trials, "window")
	if summary.Leak.Trials < fewTrials {
		text += " (few)"
	}
	if summary.Leak.Possible > 0 {
		text += " for certain, and by at most " + format.Units(summary.Leak.Possible, summary.Params.Unit)
	}
	if !leak.declared {
		text += ", but " + leak.text(summary.Params.Unit)
	}
	return text
}

// errorsPct is the share of requests that ended in an error. Those that a planned
// outage or kill explains are left out, and unless busy is set the time-outs of a busy machine.
func errorsPct(summary *results.Summary, busy bool) float64 {
	n := summary.Errors
	if summary.ErrorKinds != nil {
		n -= summary.ErrorKinds.Killed
	}
	switch {
	case summary.ErrorKinds != nil &&
		len(summary.Params.Trouble.Of(trouble.Outage, trouble.Network, trouble.Pause, trouble.Restart)) > 0:
		n -= summary.ErrorKinds.Store + summary.ErrorKinds.TimeOuts
	case !busy:
		n -= summary.BusyTimeOuts
	}
	return stat.Percent(n, summary.Issued)
}

// timedOut reports whether time-outs of a busy machine make too many requests end in errors.
func timedOut(summary *results.Summary) bool { return errorsPct(summary, true) > mostErrors }

func busyText(summary *results.Summary) string {
	return format.Pct(stat.Percent(summary.BusyTimeOuts, summary.Issued)) +
		" of requests timed out while the machine was busy"
}

// failing says how many requests end in an error, and in which one.
func failing(summary *results.Summary) string {
	text := format.Pct(errorsPct(summary, true)) + " of requests end in an error"
	if FailsAlways(summary) {
		text += ": " + summary.FirstError
	}
	return text
}

// FailsAlways reports whether nearly all requests end in errors: then the first one
// says why the strategy cannot be used.
func FailsAlways(summary *results.Summary) bool {
	return summary.FirstError != "" && stat.Percent(summary.Errors, summary.Issued) >= mostRejected
}

func violated(summary *results.Summary) *results.Clause {
	for i := range summary.Guarantee {
		if summary.Guarantee[i].Verdict == results.Broken {
			return &summary.Guarantee[i]
		}
	}
	return nil
}

func property(name string) string {
	if name == string(quota.PropertyFalseReject) {
		return "false rejects"
	}
	return name
}
