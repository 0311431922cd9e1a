package searches

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results"
)

// serviceTime is what each search of several callers of a service is given: how many commands a request takes is the
// service's own business.
const serviceTime = 5 * time.Minute

// withoutLimits takes the limit on time from searches that no claim can do without, unless the user set it: on a slower
// machine they take longer, and are as many.
func (s *Options) withoutLimits(plan []asking) {
	if s.Given("timeout") || s.Full {
		return
	}
	for i := range plan {
		config, err := plan[i].cfg.Complete(plan[i].sel)
		switch {
		case err != nil || !config.IsLeast():
		case config.Service != "" && config.Clients > 1:
			plan[i].cfg.Timeout = serviceTime
		default:
			plan[i].cfg.Timeout = 0
		}
	}
}

// beforeLeast is the time of the searches of a plan. Those of a service leave half of it to the least ones that may
// follow; those of other strategies take so little time that they come on top.
func (s *Options) beforeLeast(plan []asking) time.Duration {
	for i := range plan {
		config, err := plan[i].cfg.Complete(plan[i].sel)
		if err == nil && config.Service != "" && !config.IsLeast() {
			return s.Timeout / 2
		}
	}
	return s.Timeout
}

// leftOf is what is left of the time for the least searches of a service; 0 for any.
func (s *Options) leftOf(began int64, service string) time.Duration {
	if s.Timeout == 0 || service == "" {
		return 0
	}
	passed := time.Duration(clock.Nano() - began)
	return max(s.Timeout-passed, time.Millisecond)
}

// least are the searches that are to be made in place of larger ones that did not end and found nothing.
func (x *exploration) least(plan []asking) (further []asking) {
	for i := range plan {
		config, err := plan[i].cfg.Complete(plan[i].sel)
		if err != nil || config.IsLeast() || config.Passes {
			continue
		}
		if !slices.ContainsFunc(x.record.Searches, func(search *results.Search) bool {
			return search.Strategy == plan[i].sel.String() && search.Clients == config.Clients && open(search)
		}) {
			continue
		}
		for _, least := range plan[i].cfg.Least() {
			further = append(further, asking{plan[i].sel, least})
		}
	}
	return further
}

// open reports whether a search ended early, so that it says nothing of what it has not found.
func open(search *results.Search) bool { return search.Capped != "" && len(search.Findings) == 0 }

var errUntried = errors.New("nothing was tried, its time was up before the first schedule: give a longer --timeout")

// undecided has the command exit with 3 if a search that no claim can do without did not end, and no other one of the
// same strategy has found a violation.
func (x *exploration) undecided() {
	violated := map[string]bool{}
	for _, search := range x.record.Searches {
		violated[search.Strategy] = violated[search.Strategy] || len(search.Findings) > 0
	}
	for _, search := range x.record.Searches {
		switch {
		case !open(search), violated[search.Strategy]:
		case !search.Tried():
			x.invalidate(search.Strategy, errUntried)
		case search.Least():
			x.invalidate(search.Strategy, fmt.Errorf("not every order of %s was tried (%s): give a longer --timeout, "+
				"or more --max-states", format.Number(search.Clients, "caller"), search.Capped))
		}
	}
	for _, strategy := range slices.Compact(x.late) {
		if !violated[strategy] {
			x.invalidate(strategy, errUntried)
		}
	}
	for _, census := range x.record.Censuses {
		if !census.Tried() {
			x.invalidate(census.Strategy, errUntried)
		}
	}
}
