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
	for _, c := range s.clauses(leaks, look) {
		if c.Verdict == results.Broken {
			out = append(out, Finding{Property: Guarantee, Units: c.Certain - c.Bound, Detail: fmt.Sprintf(
				"%s of %s, and the guarantee allows %d (%s)", c.Property, format.Units(c.Certain, "units"), c.Bound, c.Formula)})
		}
	}
	return out
}

// allows is a clause that allows what has happened; nil for none.
func (s *search) allows(p quota.Property, leaks bool, look *engine.Look) (by *results.Clause) {
	for _, c := range s.clauses(leaks, look) {
		if c.Property == string(p) && c.Verdict == results.Broken {
			return nil
		}
		if c.Property == string(p) && c.Bound > 0 {
			by = &c
		}
	}
	return by
}

// clauses holds the strategy to the clauses that speak about this policy
// and about what has happened. leaks says that the policy's limit was exceeded.
func (s *search) clauses(leaks bool, look *engine.Look) []results.Clause {
	t := &s.Run.Truth
	rolling := t.Crossed && s.promisesRolling()
	rejected := look.AtRest && t.Rejections > 0
	if len(s.sel.Guarantee) == 0 || !rolling && !leaks && !rejected {
		return nil
	}
	v := t.Judge()
	params := verdict.Params(t.Policy, &v)
	params.Limit = t.HighestLimit()
	params.Instances = int64(s.cfg.Instances)
	params.SyncPeriod = look.SyncPeriod
	params.Pause = s.Run.Paused
	params.Options = s.sel.Options
	params.Skew = verdict.MaxSkew(s.cfg.Skew, s.cfg.Instances)
	own := &v
	happened := look.Faults
	if t.Changed() {
		happened = append(slices.Clone(happened), quota.FaultLimit)
	}
	if params.Skew > 0 {
		events := t.Events()
		verdict.ByOwnClocks(events, s.cfg.Skew, nil)
		shifted := oracle.Judge(t.Config(), events)
		own = &shifted
		if !slices.Contains(happened, quota.FaultClock) {
			happened = append(slices.Clone(happened), quota.FaultClock)
		}
	}
	var asRolling *oracle.Verdict
	if rolling {
		cfg := t.Config()
		cfg.Window = verdict.RollingWindow(cfg.Window, cfg.Epoch)
		r := oracle.Judge(cfg, t.Events())
		asRolling = &r
	}
	by := verdict.Verdicts{Own: own, Stores: &v, Rolling: asRolling}
	return verdict.Clauses(s.sel.Guarantee, s.cfg.Policy.Window.Kind, happened, params, by)
}

// promisesRolling reports whether a clause speaks about rolling windows although
// the policy's own are tumbling.
func (s *search) promisesRolling() bool {
	kind := s.cfg.Policy.Window.Kind
	return kind.Tumbling() && slices.ContainsFunc(s.sel.Guarantee, func(c quota.Clause) bool {
		return !c.Applies(kind) && c.Applies(quota.Rolling)
	})
}
