package quota

import (
	"math"
	"time"
)

// Timeline maps real time to a policy's own time: the real moment Real is the
// policy's moment Policy, and from there the policy's time runs Speed times as
// fast. Moving the anchor crosses a month's end without touching any clock;
// a speed of k shrinks windows and everything derived from them by k. The zero
// value is identity. Moments more than 292 years of either time from the anchor
// are not told apart.
type Timeline struct {
	Real, Policy time.Time
	// Speed is policy seconds per real second; 0 means 1.
	Speed float64
}

// ToPolicy converts a real moment.
func (l Timeline) ToPolicy(real time.Time) time.Time {
	if l.Real.IsZero() {
		return real
	}
	d := real.Sub(l.Real)
	if l.scaled() {
		d = rounded(float64(d) * l.Speed)
	}
	return l.Policy.Add(d)
}

// ToReal converts a policy moment. With a speed other than 1 it is exact to the
// nanosecond only near the anchor.
func (l Timeline) ToReal(policy time.Time) time.Time {
	if l.Real.IsZero() {
		return policy
	}
	d := policy.Sub(l.Policy)
	if l.scaled() {
		d = rounded(float64(d) / l.Speed)
	}
	return l.Real.Add(d)
}

// Scale converts a length of policy time to real time.
func (l Timeline) Scale(d time.Duration) time.Duration {
	if !l.scaled() {
		return d
	}
	return rounded(float64(d) / l.Speed)
}

// rounded saturates at 292 years, like time.Time.Sub.
func rounded(ns float64) time.Duration {
	switch {
	case ns >= math.MaxInt64:
		return math.MaxInt64
	case ns <= math.MinInt64:
		return math.MinInt64
	default:
		return time.Duration(math.Round(ns))
	}
}

func (l Timeline) scaled() bool { return l.Speed != 0 && l.Speed != 1 }
