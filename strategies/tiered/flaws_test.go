package tiered_test

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// The tests in this file pin what is wrong with the record's design. They fail if
// one of them is repaired, which would make the measurements say something else.

// TestCommands pins the statements and commands of each path, in order.
func TestCommands(t *testing.T) {
	lookUp := []string{"hget quota:agent-7 tokens_used", "hget limits:agent-7 tokens_max"}
	hit := []string{lookUp[0], lookUp[1], "expire quota:agent-7"}
	miss := []string{
		"hget quota:agent-7 tokens_used",
		"SELECT check_quota", "SELECT tokens_used", "SELECT tokens_limit",
		"hset quota:agent-7 tokens_used", "hset limits:agent-7 tokens_max", "expire quota:agent-7",
	}
	const (
		charge, expire = "hincrby quota:agent-7 tokens_used", "expire quota:agent-7"
		again, mark    = "hget limits:agent-7 tokens_max", "sadd over_quota agent-7"
		update, drop   = "UPDATE quotas ADD tokens_used", "del quota:agent-7"
		limit          = "SELECT tokens_limit"
	)
	type paths struct {
		// charged is how a charge goes on, without and with the limit reached; second
		// is the check that follows, and last the one that rejects.
		charged, reached, second, last []string
	}
	back := func(hit []string, charged ...string) paths { return paths{charged, charged, hit, hit} }
	for selection, want := range map[string]paths{
		"redis-hash":               back(hit, charge, expire),
		"redis-hash:charge=before": back(hit, charge, expire),
		"redis-hash:ttl=charge":    back(lookUp, charge, expire),
		"redis-hash:ttl=literal":   back(lookUp, charge),
		"redis-hash:write=through": {[]string{update, drop}, []string{update, drop}, miss, miss},
		// Its count is never more than the last charge, so nothing is rejected.
		"redis-hash:write=literal": {[]string{update, drop, charge, expire}, []string{update, drop, charge, expire}, hit,
			nil},
		"three-tier":             {[]string{charge, expire, again}, []string{charge, expire, again, mark}, hit, hit},
		"three-tier:ttl=literal": {[]string{charge, again}, []string{charge, again, mark}, lookUp, lookUp},
		// The filter rejects what it was told of without asking a store.
		"three-tier:write=through": {[]string{update, drop, limit}, []string{update, drop, limit}, miss, []string{}},
		"three-tier:write=literal": {[]string{update, drop, charge, expire, limit},
			[]string{update, drop, charge, expire, limit}, hit, []string{}},
	} {
		t.Run(selection, func(t *testing.T) {
			onEveryStack(t, func(t *testing.T, s *stack) {
				in := s.open(t, selection)
				p := policy(t, "agent-tokens", 2)
				in.provision(p, strategies.Grant{Subject: agent, Limit: 2})
				s.trace = nil
				path := func(what string, admitted bool, lists ...[]string) {
					t.Helper()
					var want []string
					for _, l := range lists {
						for _, c := range l {
							if s.pool == nil || c[0] >= 'a' { // PostgreSQL's statements are not in the trace
								want = append(want, c)
							}
						}
					}
					if d := in.take(t.Context(), p, 1); d.Admitted != admitted {
						t.Errorf("%s: %+v", what, d)
					}
					s.wantTrace(t, what, want...)
				}
				path("a miss", true, miss, want.charged)
				path("a request that reaches the limit", true, want.second, want.reached)
				if want.last != nil {
					path("a rejection", false, want.last)
				}
			})
		})
	}
}

func TestCheckIgnoresTheAmount(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		in := s.open(t, "three-tier")
		p := policy(t, "agent-tokens", 1_000)
		in.provision(p, strategies.Grant{Subject: agent, Limit: 1_000, Used: 998})
		in.fill(p, 1)
		if d := in.take(t.Context(), p, 2_000); !d.Admitted {
			t.Errorf("2,000 tokens where 1 is left in the cache: %+v, want an admission", d)
		}
		in.wantUsed(p, 2_999, 998)
		s.redis.Del(t.Context(), s.prefix+"quota:"+string(agent))
		if d := in.take(t.Context(), p, 2_000); !d.Admitted {
			t.Errorf("2,000 tokens where 2 are left in the table: %+v, want an admission", d)
		}
	})
}

func TestOthersPassBetweenCheckAndCharge(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		a := s.open(t, "three-tier")
		b := s.open(t, "three-tier")
		p := policy(t, "agent-api", 2)
		a.provision(p, strategies.Grant{Subject: agent, Limit: 2})
		a.fill(p, 1)
		var other quota.Decision
		d := a.take(at(t.Context(), "hincrby", func() { other = b.take(t.Context(), p, 1) }), p, 1)
		if !d.Admitted || !other.Admitted {
			t.Errorf("%+v and %+v, want the last unit admitted twice", d, other)
		}
		a.wantUsed(p, 3, 0)
	})
}

func TestLateMissErasesCharges(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		a := s.open(t, "redis-hash")
		b := s.open(t, "redis-hash")
		p := policy(t, "agent-api", 3)
		a.provision(p, strategies.Grant{Subject: agent, Limit: 3})
		d := a.take(at(t.Context(), "hset", func() { b.fill(p, 3) }), p, 1)
		if !d.Admitted {
			t.Fatalf("%+v, want an admission", d)
		}
		a.wantUsed(p, 1, 0) // of 4 admitted
		a.fill(p, 2)
	})
}

func TestQueuesOvertakeEachOther(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		a := s.open(t, "three-tier")
		b := s.open(t, "three-tier")
		p := policy(t, "agent-api", 10)
		a.provision(p, strategies.Grant{Subject: agent, Limit: 10})
		a.fill(p, 1)
		b.fill(p, 4)
		b.run("write-back")
		a.wantUsed(p, 5, 5)
		a.run("write-back")
		a.wantUsed(p, 5, 1)
	})
}

// TestChargeAfterExpiry: a hash that is gone when the charge comes begins anew at
// the charge, and the write-back carries that to the database of record.
func TestChargeAfterExpiry(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		for selection, forever := range map[string]bool{"three-tier": false, "three-tier:ttl=literal": true} {
			t.Run(selection, func(t *testing.T) {
				in := s.open(t, selection)
				p := policy(t, "agent-api", 10)
				in.provision(p, strategies.Grant{Subject: agent, Limit: 10})
				key := s.prefix + "quota:" + string(agent)
				s.redis.Del(t.Context(), key)
				in.fill(p, 5)
				in.run("write-back")
				in.wantUsed(p, 5, 5)
				expired := at(t.Context(), "hincrby", func() { s.redis.Del(t.Context(), key) })
				if d := in.take(expired, p, 1); !d.Admitted {
					t.Fatalf("%+v, want an admission", d)
				}
				in.run("write-back")
				in.wantUsed(p, 1, 1)
				if left := ttl(t, s); (left < 0) != forever || left > time.Hour {
					t.Errorf("the hash lives for %s; for ever: want %t", left, forever)
				}
			})
		}
	})
}

func TestOneUseRejectsAllForGood(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		in := s.open(t, "three-tier")
		sandboxes := policy(t, "agent-sandboxes", 1)
		api := policy(t, "agent-api", 1_000)
		in.provision(sandboxes, strategies.Grant{Subject: agent, Limit: 1})
		in.provision(api, strategies.Grant{Subject: agent, Limit: 1_000})
		d := in.take(t.Context(), sandboxes, 1)
		in.run("rebuild")
		rejected := func(when string) {
			t.Helper()
			for _, p := range []*quota.Policy{sandboxes, api} {
				if d := in.take(t.Context(), p, 1); d.Admitted || d.Tier != quota.TierFilter {
					t.Errorf("%s, %s: %+v, want a rejection by the filter", when, p.Name, d)
				}
			}
		}
		rejected("with the only sandbox in use")
		if err := in.Strategy.(strategies.Refunder).Refund(t.Context(), d.Reservation); err != nil {
			t.Fatal(err)
		}
		in.provision(sandboxes, strategies.Grant{Subject: agent, Limit: 5})
		in.run("rebuild")
		rejected("after it was given back and the limit raised")
	})
}

func TestLimitIsReadAnewOnlyOnAMiss(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		in := s.open(t, "redis-hash")
		p := policy(t, "agent-api", 1)
		in.provision(p, strategies.Grant{Subject: agent, Limit: 1})
		in.fill(p, 1)
		in.run("write-back")
		in.provision(p, strategies.Grant{Subject: agent, Limit: 5, Used: 1})
		if d := in.take(t.Context(), p, 1); d.Admitted {
			t.Errorf("%+v, want a rejection by the old limit", d)
		}
		s.redis.Del(t.Context(), s.prefix+"quota:"+string(agent))
		in.fill(p, 4)
	})
}

func TestMissingLimitIsAnError(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		for _, name := range names {
			in := s.open(t, name)
			p := policy(t, "agent-api", 10)
			in.provision(p, strategies.Grant{Subject: agent, Limit: 10})
			s.redis.Del(t.Context(), s.prefix+"quota:"+string(agent))
			in.fill(p, 2)
			s.redis.Del(t.Context(), s.prefix+"limits:"+string(agent))
			if d, err := in.Take(t.Context(), quota.Request{Subject: agent, Policy: p, Units: 1}); err == nil {
				t.Errorf("%s: %+v, want an error", name, d)
			}
		}
	})
}

func TestFailingOpenLeavesACountWithoutALimit(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		if s.pool != nil {
			t.Skip("takes the model's outage")
		}
		in := s.open(t, "three-tier")
		p := policy(t, "agent-api", 10)
		in.provision(p, strategies.Grant{Subject: agent, Limit: 10})
		s.sourceDown = true
		if d := in.take(t.Context(), p, 1); !d.Admitted || !d.Degraded {
			t.Errorf("a miss without a database of record: %+v, want a degraded admission", d)
		}
		s.sourceDown = false
		if d, err := in.Take(t.Context(), quota.Request{Subject: agent, Policy: p, Units: 1}); err == nil {
			t.Errorf("afterwards: %+v, want an error", d)
		}
	})
}

func TestNoReset(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		for _, name := range names {
			in := s.open(t, name)
			p := policy(t, "agent-tokens", 2)
			in.provision(p, strategies.Grant{Subject: agent, Limit: 2})
			s.redis.Del(t.Context(), s.prefix+"quota:"+string(agent))
			in.fill(p, 2)
			later := *p
			real := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
			later.Window.Timeline = quota.Timeline{Real: real, Policy: real.AddDate(0, 1, 0)}
			if d := in.take(t.Context(), &later, 1); d.Admitted {
				t.Errorf("%s, a month later: %+v, want a rejection", name, d)
			}
		}
	})
}

// TestHourShrinksWithTheTimeline: at 12 times the speed an hour takes five minutes.
func TestHourShrinksWithTheTimeline(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		in := s.open(t, "redis-hash")
		p := policy(t, "agent-api", 10)
		now := clock.Wall{}.Now()
		p.Window.Timeline = quota.Timeline{Real: now, Policy: now, Speed: 12}
		in.provision(p, strategies.Grant{Subject: agent, Limit: 10})
		in.fill(p, 1)
		if left := ttl(t, s); left <= 0 || left > 5*time.Minute {
			t.Errorf("the hash lives for %s, want five minutes", left)
		}
	})
}
