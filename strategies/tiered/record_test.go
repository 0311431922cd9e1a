package tiered_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// manual is a clock that only waiting and tests move. It is for one goroutine.
type manual struct {
	clock.Wall
	now time.Time
}

func (m *manual) Now() time.Time { return m.now }

func (m *manual) Sleep(ctx context.Context, d time.Duration) error {
	m.now = m.now.Add(d)
	return ctx.Err()
}

func newManual() *manual { return &manual{now: time.Date(2026, time.May, 4, 10, 30, 0, 0, time.UTC)} }

// TestLag: each charge has a job of its own, which runs 5 s later.
func TestLag(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		c := newManual()
		start := c.now
		in := s.openOn(t, "redis-hash", c)
		p := policy(t, "agent-api", 10)
		in.provision(p, strategies.Grant{Subject: agent, Limit: 10})
		in.fill(p, 1)
		c.now = c.now.Add(2 * time.Second)
		in.fill(p, 2)
		job := in.job("write-back")
		for i, want := range []struct {
			after  time.Duration
			stored int64
		}{{5 * time.Second, 1}, {7 * time.Second, 2}, {7 * time.Second, 3}} {
			if changed, err := job.Run(t.Context()); !changed || err != nil {
				t.Fatalf("round %d: changed %t, %v", i, changed, err)
			}
			if got := c.now.Sub(start); got != want.after {
				t.Errorf("round %d ends %s after the first charge, want %s", i, got, want.after)
			}
			in.wantUsed(p, 3, want.stored)
		}
		if job.Pending() {
			t.Error("the queue is not empty after a round per charge")
		}
		for name, want := range map[string]int64{
			"written back": 3, "queue depth": 0, "queue depth, most": 3, "queue lag, sum": 15_000_000,
			"queue lag, most": 5_000_000,
		} {
			if got := in.measure(name); got != want {
				t.Errorf("%s: %d, want %d", name, got, want)
			}
		}
	})
}

// TestBatch is the queue that one would build: at once, and many at a time.
func TestBatch(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		in := s.open(t, "redis-hash:lag=0s,batch=256")
		p := policy(t, "agent-api", 10)
		in.provision(p, strategies.Grant{Subject: agent, Limit: 10})
		in.fill(p, 4)
		if changed, err := in.job("write-back").Run(t.Context()); !changed || err != nil {
			t.Fatal(changed, err)
		}
		in.wantUsed(p, 4, 4)
	})
}

// TestBatchWaitsForNobody: what is not due yet is no part of a batch.
func TestBatchWaitsForNobody(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		c := newManual()
		in := s.openOn(t, "redis-hash:batch=256", c)
		p := policy(t, "agent-api", 10)
		in.provision(p, strategies.Grant{Subject: agent, Limit: 10})
		in.fill(p, 2)
		c.now = c.now.Add(time.Second)
		in.fill(p, 1)
		for _, stored := range []int64{2, 3} {
			if _, err := in.job("write-back").Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			in.wantUsed(p, 3, stored)
		}
	})
}

// TestSync: nothing in the listing catches an error of its loop, which ends it. What
// it had learnt by then is what the filter knows from then on.
func TestSync(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		for sync, learns := range map[string]bool{"literal": false, "retry": true} {
			in := s.open(t, "three-tier:sync="+sync)
			p := policy(t, "agent-api", 1)
			in.provision(p, strategies.Grant{Subject: agent, Limit: 1, Used: 1})
			job := in.job("rebuild")
			broken, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := job.Run(broken); err == nil {
				t.Fatal("a round without Redis does not fail")
			}
			if job.Pending() != learns {
				t.Errorf("sync=%s: a further round is due: %t", sync, !learns)
			}
			for range 2 {
				if _, err := job.Run(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if got := in.Strategy.(strategies.Screener).Screens(agent); got != learns {
				t.Errorf("sync=%s: the filter learns after an error: %t", sync, got)
			}
			s.redis.Del(t.Context(), s.prefix+"over_quota")
		}
	})
}

// TestAccessRefreshes: an agent that is only rejected keeps its hash alive in the
// prose, and lets it expire in both readings of the listings.
func TestAccessRefreshes(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		for _, c := range []struct {
			ttl  string
			left time.Duration
		}{{"access", time.Hour}, {"charge", 10 * time.Minute}, {"literal", 10 * time.Minute}} {
			in := s.open(t, "redis-hash:ttl="+c.ttl)
			p := policy(t, "agent-api", 1)
			in.provision(p, strategies.Grant{Subject: agent, Limit: 1, Used: 1})
			key := s.prefix + "quota:" + string(agent)
			s.redis.Del(t.Context(), key)
			for range 2 {
				if d := in.take(t.Context(), p, 1); d.Admitted {
					t.Errorf("%+v, want a rejection", d)
				}
				s.redis.Expire(t.Context(), key, 10*time.Minute)
			}
			in.take(t.Context(), p, 1)
			if got := ttl(t, s); got > c.left || got < c.left-5*time.Minute {
				t.Errorf("ttl=%s: the hash lives for %s after a rejection, want %s", c.ttl, got, c.left)
			}
		}
	})
}

// TestReplica: a miss reads what the table was before the replica's lag, and
// overwrites the cache with it.
func TestReplica(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		if s.pool != nil {
			t.Skip("a replica is a store of its own; the model has one of its own")
		}
		c := newManual()
		in := s.openOn(t, "redis-hash:source=replica,replica-lag=10s,lag=0s", c)
		p := policy(t, "agent-api", 3)
		in.provision(p, strategies.Grant{Subject: agent, Limit: 3, Used: 1})
		in.fill(p, 2)
		in.run("write-back")
		in.wantUsed(p, 3, 3)
		s.redis.Del(t.Context(), s.prefix+"quota:"+string(agent))
		c.now = c.now.Add(9 * time.Second)
		if d := in.take(t.Context(), p, 1); !d.Admitted {
			t.Errorf("%+v, want an admission by what the replica still says", d)
		}
		in.wantUsed(p, 2, 3) // 4 are in use
		s.redis.Del(t.Context(), s.prefix+"quota:"+string(agent))
		c.now = c.now.Add(time.Second)
		if d := in.take(t.Context(), p, 1); d.Admitted {
			t.Errorf("%+v, want a rejection once the replica has caught up", d)
		}
	})
}

// TestFalsePositivesAreCounted plants members by the thousand into the record's
// fixed filter, which finds strangers then, and checks the count against the errors
// that a stranger who gets past the filter meets.
func TestFalsePositivesAreCounted(t *testing.T) {
	testenv.Sequential(t)
	onEveryStack(t, func(t *testing.T, s *stack) {
		if s.pool != nil {
			testenv.Long(t) // the filter is the instance's own
		}
		const members, strangers = 200_000, 400
		list := make([]any, members)
		for i := range list {
			list[i] = fmt.Sprintf("member-%d", i)
		}
		if err := s.redis.SAdd(t.Context(), s.prefix+"over_quota", list...).Err(); err != nil {
			t.Fatal(err)
		}
		in := s.open(t, "three-tier:filter=fixed")
		in.run("rebuild")
		p := policy(t, "agent-api", 1)
		var found int64
		for i := range strangers {
			d, err := in.Take(t.Context(),
				quota.Request{Subject: quota.Subject(fmt.Sprintf("stranger-%d", i)), Policy: p, Units: 1})
			if err == nil && d.Tier == quota.TierFilter {
				found++
			}
		}
		if d, err := in.Take(t.Context(), quota.Request{Subject: "member-7", Policy: p, Units: 1}); err != nil ||
			d.Tier != quota.TierFilter {
			t.Errorf("%+v, %v; want a member to be found", d, err)
		}
		if found == 0 || in.measure("false positives") != found || in.measure("filter hits") != found+1 ||
			in.measure("cache lookups") != strangers-found {
			t.Errorf("%d strangers were found; the measures are %+v", found, in.Strategy.(strategies.Meter).Measures())
		}
		if got := in.measure("filter size"); got != 179_720 {
			t.Errorf("the filter has %d bytes, want 179,720", got)
		}
	})
}
