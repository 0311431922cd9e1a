package harness

import (
	"fmt"
	"time"

	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/workloads"
)

// Defaults and bounds of what all runners accept.
const (
	// defaultHistoryLimit is the most events of one run if nothing else is said.
	defaultHistoryLimit = bounds.MaxRequests
	// maxRoutes is the most holders of a second quota.
	maxRoutes = 100_000
	// minSpeed is the slowest replay, in recorded seconds per second.
	minSpeed = 1e-3
	// maxSpeed is the fastest one: a month in three seconds.
	maxSpeed = 1e6
)

// CheckHistory reports an open loop whose requests no history holds: what cannot be
// judged is not started. rate is in requests per second, more are requests in
// addition to those of the rate, and length is how long they come; 0 is not known.
func (p *Plan) CheckHistory(rate float64, length time.Duration, more float64) error {
	most := float64(max(p.HistoryLimit, defaultHistoryLimit))
	requests := rate*length.Seconds() + more
	if p.Requests > 0 {
		requests = min(requests, float64(p.Requests))
	}
	if requests <= most {
		return nil
	}
	also := ""
	if more > 0 {
		also = fmt.Sprintf(" and %s more of rushes", format.Count(int64(min(more, 1e18))))
	}
	return fmt.Errorf("%g requests per second for %v%s are %s requests, and at most %s of one run can be judged: "+
		"give a lower rate, less time, or fewer requests",
		rate, length, also, format.Count(int64(min(requests, 1e18))), format.Count(int64(most)))
}

// CheckReplay reports a trace that takes longer than most at the plan's speed, and
// otherwise how long it takes; 0 if nothing is replayed by its own time.
func (p *Plan) CheckReplay(info workloads.Info, most time.Duration) (time.Duration, error) {
	if info.Trace == nil || p.Stream.Speed() == 0 || p.Load.Loop == workloads.Closed {
		return 0, nil
	}
	length := float64(info.Trace.Span) / p.Stream.Speed()
	if p.Duration > 0 {
		length = min(length, float64(p.Duration))
	}
	if length > float64(most) {
		return 0, fmt.Errorf("the trace spans %v, which at %g times the recorded speed takes %.0f hours, "+
			"and a run at most %v: give a higher speed, or a duration",
			info.Trace.Span, p.Stream.Speed(), length/float64(time.Hour), most)
	}
	return time.Duration(length), nil
}

// checkSizes reports the first number of a plan that is out of bounds, or that
// together with others makes a run that cannot be judged.
func (p *Plan) checkSizes() error {
	speed := p.Stream.Speed()
	switch {
	case p.Policy.Limit > quota.MaxLimit:
		return fmt.Errorf("a limit of %d: give at most %d", p.Policy.Limit, int64(quota.MaxLimit))
	case p.Requests > max(bounds.MaxRequests, p.HistoryLimit):
		return fmt.Errorf("%s requests: at most %s of one run can be judged, so give no more", format.Count(p.Requests),
			format.Count(max(bounds.MaxRequests, p.HistoryLimit)))
	case p.Life > bounds.MaxLife:
		return fmt.Errorf("a life of %v: give at most %v", p.Life, bounds.MaxLife)
	case speed != 0 && !(speed >= minSpeed && speed <= maxSpeed):
		return fmt.Errorf("a speed of %g: give %g to %g times the recorded one", speed, minSpeed, maxSpeed)
	}
	return p.Load.check()
}
