package ranking

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/quota/trouble"
	"github.com/quotabench/quotabench/results"
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
func Classify(s *results.Summary) Strategy {
	out := classify(s)
	out.Broken = ofRecord(s)
	if s.Paced == nil || out.Group == Baseline || s.Paced.Counts() && s.Paced.Leak.Trials == 0 {
		return out
	}
	paced := classify(s.Paced)
	out.Also(&paced, "in the open loop")
	return out
}

// Also has the worse group of two loads stand, and its reason say where.
func (s *Strategy) Also(other *Strategy, where string) {
	if rank(other.Group) > rank(s.Group) {
		s.Group = other.Group
		s.Reason = other.Reason + " (" + where + ")"
		s.Judged = other.Judged
	}
}

func classify(s *results.Summary) Strategy {
	leak := boundOn(s, results.LeakProperty)
	mayReject := boundOn(s, results.FalseRejectProperty)
	out := Strategy{Label: s.Label, PerProcess: s.PerProcess, Declares: leak.declared, Survives: leak.survives, Summary: s, Judged: s}
	unit := s.Params.Unit
	planned := troubled(s)
	set := func(g Group, reason string) Strategy {
		if s.PerProcess {
			reason += "; counts per process"
		}
		if s.Outside && g != Baseline {
			reason += "; measured from outside"
		}
		out.Group, out.Reason = g, format.Plain(reason)
		return out
	}
	switch {
	case s.Form == results.FormBaseline:
		return set(Baseline, "marks the floor or the ceiling")
	case !s.Counts():
		return set(Unusable, "its figures do not count: "+s.Audit.Discarded())
	case errorsPct(s, false) > mostErrors:
		return set(Unusable, failing(s))
	case notGivenPct(s) >= mostRejected:
		return set(Unusable, rejects(s))
	case s.Leak.Trials == 0 && s.Leak.Units == 0 && s.FalseRejects.Count == 0 && timedOut(s):
		return set(Undecided, busyText(s))
	case s.Leak.Trials == 0 && s.Leak.Units == 0 && s.FalseRejects.Count == 0:
		return set(Unusable, "its figures do not count: nothing was asked beyond the limit, so no leak could show")
	case s.Leak.Units > 0 && (!leak.bounds() || s.Leak.WorstUnits > leak.units):
		return set(Fails, leaks(s)+", "+leak.passed(unit))
	case s.FalseRejects.Count > 0 && !mayReject.declared && planned == "":
		return set(Fails, rejects(s)+", and declares no bound")
	}
	if c := violated(s); c != nil {
		return set(Fails, fmt.Sprintf("breaks its guarantee: %s of at most %s, %s beyond it", property(c.Property), c.Formula,
			format.Units(c.Certain, unit)))
	}
	var parts []string
	switch {
	case s.Leak.Units > 0:
		parts = append(parts, leaks(s)+", "+leak.text(unit))
	case leak.declared && leak.units > 0:
		parts = append(parts, "no leak found, "+leak.text(unit))
	}
	switch {
	case s.FalseRejects.Count > 0 && !mayReject.declared:
		parts = append(parts, rejects(s)+" "+planned)
	case s.FalseRejects.Count > 0:
		parts = append(parts, rejects(s)+", as it declares")
	case mayReject.declared && mayReject.units > 0:
		parts = append(parts, "may reject wrongly, as it declares")
	}
	if leak.bounds() && float64(leak.units) > MaxBound*float64(s.Params.Limit) {
		parts[0] += fmt.Sprintf(", which is more than %.4g %% of the limit", 100*MaxBound)
		if s.Leak.Units > 0 {
			return set(Fails, strings.Join(parts, "; "))
		}
		return set(Loose, strings.Join(parts, "; "))
	}
	if timedOut(s) {
		return set(Undecided, busyText(s))
	}
	out.Conditions = append(conditions(s, leak), knownOf(s)...)
	if parts != nil {
		return set(Bounded, strings.Join(parts, "; "))
	}
	return set(Enforces, clean(s, leak))
}

// bound is the strictest of the declared clauses on one property.
type bound struct {
	declared bool
	units    int64
	survives int // faults that it tolerates
	clause   *results.Clause
	without  []string // faults that were injected and that no bound tolerates
}

func boundOn(s *results.Summary, property string) bound {
	b := bound{units: quota.Unbounded}
	if property == results.LeakProperty {
		b.without = s.NotPromised
	}
	for _, c := range s.Guarantee {
		if c.Property == property {
			if c.Bound < b.units || c.Bound == b.units && len(c.Tolerates) > b.survives {
				b.units = c.Bound
				b.survives = len(c.Tolerates)
				b.clause = &c
			}
			b.declared = true
		}
	}
	return b
}

// conditions of a promise, from its declaration, and the drift at rest.
func conditions(s *results.Summary, leak bound) (out []string) {
	if leak.clause != nil {
		for _, word := range []string{" while ", " if ", " with "} {
			if _, rest, ok := strings.Cut(leak.clause.Formula, word); ok {
				out = append(out, word[1:]+rest)
				break
			}
		}
		var breaks []string
		for _, f := range quota.Faults() {
			if !slices.Contains(leak.clause.Tolerates, string(f)) {
				breaks = append(breaks, cmp.Or(map[quota.Fault]string{quota.FaultLimit: "a changed limit"}[f], string(f)))
			}
		}
		switch {
		case len(breaks) == len(quota.Faults()):
			out = append(out, "no guarantee under faults")
		case breaks != nil:
			out = append(out, "no guarantee under "+strings.Join(breaks, ", "))
		}
	}
	if t, ok := s.AtRest(); ok && t.Units != 0 {
		out = append(out, fmt.Sprintf("drift %+d %s at rest", t.Units, s.Params.Unit))
	}
	return out
}

// ofRecord is the first promise of the design record that the run broke, if any.
func ofRecord(s *results.Summary) string {
	for _, x := range []*results.Summary{s, s.Paced} {
		if x == nil || !x.Counts() {
			continue
		}
		for _, c := range x.Record {
			if c.Verdict == results.Broken {
				record, _, _ := strings.Cut(c.Claimed(), ":")
				what := "at most "
				if c.Property != results.LeakProperty {
					what = property(c.Property) + " of at most "
				}
				return record + " promises " + what + c.Formula + ", " + c.Said(s.Params.Unit)
			}
		}
	}
	return ""
}

// bounds reports whether it limits anything.
func (b bound) bounds() bool { return b.declared && b.units != quota.Unbounded }

func (b bound) text(unit string) string {
	switch {
	case !b.declared && len(b.without) > 0:
		return "promises nothing under " + strings.Join(b.without, " or ")
	case !b.declared:
		return "declares no bound"
	case !b.bounds():
		return "declares no bound in this setting"
	default:
		return "bounded by " + format.Units(b.units, unit) + " per window"
	}
}

// passed says that the leak is beyond it.
func (b bound) passed(unit string) string {
	switch {
	case b.bounds() && b.units == 0:
		return "and declares that none leak"
	case b.bounds():
		return "beyond the declared " + format.Count(b.units)
	default:
		return b.text(unit)
	}
}

// leaks says by how much the limit was passed.
func leaks(s *results.Summary) string {
	text := "over-admits " + format.Pct(s.Leak.PctOfLimit) + " of the limit"
	if s.Leak.WorstUnits > 0 {
		text += ", " + format.Units(s.Leak.WorstUnits, s.Params.Unit) + " in the worst window"
	}
	return text
}

// troubled is the planned trouble that may have a strategy reject valid requests: what is charged for a caller
// that was killed stays charged. It is empty if none was planned.
func troubled(s *results.Summary) string {
	planned := s.Params.Trouble
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
func rejects(s *results.Summary) string {
	text := "rejects " + format.Pct(s.FalseRejects.PctOfValid) + " of valid requests"
	if n := s.FalseRejects.NeverGiven; n != nil {
		text += " (room never given: " + format.Units(*n, s.Params.Unit) + ")"
	}
	return text
}

// notGivenPct is the share in percent of what had to be admitted and never was. Units become
// requests by the mean cost of the wrongly rejected ones. If the room is not known, it is the share of
// valid requests.
func notGivenPct(s *results.Summary) float64 {
	f := &s.FalseRejects
	if f.NeverGiven == nil || f.Units == 0 {
		return f.PctOfValid
	}
	requests := float64(*f.NeverGiven) * float64(f.Count) / float64(f.Units)
	return results.Percent(requests, requests+float64(s.Admitted-s.Leak.Requests))
}

// clean says how much evidence there is that nothing leaks.
func clean(s *results.Summary, leak bound) string {
	text := "no leak in "
	if s.Leak.Trials < fewTrials {
		text += "only "
	}
	text += format.Number(s.Leak.Trials, "trial")
	if s.Leak.Possible > 0 {
		text += " for certain, " + format.Units(s.Leak.Possible, s.Params.Unit) + " at most"
	}
	if !leak.declared {
		text += ", but " + leak.text(s.Params.Unit)
	}
	return text
}

// errorsPct is the share of requests that ended in an error. Those that a planned
// outage or kill explains are left out, and unless busy is set the time-outs of a busy machine.
func errorsPct(s *results.Summary, busy bool) float64 {
	n := s.Errors
	if s.ErrorKinds != nil {
		n -= s.ErrorKinds.Killed
	}
	switch {
	case s.ErrorKinds != nil && len(s.Params.Trouble.Of(trouble.Outage, trouble.Network, trouble.Pause, trouble.Restart)) > 0:
		n -= s.ErrorKinds.Store + s.ErrorKinds.TimeOuts
	case !busy:
		n -= s.BusyTimeOuts
	}
	return results.Percent(n, s.Issued)
}

// timedOut reports whether time-outs of a busy machine make too many requests end in errors.
func timedOut(s *results.Summary) bool { return errorsPct(s, true) > mostErrors }

func busyText(s *results.Summary) string {
	return format.Pct(results.Percent(s.BusyTimeOuts, s.Issued)) + " of requests timed out while the machine was busy"
}

// failing says how many requests end in an error, and in which one.
func failing(s *results.Summary) string {
	text := format.Pct(errorsPct(s, true)) + " of requests end in an error"
	if FailsAlways(s) {
		text += ": " + s.FirstError
	}
	return text
}

// FailsAlways reports whether nearly all requests end in errors: then the first one
// says why the strategy cannot be used.
func FailsAlways(s *results.Summary) bool {
	return s.FirstError != "" && results.Percent(s.Errors, s.Issued) >= mostRejected
}

func violated(s *results.Summary) *results.Clause {
	for i := range s.Guarantee {
		if s.Guarantee[i].Verdict == results.Broken {
			return &s.Guarantee[i]
		}
	}
	return nil
}

func property(name string) string {
	if name == results.FalseRejectProperty {
		return "false rejects"
	}
	return name
}
