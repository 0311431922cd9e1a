package explore

import (
	"fmt"
	"slices"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/verdict"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// checkGuarantee finds the clauses that are broken.
func (s *search) checkGuarantee(out []Finding, leaks bool, look *engine.Look) []Finding {
	for _, clause := range s.clauses(leaks, look) {
		if clause.Verdict == results.Broken {
			out = append(out, Finding{Property: Guarantee, Units: clause.Certain - clause.Bound, Detail: fmt.Sprintf(
				"%s of %s, and the guarantee allows %d (%s)", clause.Property, format.Units(clause.Certain, "units"), clause.Bound,
				clause.Formula)})
		}
	}
	return out
}

// allows is a clause that allows what has happened; nil for none.
func (s *search) allows(property quota.Property, leaks bool, look *engine.Look) (clause *results.Clause) {
	for _, c := range s.clauses(leaks, look) {
		if c.Property == string(property) && c.Verdict == results.Broken {
			return nil
		}
		if c.Property == string(property) && c.Bound > 0 {
			clause = &c
		}
	}
	return clause
}

// clauses holds the strategy to the clauses that speak about this policy
// and about what has happened. leaks says that the policy's limit was exceeded.
func (s *search) clauses(leaks bool, look *engine.Look) []results.Clause {
	truth := &s.Run.Truth
	rolling := truth.Crossed && s.boundsRolling()
	rejected := look.AtRest && truth.Rejections > 0
	if len(s.sel.Guarantee) == 0 || !rolling && !leaks && !rejected {
		return nil
	}
	return s.judged(rolling, look)
}

// judged holds the strategy to its clauses about windows of the policy's kind and, if rolling is set, to those about
// rolling ones.
func (s *search) judged(rolling bool, look *engine.Look) []results.Clause {
	truth := &s.Run.Truth
	v := truth.Judge()
	params := verdict.Params(truth.Policy, &v)
	params.Limit = truth.HighestLimit()
	params.InFlight = max(params.InFlight, truth.InFlight()) // no history says what is still to be settled
	params.Instances = int64(s.cfg.Instances)
	params.SyncPeriod = look.SyncPeriod
	params.Pause = s.Run.Paused
	params.Options = s.sel.Options
	params.Skew = verdict.MaxSkew(s.cfg.Skew, s.cfg.Instances)
	own := &v
	happened := look.Faults
	if truth.Changed() {
		happened = append(slices.Clone(happened), quota.FaultLimit)
	}
	if params.Skew > 0 {
		events := truth.Events()
		verdict.ByOwnClocks(events, s.cfg.Skew, nil)
		shifted := oracle.Judge(truth.Config(), events)
		own = &shifted
		if !slices.Contains(happened, quota.FaultClock) {
			happened = append(slices.Clone(happened), quota.FaultClock)
		}
	}
	var asRolling *oracle.Verdict
	if rolling {
		cfg := truth.Config()
		cfg.Window = verdict.RollingWindow(cfg.Window, cfg.Epoch)
		r := oracle.Judge(cfg, truth.Events())
		asRolling = &r
	}
	verdicts := verdict.Verdicts{Own: own, Stores: &v, Rolling: asRolling}
	clauses := verdict.Clauses(s.sel.Guarantee, s.cfg.Policy.Window.Kind, happened, params, verdicts)
	if look.AtRest {
		return clauses
	}
	// A call that is under way may yet be admitted, and have left no room for one that was rejected.
	return slices.DeleteFunc(clauses, func(clause results.Clause) bool {
		return clause.Property == string(quota.PropertyFalseReject)
	})
}

// otherCounts is by how much a count may be less, and more, than the policy's window has, if the strategy is held to
// its clauses and not to the limit. One that may admit more than the limit in a window, or reject too early, counts
// something else than that window, e.g. a bucket: that shows once time has passed.
func (s *search) otherCounts(look *engine.Look) (less, more int64) {
	byClauses := slices.Contains(s.cfg.Properties, Guarantee) && !slices.Contains(s.cfg.Properties, Leak)
	if !byClauses || !look.Ticked {
		return 0, 0
	}
	bounds := map[quota.Property]int64{}
	for _, clause := range s.judged(false, look) {
		property := quota.Property(clause.Property)
		bound, known := bounds[property]
		if !known || clause.Bound < bound {
			bounds[property] = clause.Bound
		}
	}
	return bounds[quota.PropertyLeak], bounds[quota.PropertyFalseReject]
}

// lapsed is how many units nobody holds any more since the lives of their requests are over, although the clients go
// on. A counter of a window may count those to the end of the window, as it does what is never given back.
func (s *search) lapsed() (units int64) {
	if s.cfg.Policy.Window.Kind == quota.Standing || slices.Contains(s.cfg.Faults, quota.FaultCrash) {
		return 0
	}
	for _, event := range s.Run.Truth.Events() {
		if event.Kind == oracle.Expire && event.Subject == 0 {
			units += event.Units
		}
	}
	return units
}

// boundsRolling reports whether a clause speaks about rolling windows although
// the policy's own are tumbling.
func (s *search) boundsRolling() bool {
	kind := s.cfg.Policy.Window.Kind
	return kind.Tumbling() && slices.ContainsFunc(s.sel.Guarantee, func(clause quota.Clause) bool {
		return !clause.Applies(kind) && clause.Applies(quota.Rolling)
	})
}
