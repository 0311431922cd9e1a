package tiered_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// request is one of the agent that the tests are about.
func request(p *quota.Policy, units int64) quota.Request {
	return quota.Request{Subject: agent, Policy: p, Units: units}
}

func (o *opened) jobs() (names []string) {
	for _, j := range o.Strategy.(strategies.Jobber).Jobs() {
		names = append(names, j.Name)
	}
	return names
}

func TestOptions(t *testing.T) {
	want := map[string]string{
		"write": "back through literal", "names": "schema literal", "charge": "after before", "filter": "scalable fixed",
		"ttl": "access charge literal", "reset": "none job", "down": "prose unified service", "sync": "literal retry",
		"source": "primary replica",
	}
	free := map[string]string{"rebuild": "5m", "lag": "5s", "batch": "1", "replica-lag": "100ms", "reconcile": "0s"}
	for _, name := range names {
		m := testkit.Strategy(t, name).Meta
		expected := len(want) + len(free)
		if name == "redis-hash" {
			expected -= 3 // it has no filter
		}
		if len(m.Options) != expected || len(m.Guarantee) > 0 || !m.GivesBack {
			t.Errorf("%s: %d options, %d clauses, gives back %t", name, len(m.Options), len(m.Guarantee), m.GivesBack)
		}
		for _, o := range m.Options {
			if v, ok := free[o.Name]; ok {
				if o.Default != v {
					t.Errorf("%s: option %s is %s by default, want %s", name, o.Name, o.Default, v)
				}
				continue
			}
			if got := strings.Join(o.Values, " "); got != want[o.Name] || o.Default != o.Values[0] {
				t.Errorf("%s: option %s is one of %q, by default %s; want %q, by default the first", name, o.Name, got, o.Default,
					want[o.Name])
			}
		}
	}
}

func TestJobs(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		for selection, want := range map[string]string{
			"redis-hash":                         "write-back",
			"three-tier":                         "write-back rebuild",
			"three-tier:reset=job":               "write-back rebuild reset",
			"three-tier:write=through,reset=job": "rebuild reset",
			"redis-hash:write=literal":           "",
			"redis-hash:reconcile=5s":            "write-back reconcile",
		} {
			if got := strings.Join(s.open(t, selection).jobs(), " "); got != want {
				t.Errorf("%s has the jobs %q, want %q", selection, got, want)
			}
		}
	})
}

// TestWriteThrough: the table is right after every charge and the cache empty.
// Only the filter that marked an agent knows it, and only until it is rebuilt.
func TestWriteThrough(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		const selection = "three-tier:write=through"
		a := s.open(t, selection)
		b := s.open(t, selection)
		p := policy(t, "agent-api", 3)
		a.provision(p, strategies.Grant{Subject: agent, Limit: 3})
		a.run("rebuild")
		for n := range int64(3) {
			a.fill(p, 1)
			a.wantUsed(p, -1, n+1)
		}
		rejectedBy := func(in *opened, when string, want ...quota.Tier) {
			t.Helper()
			if d := in.take(t.Context(), p, 1); d.Admitted || !slices.Contains(want, d.Tier) {
				t.Errorf("%s: %+v, want a rejection by one of %v", when, d, want)
			}
		}
		rejectedBy(a, "where it was marked", quota.TierFilter)
		rejectedBy(b, "elsewhere", quota.TierPostgres, quota.TierModel)
		if n := s.redis.Exists(t.Context(), s.prefix+"over_quota").Val(); n != 0 {
			t.Error("the shared set exists, which only write=back fills")
		}
		a.run("rebuild")
		rejectedBy(a, "after a rebuild", quota.TierRedis)
		// A refund goes the same way.
		if err := a.Strategy.(strategies.Refunder).Refund(t.Context(),
			quota.Reservation{Request: request(p, 2)}); err != nil {
			t.Fatal(err)
		}
		a.wantUsed(p, -1, 1)
	})
}

// TestWriteThroughProvisionMarksNobody: the shared set is write=back's.
func TestWriteThroughProvisionMarksNobody(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		for _, mode := range []string{"through", "literal"} {
			in := s.open(t, "three-tier:write="+mode)
			p := policy(t, "agent-api", 3)
			in.provision(p, strategies.Grant{Subject: agent, Limit: 3, Used: 3})
			in.run("rebuild")
			if d := in.take(t.Context(), p, 1); d.Admitted || d.Tier == quota.TierFilter {
				t.Errorf("%s: %+v, want a rejection by a store", mode, d)
			}
		}
	})
}

// TestWriteLiteral: dropping the cached count and then adding to it leaves the
// last charge alone. Redis never rejects, and only a filter that counted by the
// table stands between its instance's callers and everything.
func TestWriteLiteral(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		p := policy(t, "agent-api", 3)
		in := s.open(t, "redis-hash:write=literal,ttl=literal")
		in.provision(p, strategies.Grant{Subject: agent, Limit: 3})
		in.fill(p, 10)
		in.wantUsed(p, 1, 10)
		if left := ttl(t, s); left <= 0 || left > time.Hour {
			t.Errorf("the hash lives for %s; its listing sets an hour, whatever ttl says", left)
		}
		s.redis.Del(t.Context(), s.prefix+"quota:"+string(agent))

		a := s.open(t, "three-tier:write=literal")
		b := s.open(t, "three-tier:write=literal")
		a.provision(p, strategies.Grant{Subject: agent, Limit: 3})
		a.fill(p, 3)
		if d := a.take(t.Context(), p, 1); d.Admitted || d.Tier != quota.TierFilter {
			t.Errorf("%+v, want a rejection by the filter", d)
		}
		b.fill(p, 1)
		b.wantUsed(p, 1, 4)
	})
}

// TestNames takes each kind of use by the names of the schema, and by those that
// the listings put together.
func TestNames(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		for _, c := range []struct {
			policy, schemaField, literalField, limitField string
			noColumn                                      string
		}{
			{"agent-api", "api_requests", "api_requests", "api_requests_max", ""},
			{"agent-tokens", "tokens_used", "tokens", "tokens_max", ""},
			{"agent-sandboxes", "sandboxes_active", "sandboxes", "sandboxes_max", "sandboxes_used"},
			{"agent-storage", "storage_bytes", "storage", "storage_max", "storage_used"},
		} {
			for naming, field := range map[string]string{"schema": c.schemaField, "literal": c.literalField} {
				t.Run(c.policy+"/"+naming, func(t *testing.T) {
					counts := s.prefix + "quota:" + string(agent)
					limits := s.prefix + "limits:" + string(agent)
					s.redis.Del(t.Context(), counts, limits)
					in := s.open(t, "three-tier:names="+naming)
					p := policy(t, c.policy, 3)
					in.provision(p, strategies.Grant{Subject: agent, Limit: 3})
					missing := naming == "literal" && c.noColumn != ""
					d, err := in.Take(t.Context(), request(p, 1))
					switch {
					case missing && (!errors.Is(err, strategies.ErrPrescribed) || !strings.Contains(err.Error(), c.noColumn)):
						t.Errorf("cold: %+v, %v; want an error by the record, about column %s", d, err, c.noColumn)
					case !missing && (err != nil || !d.Admitted || d.Degraded):
						t.Errorf("cold: %+v, %v; want an admission", d, err)
					case !missing && s.redis.HGet(t.Context(), counts, field).Val() != "1":
						t.Errorf("the hash has %v, want 1 in field %s", s.redis.HGetAll(t.Context(), counts).Val(), field)
					}
					// Whatever charged it: a count whose limit could not be read.
					s.redis.Del(t.Context(), limits)
					s.redis.HSet(t.Context(), counts, field, 1)
					d, err = in.Take(t.Context(), request(p, 1))
					if !errors.Is(err, strategies.ErrPrescribed) || !strings.Contains(err.Error(), c.limitField) {
						t.Errorf("warm: %+v, %v; want an error by the record, about field %s", d, err, c.limitField)
					}
				})
			}
		}
	})
}

// TestLiteralNamesOverlookACount: what the schema's field says about tokens is
// not where the listings look.
func TestLiteralNamesOverlookACount(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		p := policy(t, "agent-tokens", 3)
		s.redis.HSet(t.Context(), s.prefix+"quota:"+string(agent), "tokens_used", 3)
		s.redis.HSet(t.Context(), s.prefix+"limits:"+string(agent), "tokens_max", 3)
		for naming, admitted := range map[string]bool{"schema": false, "literal": true} {
			in := s.open(t, "redis-hash:names="+naming)
			in.provision(p, strategies.Grant{Subject: agent, Limit: 3})
			if d := in.take(t.Context(), p, 1); d.Admitted != admitted {
				t.Errorf("names=%s: %+v, want admitted %t", naming, d, admitted)
			}
		}
	})
}

// TestLiteralNamesLoseCharges: if the cache knows both count and limit, what
// fails is the write to the table, and a queue does not keep what can never be
// written.
func TestLiteralNamesLoseCharges(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		p := policy(t, "agent-sandboxes", 5)
		for _, write := range []string{"back", "through"} {
			s.redis.HSet(t.Context(), s.prefix+"quota:"+string(agent), "sandboxes", 1)
			s.redis.HSet(t.Context(), s.prefix+"limits:"+string(agent), "sandboxes_max", 5)
			in := s.open(t, "redis-hash:names=literal,write="+write)
			in.provision(p, strategies.Grant{Subject: agent, Limit: 5, Used: 1})
			d := in.take(t.Context(), p, 1)
			if !d.Admitted || d.Degraded != (write == "through") {
				t.Errorf("write=%s: %+v", write, d)
			}
			if write == "back" {
				job := in.Strategy.(strategies.Jobber).Jobs()[0]
				if _, err := job.Run(t.Context()); !errors.Is(err, strategies.ErrPrescribed) || job.Pending() {
					t.Errorf("write-back: %v, pending %t; want an error by the record, and nothing left", err, job.Pending())
				}
				in.wantUsed(p, 2, 1)
			} else {
				in.wantUsed(p, 1, 1)
			}
		}
	})
}

// TestCharge: after the work nothing can be taken back; before it, a request that
// cannot be charged fails.
func TestCharge(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		p := policy(t, "agent-api", 10)
		key := s.prefix + "quota:" + string(agent)
		for _, c := range []struct {
			selection string
			admitted  bool
		}{{"three-tier", true}, {"three-tier:charge=after", true}, {"three-tier:charge=before", false}} {
			in := s.open(t, c.selection)
			in.provision(p, strategies.Grant{Subject: agent, Limit: 10})
			in.fill(p, 1)
			broken := at(t.Context(), "hincrby", func() { s.redis.Set(t.Context(), key, "no hash", 0) })
			d, err := in.Take(broken, request(p, 1))
			s.redis.Del(t.Context(), key)
			if c.admitted {
				if err != nil || !d.Admitted || !d.Degraded || in.measure("charge failed") != 1 {
					t.Errorf("%s: %+v, %v; want a degraded admission", c.selection, d, err)
				}
			} else if err == nil || d.Admitted || in.measure("charge failed") != 0 {
				t.Errorf("%s: %+v, %v; want an error", c.selection, d, err)
			}
		}
	})
}

// TestChargeBeforeInAnOutage: a subject with room is not admitted uncharged, and
// one without is still told so.
func TestChargeBeforeInAnOutage(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		p := policy(t, "agent-api", 2)
		in := s.open(t, "three-tier:charge=before")
		in.provision(p, strategies.Grant{Subject: agent, Limit: 2}, strategies.Grant{Subject: "full", Limit: 2, Used: 2})
		in.losesRedis()
		if d, err := in.Take(t.Context(), request(p, 1)); err == nil {
			t.Errorf("%+v, want an error", d)
		}
		d, err := in.Take(t.Context(), quota.Request{Subject: "full", Policy: p, Units: 1})
		if err != nil || d.Admitted || !d.Degraded {
			t.Errorf("%+v, %v; want a degraded rejection", d, err)
		}
	})
}

// TestFilterOption gives both filters twice the members that they are made for. A
// fixed one then finds 5.6 % of all strangers (0.75^10).
func TestFilterOption(t *testing.T) {
	testenv.Long(t)
	onEveryStack(t, func(t *testing.T, s *stack) {
		const members, batch, strangers = 200_000, 10_000, 400
		for from := 0; from < members; from += batch {
			list := make([]any, batch)
			for i := range list {
				list[i] = fmt.Sprintf("member-%d", from+i)
			}
			if err := s.redis.SAdd(t.Context(), s.prefix+"over_quota", list...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for kind, most := range map[string]int{"fixed": 60, "scalable": 4} {
			in := s.open(t, "three-tier:filter="+kind)
			if _, err := in.Strategy.(strategies.Jobber).Jobs()[1].Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			rejected := 0
			for i := range strangers {
				// They have no row: who gets past the filter meets an error.
				req := quota.Request{Subject: quota.Subject(fmt.Sprintf("stranger-%d", i)), Policy: policy(t, "agent-api", 1),
					Units: 1}
				if d, err := in.Take(t.Context(), req); err == nil && d.Tier == quota.TierFilter {
					rejected++
				}
			}
			if rejected > most || kind == "fixed" && rejected < 6 {
				t.Errorf("%s: %d of %d strangers are rejected", kind, rejected, strangers)
			}
		}
	})
}
