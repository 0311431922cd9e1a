package tiered_test

import (
	"testing"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// TestSettle: a caller whose work takes time is charged when it is done, or on
// admission and corrected then. Counts are what the cache holds after each step.
func TestSettle(t *testing.T) {
	type step struct {
		name string
		want int64
	}
	onEveryStack(t, func(t *testing.T, s *stack) {
		for _, c := range []struct {
			selection string
			settles   bool
			steps     []step
		}{
			{"three-tier", true, []step{{"take", 0}, {"commit", 3}, {"refund", 0}}},
			{"three-tier", true, []step{{"take", 0}, {"refund", 0}}},
			{"three-tier", false, []step{{"take", 5}, {"commit", 3}, {"refund", 0}}},
			{"three-tier:charge=before", true, []step{{"take", 5}, {"commit", 3}, {"refund", 0}}},
			{"three-tier:charge=before", true, []step{{"take", 5}, {"refund", 0}, {"refund", -5}}},
			{"redis-hash", true, []step{{"take", 0}, {"commit", 3}}},
		} {
			p := policy(t, "agent-api", 10)
			in := s.open(t, c.selection)
			in.provision(p, strategies.Grant{Subject: agent, Limit: 10})
			var r quota.Reservation
			for i, step := range c.steps {
				var err error
				switch step.name {
				case "take":
					var d quota.Decision
					d, err = in.Take(t.Context(), quota.Request{ID: 1, Subject: agent, Policy: p, Units: 5, Settles: c.settles})
					if !d.Admitted {
						t.Fatalf("%s: not admitted", c.selection)
					}
					r = d.Reservation
				case "commit":
					err = in.Strategy.(strategies.Committer).Commit(t.Context(), r, 3)
					r.Request.Units = 3
					r.Committed = true
				case "refund":
					err = in.Strategy.(strategies.Refunder).Refund(t.Context(), r)
				}
				if err != nil {
					t.Fatalf("%s: %s: %v", c.selection, step.name, err)
				}
				readings, err := in.Strategy.(strategies.Viewer).Used(t.Context(), agent, p)
				if err != nil {
					t.Fatal(err)
				}
				if got := readings[0].Units; got != step.want {
					t.Errorf("%s, settles %v: %d units after step %d, %s; want %d", c.selection, c.settles, got, i+1, step.name,
						step.want)
				}
			}
			s.redis.Del(t.Context(), s.prefix+"quota:"+string(agent))
		}
	})
}

// TestCommitThatCannotBeCharged: the work is done, and it is charged to no account.
func TestCommitThatCannotBeCharged(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		p := policy(t, "agent-api", 10)
		in := s.open(t, "three-tier")
		in.provision(p, strategies.Grant{Subject: agent, Limit: 10})
		d, err := in.Take(t.Context(), quota.Request{ID: 1, Subject: agent, Policy: p, Units: 5, Settles: true})
		if err != nil || !d.Admitted {
			t.Fatalf("%+v, %v", d, err)
		}
		in.losesRedis()
		if err := in.Strategy.(strategies.Committer).Commit(t.Context(), d.Reservation, 4); err == nil ||
			in.measure("charge failed") != 4 {
			t.Errorf("%v, %d units failed to be charged; want an error, and 4", err, in.measure("charge failed"))
		}
	})
}
