package strategies

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quotabench/quotabench/quota"
)

func TestServesPolicy(t *testing.T) {
	m := complete("x")
	m.Serves = func(p *quota.Policy) error {
		if p.Unit == "bytes" {
			return errors.New("no bytes")
		}
		return nil
	}
	for _, c := range []struct {
		kind quota.Kind
		unit string
		err  string
	}{
		{quota.CalendarMonth, "links", ""},
		{quota.CalendarMonth, "bytes", "no bytes"},
		{quota.Rolling, "links", "policy p has a rolling window; x serves calendar-month, fixed"},
		{quota.Standing, "bytes", "policy p has a standing window"},
	} {
		err := m.ServesPolicy(&quota.Policy{Name: "p", Unit: c.unit, Window: quota.Window{Kind: c.kind}})
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%v of %s: %v, want %q", c.kind, c.unit, err, c.err)
		}
	}
	m.Serves = nil
	if err := m.ServesPolicy(&quota.Policy{Unit: "bytes", Window: quota.Window{Kind: quota.Fixed}}); err != nil {
		t.Errorf("without Serves: %v", err)
	}
}

func TestNeedsStore(t *testing.T) {
	m := Meta{Needs: []Need{NeedRedis, NeedSource}}
	for n, want := range map[Need]bool{NeedRedis: true, NeedSource: true, NeedPostgres: false} {
		if m.NeedsStore(n) != want {
			t.Errorf("needs %s: %v", n, !want)
		}
	}
}

// TestNeedsToo: an option's value adds a need to its selection, and to no other.
func TestNeedsToo(t *testing.T) {
	m := Meta{
		Name: "x", Needs: []Need{NeedSource},
		Options: []quota.Option{{Name: "source", Default: "primary", Values: []string{"primary", "replica"}}},
		Setup: Setup{NeedsToo: func(o quota.Options) []Need {
			if o["source"] == "replica" {
				return []Need{NeedReplica}
			}
			return nil
		}},
	}
	for value, want := range map[string]bool{"primary": false, "replica": true} {
		sel, err := m.Select(quota.Options{"source": value})
		if err != nil {
			t.Fatal(err)
		}
		if sel.NeedsStore(NeedReplica) != want || !sel.NeedsStore(NeedSource) || m.NeedsStore(NeedReplica) {
			t.Errorf("source=%s: the selection needs %v, its Meta %v", value, sel.Needs, m.Needs)
		}
	}
}

func TestExactly(t *testing.T) {
	c := quota.Exactly(quota.FaultCrash, quota.FaultOutage)
	if c.Property != quota.PropertyLeak || c.Validate() != nil ||
		!slices.Equal(c.Tolerates, []quota.Fault{quota.FaultCrash, quota.FaultOutage}) {
		t.Errorf("clause %+v", c)
	}
	params := quota.Params{Limit: 20, MaxCost: 5, Deciding: 50, InFlight: 50, Instances: 4, Offered: 1000}
	if over := c.Bound(params); over != 0 {
		t.Errorf("allows %d units over the limit", over)
	}
	if quota.Exactly().Tolerates != nil {
		t.Error("tolerates faults without being told so")
	}
}

func TestClauseApplies(t *testing.T) {
	some := quota.Clause{Kinds: []quota.Kind{quota.Fixed, quota.Rolling}}
	for k := quota.Standing; k <= quota.Rolling; k++ {
		if !(quota.Clause{}).Applies(k) {
			t.Errorf("a clause about everything is not about %v", k)
		}
		if want := k == quota.Fixed || k == quota.Rolling; some.Applies(k) != want {
			t.Errorf("a clause about fixed and rolling windows applies to %v: %v", k, !want)
		}
	}
}

func TestModelStatementsAreAtomic(t *testing.T) {
	m := NewModel(nil)
	n := 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				if err := m.Do(t.Context(), "UPDATE", func() error {
					read := n
					runtime.Gosched()
					n = read + 1
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n != 4000 {
		t.Errorf("counted %d of 4000", n)
	}
}

func TestModelRunsThroughItsStatement(t *testing.T) {
	gone := errors.New("gone")
	var seen []string
	m := NewModel(func(_ context.Context, sql string, run func() error) error {
		seen = append(seen, sql)
		if sql == "refused" {
			return gone
		}
		return run()
	})
	ran := 0
	own := errors.New("own")
	for _, c := range []struct {
		sql  string
		want error
	}{{"fine", own}, {"refused", gone}} {
		if err := m.Do(t.Context(), c.sql, func() error { ran++; return own }); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.sql, err, c.want)
		}
	}
	if ran != 1 || !slices.Equal(seen, []string{"fine", "refused"}) {
		t.Errorf("ran %d statements, saw %v", ran, seen)
	}
}

func TestSharedValueIsMadeOnce(t *testing.T) {
	var s Shared
	made := 0
	var wg sync.WaitGroup
	got := make([]*int, 8)
	for i := range got {
		wg.Go(func() { got[i] = SharedValue(&s, "counter", func() *int { made++; return new(int) }) })
	}
	wg.Wait()
	for _, p := range got {
		if p != got[0] {
			t.Fatal("instances got different values")
		}
	}
	if made != 1 {
		t.Errorf("made %d times", made)
	}
	if other := SharedValue(&s, "other", func() *int { return new(int) }); other == got[0] {
		t.Error("two names share a value")
	}
}
