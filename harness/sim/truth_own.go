package sim

import (
	"slices"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
)

// own is the state of a subject whose window is its own: one that begins with its
// first request, or a bucket.
type own struct {
	open  bool  // a window is open
	begun int64 // at the call of its first request
	// full is how much must have flowed into a bucket for it to be full again, and
	// base what that was before the charges that are remembered.
	full, base quota.Level
	// slow is the longest request so far, in nanoseconds: by that much a bucket may
	// know of a request earlier than its caller.
	slow int64
}

// maxCharges bounds what is remembered of a bucket that is never full, to be given
// back. What was taken before that stays taken.
const maxCharges = 1 << 14

// hasOwn reports whether windows are the subjects' own.
func (t *truth) hasOwn() bool {
	return t.policy.Window.Kind == quota.FirstRequest || t.policy.Window.Kind == quota.Bucket
}

// fillOwn enters what a subject has in use at the start.
func (t *truth) fillOwn(s *subject, epoch int64) {
	if s.initial > 0 {
		s.own.open = true
		s.own.begun = epoch
		if t.policy.Window.Kind == quota.Bucket {
			t.draw(s, charge{at: epoch, units: s.initial, fill: true})
		}
	}
}

// touchOwn brings a subject up to the present.
func (t *truth) touchOwn(s *subject, now int64) {
	if t.policy.Window.Kind == quota.FirstRequest {
		end := s.own.begun + int64(t.policy.Window.RealLength())
		if s.own.open && now >= end {
			s.renew(s.window+1, end)
			s.own.open = false
		}
		return
	}
	t.level(s, now)
	if s.used == 0 {
		s.recent = s.recent[:0]
		s.own.base = s.own.full
		s.peak = 0
		s.overrun = 0
	}
	s.peak = max(0, min(s.peak, s.used-s.allowed))
}

// level sets what is missing from the subject's bucket.
func (t *truth) level(s *subject, now int64) {
	if used := max(0, t.flow.Less(s.own.full, t.flow.At(now)).Ceil()); used != s.used {
		s.used = used
		if s.track != nil {
			s.track.note(now, s.used, s.attempts)
		}
	}
}

// draw takes units out of a bucket.
func (t *truth) draw(s *subject, c charge) {
	if len(s.recent) >= maxCharges {
		half := len(s.recent) / 2
		s.own.base = t.fullAfter(s.own.base, s.recent[:half])
		s.recent = slices.Delete(s.recent, 0, half)
	}
	s.recent = charged(s.recent, c)
	s.own.full = t.fullAfter(s.own.full, []charge{c})
}

// putBack undoes what was taken at a moment, or part of it, as if it had never been.
func (t *truth) putBack(s *subject, units, at int64) {
	for i := range s.recent {
		if charge := &s.recent[i]; !charge.fill && (charge.at == at && !charge.over || charge.of == at && charge.over) {
			part := min(charge.units, units)
			charge.units = charge.units - part
			units = units - part
			if charge.over {
				s.overrun -= part
			}
		}
	}
	s.own.full = t.fullAfter(s.own.base, s.recent)
}

func (t *truth) fullAfter(full quota.Level, list []charge) quota.Level {
	for _, charge := range list {
		if now := t.flow.At(charge.at); now.Compare(full) > 0 {
			full = now
		}
		full = full.Plus(charge.units)
	}
	return full
}

// useOwn is use if windows are the subjects' own.
func (t *truth) useOwn(s *subject, units, at, now int64, over bool) {
	if t.policy.Window.Kind == quota.FirstRequest {
		s.used += units
		return
	}
	switch {
	case units < 0:
		t.putBack(s, -units, at)
	case over:
		t.draw(s, charge{at: now, of: at, units: units, over: true})
	default:
		t.draw(s, charge{at: at, units: units})
	}
	t.level(s, now)
}

// expectedOwn is what a bucket's counter must contain now, rounded either way. What
// commits used beyond their reservations may be charged to any moment since.
func (t *truth) expectedOwn(s *subject, now int64) oracle.Interval {
	missing := t.flow.Less(s.own.full, t.flow.At(now+s.own.slow))
	return oracle.Interval{
		Lo: max(0, missing.Units-s.overrun) + s.attempts,
		Hi: s.used + s.attempts + s.open + s.loose,
	}
}

// inUse is what all subjects have used at a moment, and what of that they had at
// the start.
func (t *truth) inUse(now int64) (usage, fill int64) {
	if !t.hasOwn() {
		return t.usage, t.fill
	}
	for i := range t.subjects {
		subject := &t.subjects[i]
		if subject.issued == 0 && subject.initial == 0 {
			continue
		}
		t.touch(subject, now)
		usage += subject.used
		switch {
		case t.policy.Window.Kind == quota.FirstRequest:
			if subject.own.open {
				fill += subject.initialIn(t)
			}
		case len(subject.recent) > 0 && subject.recent[0].fill:
			at := t.flow.At(subject.recent[0].at).Plus(subject.recent[0].units)
			fill += max(0, min(subject.used, t.flow.Less(at, t.flow.At(now)).Ceil()))
		}
	}
	return usage, fill
}
