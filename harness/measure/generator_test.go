package measure

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores/storetest"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// TestGeneratorsBeginTogether: one that begins later than the others by more than 20 ms has no timings that count.
// Its clock's offset is no delay.
func TestGeneratorsBeginTogether(t *testing.T) {
	at := time.Unix(1000, 0)
	for late, counts := range map[time.Duration]bool{0: true, 20 * time.Millisecond: true, 21 * time.Millisecond: false} {
		tb := &timebase{time: func(ns int64) time.Time { return at.Add(time.Duration(ns)) }}
		p := &pass{m: &measurement{tb: tb, ahead: 5 * time.Second}, d: &drive{epoch: int64(5*time.Second + late)}, began: at, run: &results.Run{}}
		p.run.Audit.TimingsValid = true
		if p.auditPart(); p.run.Audit.TimingsValid != counts || p.run.Audit.Has("generator-late") == counts {
			t.Errorf("%v late: %+v", late, p.run.Audit)
		}
	}
}

// TestGeneratorsClockBounds: the offset that counts is the one that the run began with, and the bound covers what was
// measured later.
func TestGeneratorsClockBounds(t *testing.T) {
	cfg := Config{ClockBound: func() (ahead, wrong time.Duration) { return 100, 30 }}
	cfg.Shard = workloads.Shard{Part: 1, Of: 2, Shared: true}
	for set, want := range map[time.Duration]time.Duration{100: 30, 90: 40, 120: 50} {
		m := measurement{cfg: &cfg, ahead: set}
		if ahead, wrong := m.bound(); ahead != set || wrong != want {
			t.Errorf("%d ± %d, should be %d ± %d", ahead, wrong, set, want)
		}
	}
	m := measurement{cfg: &cfg, ahead: time.Minute}
	cfg.Policy.Window = quota.Window{Kind: quota.Fixed, Length: time.Hour}
	now := time.Unix(5000, 0)
	if p := m.from(now); !p.Window.Timeline.Real.Equal(now.Add(time.Minute)) || !p.Window.Timeline.Policy.Equal(cfg.Policy.Window.At(now).Start) {
		t.Errorf("windows of %+v", p.Window.Timeline)
	}
}

// TestGeneratorsKnowWhatWasFilled: one fills subjects for all, and reads the counters for all. What the others keep says what was
// there, too.
func TestGeneratorsKnowWhatWasFilled(t *testing.T) {
	for part := 1; part <= 2; part++ {
		p, dir := &planted{drift: 2}, t.TempDir()
		r := measureOne(t, p, "steady", func(c *Config) {
			c.Stream.Options = map[string]string{"subjects": "4", "fill": "0.5", "over-quota": "0"}
			c.Load, c.Requests, c.Policy.Limit, c.Archive = harness.Closed(), 12, 10, dir
			c.Shard, c.RunID = workloads.Shard{Part: part, Of: 2, Shared: true}, "abc"
			c.Meet = func(context.Context, string) (time.Time, error) { return time.Time{}, nil }
			c.ClockBound = func() (ahead, wrong time.Duration) { return 0, 0 }
		})
		f, err := oracle.OpenHistory(filepath.Join(dir, r.HistoryName()))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		seen := 0
		for s, units := range f.Header.Initial {
			if seen++; units != 5 {
				t.Errorf("part %d: subject %d began with %d units", part, s, units)
			}
		}
		filled := int64(0) // and taken
		for name, used := range p.used {
			if !strings.HasPrefix(string(name), "warm-up") {
				filled += used
			}
		}
		if first := part == 1; seen == 0 || r.Issued != 6 || (filled >= 20) != first || (len(r.Readings) > 0) != first || r.Drift != nil {
			t.Errorf("part %d: %d subjects began with something, %d units in use after %d requests, read %v, drift %+v", part, seen, filled,
				r.Issued, r.Readings, r.Drift)
		}
	}
}

// TestGeneratorsRefuse: what generators would not do alike, or what each would have for itself, is refused.
func TestGeneratorsRefuse(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"have one loop":                  func(c *Config) { c.Load.Loop = harness.Both },
		"at the same round":              func(c *Config) { c.Budget = time.Second },
		"changes of the limit or second": func(c *Config) { c.Overwrites = []string{"*:0.5:1"} },
		"when the window ends": func(c *Config) {
			c.Workload, c.Requests, c.Duration = &workloads.Meta{Name: "edge", Boundary: true}, 10, 0
		},
	} {
		c := Config{Plan: harness.Plan{Shard: workloads.Shard{Part: 1, Of: 2, Shared: true}, Workload: &workloads.Meta{}}}
		change(&c)
		if err := c.completeShared(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, should say %q", err, want)
		}
		if c.Shard = (workloads.Shard{}); c.completeShared() != nil {
			t.Errorf("one process alone may not: %s", want)
		}
	}
	c := Config{Plan: harness.Plan{Shard: workloads.Shard{Part: 1, Of: 2, Shared: true}, Stores: setOf(t, storetest.EmbeddedRedis(t))}}
	sel := strategies.Selection{Meta: &strategies.Meta{Needs: []strategies.Need{strategies.NeedRedis}}}
	if err := c.cannotShare(sel); err == nil || !strings.Contains(err.Error(), "share a server") {
		t.Errorf("a Redis of this process: %v", err)
	}
	sel.Needs = []strategies.Need{strategies.NeedSource}
	if err := c.cannotShare(sel); err == nil || !strings.Contains(err.Error(), "this process' own") {
		t.Errorf("a model of PostgreSQL: %v", err)
	}
	sel.Needs, sel.Control = nil, strategies.ControlExact
	for of, refused := range map[int]bool{1: false, 2: true} {
		if c.Shard.Of = of; (c.cannotShare(sel) != nil) != refused {
			t.Errorf("the exact control over %d: %v", of, c.cannotShare(sel))
		}
	}
	c.Strategies = []strategies.Selection{(&planted{}).selection()}
	if _, err := Measure(context.Background(), c); err == nil {
		t.Error("a generator without others was measured")
	}
}
