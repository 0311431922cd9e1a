package hardened_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// drawPatience is how long a draw may take. What a later one has drawn is lost.
const drawPatience = 2 * time.Second

// region opens an instance of a region whose hashes no other region sees.
func (s *stack) region(t *testing.T, name, options string) *in {
	t.Helper()
	before := s.env
	defer func() { s.env = before }()
	s.env.Region = name
	s.env.Prefix = before.Prefix + name + ":"
	return s.open(t, "three-tier-hardened:lease=0s,recall=1ms"+options)
}

// returns runs the job that returns credit, once.
func (i *in) returns() (changed bool) {
	i.t.Helper()
	for _, j := range i.Strategy.(strategies.Jobber).Jobs() {
		if j.Name == "recall" {
			changed, err := j.Run(i.t.Context())
			if err != nil {
				i.t.Fatal(err)
			}
			return changed
		}
	}
	i.t.Fatal("there is no job that returns credit")
	return false
}

// drain asks region after region, and has them return credit, until nothing changes.
// It returns what was admitted. Before each question it lets the millisecond pass for which a
// region believes that the database has nothing left.
func drain(t *testing.T, p *quota.Policy, regions ...*in) (admitted int) {
	t.Helper()
	for more := true; more; {
		more = false
		for _, x := range regions {
			time.Sleep(3 * time.Millisecond)
			for x.take(p, 1).Admitted {
				admitted++
				more = true
			}
			more = x.returns() || more
		}
	}
	return admitted
}

// TestRegionsReturnCredit: what one region has drawn and does not use is admitted in
// the other one once it was returned, and not a unit more.
func TestRegionsReturnCredit(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		a := s.region(t, "a", "")
		b := s.region(t, "b", "")
		p := policy(t, "agent-api", 160)
		a.provision(p, 160, 0)
		a.wants("the first draw", p, 1, 1)
		if a.returns() {
			t.Error("credit was returned that nothing asked for")
		}
		b.wants("without what the other region holds", p, 155, 150)
		a.returns()
		if a.measure("credit returned") != 9 {
			t.Errorf("%d units were returned, want 9", a.measure("credit returned"))
		}
		if n := drain(t, p, b); n != 9 {
			t.Errorf("%d units more were admitted, want the 9 that were returned", n)
		}
		a.wants("at the limit", p, 3, 0)
		if n := drain(t, p, a, b); n != 0 {
			t.Errorf("%d units were admitted over the limit", n)
		}
	})
}

// TestNearTheLimitRegionsKeepNothing: the last quarter is drawn as it is asked for, so
// that no region rejects while the other one holds units.
func TestNearTheLimitRegionsKeepNothing(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		a := s.region(t, "a", "")
		b := s.region(t, "b", "")
		p := policy(t, "agent-api", 160)
		a.provision(p, 160, 0)
		a.wants("the first draw", p, 1, 1)
		b.wants("down to the last quarter", p, 110, 110)
		a.returns()
		b.returns()
		for range 24 { // 49 units are left
			a.wants("near the limit", p, 1, 1)
			b.wants("near the limit, in the other region", p, 1, 1)
		}
		b.wants("the last unit", p, 1, 1)
		a.wants("at the limit", p, 2, 0)
		b.wants("at the limit, in the other region", p, 2, 0)
	})
}

// TestReturnsAreNotCountedTwice: a job that runs twice returns nothing the second time,
// and what was set anew in between takes nothing back.
func TestReturnsAreNotCountedTwice(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		a := s.region(t, "a", "")
		twin := s.region(t, "a", "")
		b := s.region(t, "b", "")
		p := policy(t, "agent-api", 32)
		a.provision(p, 32, 0)
		a.wants("the first draw", p, 1, 1)
		b.wants("the rest", p, 40, 30)
		a.returns()
		twin.returns()
		if n := drain(t, p, b, a, twin); n != 1 {
			t.Errorf("%d units were admitted after the returns, want 1", n)
		}
		b.provision(p, 10, 10)
		for _, x := range []*in{a, twin, b} {
			x.returns()
			x.wants("after it was set anew", p, 2, 0)
		}
	})
}

// TestRegionsTogether: callers of both regions and their jobs, all at once, are admitted
// the limit exactly. If hashes are lost in between, or a draw lasts too long, they are admitted less.
func TestRegionsTogether(t *testing.T) {
	for _, lost := range testenv.Pick([]bool{false}, []bool{false, true}) {
		onEveryStack(t, func(t *testing.T, s *stack) {
			p := policy(t, "agent-api", 80)
			var all []*in
			for w := range 4 {
				all = append(all, s.region(t, []string{"a", "b"}[w%2], ",draws=4"))
			}
			all[0].provision(p, 80, 0)
			ctx, stop := context.WithCancel(t.Context())
			var background, callers sync.WaitGroup
			for _, x := range all {
				background.Go(func() {
					for ctx.Err() == nil {
						x.returns()
					}
				})
			}
			var mu sync.Mutex
			admitted := 0
			slowest := time.Duration(0)
			for w := range 8 {
				x := all[w%4]
				rng := seed.Rand(1, seed.Instance, 2, uint64(w))
				callers.Go(func() {
					for i := range 16 {
						units := 1 + rng.Int64N(2)
						begun := clock.Wall{}.Now()
						d, err := x.Take(t.Context(), quota.Request{ID: uint64(w*100 + i), Subject: agent, Policy: p, Units: units})
						if err != nil {
							t.Error(err)
						}
						if lost && i%5 == 4 {
							s.redis.Del(t.Context(), s.redis.Keys(t.Context(), s.env.Prefix+"*:escrow:*").Val()...)
						}
						mu.Lock()
						slowest = max(slowest, clock.Wall{}.Now().Sub(begun))
						if d.Admitted {
							admitted += int(units)
						}
						mu.Unlock()
					}
				})
			}
			callers.Wait()
			stop()
			background.Wait()
			admitted += drain(t, p, all...)
			if admitted > 80 || !lost && admitted < 80 && slowest < drawPatience {
				t.Errorf("lost %t: %d units were admitted, want 80", lost, admitted)
			}
		})
	}
}
