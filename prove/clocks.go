package prove

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

const (
	// usualSkew is how far the clock of the second instance is ahead if nothing is said, and at most a part of a window.
	usualSkew  = 2 * time.Second
	partOfSkew = 10
	// skewedRequests are about as many as a scene with such clocks has.
	skewedRequests = 10_000
)

// clocks are the scenes whose clocks are wrong.
func (s *simulation) clocks() (out []*scene) {
	if s.sel.Foreign || s.policy.Window.Kind == quota.Standing {
		return nil
	}
	if s.oneClock() == "" {
		out = append(out, s.clocksApart())
	}
	return append(out, s.stepsBack()...)
}

// oneClock is why instances have one clock; empty if they do not, or if each counts for itself.
func (s *simulation) oneClock() string {
	switch {
	case s.sel.Foreign:
		return "it reads the clock of package time, of which all instances have the same"
	case len(s.sel.Needs) == 0 || s.sel.PerProcess:
		return "each instance counts for itself"
	case s.policy.Window.Kind == quota.Standing:
		return "the policy has no windows"
	case s.options.Instances == 1 && len(s.options.Skew) == 0:
		return "there is one instance"
	}
	return ""
}

// skew is how far the clock of each instance is ahead.
func (s *simulation) skew() []time.Duration {
	if len(s.options.Skew) > 0 {
		return s.options.Skew
	}
	return []time.Duration{0, min(usualSkew, s.length/partOfSkew)}
}

// clocksApart is the scene in which the instances' clocks differ.
func (s *simulation) clocksApart() *scene {
	skew := s.skew()
	enough := skewedRequests / s.perWindow() * s.length.Seconds()
	config := s.steadily(min(s.duration, max(fewestWindows*s.length, time.Duration(enough*float64(time.Second)))))
	config.Instances = max(s.instances, len(skew))
	ahead := max(0, slices.Max(skew))
	behind := min(0, slices.Min(skew))
	s.gather(&config, ahead-behind)
	var texts []string
	for i, ahead := range skew {
		config.Trouble = append(config.Trouble, trouble.ClockAhead(i, ahead))
		texts = append(texts, ahead.String())
	}
	meta := *s.sel.Meta
	meta.Guarantee = s.heldApart()
	selection := s.sel
	selection.Meta = &meta
	config.Strategies = []strategies.Selection{selection}
	says := "clocks of instances ahead by " + strings.Join(texts, ", ")
	return &scene{says: says + s.lowered(), subjects: simulatedSubjects, config: config, judge: s.judgeApart}
}

// gather has the requests of each window come around its end, within a few times the length by which clocks differ:
// then both instances ask in the time in which one takes units for gone and the other does not, however long the window
// is. A few come in between. A window that is not much longer has enough requests at any time.
func (s *simulation) gather(config *sim.Config, apart time.Duration) {
	const times, inBetween = 4, 0.25
	length := times * apart
	if length == 0 || length > s.length/2 {
		return
	}
	config.Load = harness.OpenAt(inBetween * s.perWindow() / s.length.Seconds())
	rate := s.perWindow() / length.Seconds()
	for at := s.length; at < config.Duration; at += s.length {
		end := config.Start.Add(at)
		if window := s.crossed.Window; window.Kind.Tumbling() {
			end = window.At(end).Start
		}
		config.Rushes = append(config.Rushes, sim.Rush{Rate: rate, From: end.Add(-length / 2), For: length})
	}
}

// heldApart are the clauses about leaks and false rejects if clocks differ. A clause that does not name a clock is
// there twice, with one Source: by the clocks of the instances and by that of the store. The limiter may go by either.
func (s *simulation) heldApart() (out []quota.Clause) {
	asked := len(s.options.Skew) > 0
	for i, clause := range s.sel.Guarantee {
		own := s.options.added && i == len(s.sel.Guarantee)-1 // prove's own clause, which nobody has declared
		if !slices.Contains(clause.Tolerates, quota.FaultClock) && (asked || own) {
			clause.Tolerates = append(slices.Clone(clause.Tolerates), quota.FaultClock)
		}
		clause.Source = fmt.Sprintf("clause %d", i)
		out = append(out, clause)
		if clause.Clock == "" {
			clause.Clock = string(strategies.NeedRedis)
			out = append(out, clause)
		}
	}
	return out
}

// judgeApart holds a run to the clauses that tolerate clocks that differ. When a window of a calendar begins is for
// each clock to say: what that lets through is told, and is wrong only if clocks that differ were asked for.
func (s *simulation) judgeApart(p *played) (wrong, told string, err error) {
	held := map[string]bool{}
	for _, clause := range p.run.Guarantee {
		held[clause.Source] = held[clause.Source] || clause.Verdict != results.Broken
	}
	var builder strings.Builder
	for i := range p.run.Guarantee {
		clause := &p.run.Guarantee[i]
		if !held[clause.Source] {
			builder.WriteString(p.broken(clause))
			held[clause.Source] = true
		}
	}
	leak := &p.run.Leak
	excused := s.policy.Window.Kind.Tumbling() && len(s.options.Skew) == 0
	switch {
	case builder.Len() > 0 && !excused:
		first, err := p.first()
		return builder.String() + first, "", err
	case leak.Units > 0 && (excused || len(p.run.Guarantee) == 0):
		told = fmt.Sprintf("clocks that differ: up to %d of %d were admitted in one window with %s",
			p.config.Policy.Limit+leak.WorstUnits, p.config.Policy.Limit, p.says)
	}
	return "", told, nil
}

// stepMoment is when the clock of the instance steps back, and stepNear how long before and after it subjects ask.
const (
	stepMoment = 10 * time.Minute
	stepNear   = 300 * time.Millisecond
	stepHolder = 3 // subjects
)

// stepsBack are the scenes in which the clock of the only instance steps back.
func (s *simulation) stepsBack() (out []*scene) {
	if s.policy.Limit < 2*s.policy.LeastCost() {
		return nil // what is left after one request would have to flow in
	}
	for _, step := range []time.Duration{usualSkew, time.Hour, min(2*s.length, trouble.MaxClock)} {
		out = append(out, s.stepBack(step))
	}
	return out
}

// stepBack is one of them: subjects with one request before the step ask for a second one after it.
func (s *simulation) stepBack(step time.Duration) *scene {
	script := &script{units: s.policy.LeastCost()}
	for range stepHolder {
		subject := script.subject()
		at := stepMoment + time.Duration(subject)*stepNear/stepHolder/2
		script.ask(subject, at-stepNear, 1, 0)
		script.ask(subject, at+stepNear, 1, 0)
	}
	scene := s.scripted(fmt.Sprintf("a clock that steps back by %s", quota.LengthText(step)), script, s.policy, began)
	config := &scene.config
	config.Instances = 1
	back := trouble.ClockAhead(0, -step)
	share := float64(stepMoment) / float64(config.Duration)
	back.When = trouble.When{From: share, To: share}
	config.Trouble = trouble.List{back}
	scene.judge = func(p *played) (string, string, error) { return s.judgeStep(p, step) }
	return scene
}

// judgeStep looks for rejections: each subject has room, whatever has flowed in since. They are wrong if a clause
// bounds them although clocks are wrong, or if the fault was asked for.
func (s *simulation) judgeStep(p *played, step time.Duration) (wrong, told string, err error) {
	if p.run.Rejected == 0 {
		return "", "", nil
	}
	rejected, err := p.firstRejected()
	if err != nil {
		return "", "", err
	}
	units := s.policy.LeastCost()
	text := fmt.Sprintf("%s after the clock had stepped back by %s, with %d of %d left",
		format.Number(p.run.Rejected, "request")+" rejected", quota.LengthText(step), s.policy.Limit-units, s.policy.Limit)
	if s.boundsRejects() {
		return "FALSE-REJECT: " + text + "\n" + rejected, "", nil
	}
	return "", text, nil
}

// boundsRejects reports whether false rejects are bounded although clocks are wrong.
func (s *simulation) boundsRejects() bool {
	bounded := slices.Contains(s.options.Faults, quota.FaultClock)
	for _, clause := range s.sel.Guarantee {
		if clause.Property != quota.PropertyFalseReject || !clause.Applies(s.policy.Window.Kind) {
			continue
		}
		params := quota.Params{Limit: s.policy.Limit, Instances: 1, Policy: &s.policy, Options: s.sel.Options}
		if clause.Bound(params) == quota.Unbounded {
			return false
		}
		bounded = bounded || slices.Contains(clause.Tolerates, quota.FaultClock)
	}
	return bounded
}

// firstRejected is the text of the first rejection.
func (p *played) firstRejected() (string, error) {
	first, epoch, err := firstWrong(p.config.Archive, p.run, func(verdict *oracle.Verdict) bool {
		return verdict.Rejected.Requests > 0
	})
	if err != nil || first == nil {
		return "", err
	}
	return first.text(epoch, &p.config.Policy), nil
}
