package prove

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

const (
	// simulatedSubjects ask in a simulated month, each of them for twice its limit.
	simulatedSubjects = 3
	overLimit         = 2
	// mostRequests are about as many as a month has: if they are too few for the
	// whole time, they come in rushes.
	mostRequests = 100_000
	rushWindows  = 5
	mostRushes   = 60
	// fewestWindows are simulated, however long they are.
	fewestWindows = 4
	// mostWindows are in the longest scene, that of an outage.
	mostWindows = 4 * settledWindows
	// mostLimit is the highest limit that subjects use up: with that, each of a few rushes crosses several windows.
	mostLimit = 2_000
)

// began is the first moment of a simulated month.
var began = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// simulation is what a proof simulates.
type simulation struct {
	options *Options
	sel     strategies.Selection
	steady  *workloads.Meta
	// policy is that of the options, and crossed the same with a limit that few requests use up, if that is served.
	policy, crossed quota.Policy
	instances       int
	// length of a window, or the time in which a bucket fills; an hour under a standing policy.
	length time.Duration
	// duration of a month: at least four windows.
	duration time.Duration
	// scripts and steadies count the scenes of either kind.
	scripts, steadies int
	// passed is what happened in the scenes so far in which nothing was wrong, and told what others have shown.
	passed, told []string
}

// simulated plays all scenes, up to the first in which something is wrong.
func (o *Options) simulated(t *testing.T, sel strategies.Selection) {
	t.Helper()
	simulation, err := o.simulation(sel)
	if err != nil {
		t.Fatal(err)
	}
	scenes := []*scene{simulation.month()}
	if o.Second.Limit > 0 {
		t.Log("not tried: rests, odd moments of calendars, an outage and wrong clocks, with two windows")
	} else {
		scenes = append(scenes, simulation.rests()...)
		scenes = append(scenes, simulation.deserted()...)
		scenes = append(scenes, simulation.calendar()...)
		scenes = append(scenes, simulation.outage()...)
		scenes = append(scenes, simulation.clocks()...)
	}
	for _, scene := range scenes {
		if !simulation.play(t, scene) {
			return
		}
	}
	if len(simulation.passed) > 1 {
		t.Logf("claimed: the same with %s", strings.Join(simulation.passed[1:], "; "))
	}
	if len(simulation.told) > 0 {
		t.Logf("not claimed: %s", strings.Join(simulation.told, "; "))
	}
	if why := simulation.oneClock(); why != "" && o.Second.Limit == 0 {
		t.Logf("not tried: clocks that differ between instances: %s", why)
	}
}

func (o *Options) simulation(sel strategies.Selection) (*simulation, error) {
	steady, err := workloads.Lookup("steady")
	if err != nil {
		return nil, err
	}
	s := &simulation{options: o, sel: sel, steady: steady, policy: o.served, crossed: o.served, instances: o.Instances}
	if s.instances == 0 {
		s.instances = 2
		if len(sel.Needs) == 0 {
			s.instances = 1
		}
	}
	lower := s.policy
	lower.Limit = mostLimit
	if s.policy.Limit > mostLimit && sel.ServesPolicy(&lower) == nil {
		s.crossed = lower
	}
	// A longer window is simulated as if it were as long as the longest scene allows.
	s.length = min(lengthOf(&s.crossed), bounds.MaxVirtualDuration/mostWindows)
	s.duration = max(time.Duration(o.Days)*24*time.Hour, fewestWindows*s.length)
	return s, nil
}

// unnamed reports whether there is a second window that requests do not name.
func (o *Options) unnamed(sel strategies.Selection) bool { return o.Second.Limit > 0 && !sel.TwoQuotas }

// lengthOf is how long a window of the policy is, or how long its bucket takes to fill; an hour if it is standing.
func lengthOf(policy *quota.Policy) time.Duration {
	window := policy.Window
	switch {
	case window.Kind.Tumbling():
		span := window.At(began)
		return span.End.Sub(span.Start)
	case window.Kind == quota.Bucket:
		return time.Duration(window.Flow().Until(quota.Level{Units: policy.Limit}))
	case window.Kind == quota.Standing:
		return time.Hour
	}
	return window.RealLength()
}

// selections are the limiter alone.
func (s *simulation) selections() []strategies.Selection { return []strategies.Selection{s.sel} }

// perWindow is how many requests all subjects make in a window of a month.
func (s *simulation) perWindow() float64 {
	return float64(overLimit * simulatedSubjects * s.crossed.Limit)
}

// month is the scene in which subjects ask for twice their limit all the time, or in rushes.
func (s *simulation) month() *scene {
	rate := s.perWindow() / s.length.Seconds()
	config := s.steadily(s.duration)
	if rate*s.duration.Seconds() > mostRequests {
		config.Load = harness.OpenAt(mostRequests / 4 / s.duration.Seconds())
		config.Rushes = s.rushes(rate)
	}
	if s.options.Second.Limit > 0 && s.sel.TwoQuotas {
		config.Second = &s.options.Second
	}
	says := fmt.Sprintf("%.0f days of virtual time", s.duration.Hours()/24)
	return &scene{says: says + s.lowered(), subjects: simulatedSubjects, config: config}
}

// lowered says that the limit is lower than that of the policy.
func (s *simulation) lowered() string {
	if s.crossed.Limit == s.policy.Limit {
		return ""
	}
	return fmt.Sprintf(" with a limit of %s instead of %s", format.Count(s.crossed.Limit), format.Count(s.policy.Limit))
}

// steadily is a scene's configuration in which subjects ask for twice their limit for so long. It begins long after
// others of this kind, which have the same subjects.
func (s *simulation) steadily(duration time.Duration) sim.Config {
	config := s.config(s.crossed, s.steady)
	config.Start = began.Add(time.Duration(s.steadies) * 2 * s.duration)
	s.steadies++
	config.Load = harness.OpenAt(s.perWindow() / s.length.Seconds())
	config.Duration = duration
	config.Stream.Set("subjects", simulatedSubjects)
	return config
}

// rushes are those of a month, so many that there are about as many requests as a month has.
func (s *simulation) rushes(rate float64) (out []sim.Rush) {
	// No two begin in the same hour.
	hours := int(s.duration.Hours()) - 1
	number := min(max(int(mostRequests/(rushWindows*s.perWindow())), 2), mostRushes, hours)
	each := s.duration / time.Duration(number+1)
	length := min(rushWindows*s.length, each/2, s.longestRush(rate, number))
	for i := range number {
		// Windows begin at whole hours, and a rush crosses their ends.
		from := began.Add(time.Duration(i+1) * each).Truncate(time.Hour).Add(-s.length / 2)
		out = append(out, sim.Rush{Rate: rate, From: from, For: length})
	}
	return out
}

// longestRush is how long a rush may be: a limit that cannot be lowered is not used up by twice the requests of a
// month.
func (s *simulation) longestRush(rate float64, number int) time.Duration {
	seconds := 2 * mostRequests / float64(number) / rate
	return time.Duration(seconds * float64(time.Second))
}
