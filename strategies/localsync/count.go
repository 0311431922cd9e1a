package localsync

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// account is whose units are counted, and in which window.
type account struct {
	policy  string
	subject quota.Subject
	window  int64
}

// count is what an instance knows of an account, in units.
type count struct {
	base  int64 // what Redis said last
	since int64 // admitted since, and part of no push
	// sent is what the push with the number has that Redis has not answered; 0 for none.
	sent, number int64

	key  string
	ends time.Time
	// begun is set if requests are decided by it: Redis said the base, or could not be asked.
	begun bool
	// blind is set while Redis has never said the base.
	blind bool
	// over is set if the window is over by Redis' clock: others hear nothing more of it, so nothing more is admitted.
	over bool
	// asked is set by requests, until the next round of the job.
	asked bool
	// waits is how many callers ask Redis for the base.
	waits int
}

func (c *count) used() int64 { return c.base + c.sent + c.since }

// memory is what an instance knows.
type memory struct {
	name string // tells its pushes from those of others

	// mu is never held across anything that waits, so a scheduler need not know.
	mu     sync.Mutex
	counts map[account]*count
	number int64 // of the last push
}

// decide decides on a request in the window with the label. If Redis has to be asked for the base first, it returns the
// count, which stays until [memory.begin].
func (s *localSync) decide(a account, req *quota.Request, label string, ends, now time.Time) (quota.Decision, *count) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts[a]
	if c == nil {
		c = &count{key: s.key(a.subject, req.Policy, label), ends: ends, begun: !s.fetches}
		s.counts[a] = c
	}
	if !c.begun {
		c.waits++
		return quota.Decision{}, c
	}
	c.asked = true
	decision := quota.Decision{Tier: quota.TierProcess, Degraded: c.blind || c.over}
	if !c.over && c.used()+req.Units <= req.Policy.Limit {
		c.since += req.Units
		decision.Admitted = true
		s.most.Most(c.sent + c.since)
	} else {
		decision.RetryAfter = ends.Sub(now)
	}
	decision.Remaining = max(0, req.Policy.Limit-c.used())
	return decision, nil
}

// begin takes in what a caller has learnt who asked for the base.
func (m *memory) begin(c *count, base int64, known, blind bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.waits--
	if c.begun || !known && !blind {
		return
	}
	c.begun = true
	c.asked = true
	c.base = base
	c.blind = blind
}

// push is units on their way to Redis. No units only ask for the base.
type push struct {
	count         *count
	units, number int64
}

// depart makes the pushes of a round, in the order of their keys. It forgets accounts whose
// window is over once nothing is left to push, and those that can be asked for again.
func (s *localSync) depart() (list []push) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	for account, count := range s.counts {
		over := !now.Before(count.ends)
		switch {
		case !count.begun && count.waits > 0:
		case count.sent+count.since == 0 && (over || s.fetches && !count.asked):
			delete(s.counts, account)
		default:
			count.asked = false
			list = append(list, push{count: count})
		}
	}
	slices.SortFunc(list, func(a, b push) int { return cmp.Compare(a.count.key, b.count.key) })
	for i := range list {
		count := list[i].count
		switch {
		case count.sent > 0:
			s.repeats.Add(1)
		case count.since > 0:
			s.number++
			count.sent = count.since
			count.number = s.number
			count.since = 0
		}
		list[i].units, list[i].number = count.sent, count.number
		if count.sent == 0 {
			list[i].number = 0
		}
	}
	return list
}

// land takes in what Redis has answered to a push. late is set if the window is over by its clock.
func (m *memory) land(p push, used int64, late bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.count.sent = 0
	p.count.over = p.count.over || late
	if !late {
		p.count.base = used
		p.count.blind = false
	}
}

// drop forgets pushes that Redis has not answered. It returns their units.
func (m *memory) drop(list []push) (units int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, push := range list {
		push.count.sent = 0
		units += push.units
	}
	return units
}

// forget forgets what is in no push. It returns the units.
func (m *memory) forget() (units int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, count := range m.counts {
		units += count.since
		count.since = 0
	}
	return units
}

// remove forgets an account.
func (m *memory) remove(a account) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.counts, a)
}

// unsynced is what the instance has admitted and a hash of Redis does not have yet.
func (m *memory) unsynced(a account, hash map[string]string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	count := m.counts[a]
	if count == nil {
		return 0
	}
	if last, _ := strconv.ParseInt(hash["last:"+m.name], 10, 64); last >= count.number { // "" is 0
		return count.since
	}
	return count.since + count.sent
}
