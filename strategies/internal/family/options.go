package family

import (
	"cmp"
	"context"
	"fmt"

	"github.com/quotabench/quotabench/quota"
)

// Down is the option that says what becomes of requests that Redis does not answer.
var Down = quota.Option{
	Name: "down", Default: "closed", Values: []string{"closed", downOpen},
	Doc: "without Redis, requests are rejected (closed) or admitted (open)",
}

const downOpen = "open"

// FailsOpen reports whether the options have requests admitted that Redis does not answer.
func FailsOpen(options quota.Options) bool { return options[Down.Name] == downOpen }

// WhenDown is the [strategies.Abilities.Down] of strategies that go by the option, or have no other way than its
// default.
func WhenDown(options quota.Options) string { return cmp.Or(options[Down.Name], Down.Default) }

// Unanswered is the decision on a request that Redis did not answer, but with err. A caller
// who has given up gets none.
func Unanswered(ctx context.Context, clock quota.Clock, open bool, err error) (quota.Decision, error) {
	if GaveUp(ctx, clock) {
		return quota.Decision{}, fmt.Errorf("ask Redis: %w", err)
	}
	return quota.Decision{Admitted: open, Tier: quota.TierProcess, Degraded: true, Remaining: -1}, nil
}

// ExactlyUnless is the clause of what never admits a unit over the limit under the given
// faults, except that it bounds nothing in some settings. The formula says so, or the condition.
func ExactlyUnless(formula string, unbounded func(quota.Params) bool, tolerates ...quota.Fault) quota.Clause {
	clause := quota.Exactly(tolerates...)
	clause.Formula = formula
	clause.Bound = func(params quota.Params) int64 {
		if unbounded(params) {
			return params.Offered
		}
		return 0
	}
	return clause
}

// ExactlyUnlessOpen is [ExactlyUnless] with the option [Down] open.
func ExactlyUnlessOpen(tolerates ...quota.Fault) quota.Clause {
	return ExactlyUnless("L; down=open: any", func(params quota.Params) bool {
		return FailsOpen(params.Options)
	}, tolerates...)
}

// Both is the option that says how a request is charged to two quotas.
var Both = quota.Option{
	Name: "both", Default: together, Values: []string{together, "after"},
	Doc: "if the second quota rejects, the first has not paid (together) or has (after)",
}

const together = "together"

// Together reports whether the options have a request charged to both of its quotas or to neither.
func Together(options quota.Options) bool { return options[Both.Name] == together }

// Quotas are the requests that a request makes of single quotas: one, or two.
func Quotas(req quota.Request) []quota.Request {
	if req.Second.Policy == nil {
		return []quota.Request{req}
	}
	second := req
	second.Subject = req.Second.Subject
	second.Policy = req.Second.Policy
	return []quota.Request{req, second}
}

// Charge asks about both quotas of a request at once, or about each in turn until one rejects it.
func Charge(req quota.Request, together bool,
	ask func(...quota.Request) (quota.Decision, error)) (decision quota.Decision, err error) {
	reqs := Quotas(req)
	if together {
		return ask(reqs...)
	}
	degraded := false
	for i, request := range reqs {
		decision, err = ask(request)
		degraded = degraded || decision.Degraded
		decision.Degraded = degraded
		decision.BySecond = i > 0 && err == nil && !decision.Admitted
		if err != nil || !decision.Admitted {
			break
		}
	}
	return decision, err
}
