package tiered_test

import (
	"slices"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// later is a policy as it is so many days after the present.
func later(p *quota.Policy, days int) *quota.Policy {
	q := *p
	now := clock.Wall{}.Now()
	q.Window.Timeline = quota.Timeline{Real: now, Policy: time.Date(2031, time.March, 15+days, 12, 30, 0, 0, time.UTC)}
	return &q
}

func (o *opened) job(name string) strategies.Job {
	o.t.Helper()
	for _, j := range o.Strategy.(strategies.Jobber).Jobs() {
		if j.Name == name {
			return j
		}
	}
	o.t.Fatalf("there is no job %s", name)
	return strategies.Job{}
}

// TestResetJob: a window's end is noticed by the first request after it, which
// the old counts still reject. The filter learns when it is next rebuilt.
func TestResetJob(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		in := s.open(t, "three-tier:reset=job")
		job := in.job("reset")
		if !job.Singleton || job.Every != time.Minute || job.Pending() {
			t.Errorf("%+v, pending %t; want one for all instances, every minute, and nothing to do", job, job.Pending())
		}
		march := later(policy(t, "agent-tokens", 2), 0)
		in.provision(march, strategies.Grant{Subject: "other", Limit: 2, Used: 1}, strategies.Grant{Subject: agent, Limit: 2})
		in.fill(march, 2)
		in.run("write-back")
		in.run("rebuild")
		s.trace = nil
		in.run("reset")
		s.wantTrace(t, "a reset before the window's end")

		april := later(march, 31)
		for range 2 {
			if d := in.take(t.Context(), april, 1); d.Admitted || d.Tier != quota.TierFilter {
				t.Errorf("%+v, want a rejection: the counts have not been reset yet", d)
			}
		}
		if n := len(slices.DeleteFunc(in.woken, func(job string) bool { return job != "reset" })); n != 1 || !job.Pending() {
			t.Errorf("the reset was woken %d times, pending %t; want once", n, job.Pending())
		}
		// A caller with the window that has ended does not undo that.
		_, _ = in.Take(t.Context(), request(march, 1))
		s.trace = nil
		in.run("reset")
		want := []string{"UPDATE quotas RESET tokens_used", "hdel quota:agent-7 tokens_used", "hdel quota:other tokens_used",
			"del over_quota"}
		if s.pool != nil {
			want = want[1:]
		}
		s.wantTrace(t, "a reset", want...)
		in.wantUsed(april, -1, 0)
		if job.Pending() {
			t.Error("the reset is still due")
		}
		if d := in.take(t.Context(), april, 1); d.Admitted || d.Tier != quota.TierFilter {
			t.Errorf("%+v, want a rejection by the filter, which has not learnt", d)
		}
		in.run("rebuild")
		in.fill(april, 2)
		if d := in.take(t.Context(), april, 1); d.Admitted {
			t.Errorf("%+v, want a rejection in the new window", d)
		}
	})
}

// TestResetReachesEveryRegion: the job of one region drops the counts of another, too.
func TestResetReachesEveryRegion(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		s.region = "eu:"
		far := s.open(t, "three-tier:reset=job")
		s.region = "us:"
		near := s.open(t, "three-tier:reset=job")
		march := later(policy(t, "agent-tokens", 2), 0)
		near.provision(march, strategies.Grant{Subject: agent, Limit: 2})
		near.fill(march, 2)
		far.fill(march, 2)
		april := later(march, 31)
		near.take(t.Context(), april, 1)
		near.run("reset")
		near.wantUsed(april, -1, 0)
		far.wantUsed(april, -1, 0)
	})
}

// TestNoResetByDefault is what the job is an alternative to.
func TestNoResetByDefault(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		in := s.open(t, "redis-hash")
		march := later(policy(t, "agent-tokens", 2), 0)
		in.provision(march, strategies.Grant{Subject: agent, Limit: 2})
		in.fill(march, 2)
		if d := in.take(t.Context(), later(march, 31), 1); d.Admitted || slices.Contains(in.woken, "reset") {
			t.Errorf("%+v, woken %v; want a rejection and no reset", d, in.woken)
		}
	})
}

// TestResetIsOfOneUse: other kinds keep their counts, and although the shared set
// forgets who used them up, Redis does not.
func TestResetIsOfOneUse(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		in := s.open(t, "three-tier:reset=job")
		storage := policy(t, "agent-storage", 1)
		march := later(policy(t, "agent-tokens", 2), 0)
		in.provision(storage, strategies.Grant{Subject: agent, Limit: 1})
		in.provision(march, strategies.Grant{Subject: agent, Limit: 2})
		in.fill(march, 2)
		in.fill(storage, 1)
		in.run("write-back")
		april := later(march, 31)
		in.take(t.Context(), april, 1)
		in.run("reset")
		in.run("rebuild")
		in.wantUsed(april, -1, 0)
		in.wantUsed(storage, 1, 1)
		if d := in.take(t.Context(), storage, 1); d.Admitted || d.Tier != quota.TierRedis {
			t.Errorf("%+v, want a rejection by Redis", d)
		}
	})
}

// TestQueueBringsOldCountsBack: the job does not know of counts on their way.
func TestQueueBringsOldCountsBack(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		in := s.open(t, "redis-hash:reset=job")
		march := later(policy(t, "agent-tokens", 2), 0)
		in.provision(march, strategies.Grant{Subject: agent, Limit: 2})
		in.fill(march, 2)
		april := later(march, 31)
		in.take(t.Context(), april, 1)
		in.run("reset")
		in.run("write-back")
		if d := in.take(t.Context(), april, 1); d.Admitted {
			t.Errorf("%+v, want a rejection by March's count", d)
		}
	})
}

// TestResetIsTriedAgain: an outage leaves the window due.
func TestResetIsTriedAgain(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		in := s.open(t, "redis-hash:reset=job")
		march := later(policy(t, "agent-tokens", 2), 0)
		in.provision(march, strategies.Grant{Subject: agent, Limit: 2})
		april := later(march, 31)
		in.take(t.Context(), april, 1)
		in.losesRedis()
		job := in.job("reset")
		if changed, err := job.Run(t.Context()); err == nil || changed || !job.Pending() {
			t.Errorf("changed %t, %v, pending %t; want an error and another try", changed, err, job.Pending())
		}
	})
}

// TestResetOfALiteralName: the job is an operator's, who knows the columns.
func TestResetOfALiteralName(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		in := s.open(t, "redis-hash:names=literal,reset=job")
		march := policy(t, "agent-storage", 2)
		march.Window.Kind = quota.CalendarMonth
		march = later(march, 0)
		in.provision(march, strategies.Grant{Subject: agent, Limit: 2, Used: 2})
		_, _ = in.Take(t.Context(), request(later(march, 31), 1)) // an error, which is not the point
		in.run("reset")
		in.wantUsed(march, -1, 0)
	})
}

// TestResetLocksInOrder: a reset that waits for a row must not hold another that
// comes later in the order of agents, or it and a write-back could wait for each
// other.
func TestResetLocksInOrder(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		if s.pool == nil {
			t.Skip("the model has no row locks")
		}
		in := s.open(t, "redis-hash:reset=job")
		march := later(policy(t, "agent-tokens", 2), 0)
		for _, subject := range []quota.Subject{"c", "b", "a"} { // rows lie in this order
			in.provision(march, strategies.Grant{Subject: subject, Limit: 2})
		}
		_, _ = in.Take(t.Context(), quota.Request{Subject: "a", Policy: later(march, 31), Units: 1})

		tx, err := s.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lock := func(agent string) error {
			_, err := tx.Exec(t.Context(), "SELECT FROM quotas WHERE agent_id = $1 FOR UPDATE NOWAIT", agent)
			return err
		}
		if err := lock("a"); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := in.job("reset").Run(t.Context())
			done <- err
		}()
		for waiting := false; !waiting; {
			select {
			case err := <-done:
				t.Fatalf("the reset did not wait for a row that is locked: %v", err)
			default:
			}
			if err := s.pool.QueryRow(t.Context(),
				"SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)").Scan(&waiting); err != nil {
				t.Fatal(err)
			}
		}
		if err := lock("c"); err != nil {
			t.Errorf("the reset waits for a, and c is locked: %v", err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
