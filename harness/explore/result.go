package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/quota"
)

// Result is what a search found.
type Result struct {
	Strategy  string        `json:"strategy"`
	Policy    string        `json:"policy"`
	Limit     int64         `json:"limit"`
	Unit      string        `json:"unit"`
	Clients   int           `json:"clients"`
	Instances int           `json:"instances"`
	Scripts   []string      `json:"scripts"`
	Faults    []quota.Fault `json:"faults"`
	// Times is how often each fault may happen in one schedule.
	Times      int        `json:"times"`
	Properties []Property `json:"properties"`
	// JobRounds is how often each periodic job may start at a moment of its own
	// choosing; 0 where there is none.
	JobRounds int `json:"job_rounds"`
	// Split is set where effect and reply are two steps.
	Split bool `json:"split_replies"`

	// Findings hold the shortest schedule found for each property that breaks.
	Findings []Finding `json:"findings"`
	// States met, runs made, runs that ended in a state met before, and the
	// longest schedule.
	States int   `json:"states"`
	Runs   int64 `json:"runs"`
	Pruned int64 `json:"pruned"`
	Depth  int   `json:"depth"`
	// Capped says why the search ended before it had seen everything; empty if it
	// had, or had found one schedule for each property.
	Capped string `json:"capped,omitempty"`

	OnServer

	policy quota.Policy
}

// Finding is a schedule that breaks a property.
type Finding struct {
	Strategy string   `json:"strategy"`
	Policy   string   `json:"policy"`
	Property Property `json:"property"`
	Detail   string   `json:"detail"`
	// Units by which it is broken, where it has any; drift may be negative.
	Units int64 `json:"units,omitempty"`
	// Faults that happen in the schedule.
	Faults []quota.Fault `json:"faults,omitempty"`
	Steps  []Step        `json:"steps"`
	// Columns are the names of actors by [Step.Column].
	Columns []string `json:"columns"`
	// Token repeats the schedule: see [Replay].
	Token string `json:"token"`

	path []choice
}

func (w *world) newResult() *Result {
	r := &Result{
		Strategy: w.sel.String(), Policy: w.cfg.Policy.Name, Limit: w.cfg.Policy.Limit, Unit: w.cfg.Policy.Unit,
		Clients: w.cfg.Clients, Instances: w.cfg.Instances, Faults: w.cfg.Faults, Times: w.cfg.Times,
		Properties: w.cfg.Properties, Split: w.cfg.split(), Findings: []Finding{}, policy: w.cfg.Policy,
	}
	if r.Faults == nil {
		r.Faults = []quota.Fault{}
	}
	if slices.ContainsFunc(w.actors, func(m *member) bool { return m.client == nil && m.Job().Every() > 0 }) {
		r.JobRounds = max(0, w.cfg.JobRounds)
	}
	for _, s := range w.cfg.Scripts {
		r.Scripts = append(r.Scripts, s.String())
	}
	return r
}

// Found returns the finding of a property, or nil.
func (r *Result) Found(p Property) *Finding {
	for i := range r.Findings {
		if r.Findings[i].Property == p {
			return &r.Findings[i]
		}
	}
	return nil
}

// Claim is what may be said of the properties that were not broken.
func (r *Result) Claim() string {
	var clean []string
	for _, p := range r.Properties {
		if r.Found(p) == nil && (p != TTL || hasEnd(&r.policy)) {
			clean = append(clean, string(p))
		}
	}
	if len(clean) == 0 {
		return ""
	}
	what := strings.Join(clean, ", ")
	if r.Capped != "" {
		return fmt.Sprintf("%s: none found in %d schedules of up to %d steps; the search was not complete (%s)", what, r.Runs, r.Depth, r.Capped)
	}
	faults := "no fault"
	if len(r.Faults) > 0 {
		names := make([]string, len(r.Faults))
		for i, f := range r.Faults {
			n := r.Times
			if f == quota.FaultClock {
				n++
			}
			names[i] = fmt.Sprintf("%d x %s", n, f)
		}
		faults = "at most " + strings.Join(names, ", ")
	}
	if r.JobRounds > 0 {
		faults += fmt.Sprintf(" and %d x each periodic job", r.JobRounds)
	}
	steps, store := "command", "this store"
	if r.Store != "" {
		steps, store = "statement", r.Store
	}
	return fmt.Sprintf("%s: broken by no schedule of %s (%s) on %s with %s, at %s granularity, given %s and client code that is a function of its replies",
		what, count(r.Clients, "client"), strings.Join(r.Scripts, "; "), count(r.Instances, "instance"), faults, steps, store)
}
