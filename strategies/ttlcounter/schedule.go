package ttlcounter

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// schedule tells an operator's reset job whose counters there are, and which
// window they belong to. All instances of a run see the same one.
type schedule struct {
	late   time.Duration // after a window's begin
	missed int64         // every so many resets; 0 is none

	// mu is never held across anything that waits.
	mu sync.Mutex
	of map[string]*plan // by policy
}

// plan is the schedule of one policy.
type plan struct {
	policy *quota.Policy
	// window is the one that counters were last reset for, or missed.
	window   int64
	subjects []quota.Subject
	known    map[quota.Subject]bool
}

// dueReset is a reset that is due.
type dueReset struct {
	policy   string
	window   int64
	missed   bool
	subjects []quota.Subject
}

func newSchedule(late time.Duration, missed int64) *schedule {
	return &schedule{late: late, missed: missed, of: map[string]*plan{}}
}

// see notes a subject and the policy in force, and reports whether a reset is due.
// What is counted first belongs to the window in force then.
func (s *schedule) see(subject quota.Subject, p *quota.Policy, now time.Time) (due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.of[p.Name]
	if k == nil {
		k = &plan{window: p.Window.At(now).Index, known: map[quota.Subject]bool{}}
		s.of[p.Name] = k
	}
	k.policy = p
	if !k.known[subject] {
		k.known[subject] = true
		k.subjects = append(k.subjects, subject)
	}
	return s.window(k, now) > k.window
}

// window is the one that counters should have been reset for by now.
func (s *schedule) window(k *plan, now time.Time) int64 {
	return k.policy.Window.At(now.Add(-s.late)).Index
}

// due returns the resets that are due. One that stands for several windows takes
// place if that of any of them does.
func (s *schedule) due(now time.Time) (due []dueReset) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.of)) {
		k := s.of[name]
		w := s.window(k, now)
		if w <= k.window {
			continue
		}
		d := dueReset{policy: name, window: w, missed: s.missed > 0, subjects: k.subjects}
		for i := k.window + 1; i <= w && d.missed; i++ {
			d.missed = i%s.missed == 0
		}
		due = append(due, d)
	}
	return due
}

func (s *schedule) done(d dueReset) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.of[d.policy]
	k.window = max(k.window, d.window)
}
