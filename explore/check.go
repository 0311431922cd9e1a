package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
)

// declared is the property of a false reject that a clause allows, which is no finding. Its detail is the clause's
// formula. It has no units if the clause allows any: then no further ones are looked for.
const declared Property = ""

// allow notes a false reject that a clause allows.
func (s *search) allow(finding *Finding, r *Result) {
	r.AllowedUnits = max(r.AllowedUnits, finding.Units)
	r.AllowedBy = finding.Detail
	if finding.Units == 0 {
		delete(s.wanted, FalseReject)
	}
}

// normal is what the strategy leaves behind when the clients come one after the
// other and nothing fails: what is so then is its design and no finding.
type normal struct {
	// immortal are keys that never expire. That is no design for a key of the subject's own.
	immortal map[string]bool
	negative bool
	// left is the shortest time to live that a key has, once all scripts have ended and so
	// many units are in use, in any order of the clients' actions. nil if these are too many.
	left map[leftKey]time.Duration
	// periodic is set if it has a periodic job.
	periodic bool
}

// leftKey is a key where so many units are in use.
type leftKey struct {
	name  string
	inUse int64
}

// check finds what is broken at this moment.
func (s *search) check(wanted map[Property]bool) ([]Finding, error) {
	var out []Finding
	truth := &s.Run.Truth
	look := s.Look()
	leak := truth.Leak()
	if wanted[Leak] && leak > 0 {
		out = append(out, Finding{Property: Leak, Detail: leakDetail(truth, leak), Units: leak})
	}
	if wanted[Stuck] && len(look.Stuck) > 0 {
		out = append(out, Finding{Property: Stuck, Detail: strings.Join(look.Stuck, "; ")})
	}
	full := !truth.Crossed && truth.InUse >= truth.Policy.Limit
	if wanted[Forgotten] && full && len(look.Forgot) > 0 {
		all := format.Units(truth.Policy.Limit, truth.Policy.Unit)
		detail := fmt.Sprintf("instance %d has forgotten that %d of %s are in use", look.Forgot[0], truth.InUse, all)
		out = append(out, Finding{Property: Forgotten, Detail: detail})
	}
	if wanted[Guarantee] {
		out = s.checkGuarantee(out, leak > 0, &look)
	}
	if wanted[Negative] && !s.normal.negative || wanted[TTL] && look.AtRest {
		var err error
		out, err = s.checkStore(out, wanted, &look)
		if err != nil {
			return nil, err
		}
	}
	if !look.AtRest {
		return out, nil
	}
	if wanted[FalseReject] && truth.Rejections > 0 {
		out = s.checkRejections(out, leak > 0, &look)
	}
	if wanted[Drift] || wanted[Stranded] {
		return s.checkCounts(out, &look, wanted)
	}
	return out, nil
}

// leakDetail says by how much a limit was exceeded.
func leakDetail(truth *engine.Truth, leak int64) string {
	unit := truth.Policy.Unit
	limit := truth.Policy.Limit
	switch {
	case truth.Second != nil && truth.SecondLeak() == leak:
		return fmt.Sprintf("%s over the limit of %s", format.Units(leak, unit), truth.Second)
	case truth.Crossed:
		return fmt.Sprintf("%s over the limit of %d in one window", format.Units(leak, unit), limit)
	case truth.Changed():
		return fmt.Sprintf("%s in use, %d more than any limit of that time allowed", format.Units(truth.InUse, unit), leak)
	}
	return fmt.Sprintf("%s in use, the limit is %d", format.Units(truth.Peak, unit), limit)
}

// checkRejections checks that no request was rejected although quota was free.
func (s *search) checkRejections(out []Finding, leaked bool, look *engine.Look) []Finding {
	verdict := s.Run.Truth.Judge()
	learns := s.Setup.Learns
	if verdict.FalseRejects == 0 || learns && s.Run.Silent {
		return out
	}
	finding := Finding{Property: FalseReject, Units: verdict.FalseRejectUnits}
	finding.Detail = format.Number(verdict.FalseRejects, "request") + " rejected although quota was free throughout"
	if learns {
		finding.Detail += fmt.Sprintf(": nothing was admitted for %v, and none of its keys has lived for longer",
			s.Setup.Policy.Window.Length)
	}
	if clause := s.allows(quota.PropertyFalseReject, leaked, look); clause != nil {
		finding.Property = declared
		finding.Detail = clause.Formula
		if clause.Bound == quota.Unbounded {
			finding.Units = 0
		}
	}
	return append(out, finding)
}

func (s *search) checkStore(out []Finding, wanted map[Property]bool, look *engine.Look) ([]Finding, error) {
	held, err := s.Holdings()
	if err != nil {
		return nil, err
	}
	atRest := look.AtRest
	short := wanted[TTL] && s.comparable(look)
	for _, holding := range held {
		if wanted[TTL] && atRest && holding.Forever && (holding.Own || !s.normal.immortal[holding.Name]) {
			out = append(out, Finding{Property: TTL, Detail: holding.Name + " never expires"})
		}
		if short && holding.Left > 0 {
			if least, ok := s.normal.left[leftKey{holding.Name, s.Run.Truth.InUse}]; ok && holding.Left < least {
				out = append(out, Finding{Property: TTL,
					Detail: fmt.Sprintf("%s expires in %v, and where clients come one after the other in %v or "+
						"later", holding.Name, holding.Left, least)})
			}
		}
		if wanted[Negative] && !s.normal.negative && holding.Negative != "" {
			out = append(out, Finding{Property: Negative, Detail: fmt.Sprintf("%s holds %s", holding.Name, holding.Negative)})
		}
	}
	return out, nil
}

// checkCounts checks what the tiers say against what the oracle expects.
func (s *search) checkCounts(out []Finding, look *engine.Look, wanted map[Property]bool) ([]Finding, error) {
	counts := s.sel.Counts
	if s.cfg.Counter != "" {
		counts = quota.CountsAdmitted
	}
	if counts == quota.CountsNothing {
		return out, nil
	}
	readings, ok := s.Used()
	if !ok { // a strategy that cannot say is no schedule that drifts
		return out, nil
	}
	want, ok, err := s.Run.Truth.Expect(counts)
	if err != nil || !ok {
		return out, err
	}
	for _, reading := range readings {
		if !reading.Known {
			// A record that was never made, or has expired, stands for 0 if there
			// was nothing to record.
			continue
		}
		drift := want.Units.Distance(reading.Units)
		over := reading.Units - reading.Lapsing - want.Held.Hi
		if drift == 0 && over <= 0 {
			continue
		}
		less, more := s.otherCounts(look)
		more += s.lapsed()
		missing := -drift
		if less > 0 {
			missing = missing - want.Surplus.Hi // rejected attempts are no units of a clause
		}
		if wanted[Drift] && (missing > less || drift > more) {
			detail := fmt.Sprintf("%s says %d, it must be %s", reading.Tier, reading.Units, intervalText(want.Units))
			out = append(out, Finding{Property: Drift, Detail: detail, Units: drift})
		}
		if wanted[Stranded] && over > more {
			detail := fmt.Sprintf("%s says %d, callers hold %s", reading.Tier, reading.Units, intervalText(want.Held))
			out = append(out, Finding{Property: Stranded, Detail: detail, Units: over})
		}
	}
	return out, nil
}

func intervalText(i oracle.Interval) string {
	if i.Lo == i.Hi {
		return fmt.Sprint(i.Lo)
	}
	return fmt.Sprintf("%d to %d", i.Lo, i.Hi)
}

// maxSerialSteps is far more than a few clients need.
const maxSerialSteps = 10_000

// ask is the step of the last client, if it comes next.
func (s *search) ask() (engine.Choice, bool) {
	ask := engine.Choice{Kind: engine.Ask}
	return ask, slices.Contains(s.Enabled(nil, false), ask)
}

// serially runs the clients one after the other, with nothing going wrong, and the
// jobs they wake, and notes what that leaves behind. All runs after it begin with the
// scripts that it has loaded, and no others.
//
// They run once more after that: who is answered otherwise then keeps something from one run
// for the next, and schedules of it say nothing.
func (s *search) serially() error {
	n := &normal{immortal: map[string]bool{}}
	s.normal = n
	first, err := s.inTurn(n)
	if err != nil {
		return err
	}
	if k, ok := s.Engine.(engine.Local); ok {
		k.Keep()
	}
	if again, err := s.inTurn(n); err != nil || slices.Equal(first, again) || s.Witness.Noted(witness.WallClock) {
		return err
	}
	why := "it keeps something outside of its instances, e.g. in a variable of its package"
	if s.Traits.Wall {
		why = otherThanOrder
	}
	return fmt.Errorf("%w: callers that came one after the other were answered otherwise when the same was run again: %s",
		ErrNotDeterministic, why)
}

// inTurn is that run. It returns what the callers were answered.
func (s *search) inTurn(n *normal) (answers []string, err error) {
	timeline := &s.Run.Timeline
	timeline.Recording = true
	s.InTurn = true
	defer func() {
		timeline.Recording = false
		s.InTurn = false
	}()
	steps := 0
	err = s.drive(func() (choice engine.Choice, ok bool) {
		steps++
		if steps > maxSerialSteps {
			return choice, false
		}
		choice, ok = s.Serial()
		if !ok {
			choice, ok = s.ask()
		}
		return choice, ok
	}, func(engine.Choice) error {
		held, err := s.Holdings()
		look := s.Look()
		for _, holding := range held {
			n.immortal[holding.Name] = n.immortal[holding.Name] || look.AtRest && holding.Forever
			n.negative = n.negative || holding.Negative != ""
		}
		n.periodic = look.PeriodicJobs
		return err
	})
	for _, step := range timeline.Steps {
		if step.Outcome != "" {
			answers = append(answers, step.Actor+" "+step.Outcome)
		}
	}
	return answers, err
}
