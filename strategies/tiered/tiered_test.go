package tiered_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

var names = []string{"redis-hash", "three-tier"}

// TestEveryUse takes each kind of use to its limit, and looks at each tier.
func TestEveryUse(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		source := quota.TierPostgres
		if s.pool == nil {
			source = quota.TierModel
		}
		for _, name := range names {
			for i, use := range []string{"agent-api", "agent-tokens", "agent-sandboxes", "agent-storage"} {
				t.Run(name+"/"+use, func(t *testing.T) {
					in := s.open(t, name)
					p := policy(t, use, 3)
					subject := quota.Subject(fmt.Sprintf("%s-%d", name, i))
					in.provision(p, strategies.Grant{Subject: subject, Limit: 3})
					for n, want := range []quota.Decision{
						{Admitted: true, Tier: source, Remaining: 2},
						{Admitted: true, Tier: quota.TierRedis, Remaining: 1},
						{Admitted: true, Tier: quota.TierRedis, Remaining: 0},
						{Admitted: false, Tier: quota.TierRedis, Remaining: 0},
					} {
						d, err := in.Take(t.Context(), quota.Request{ID: uint64(n), Subject: subject, Policy: p, Units: 1})
						if err != nil {
							t.Fatal(err)
						}
						if r := d.Reservation.Request; d.Admitted && (r.ID != uint64(n) || r.Units != 1 || r.Subject != subject) {
							t.Errorf("reservation %+v", d.Reservation)
						}
						d.Reservation = (quota.Reservation{})
						if d != want {
							t.Errorf("request %d: %+v, want %+v", n, d, want)
						}
					}
					in.run("write-back")
					readings, err := in.Strategy.(strategies.Viewer).Used(t.Context(), subject, p)
					if err != nil {
						t.Fatal(err)
					}
					for j, tier := range []quota.Tier{quota.TierRedis, source} {
						if want := (quota.Reading{Tier: tier, Units: 3, Known: true}); readings[j] != want {
							t.Errorf("reading %+v, want %+v", readings[j], want)
						}
					}
				})
			}
		}
	})
}

func TestFilterLearnsAtRebuild(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		a := s.open(t, "three-tier")
		b := s.open(t, "three-tier")
		p := policy(t, "agent-api", 2)
		a.provision(p, strategies.Grant{Subject: agent, Limit: 2})
		a.fill(p, 2)
		for _, step := range []struct {
			job  string
			a, b quota.Tier
		}{
			{"write-back", quota.TierRedis, quota.TierRedis},
			{"rebuild", quota.TierFilter, quota.TierRedis},
		} {
			a.run(step.job)
			for tier, in := range map[quota.Tier]*opened{step.a: a, step.b: b} {
				if d := in.take(t.Context(), p, 1); d.Admitted || d.Tier != tier {
					t.Errorf("after %s: %+v, want a rejection by %s", step.job, d, tier)
				}
			}
		}
	})
}

// TestRebuildIsDueAtStart: the record's loop rebuilds before it first sleeps.
func TestRebuildIsDueAtStart(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		in := s.open(t, "three-tier")
		var rebuild strategies.Job
		for _, j := range in.Strategy.(strategies.Jobber).Jobs() {
			if j.Name == "rebuild" {
				rebuild = j
			}
		}
		if rebuild.Every != 5*time.Minute || rebuild.Singleton || !rebuild.Pending() {
			t.Fatalf("rebuild is %+v, pending %t", rebuild, rebuild.Pending())
		}
		in.run("rebuild")
		if rebuild.Pending() {
			t.Error("a rebuild is still due after one")
		}
		// An agent set up as used up is where its own requests would have put it.
		p := policy(t, "agent-api", 5)
		in.provision(p, strategies.Grant{Subject: agent, Limit: 5, Used: 5},
			strategies.Grant{Subject: "other", Limit: 5, Used: 4})
		if !rebuild.Pending() {
			t.Error("no rebuild is due after an agent over quota was provisioned")
		}
		in.run("rebuild")
		if d := in.take(t.Context(), p, 1); d.Admitted || d.Tier != quota.TierFilter {
			t.Errorf("%+v, want a rejection by the filter", d)
		}
		if d, err := in.Take(t.Context(), quota.Request{Subject: "other", Policy: p, Units: 1}); err != nil || !d.Admitted {
			t.Errorf("%+v, %v, want an admission", d, err)
		}
	})
}

// TestRefund gives back once, and once more for the asking.
func TestRefund(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				in := s.open(t, name)
				p := policy(t, "agent-storage", 100)
				in.provision(p, strategies.Grant{Subject: agent, Limit: 100})
				d := in.take(t.Context(), p, 40)
				for _, left := range []int64{0, -40} {
					if err := in.Strategy.(strategies.Refunder).Refund(t.Context(), d.Reservation); err != nil {
						t.Fatal(err)
					}
					in.run("write-back")
					in.wantUsed(p, left, left)
				}
				s.redis.Del(t.Context(), s.prefix+"quota:"+string(agent))
			})
		}
	})
}

func TestRefused(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		for _, name := range names {
			in := s.open(t, name)
			p := policy(t, "agent-api", 3)
			_, err := in.Take(t.Context(), quota.Request{Subject: "nobody", Policy: p, Units: 1})
			if err == nil || !strings.Contains(err.Error(), "provision") {
				t.Errorf("%s: an agent without a row: %v", name, err)
			}
			if readings, err := in.Strategy.(strategies.Viewer).Used(t.Context(), "nobody", p); err != nil ||
				readings[0].Known || readings[1].Known {
				t.Errorf("%s: readings of an agent without a row: %+v, %v", name, readings, err)
			}
			for _, other := range []string{"user-links", "agent-spend"} {
				if _, err := in.Take(t.Context(),
					quota.Request{Subject: agent, Policy: policy(t, other, 3), Units: 1}); err == nil {
					t.Errorf("%s takes %s, for which it has no column", name, other)
				}
			}
			meta := testkit.Strategy(t, name).Meta
			for _, q := range quota.Policies() {
				served := meta.ServesPolicy(&q) == nil
				if want := strings.HasPrefix(q.Name, "agent-") && q.Unit != "cents"; served != want {
					t.Errorf("%s serves %s: %t, want %t", name, q.Name, served, want)
				}
			}
		}
	})
}

func TestOutages(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				in := s.open(t, name)
				p := policy(t, "agent-api", 2)
				subject := quota.Subject("outage-" + name)
				full := subject + "-full"
				in.provision(p, strategies.Grant{Subject: subject, Limit: 2}, strategies.Grant{Subject: full, Limit: 2, Used: 2})
				in.losesRedis()
				req := quota.Request{Subject: subject, Policy: p, Units: 1}
				// PostgreSQL answers, and as no charge reaches it, admits forever.
				for range 5 {
					d, err := in.Take(t.Context(), req)
					if err != nil || !d.Admitted || !d.Degraded || d.Tier == quota.TierRedis || d.Tier == quota.TierProcess {
						t.Fatalf("without Redis: %+v, %v; want a degraded admission by the database of record", d, err)
					}
				}
				if n := in.measure("charge failed"); n != 5 {
					t.Errorf("%d units failed to be charged, want 5", n)
				}
				if d, err := in.Take(t.Context(), quota.Request{Subject: full, Policy: p, Units: 1}); err != nil || d.Admitted ||
					!d.Degraded {
					t.Errorf("without Redis, at the limit: %+v, %v; want a degraded rejection", d, err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				for _, s := range []quota.Subject{subject, full} {
					if d, err := in.Take(ctx, quota.Request{Subject: s, Policy: p, Units: 1}); !errors.Is(err, context.Canceled) {
						t.Errorf("a caller that gave up got %+v, %v; want its own error", d, err)
					}
				}
			})
		}
		in := s.open(t, "three-tier")
		p := policy(t, "agent-api", 2)
		in.provision(p, strategies.Grant{Subject: agent, Limit: 2})
		in.losesRedis()
		in.losesSource()
		if d := in.take(t.Context(), p, 1); !d.Admitted || !d.Degraded || d.Tier != quota.TierProcess {
			t.Errorf("without both: %+v; want a degraded admission by no tier", d)
		}
	})
}

// TestWriteBackSurvivesAnOutage: what could not be written stays queued, in order.
func TestWriteBackSurvivesAnOutage(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		in := s.open(t, "redis-hash")
		p := policy(t, "agent-api", 10)
		in.provision(p, strategies.Grant{Subject: agent, Limit: 10})
		in.fill(p, 3)
		job := in.Strategy.(strategies.Jobber).Jobs()[0]
		ctx, cancel := context.WithCancel(t.Context())
		if s.pool == nil {
			s.sourceDown = true
		} else {
			cancel()
		}
		if _, err := job.Run(ctx); err == nil || !job.Pending() {
			t.Fatalf("write-back during an outage: %v, pending %t", err, job.Pending())
		}
		cancel()
		s.sourceDown = false
		in.fill(p, 1)
		in.run("write-back")
		in.wantUsed(p, 4, 4)
		if n := in.measure("written back"); n != 4 {
			t.Errorf("%d statements, want one per charge: 4", n)
		}
	})
}

// TestConcurrent runs everything at once. With the cache warm nothing erases a
// charge, so Redis holds exactly what was admitted.
func TestConcurrent(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		if s.pool == nil {
			t.Skip("the trace of the embedded stack is not for concurrent use")
		}
		const workers, each, limit = 8, 50, 100
		in := s.open(t, "three-tier")
		p := policy(t, "agent-api", limit)
		in.provision(p, strategies.Grant{Subject: agent, Limit: limit})
		ctx := context.WithValue(t.Context(), untraced{}, true)
		in.take(ctx, p, 1)
		var admitted, failed atomic.Int64
		admitted.Store(1)
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for range each {
					d, err := in.Take(ctx, quota.Request{Subject: agent, Policy: p, Units: 1})
					if err != nil {
						failed.Add(1)
					}
					if d.Admitted {
						admitted.Add(1)
					}
				}
			})
		}
		for _, j := range in.Strategy.(strategies.Jobber).Jobs() {
			wg.Go(func() {
				for range 10 {
					if _, err := j.Run(ctx); err != nil {
						failed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if failed.Load() > 0 {
			t.Fatalf("%d calls failed", failed.Load())
		}
		if n := admitted.Load(); n < limit || n > limit+workers-1 {
			t.Errorf("%d admitted, want %d to %d", n, limit, limit+workers-1)
		}
		in.run("write-back")
		if cached, _ := in.used(p); cached != admitted.Load() {
			t.Errorf("Redis holds %d, admitted were %d", cached, admitted.Load())
		}
	})
}
