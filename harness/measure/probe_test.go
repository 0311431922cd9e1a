package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// screening rejects some subjects at once, as a filter does that takes them for
// others, and answers warm-up requests with an error.
type screening struct {
	planted
	screened []quota.Subject
	warmUp   error
}

func (s *screening) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	if r.ID >= bounds.WarmUpID && r.ID < bounds.FillID && s.warmUp != nil {
		s.delay(ctx) // a clock that stands still would make it the longest warm-up of all
		return quota.Decision{}, s.warmUp
	}
	if slices.Contains(s.screened, r.Subject) {
		return quota.Decision{Tier: quota.TierProcess}, nil
	}
	return s.planted.Take(ctx, r)
}

func (s *screening) measure(t *testing.T) results.Run {
	t.Helper()
	return measureOne(t, &s.planted, "hot-key", func(c *Config) {
		sel := s.selection()
		sel.Open = func(context.Context, strategies.Env) (strategies.Strategy, error) { return s, nil }
		c.Strategies = []strategies.Selection{sel}
	})
}

// TestProbeTriesAnotherSubject: a subject that is rejected from the beginning says
// nothing about what an admission costs.
func TestProbeTriesAnotherSubject(t *testing.T) {
	s := &screening{screened: []quota.Subject{"cost-probe-0", "cost-probe-1"}}
	r := s.measure(t)
	requireValid(t, r)
	if p := r.Cost.Probe; p == nil || p.Admitted == nil || p.Rejected == nil {
		t.Errorf("probe %+v, want admitted and rejected requests", p)
	}
}

// TestProbeOfAStrategyThatRejects: if all subjects are rejected, that is what
// the strategy does.
func TestProbeOfAStrategyThatRejects(t *testing.T) {
	s := &screening{}
	for n := range probeAttempts * probeSubjects {
		s.screened = append(s.screened, quota.Subject(fmt.Sprintf("cost-probe-%d", n)))
	}
	if p := s.measure(t).Cost.Probe; p == nil || p.Admitted != nil || p.Rejected == nil {
		t.Errorf("probe %+v, want rejected requests alone", p)
	}
}

// failing is a service of which the first request for some subjects fails.
type failing struct {
	planted
	first map[quota.Subject]bool
}

func (f *failing) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	if f.first[r.Subject] {
		delete(f.first, r.Subject)
		return quota.Decision{}, errors.New("planted error")
	}
	return f.planted.Take(ctx, r)
}

// TestProbeOfAServiceThatFails: a failed first request is no first decision of no cost.
func TestProbeOfAServiceThatFails(t *testing.T) {
	for fail, kept := range map[string]bool{"0": true, "01234567": false} {
		f := &failing{first: map[quota.Subject]bool{}}
		for _, n := range fail {
			f.first[quota.Subject("cost-probe-"+string(n))] = true
		}
		r := measureOne(t, &f.planted, "hot-key", func(c *Config) {
			sel := f.selection()
			sel.Outside = true
			sel.Open = func(context.Context, strategies.Env) (strategies.Strategy, error) { return f, nil }
			c.Strategies = []strategies.Selection{sel}
		})
		p := r.Cost.Probe
		if kept && (p == nil || p.Admitted == nil) || !kept && (p != nil || !hasReason(r, "run-failed")) {
			t.Errorf("the first of %s fails: %+v, %+v", fail, p, r.Audit.Reasons)
		}
	}
}

// TestWarmUpOfErrors: errors that the strategy's source asks for are answers, and
// any others in every request are a store that is not there.
func TestWarmUpOfErrors(t *testing.T) {
	testenv.Sequential(t)
	prescribed := &screening{warmUp: strategies.ErrPrescribed}
	r := prescribed.measure(t)
	requireValid(t, r)
	if r.Issued != 4000 {
		t.Errorf("issued %d of 4000", r.Issued)
	}
	broken := &screening{warmUp: errors.New("planted error")}
	if r := broken.measure(t); r.Audit.Valid || !hasReason(r, "run-failed") {
		t.Errorf("audit %+v", r.Audit)
	}
}

// unsteady sends a command for each decision. In some attempts at a cost probe it opens a
// connection, and in those before them it answers too late.
type unsteady struct {
	planted
	redis    *redis.Client
	prefix   string
	opens    int          // attempts
	late     int          // attempts before those
	extra    int          // commands for each decision
	attempts map[int]bool // in which a connection was opened
}

func (u *unsteady) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	commands := 1
	if r.ID >= bounds.ProbeID && r.ID < bounds.WarmUpID {
		attempt := int(r.ID-bounds.ProbeID) >> 16 / probeSubjects
		commands += u.extra
		if attempt < u.late {
			return quota.Decision{}, context.DeadlineExceeded
		}
		if attempt < u.late+u.opens && !u.attempts[attempt] {
			u.attempts[attempt] = true
			if err := u.open(ctx); err != nil {
				return quota.Decision{}, err
			}
		}
	}
	for range commands {
		if err := u.redis.Incr(ctx, u.prefix+string(r.Subject)).Err(); err != nil {
			return quota.Decision{}, err
		}
	}
	return u.planted.Take(ctx, r)
}

// open has one more connection opened, and sends more commands in each attempt.
func (u *unsteady) open(ctx context.Context) error {
	options := *u.redis.Options()
	options.PoolSize = 1
	options.MinIdleConns = 0
	another := redis.NewClient(&options)
	defer another.Close() //nolint:errcheck // all that counts was sent
	for range u.attempts {
		if err := another.Ping(ctx).Err(); err != nil {
			return err
		}
	}
	return nil
}

func (u *unsteady) measure(t *testing.T) results.Run {
	t.Helper()
	u.attempts = map[int]bool{}
	return measureOne(t, &u.planted, "hot-key", func(c *Config) {
		sel := u.selection()
		sel.Needs = []strategies.Need{strategies.NeedRedis}
		sel.Open = func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			client, ok := strategies.Redis(env).(*redis.Client)
			if !ok {
				t.Fatal("not a client of one server")
			}
			u.redis = client
			u.prefix = env.Prefix
			return u, nil
		}
		c.Strategies = []strategies.Selection{sel}
		c.Stores = setOf(t, storetest.EmbeddedRedis(t))
		c.NoReference = true
		c.Requests = 200
		c.base = nil // the wall clock
	})
}

// TestDisturbedProbe: a cost probe during which connections were opened does not count, if there is
// another one, and neither does one whose requests were not answered in time. A planted further
// command for each decision is counted each time.
func TestDisturbedProbe(t *testing.T) {
	for extra := range 2 {
		want := float64(1 + extra)
		for _, u := range []*unsteady{{}, {opens: 1}, {opens: probeAttempts - 1}, {late: 2, opens: 2},
			{opens: probeAttempts}} {
			u.extra = extra
			r := u.measure(t)
			if !r.Audit.Valid {
				t.Fatalf("audit %+v", r.Audit)
			}
			p := r.Cost.Probe
			all := u.opens+u.late == probeAttempts
			if p == nil || p.Disturbed != all || p.Admitted.Commands != want || p.Rejected.Commands != want {
				t.Errorf("opened in %d, late in %d: %+v, want %g commands, disturbed %v", u.opens, u.late, p, want, all)
				continue
			}
			if (p.First.Commands != want) != all {
				t.Errorf("opened in %d, late in %d: the first decision took %g commands", u.opens, u.late, p.First.Commands)
			}
		}
	}
	late := &unsteady{late: probeAttempts}
	r := late.measure(t)
	if !r.Audit.Valid || r.Cost.Probe != nil || !hasReason(r, "probe-disturbed") {
		t.Errorf("no answer in time: %+v, probe %+v", r.Audit, r.Cost.Probe)
	}
}
