package ranking

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/options"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Untested is something that the record says nothing of.
type Untested struct {
	// What was not tested, e.g. "more than one instance".
	What string
	// Command tests it with the cheapest strategy that enforces the policy, or with the
	// first of all if none does; empty if the record does not hold all that the
	// command line needs.
	Command string
	// Add are the options to add to the command of this record instead; empty if
	// that does not test it. If both are empty nothing does.
	Add string
}

// untested lists what the setting leaves open.
func (s *Setting) untested() []Untested {
	if len(s.Strategies) == 0 {
		return nil
	}
	first := s.Cheapest()
	if first == nil {
		first = &s.Strategies[0]
	}
	if first.Group == Baseline {
		return nil
	}
	params := first.Summary.Params
	again := s.command(first, params.Instances)
	with := func(what, add string) Untested {
		untested := Untested{What: what, Add: add}
		if again != "" {
			untested.Command = again + " " + add
		}
		return untested
	}
	var out []Untested
	if params.Instances < 2 {
		out = append(out, Untested{"more than one instance", s.command(first, 4), "--instances 4"})
	}
	if _, ok := s.file.Stores["redis"]; ok && !params.Trouble.Has(trouble.Failover) && needsRedis(first.Summary) {
		add := "--trouble redis:failover@0.5-0.52"
		if s.file.Kind == results.Measured {
			add = "--redis process:replicas=1 " + add
		}
		what := "failover of Redis"
		if s.file.Kind == results.Measured && s.file.Stores["redis"].Kind == "embedded" {
			what += ", which needs a redis-server"
		}
		out = append(out, with(what, add))
	}
	return append(out, unexplored(first))
}

// unexplored are the faults that only a search of the strategy meets, with its command.
func unexplored(first *Strategy) Untested {
	if why := first.Summary.NotExplored; why != "" {
		return Untested{What: "crashes, retries and other orders of its steps, which cannot be explored: " + why}
	}
	if first.Summary.Outside { // in a record without the reason
		return Untested{What: "crashes, retries and other orders of its steps, which a service does not show"}
	}
	label := format.Quoted(first.Label)
	what := "crashes, retries and other faults"
	if first.Summary.Params.Trouble.Has(trouble.Killed) {
		what = "crashes at other steps, retries and other faults"
	}
	explore := "quotabench explore " + label
	if policy := first.Summary.Policy; policy != defaultPolicy && knownPolicy(policy) {
		explore += " --policy " + format.Quoted(bothWindows(first.Summary))
	}
	return Untested{What: what, Command: explore + " --faults all"}
}

// bothWindows is the policy of a record, with its second window if each subject has one.
func bothWindows(summary *results.Summary) string {
	if knownPolicy(summary.Params.Second) {
		return summary.Policy + " and " + summary.Params.Second
	}
	return summary.Policy
}

// knownPolicy reports whether the command line takes the policy of a record: one from a file has a name that means
// nothing elsewhere.
func knownPolicy(policy string) bool {
	_, err := quota.LookupPolicy(policy)
	return err == nil
}

// needsRedis reports whether the strategy keeps anything in the main Redis.
func needsRedis(summary *results.Summary) bool {
	return slices.ContainsFunc(summary.Stored, func(k results.Stored) bool { return k.Store == "redis" })
}

// command is the command line that measures the strategy again under the setting, with what is not a default, on that
// many instances; empty if the record does not hold it all, or more was planned than a load.
func (s *Setting) command(strategy *Strategy, instances int) string {
	params := strategy.Summary.Params
	policy, err := quota.LookupPolicy(strategy.Summary.Policy)
	if err != nil || !s.repeatable(&params) {
		return ""
	}
	words := []string{"quotabench", "run", strategy.Label}
	add := func(ok bool, name string, value any) {
		if ok {
			words = append(words, "--"+name, fmt.Sprint(value))
		}
	}
	add(strategy.Summary.Policy != defaultPolicy, "policy", strategy.Summary.Policy)
	workload := options.Text(strategy.Summary.Workload, nil, params.Workload)
	add(workload != defaultWorkload, "workload", workload)
	add(params.Limit != usualLimit(strategy.Summary.Workload, policy), "limit", params.Limit)
	add(params.Workers != defaultWorkers, "workers", params.Workers)
	add(instances != defaultInstances, "instances", instances)
	for _, event := range params.Trouble {
		add(true, "trouble", event)
	}
	add(params.DecisionTimeoutNS != 0, "decision-timeout", time.Duration(params.DecisionTimeoutNS))
	add(params.Loop == codes.OpenLoop && params.RatePerS > 0, "rate", params.RatePerS)
	add(params.Loop == codes.OpenLoop && params.Arrivals != defaultArrivals, "loop", "open:arrivals="+params.Arrivals)
	client := clientOptions(&params)
	add(len(client) > 0, "client", strings.TrimPrefix(options.Text("", nil, client), ":"))
	return format.List(words, " ", format.Quoted)
}

// repeatable reports whether the record has all that a command line of its measurement needs.
func (s *Setting) repeatable(params *results.Params) bool {
	switch {
	case s.file.Kind != results.Measured, s.file.Workload.Trace != nil, params.Speed != 0 && params.Speed != 1:
		return false
	case len(params.Trouble.Without(trouble.Skew)) > 0, params.Second != "", params.Sources > 0:
		return false
	}
	for _, store := range s.file.Stores {
		if store.Kind == "url" { // its password is not recorded
			return false
		}
	}
	return true
}

// usualLimit is the limit under a workload without --limit; 0 for a workload that may have its own.
func usualLimit(workload string, policy quota.Policy) int64 {
	limit := int64(0)
	if workload == defaultWorkload {
		limit = policy.Limit
	}
	if slices.ContainsFunc(quota.Policies(), func(p quota.Policy) bool { return p.Name == policy.Name }) {
		policy.Limit = limit
		limit = bounds.ForCrossings(policy).Limit
	}
	return limit
}

// clientOptions are those of the clients that differ from the defaults.
func clientOptions(params *results.Params) quota.Options {
	client := quota.Options{}
	if params.Pool != 0 {
		client["pool"] = strconv.Itoa(params.Pool)
	}
	if params.Retries != 0 {
		client["retries"] = strconv.Itoa(params.Retries)
	}
	if params.Cold {
		client["cold"] = "true"
	}
	return client
}

// The defaults of the command line, which need not be said; a test of the command line
// holds them.
const (
	defaultPolicy   = "agent-api"
	defaultWorkload = "hot-key"
	defaultArrivals = "poisson"
	defaultWorkers  = 50

	defaultInstances = 2
)
