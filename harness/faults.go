package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// NetworkSpans are when the network loses requests, or with all set when anything is wrong with it for a part of the
// run, in nanoseconds since its beginning and until its end.
func (p *Plan) NetworkSpans(all bool, end int64) (out []results.Span) {
	for _, event := range p.Trouble.Of(trouble.Network) {
		from, duration := event.When.Within(p.Duration)
		until := min(int64(duration), end)
		if event.When.To == 1 { // as long as the run takes
			until = end
		}
		if loses := len(event.Faults()) > 0; !all && loses || all && event.When != trouble.Always {
			out = append(out, results.Span{Store: event.Where.Name, Network: event.String(), FromNS: int64(from), ToNS: until})
		}
	}
	return out
}

// explains reports whether the error of a take may be the doing of the outage s. grace
// is how long connections that broke may still be found.
func explains(span results.Span, event *oracle.Event, grace int64) bool {
	return event.Reply >= span.FromNS && event.Call <= span.ToNS+grace
}

// away counts the answer to a take that began and ended in an outage, and looks for the first one after it that the
// store decided.
func (j *judgement) away(k int, event *oracle.Event) {
	span := &j.Outages[k]
	kind, _, _ := strings.Cut(span.Store, ".")
	byStore := (event.Outcome == oracle.Admitted || event.Outcome == oracle.Rejected) && int(event.Tier) < len(j.Tiers) &&
		j.Tiers[event.Tier] == kind
	if after := event.Reply - span.ToNS; byStore && span.Network == "" && after > 0 &&
		(j.recovered[k] == 0 || after < j.recovered[k]) {
		j.recovered[k] = after
	}
	if event.Call < span.FromNS || event.Reply > span.ToNS {
		return
	}
	byStore = byStore && event.Call >= span.Away[0] && event.Reply <= span.Away[1]
	switch event.Outcome {
	case oracle.Admitted:
		span.Admitted++
		if byStore {
			span.AdmittedByStore++
		}
	case oracle.Failed:
		span.Errors++
	case oracle.Rejected, oracle.RejectedDegraded, oracle.Elsewhere:
		span.Rejected++
		if byStore {
			span.RejectedByStore++
		}
	}
}

// LowestLimit is the lowest that is in force in a run: what a rejection is checked against
// if its request saw the limit change.
func (p *Plan) LowestLimit() int64 {
	lowest := p.Policy.Limit
	for _, event := range p.Trouble.Of(trouble.Change) {
		lowest = min(lowest, event.What.Units)
	}
	return lowest
}

// LimitedSubjects are the first n subjects of a stream if the strategy keeps limits
// of them, and none if it goes by those of the requests.
func (s *Session) LimitedSubjects(stream workloads.Stream, n int) []quota.Subject {
	if _, ok := s.Instances[0].(strategies.LimitSetter); !ok {
		return nil
	}
	out := make([]quota.Subject, n)
	for i := range out {
		out[i] = quota.Subject(stream.Name(uint32(i)))
	}
	return out
}

// setAtOnce is how many subjects' limits are set by one call.
const setAtOnce = 10_000

// SetLimit has the strategy change the limit of subjects to that of policy, through each of
// the given instances, if it keeps limits at all.
func (s *Session) SetLimit(ctx context.Context, policy *quota.Policy, subjects []quota.Subject,
	instances ...int) error {
	for _, i := range instances {
		setter, ok := s.Instances[i].(strategies.LimitSetter)
		if !ok {
			return nil
		}
		for some := range slices.Chunk(subjects, setAtOnce) {
			if err := setter.SetLimit(ctx, policy, some); err != nil {
				return fmt.Errorf("set the limit of %d subjects to %d: %w", len(subjects), policy.Limit, err)
			}
		}
	}
	return nil
}

// Kills is after how many of its commands to a Redis the caller of request i is to be killed; 0 for a caller that
// lives. A nil plan kills none.
func (p *Plan) Kills(i int64) int {
	if p == nil {
		return 0
	}
	for k := range p.Trouble {
		what := &p.Trouble[k].What
		if what.Word == trouble.Killed &&
			float64(seed.At(seed.Stream(p.Seed, seed.Kills), uint64(i))>>11)/(1<<53) < what.Share {
			return what.After
		}
	}
	return 0
}

// cannotKill is why callers of a strategy cannot be killed, or its counters be overwritten, as planned, or nil.
func (p *Plan) cannotKill(selection strategies.Selection, mode strategies.Mode) error {
	switch {
	case len(p.Trouble.Of(trouble.Tamper)) > 0 && len(selection.RedisNeeds()) == 0:
		return errors.New("it has no counter in a Redis that could be overwritten")
	case !p.Trouble.Has(trouble.Killed):
	case len(selection.RedisNeeds()) == 0:
		return errors.New("its callers send no command to a Redis after which they could be killed")
	case selection.Foreign && mode == strategies.ModeSimulate:
		return errors.New("callers of foreign code cannot be killed in virtual time: measure it")
	}
	return nil
}
