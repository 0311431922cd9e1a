package generators

import "time"

// Clock bounds how far the clock of this process is ahead of the coordinator's: OffsetNS, give
// or take ErrorNS, both in nanoseconds.
type Clock struct {
	OffsetNS int64 `json:"offset_ns"`
	ErrorNS  int64 `json:"error_ns"`
}

// Exchange is what one request and its reply tell: the coordinator read its clock at some
// moment between sent and received, which this process' clock shows.
func Exchange(sent, coordinator, received time.Time) Clock {
	return between(int64(sent.Sub(coordinator)), int64(received.Sub(coordinator)))
}

// Both is the bound that follows from two exchanges within so short a time that the clocks
// did not drift apart: the narrower one if they contradict each other.
func (c Clock) Both(o Clock) Clock {
	low, high := max(c.low(), o.low()), min(c.high(), o.high())
	switch {
	case low <= high:
		return between(low, high)
	case o.ErrorNS < c.ErrorNS:
		return o
	}
	return c
}

// Spanning is the bound over the whole time between two measurements, for clocks that drift
// apart steadily.
func (c Clock) Spanning(o Clock) Clock {
	return between(min(c.low(), o.low()), max(c.high(), o.high()))
}

func (c Clock) low() int64  { return c.OffsetNS - c.ErrorNS }
func (c Clock) high() int64 { return c.OffsetNS + c.ErrorNS }

func between(low, high int64) Clock {
	return Clock{OffsetNS: low + (high-low)/2, ErrorNS: (high - low + 1) / 2}
}
