package baseline

import (
	"time"

	"github.com/quotabench/quotabench/quota"
)

// pail is a bucket, without rounding. It counts how much has flowed in since the
// origin, and how much must have until the bucket is full.
type pail struct {
	flow   quota.Flow
	origin time.Time
	full   quota.Level
}

// now is what has flowed in by a moment.
func (p *pail) now(t time.Time) quota.Level { return p.flow.At(int64(t.Sub(p.origin))) }

// take takes units out.
func (p *pail) take(at time.Time, units int64) {
	if now := p.now(at); now.Compare(p.full) > 0 {
		p.full = now
	}
	p.full = p.full.Plus(units)
}

// missing is what is missing from the bucket, in units rounded up.
func (p *pail) missing(t time.Time) int64 {
	return max(0, p.flow.Less(p.full, p.now(t)).Ceil())
}

// until is how long it takes until no more is missing than now, less the units
// given as a negative number; 0 where that is so already.
func (p *pail) until(more int64, t time.Time) time.Duration {
	missing := p.flow.Less(p.full, p.now(t))
	if missing.Units < 0 {
		missing = quota.Level{}
	}
	return time.Duration(p.flow.Until(missing.Plus(more)))
}

// refill makes the bucket what it is where only these requests have taken from it.
func (p *pail) refill(entries []entry) {
	p.full = quota.Level{}
	for i := range entries {
		p.take(entries[i].at, entries[i].units)
	}
}
