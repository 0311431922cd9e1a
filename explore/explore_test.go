package explore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/plot"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

func run(t testing.TB, name string, cfg explore.Config) *explore.Result {
	t.Helper()
	r, err := explore.Run(t.Context(), testkit.Strategy(t, name), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// found is the finding of p, which must be there.
func found(t testing.TB, r *explore.Result, p explore.Property) *explore.Finding {
	t.Helper()
	f := r.Found(p)
	if f == nil {
		t.Fatalf("%s: no %s found; %s", r.Strategy, p, r.Claim)
	}
	return f
}

// words are the first words of the commands of a schedule, with who sent them.
func words(f *explore.Finding) string {
	var out []string
	for _, s := range f.Steps {
		what, _, _ := strings.Cut(s.Command+s.Reply, " ")
		if s.Event.Injected() {
			what = string(s.Event)
		}
		out = append(out, s.Actor+" "+what)
	}
	return strings.Join(out, ", ")
}

func TestCheckThenSetLeaksInFourSteps(t *testing.T) {
	f := found(t, run(t, "check-then-set", explore.Config{}), explore.Leak)
	if got := words(f); got != "A GET, B GET, A SET, B SET" || f.Units != 1 {
		t.Errorf("leaks %d by %s", f.Units, got)
	}
}

// Under a mutex of the process, one instance is safe and two are not.
func TestAppLockIsSafeOnOneInstanceOnly(t *testing.T) {
	only := []explore.Property{explore.Leak}
	one := run(t, "app-lock", explore.Config{Instances: 1, Properties: only})
	if f := one.Found(explore.Leak); f != nil || one.Capped != "" {
		t.Errorf("one instance: %v", f)
	}
	found(t, run(t, "app-lock", explore.Config{Instances: 2, Properties: only}), explore.Leak)
}

func TestCrashLeavesAnImmortalKey(t *testing.T) {
	r := run(t, "incr-expire", explore.Config{Faults: []quota.Fault{quota.FaultCrash}})
	if got := words(found(t, r, explore.TTL)); got != "A INCR, A crash" {
		t.Errorf("immortal key by %s", got)
	}
	if r.Found(explore.Leak) != nil || r.Found(explore.Guarantee) != nil {
		t.Error("incr-expire leaks after a crash")
	}
}

func TestClockLocksALink(t *testing.T) {
	r := run(t, "decr-expire", explore.Config{
		Clients: 1, Limit: 1, Faults: []quota.Fault{quota.FaultClock},
		Properties: []explore.Property{explore.TTL, explore.FalseReject},
	})
	want := "A starts, A SET, A reply, clock 253h30m, A DECR, A reply"
	for _, p := range []explore.Property{explore.TTL, explore.FalseReject} {
		if got := words(found(t, r, p)); got != want {
			t.Errorf("%s by %s", p, got)
		}
	}
}

func TestLuaReserveLosesToItsSync(t *testing.T) {
	testenv.Sequential(t)
	f := found(t, run(t, "lua-reserve", explore.Config{Properties: []explore.Property{explore.Leak}}), explore.Leak)
	got := words(f)
	if !strings.Contains(got, "0:sync SET") || strings.Count(got, "EVAL") != 2 {
		t.Errorf("leaks by %s", got)
	}
	alone := run(t, "lua-reserve", explore.Config{Scope: explore.Scope{JobRounds: -1}})
	if len(alone.Findings) > 0 || alone.Capped != "" {
		t.Errorf("without the job: %+v", alone.Findings)
	}
}

// A refund that the client library sends twice gives units of others back.
func TestLuaReserveRefundsTwice(t *testing.T) {
	testenv.Sequential(t)
	r := run(t, "lua-reserve", explore.Config{
		Clients: 3, Limit: 1, Scope: explore.Scope{JobRounds: -1}, Faults: []quota.Fault{quota.FaultRetry},
		Properties: []explore.Property{explore.Leak},
	})
	got := words(found(t, r, explore.Leak))
	if !strings.Contains(got, "retry") || strings.Count(got, "EVAL") != 4 {
		t.Errorf("leaks by %s", got)
	}
}

// ADR-005's check and charge are apart, whatever is written where.
func TestRedisHashLeaksInEachWriteMode(t *testing.T) {
	testenv.Sequential(t)
	for _, mode := range []string{"back", "through", "literal"} {
		t.Run(mode, func(t *testing.T) {
			r := run(t, "redis-hash:write="+mode, explore.Config{Properties: []explore.Property{explore.Leak}})
			found(t, r, explore.Leak)
		})
	}
}

// The search leaves out what it takes for alike; the enumeration leaves out
// nothing. They must agree on whether there is a leak and on the shortest one.
func TestSearchAgreesWithEnumeration(t *testing.T) {
	testenv.Sequential(t)
	take := explore.Script{{Kind: explore.Take, Units: 1}}
	for _, c := range []struct {
		name string
		cfg  explore.Config
	}{
		{"check-then-set", explore.Config{Clients: 3}},
		{"check-then-set", explore.Config{Clients: 3, Limit: 3}},
		{"check-then-set", explore.Config{Clients: 2, Limit: 1,
			Scripts: []explore.Script{{{Kind: explore.Take, Units: 1}, {Kind: explore.Take, Units: 1}}, take}}},
		{"check-then-set", explore.Config{Clients: 2, Limit: 3, Scripts: []explore.Script{{{Kind: explore.Take, Units: 2}}}}},
		{"app-lock", explore.Config{Clients: 2, Instances: 1}},
		{"app-lock", explore.Config{Clients: 2, Instances: 2, Limit: 1}},
		{"incr-expire", explore.Config{Clients: 3, Limit: 1}},
		{"incr-expire", explore.Config{Clients: 2, Faults: []quota.Fault{quota.FaultEviction}}},
		{"lua-reserve", explore.Config{Clients: 2, Scripts: []explore.Script{take}}},
		{"fixed-window", explore.Config{Clients: 2, Faults: []quota.Fault{quota.FaultLostReply}}},
		{"memory-deque", explore.Config{Clients: 3, Limit: 1}},
		{"exact", explore.Config{Clients: 3}},
	} {
		t.Run(fmt.Sprintf("%s %+v", c.name, c.cfg), func(t *testing.T) {
			c.cfg.Properties = []explore.Property{explore.Leak}
			c.cfg.Asks = -1
			all, err := explore.Enumerate(t.Context(), testkit.Strategy(t, c.name), c.cfg)
			if err != nil {
				t.Fatal(err)
			}
			f := run(t, c.name, c.cfg).Found(explore.Leak)
			switch {
			case (f == nil) != (all.Shortest == nil):
				t.Errorf("search: %v; enumeration: %+v", f, all)
			case f != nil && len(f.Steps) != len(all.Shortest.Steps):
				t.Errorf("shortest in the search %d, in the enumeration %d", len(f.Steps), len(all.Shortest.Steps))
			case !all.Complete:
				t.Errorf("not all: %+v", all)
			}
		})
	}
}

func TestReplay(t *testing.T) {
	for name, cfg := range map[string]explore.Config{
		"check-then-set": {},
		"lua-reserve": {Clients: 2, Scripts: []explore.Script{{{Kind: explore.Take, Units: 1}}},
			Properties: []explore.Property{explore.Leak}},
		"decr-expire": {Clients: 1, Limit: 1, Faults: []quota.Fault{quota.FaultClock}},
		"incr-expire": {Faults: []quota.Fault{quota.FaultCrash, quota.FaultEviction}},
	} {
		t.Run(name, func(t *testing.T) {
			server := storetest.Redis(t)
			r := run(t, name, cfg)
			if len(r.Findings) == 0 {
				t.Fatal("nothing to replay")
			}
			for _, f := range r.Findings {
				here, err := explore.Replay(t.Context(), f.Token, explore.Target{})
				if err != nil || !here.Broken || !slices.EqualFunc(here.Finding.Steps, f.Steps, results.Step.Equal) {
					t.Errorf("%s in process: %+v, %v", f.Property, here, err)
				}
				there, err := explore.Replay(t.Context(), f.Token, explore.Target{Redis: server.Admin()})
				if err != nil {
					t.Errorf("%s on a server: %v", f.Property, err)
					continue
				}
				if !there.Broken || there.Leak != here.Leak {
					t.Errorf("%s on a server: broken %v, leak %d, here %d", f.Property, there.Broken, there.Leak, here.Leak)
				}
			}
			left, err := server.Admin().Keys(t.Context(), "explore:*").Result()
			if err != nil || len(left) != 0 {
				t.Errorf("left behind: %q, %v", left, err)
			}
		})
	}
}

// A strategy that asks something else than its replies is found out.
func TestNotDeterministic(t *testing.T) {
	calls := 0
	m := *testkit.Strategy(t, "unlimited").Meta
	m.Name = "moody"
	m.Guarantee = nil
	m.Open = func(context.Context, strategies.Env) (strategies.Strategy, error) {
		return takeFunc(func() quota.Decision {
			calls++
			return quota.Decision{Admitted: calls%7 != 0 || calls < 20}
		}), nil
	}
	_, err := explore.Run(t.Context(), strategies.Selection{Meta: &m}, explore.Config{Clients: 3, Limit: 1,
		Scope: explore.Scope{Asks: -1}})
	if !errors.Is(err, explore.ErrNotDeterministic) {
		t.Errorf("error %v", err)
	}
}

type takeFunc func() quota.Decision

func (f takeFunc) Take(context.Context, quota.Request) (quota.Decision, error) { return f(), nil }
func (f takeFunc) Close(context.Context) error                                 { return nil }

func TestReportFits(t *testing.T) {
	for _, clients := range []int{2, 3, 9} {
		cfg := explore.Config{Clients: clients, Properties: []explore.Property{explore.Leak}, Limit: 1}
		r := run(t, "check-then-set", cfg)
		var b bytes.Buffer
		f := found(t, r, explore.Leak)
		if err := text.Timeline(&b, layout.Page{}, f); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 120 {
				t.Errorf("%d characters: %s", n, line)
			}
		}
		p, err := plot.Sequence(f)
		if err != nil {
			t.Fatal(err)
		}
		if svg, err := p.SVG(); err != nil || !strings.HasSuffix(string(svg), "</svg>\n") {
			t.Errorf("chart: %v, %s", err, svg)
		}
	}
}
