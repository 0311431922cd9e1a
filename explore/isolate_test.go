package explore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// fragile is a limiter whose cleaner panics once a window has passed after a rejection, or
// if it admits one too many, after a single request.
type fragile struct {
	mu       sync.Mutex
	used     int64
	most     int64 // that it admits
	rejected map[string]int
	stop     chan struct{}
}

func newFragile(clean bool, most int64) *fragile {
	f := &fragile{most: most, stop: make(chan struct{})}
	if clean {
		f.rejected = map[string]int{}
	}
	go func() {
		tick := time.NewTicker(time.Minute)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f.mu.Lock()
				if f.used > 1 && f.most == 1 || f.used == 1 && f.most == 2 {
					f.rejected["all"]++ // of a map that was never made
				}
				f.used = 0
				f.mu.Unlock()
			case <-f.stop:
				return
			}
		}
	}()
	return f
}

func (f *fragile) Allow(context.Context, string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used++
	return f.used <= f.most, nil
}

func (f *fragile) Close() error {
	close(f.stop)
	return nil
}

// fragiles are registered in the processes of searches alone, and chosen here.
func fragiles() (out []strategies.Meta) {
	for name, kind := range map[string]struct {
		clean bool
		most  int64
	}{"fragile": {false, 1}, "robust": {true, 1}, "fragile-and-leaks": {false, 2}} {
		m := strategies.FromFunc(name, []quota.Kind{quota.Fixed},
			func(context.Context, strategies.Env, *quota.Policy) (strategies.Allower, error) {
				return newFragile(kind.clean, kind.most), nil
			})
		m.Foreign = true
		m.Needs = nil
		out = append(out, m)
	}
	return out
}

func isolated(cfg explore.Config) explore.Config {
	cfg.Isolate = true
	return cfg
}

// A goroutine of the strategy's own that panics ends the process of the search, which is
// told with the schedule; the same strategy without that is searched as it is in this one.
func TestIsolated(t *testing.T) {
	for _, m := range fragiles() {
		if m.Name == "fragile-and-leaks" {
			continue
		}
		sel, err := m.Select(nil)
		if err != nil {
			t.Fatal(err)
		}
		var progress explore.Progress
		cfg := explore.Config{
			Policy: policy(t, "1 request per fixed 1m"), Instances: 1, Progress: &progress,
			Faults: []quota.Fault{quota.FaultClock}, Properties: []explore.Property{explore.Leak},
		}
		r, err := explore.Run(t.Context(), sel, isolated(cfg))
		if err != nil {
			t.Fatal(err)
		}
		f := r.Found(explore.Panicked)
		if m.Name == "robust" {
			here, err := explore.Run(t.Context(), sel, cfg)
			if err != nil || f != nil || r.Claim == "" || r.Claim != here.Claim || r.States != here.States {
				t.Errorf("robust: %+v, here %+v, %v", r, here, err)
			}
			continue
		}
		if f == nil || r.Claim != "" || len(r.Withheld) != 1 {
			t.Fatalf("fragile: %+v", r)
		}
		if !strings.Contains(f.Detail, "assignment to entry in nil map in explore_test.newFragile.func1 (isolate_test.go:") {
			t.Errorf("detail %q", f.Detail)
		}
		n := len(f.Steps)
		if n < 3 || f.Steps[n-1].Role != codes.RoleClock || !slices.ContainsFunc(f.Steps, func(s results.Step) bool {
			return s.Outcome == "rejected"
		}) {
			t.Errorf("steps %+v", f.Steps)
		}
		again, err := explore.ReplayOf(t.Context(), sel, f.Token, explore.Target{Isolate: true})
		if err != nil || !again.Broken || again.Finding.Detail != f.Detail || len(again.Finding.Steps) != n {
			t.Errorf("the token gives %+v, %v", again, err)
		}
	}
}

// What was found before the process ended is kept, with its steps and a token.
func TestIsolatedKeepsFindings(t *testing.T) {
	for _, m := range fragiles() {
		if m.Name != "fragile-and-leaks" {
			continue
		}
		sel, err := m.Select(nil)
		if err != nil {
			t.Fatal(err)
		}
		cfg := explore.Config{Policy: policy(t, "1 request per fixed 1m"), Instances: 1,
			Faults: []quota.Fault{quota.FaultClock}}
		here := explore.Config{Policy: cfg.Policy, Instances: 1, Properties: []explore.Property{explore.Leak}}
		want, err := explore.Run(t.Context(), sel, here)
		if err != nil || want.Found(explore.Leak) == nil {
			t.Fatalf("%+v, %v", want, err)
		}
		r, err := explore.Run(t.Context(), sel, isolated(cfg))
		if err != nil {
			t.Fatal(err)
		}
		leak := r.Found(explore.Leak)
		if r.Findings[0].Property != explore.Panicked || leak == nil || leak.Detail != want.Found(explore.Leak).Detail ||
			len(leak.Steps) != len(want.Found(explore.Leak).Steps) {
			t.Fatalf("findings %+v", r.Findings)
		}
		again, err := explore.ReplayOf(t.Context(), sel, leak.Token, explore.Target{Isolate: true})
		if err != nil || !again.Broken || len(again.Finding.Steps) != len(leak.Steps) {
			t.Errorf("the token gives %+v, %v", again, err)
		}
		c, err := explore.Enumerate(t.Context(), sel, isolated(cfg))
		var died *explore.DiedError
		if !errors.As(err, &died) || !strings.Contains(died.At, "newFragile") || died.Stack == "" {
			t.Errorf("error %v", err)
		}
		if c == nil || c.Complete || c.Schedules == 0 || c.Shortest == nil || len(c.Shortest.Steps) == 0 ||
			len(c.Withheld) != 1 {
			t.Errorf("census %+v", c)
		}
	}
}
