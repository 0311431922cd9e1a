package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/redact"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// newResult is what was asked for.
func newResult(sel strategies.Selection, config *Config) *Result {
	search := &Result{
		Strategy: sel.String(), Policy: config.policyName(), Limit: config.Policy.Limit, Unit: config.Policy.Unit,
		Clients: config.Clients, Instances: config.Instances, Faults: config.Faults, Times: config.Times,
		Passes: config.Passes, FromNS: int64(config.From), Used: config.Used,
		Properties: slices.Clone(config.Properties), Findings: []Finding{},
	}
	if config.Passes || slices.Contains(config.Faults, quota.FaultClock) {
		search.Ticks = config.Ticks
	}
	if search.Faults == nil {
		search.Faults = []quota.Fault{}
	}
	if sel.Form == strategies.Library {
		search.Window = config.Policy.Window.When()
	}
	for _, script := range config.Scripts {
		search.Scripts = append(search.Scripts, script.String())
	}
	return search
}

// newResult is the result of the search before it begins: what it is about to look for.
func (s *search) newResult() *Result {
	traits := s.Traits
	config := &s.cfg
	result := newResult(s.sel, config)
	result.Service = redact.URLs(config.Service)
	result.ClockGoes = config.Service != "" && config.Postgres != nil
	if !config.Passes && !s.Setup.Ticks() {
		result.Clock = config.ServiceClock
	}
	result.Store = traits.Store
	result.Split = traits.Splits && s.Setup.Split()
	leaveOut := func(left Property) {
		result.Properties = slices.DeleteFunc(result.Properties, func(property Property) bool { return property == left })
	}
	if !traits.Deadlines { // rows have none
		leaveOut(TTL)
	}
	// What the keys of a library hold is its own business, e.g. a time before its epoch.
	if s.sel.Form == strategies.Library && len(result.Properties) > 1 {
		leaveOut(Negative)
	}
	if s.normal.periodic {
		result.JobRounds = max(0, config.JobRounds)
	}
	if traits.State {
		result.Asks = max(0, config.Asks)
	}
	return result
}

// conclude says what may be claimed, or why nothing may.
func (s *search) conclude(r *Result) {
	r.OtherSubjects = s.Run.Crowd
	r.Withheld = withheld(s.Witness)
	if w := s.Witness; s.sel.Foreign && (w.Noted(witness.NeverAgain) || w.Noted(witness.WallClock)) {
		// Its time has not passed: what it did after a tick says nothing.
		r.Findings = slices.DeleteFunc(r.Findings, func(finding Finding) bool {
			return slices.ContainsFunc(finding.Steps, func(step results.Step) bool { return step.Event == codes.EventTick })
		})
	}
	for _, fault := range s.cfg.Faults {
		if !s.applied[fault] {
			r.Unmet = append(r.Unmet, fault)
		}
	}
	if len(r.Withheld) == 0 {
		r.Claim = s.claim(r)
	}
}

func withheld(w *witness.Witness) (out []results.Withheld) {
	for _, reason := range w.Reasons() {
		out = append(out, results.Withheld{Code: string(reason.Code), Detail: reason.Detail})
	}
	return out
}

// unseen is the error that goes with reasons, nil if there are none.
func unseen(reasons []results.Withheld) error {
	if len(reasons) == 0 {
		return nil
	}
	said := func(withheld results.Withheld) string { return fmt.Sprintf("%s (%s)", withheld.Detail, withheld.Code) }
	return fmt.Errorf("%w: %s", ErrUnseen, format.List(reasons, "; ", said))
}

// claim is what may be said of the properties that were not broken.
func (s *search) claim(r *Result) string {
	if !r.Tried() {
		return ""
	}
	r.Held = s.unbroken(r)
	properties := strings.Join(format.Strings(r.Held), ", ")
	switch {
	case len(r.Held) == 0:
		return ""
	case r.Capped != "":
		return s.cappedClaim(r, properties)
	case r.Service != "":
		return s.serviceClaim(r, properties)
	}
	return s.wholeClaim(r, properties)
}

// unbroken are the properties of which no violation was found, and which the search could have broken.
func (s *search) unbroken(r *Result) (held []Property) {
	for _, property := range r.Properties {
		if r.Found(property) == nil && (property != FalseReject || r.AllowedBy == "") &&
			(property != TTL || hasEnd(&s.cfg.Policy)) {
			held = append(held, property)
		}
	}
	return held
}

// cappedClaim is that of a search which ended before it had tried all schedules.
func (s *search) cappedClaim(r *Result, properties string) string {
	schedules := format.Number(r.Runs+r.LeftOut, "schedule")
	return fmt.Sprintf("%s: none found in %s of up to %d steps%s%s%s; the search was not complete (%s)", properties,
		schedules, r.Depth, s.fewText(r), unmet(r, "did not occur"), s.wholeCalls(""), r.Capped)
}

// serviceClaim is that of a search over processes of a service.
func (s *search) serviceClaim(r *Result, properties string) string {
	process := r.Service
	if s.cfg.ServiceClock != "" {
		process += ", its clock at " + s.cfg.ServiceClock
	} else if s.Setup.Ticks() {
		process += ", whose own clock was not moved,"
	}
	whose := "each client has a process"
	if r.Instances < r.Clients {
		whose = "the clients share " + format.Number(r.Instances, "instance")
	}
	return fmt.Sprintf("%s: no violation in %s of %s (%s) for a limit of %d with %s, where %s of %s with %s; threads "+
		"of a process within a step, and other times, were not tried", properties, format.Number(r.Runs, "schedule"),
		format.Number(r.Clients, "client"), strings.Join(r.Scripts, "; "), r.Limit, s.happened(r), whose, process, r.Store)
}

// wholeClaim is that of a search which tried all schedules.
func (s *search) wholeClaim(r *Result, properties string) string {
	steps := "command"
	store := "this store"
	if r.Store != "" {
		steps = "statement"
		store = r.Store
	}
	given := "client code that is a function of its replies"
	if s.sel.Foreign {
		given += " and of the time in its bubble"
	}
	return fmt.Sprintf("%s: no violation found in any schedule of %s (%s) on %s for a limit of %d with %s%s, given "+
		"%s and %s", properties, format.Number(r.Clients, "client"), strings.Join(r.Scripts, "; "),
		format.Number(r.Instances, "instance"), r.Limit, s.happened(r), s.wholeCalls(", at "+steps+" granularity"), store,
		given)
}

// happened lists what a search let happen in addition to the clients' calls: faults, time that passes, background jobs
// and one more client.
func (s *search) happened(r *Result) string {
	var names []string
	for _, fault := range r.Faults {
		if s.applied[fault] {
			names = append(names, fmt.Sprintf("%d x %s", r.Often(fault), fault))
		}
	}
	text := "no fault"
	if len(names) > 0 {
		text = "at most " + strings.Join(names, ", ")
	}
	text += unmet(r, "could not occur")
	if r.Passes {
		text += fmt.Sprintf(", and time that passes between calls up to %d x", r.Ticks)
	}
	if r.OtherSubjects > 0 {
		text += fmt.Sprintf(", and one request of each of %s other subjects", format.Count(r.OtherSubjects))
	}
	if s.cfg.LearnWindow {
		text += ", where a unit is free again once the longest time to live of the subject's keys has passed"
	}
	if r.FromNS != 0 {
		text += ", from " + engine.Start.Add(time.Duration(r.FromNS)).Format("15:04:05.999999") + " on"
	}
	if r.JobRounds > 0 {
		text += fmt.Sprintf(" and %d x each periodic job", r.JobRounds)
	}
	if r.Asks > 0 {
		text += fmt.Sprintf(", then one more client that asks until it is rejected (if fewer than %d are left and no "+
			"call was held up)", r.Asks)
	}
	return text
}

// wholeCalls says what schedules of a strategy without a store lack, and otherwise the text.
func (s *search) wholeCalls(otherwise string) string {
	if len(s.sel.Needs) > 0 {
		return otherwise
	}
	return ", where nothing comes between the steps of a call, which sends no store command"
}

// unmet names the faults that were asked for and that no schedule had, e.g. because the
// strategy keeps nothing that a crash could take.
func unmet(search *Result, verb string) string {
	if len(search.Unmet) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s: %s)", strings.Join(format.Strings(search.Unmet), ", "), verb)
}

// fewText is what may be said of schedules with few preemptions.
func (s *search) fewText(r *Result) string {
	bounded := r.Bounded
	if bounded == nil {
		return ""
	}
	text := fmt.Sprintf(", and none in %s (%s of up to %d steps)", bounded.Extent(), format.Count(bounded.Runs),
		bounded.Depth)
	if bounded.Preemptions == nil {
		return text
	}
	has := func(some ...quota.Fault) bool {
		return slices.ContainsFunc(r.Faults, func(fault quota.Fault) bool { return slices.Contains(some, fault) })
	}
	if bounded.Capped != "" {
		text += " and some with more"
	}
	if has(quota.FaultClock) {
		text += ", where time that passes within a call, or while a job is due or at work, counts as two"
	}
	if has(quota.FaultEviction, quota.FaultCrash) {
		text += ", and an eviction or the end of an instance within a call as one"
	}
	if has(engine.FaultScriptFlush, engine.FaultRestart) {
		text += ", and a loss of Redis within a call as one"
	}
	if s.Run.Aside {
		text += ", and each goroutine that the limiter starts is interrupted for itself"
	}
	return text
}

// hasEnd reports whether what is counted under the policy is forgotten one day:
// then a key without a deadline is one that stays forever.
func hasEnd(policy *quota.Policy) bool { return policy.Window.Kind != quota.Standing }
