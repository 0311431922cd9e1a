package sim_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/contain/isolate"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

func TestMain(m *testing.M) {
	if isolate.Dir() != "" {
		for _, f := range fragiles() {
			strategies.Register(f)
		}
	}
	harness.ServeIsolated()
	storetest.Main(m)
}

// fragile is a limiter of an hour that panics on a goroutine of its own: at the end of the
// hour with that number, in the call with that number, or as it is opened or closed.
type fragile struct {
	*hourly
	how   string
	mu    sync.Mutex
	calls int
	// counts is never made.
	counts map[string]int
	stop   chan struct{}
}

const (
	fatalHour = 5
	fatalCall = 100
)

func newFragile(how string) *fragile {
	f := &fragile{hourly: newHourly(time.Hour, false), how: how, stop: make(chan struct{})}
	if how == "opened" {
		f.fail()
	}
	go func() {
		tick := time.NewTicker(time.Hour)
		defer tick.Stop()
		for hours := 1; ; hours++ {
			select {
			case <-tick.C:
				if how == "cleaning" && hours == fatalHour {
					panic("the cleaner fails")
				}
			case <-f.stop:
				return
			}
		}
	}()
	return f
}

// fail panics on another goroutine and does not return.
func (f *fragile) fail() {
	go func() { f.counts["x"]++ }() // of a map that was never made
	select {}
}

func (f *fragile) Allow(ctx context.Context, key string) (bool, error) {
	f.mu.Lock()
	f.calls++
	fatal := f.how == "called" && f.calls == fatalCall
	f.mu.Unlock()
	if fatal {
		f.fail()
	}
	return f.hourly.Allow(ctx, key)
}

func (f *fragile) Close() error {
	if f.how == "closed" {
		f.fail()
	}
	close(f.stop)
	return f.hourly.Close()
}

// fragiles are registered in the processes of simulations alone, and chosen here.
func fragiles() (out []strategies.Meta) {
	for _, how := range []string{"robust", "cleaning", "called", "opened", "closed", "slow"} {
		m := strategies.FromFunc("fragile-"+
			how, []quota.Kind{quota.Fixed, quota.CalendarDay},
			func(context.Context, strategies.Env, *quota.Policy) (strategies.Allower, error) {
				return newFragile(how), nil
			})
		m.Foreign = true
		m.Needs = nil
		out = append(out, m)
	}
	return out
}

// TestIsolated: a goroutine of the strategy's own that panics ends its process and no
// more: the strategy is named with the time until then, and the others are
// simulated as they are in this process.
func TestIsolated(t *testing.T) {
	workload, err := workloads.Lookup("steady")
	if err != nil {
		t.Fatal(err)
	}
	p := testkit.Policy(t, "10 requests per fixed 1h")
	var progress sim.Progress
	cfg := sim.Config{Progress: &progress, Live: new(sim.Live), Parallel: 2, Plan: harness.Plan{
		Policy: p,
		Traffic: harness.Traffic{
			Workload: workload, Load: harness.OpenAt(60. / 3600), Duration: 10 * time.Hour,
			Stream: workloads.Params{Options: quota.Options{"subjects": "1"}},
		},
		Seed:    1,
		Keeping: harness.Keeping{HistoryDir: t.TempDir(), Archive: t.TempDir()},
	}}
	for _, m := range fragiles() {
		sel, err := m.Select(nil)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Strategies = append(cfg.Strategies, sel)
	}
	cfg.Isolate = true
	r, err := sim.Run(t.Context(), cfg)
	if r == nil || len(r.Runs) != len(cfg.Strategies) || err == nil || !strings.Contains(err.Error(), "fragile-cleaning") {
		t.Fatalf("%+v, %v", r, err)
	}
	robust := r.Runs[0]
	const h = time.Hour
	for i, want := range []struct {
		detail      string
		least, most time.Duration // of virtual time that has passed
	}{
		{},
		{"the cleaner fails in sim_test.newFragile.func1 (isolate_test.go:", (fatalHour - 1) * h, (fatalHour + 1) * h},
		{"assignment to entry in nil map in sim_test.(*fragile).fail.func1 (isolate_test.go:", h, 2 * h},
		{"assignment to entry in nil map", 0, h},
		{"assignment to entry in nil map", 10 * h, 20 * h},
		{},
	} {
		run := &r.Runs[i]
		at := slices.IndexFunc(run.Audit.Reasons, func(x results.Reason) bool { return x.Code == codes.Panicked })
		if (at >= 0) != (want.detail != "") {
			t.Errorf("%s: audit %+v", run.Strategy, run.Audit)
		}
		if at < 0 {
			if run.Partial || run.Issued != robust.Issued || run.Admitted != robust.Admitted {
				t.Errorf("%s: %d issued, %d admitted", run.Strategy, run.Issued, run.Admitted)
			}
			continue
		}
		x := run.Audit.Reasons[at]
		if !strings.Contains(x.Detail, want.detail) || x.Stack == "" || run.Audit.Valid || run.Issued > 0 {
			t.Errorf("%s: audit %+v, %d issued", run.Strategy, run.Audit, run.Issued)
		}
		_, past, _ := strings.Cut(strings.TrimSuffix(x.Detail, " of virtual time"), ", after ")
		if d, err := time.ParseDuration(past); err != nil || d < want.least || d > want.most {
			t.Errorf("%s: %s, want %v to %v", run.Strategy, x.Detail, want.least, want.most)
		}
	}
	if left, err := os.ReadDir(cfg.HistoryDir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if figures := cfg.Live.Figures(); len(figures) != len(cfg.Strategies) ||
		slices.ContainsFunc(figures, func(f sim.LiveFigures) bool {
			return f.Running
		}) {
		t.Errorf("live: %+v", figures)
	}
	cfg.Strategies = cfg.Strategies[:1]
	cfg.Live = nil
	cfg.Archive = ""
	cfg.Policy.Window = quota.Window{Kind: quota.CalendarDay, Location: time.FixedZone("east", 5*3600)}
	there, err := sim.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Isolate = false
	here, err := sim.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Policy.Window.Location = nil
	utc, err := sim.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	text := func(r *sim.Report) string {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if text(there) != text(here) || text(here) == text(utc) {
		t.Errorf("in a process of its own\n%s\nhere\n%s\nin UTC\n%s", text(there), text(here), text(utc))
	}
}
