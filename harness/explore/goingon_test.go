package explore_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/internal/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// capped is a bucket in memory, by the clock of package time. Its defect: it is cut down
// to its size after a request was served, and not before.
type capped struct {
	mu     sync.Mutex
	policy *quota.Policy
	late   bool
	left   int64
	since  time.Time
}

func (b *capped) Allow(context.Context, string) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	each := b.policy.Window.RealLength() / time.Duration(b.policy.Window.Refill)
	now := time.Now() //nolint:forbidigo // what is tested is code that does this
	if b.since.IsZero() {
		b.left, b.since = b.policy.Limit, now
	}
	flowed := now.Sub(b.since) / each
	b.left, b.since = b.left+int64(flowed), b.since.Add(flowed*each)
	if !b.late && b.left >= b.policy.Limit { // a full bucket keeps no part of a unit
		b.left, b.since = b.policy.Limit, now
	}
	if b.left < 1 {
		return false, nil
	}
	b.left = min(b.left-1, b.policy.Limit)
	return true, nil
}

// drawn is the adapter of such a library.
func drawn(late bool) strategies.Meta {
	m := strategies.FromFunc("drawn", []quota.Kind{quota.Bucket}, func(_ context.Context, _ strategies.Env, p *quota.Policy) (strategies.Allower, error) {
		return &capped{policy: p, late: late}, nil
	})
	m.Needs, m.Foreign, m.PerProcess = nil, true, true
	return m
}

// What shows only when time has passed is found without a word about clocks, in an
// adapter of a library; and where the defect is not, nothing is.
func TestSearchesGoOn(t *testing.T) {
	for _, late := range []bool{true, false} {
		m := drawn(late)
		sel, err := m.Select(nil)
		if err != nil {
			t.Fatal(err)
		}
		found, searches := 0, explore.Searches(sel, explore.Config{})
		for i, cfg := range searches[:testenv.Pick(2, len(searches))] {
			if i == 0 {
				cfg.Policy = policy(t, "10 calls refilling 10 per 1s") // no policy of a record has a bucket
			}
			res, err := explore.Run(t.Context(), sel, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 && (!strings.HasPrefix(res.Window, "refilling ") || !strings.HasSuffix(cfg.Policy.String(), res.Window)) {
				t.Errorf("search %d, of %s, says %q", i, cfg.Policy, res.Window)
			}
			if f := res.Found(explore.Leak); f != nil {
				found++
				if i == 0 || len(f.Steps) < 5 {
					t.Errorf("search %d: %+v", i, f)
				}
				if r, err := explore.ReplayOf(t.Context(), sel, f.Token, explore.Target{}); err != nil || !r.Broken {
					t.Errorf("its token: %+v, %v", r, err)
				}
			} else if !strings.Contains(res.Claim, "no violation found") {
				t.Errorf("search %d claims %q", i, res.Claim)
			}
		}
		if (found > 0) != late {
			t.Errorf("with the defect %t: %d leaks", late, found)
		}
	}
}

// Searches in which time passes are of libraries, under policies that they serve, and
// with units that they serve.
func TestSearchesFit(t *testing.T) {
	select1 := func(m strategies.Meta) []explore.Config {
		t.Helper()
		sel, err := m.Select(nil)
		if err != nil {
			t.Fatal(err)
		}
		return explore.Searches(sel, explore.Config{})
	}
	m := drawn(false)
	all := select1(m)
	for i, cfg := range all {
		if cfg.Instances != 1 {
			t.Errorf("search %d of a library that counts per process has %d instances", i, cfg.Instances)
		}
		if i == 0 {
			continue
		}
		if cfg.Policy.Window.Kind != quota.Bucket || len(cfg.Faults) != 1 || cfg.Faults[0] != quota.FaultClock {
			t.Errorf("search %d: %+v", i, cfg)
		}
		for _, s := range cfg.Scripts {
			for _, a := range s {
				if a.Units != 1 {
					t.Errorf("search %d asks for %d units of a library that serves one", i, a.Units)
				}
			}
		}
	}
	serves := m.Serves
	m.Serves = nil
	if more := select1(m); len(more) != len(all)+1 {
		t.Errorf("%d searches where several units are served, %d where not", len(more), len(all))
	}
	m.Serves = func(p *quota.Policy) error {
		if p.Window.Refill > 1 {
			return context.Canceled
		}
		return serves(p)
	}
	if fewer := select1(m); len(fewer) >= len(all) {
		t.Errorf("%d searches where fewer policies are served, %d where more", len(fewer), len(all))
	}
	m = drawn(false)
	m.Form = strategies.Reference
	if n := len(select1(m)); n != 1 {
		t.Errorf("%d searches of a strategy that is no library", n)
	}
}
