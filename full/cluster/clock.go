package cluster

import "time"

// offset bounds how far the clock of this process is ahead of the coordinator's: OffsetNS, give or take ErrorNS, both
// in nanoseconds.
type offset struct {
	OffsetNS, ErrorNS int64
}

// exchange is what one request and its reply tell: the coordinator read its clock at some moment between sent and
// received, which this process' clock shows.
func exchange(sent, coordinator, received time.Time) offset {
	return between(int64(sent.Sub(coordinator)), int64(received.Sub(coordinator)))
}

// both is the bound that follows from two exchanges within so short a time that the clocks did not drift apart: the
// narrower one if they contradict each other.
func (c offset) both(o offset) offset {
	low := max(c.low(), o.low())
	high := min(c.high(), o.high())
	switch {
	case low <= high:
		return between(low, high)
	case o.ErrorNS < c.ErrorNS:
		return o
	}
	return c
}

// spanning is the bound over the whole time between two measurements, for clocks that drift apart steadily.
func (c offset) spanning(o offset) offset {
	return between(min(c.low(), o.low()), max(c.high(), o.high()))
}

func (c offset) low() int64  { return c.OffsetNS - c.ErrorNS }
func (c offset) high() int64 { return c.OffsetNS + c.ErrorNS }

func between(low, high int64) offset {
	return offset{OffsetNS: low + (high-low)/2, ErrorNS: (high - low + 1) / 2}
}

// drift is how much two clocks drift apart at most, as one part in so many: 100 µs a second. Quartz keeps to half of
// that, and its correction by NTP is of that size.
const drift = 10_000

// reckoning is where a clock stands against the coordinator's, and where it stood.
type reckoning struct {
	now  offset // at the moment of
	last time.Time
	all  offset // at all moments so far
}

// add takes a reading at a moment.
func (r *reckoning) add(c offset, at time.Time) {
	if r.last.IsZero() {
		r.now = c
		r.all = c
		r.last = at
		return
	}
	r.now = r.at(at).both(c)
	r.all = r.all.spanning(r.now)
	r.last = at
}

// at is the bound at a later moment, for which the clocks may have drifted.
func (r *reckoning) at(t time.Time) offset {
	c := r.now
	c.ErrorNS += int64(max(0, t.Sub(r.last))) / drift
	return c
}

// until is the bound from the first reading to a moment after the last one.
func (r *reckoning) until(t time.Time) offset { return r.all.spanning(r.at(t)) }
