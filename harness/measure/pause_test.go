package measure

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
)

// TestPause has one of two instances stand still: its requests wait, between commands and before the first one, and
// those of the other instance do not.
func TestPause(t *testing.T) {
	testenv.Long(t)
	plan, err := harness.NewPlan("incr-expire-atomic", "agent-api", "steady")
	if err != nil {
		t.Fatal(err)
	}
	plan.Workers, plan.Instances, plan.Seed, plan.Stores = 8, 2, 3, setOf(t, storetest.Redis(t))
	plan.Policy.Limit, plan.Load = 1_000_000, harness.OpenAt(300)
	var pause time.Duration
	var meanwhile int64 // decided, away from the ends of the pause
	// It is repeated until a request began early in the pause, and others went on.
	r := longer(t, time.Second, func(d time.Duration) results.Run {
		plan.Duration = d
		pause = min(d/4, 2*time.Second) // the client waits for 3 s
		plan.Trouble = trouble.List{{
			Where: trouble.Where{Name: trouble.Instances}, What: trouble.What{Word: trouble.Paused, For: pause},
			When: trouble.When{From: 0.3, To: 0.3},
		}}
		report, err := Measure(t.Context(), Config{Plan: plan, Rounds: 1, NoReference: true})
		if err != nil {
			t.Fatal(err)
		}
		share := float64(pause) / float64(d)
		meanwhile = decided(report.Runs[0], 0.3+share/5, 0.3+share*4/5)
		return report.Runs[0]
	}, func(r results.Run) bool { return r.Service.Max >= int64(pause)*4/5 && meanwhile > 0 })
	if !r.Audit.Valid || r.Degraded+r.Errors > 0 || r.Drift.Units != 0 || !slices.Equal(r.Params.Trouble, plan.Trouble) {
		t.Errorf("%d without a decision of Redis, drift %+v, trouble %q, %+v", r.Degraded+r.Errors, r.Drift, r.Params.Trouble,
			r.Audit)
	}
	if r.Service.Max < int64(pause)*4/5 || meanwhile == 0 {
		t.Errorf("the longest request took %v of a pause of %v, and %d were decided meanwhile", time.Duration(r.Service.Max),
			pause, meanwhile)
	}
	for _, c := range r.Guarantee {
		if c.Verdict == results.Broken {
			t.Errorf("%+v", c)
		}
	}
}

// stood is a clock that a sleep turns.
type stood struct {
	clock.Wall
	now int64
}

func (c *stood) Sleep(_ context.Context, d time.Duration) error {
	c.now += int64(d)
	return nil
}

// TestStand asks an instance at planted moments of a run of a second that began at 1000 s.
func TestStand(t *testing.T) {
	const s = int64(time.Second)
	ms := func(n int64) int64 { return 1000*s + n*int64(time.Millisecond) }
	pauses := trouble.MustParse("instance/1:paused=200ms@0.3", "instances:paused=100ms@0.6")
	cfg := &Config{Plan: harness.Plan{Traffic: harness.Traffic{Duration: time.Second}}}
	for _, x := range []struct{ instance, at, until, paused int64 }{
		{1, 299, 299, 0}, {1, 300, 500, 200}, {1, 450, 500, 200}, {1, 500, 500, 0}, {0, 300, 300, 0}, {0, 650, 700, 100},
		{1, 600, 700, 100},
	} {
		c := &stood{now: ms(x.at)}
		site := &site{timebase: &timebase{nano: func() int64 { return c.now }, clock: c}, cfg: cfg, pauses: pauses}
		site.stand(int(x.instance))
		if c.now != ms(x.at) {
			t.Errorf("instance %d stands still before the run", x.instance)
		}
		site.began.Store(1000 * s)
		site.stand(int(x.instance))
		if c.now != ms(x.until) || site.paused.Load() != x.paused*int64(time.Millisecond) {
			t.Errorf("instance %d at %d ms goes on at %d ns after a pause of %v", x.instance, x.at, c.now-1000*s,
				time.Duration(site.paused.Load()))
		}
	}
}

// TestNoPause: what cannot be done is refused before anything is measured.
func TestNoPause(t *testing.T) {
	plan, err := harness.NewPlan("incr-expire", "agent-api", "steady")
	if err != nil {
		t.Fatal(err)
	}
	plan.Instances = 2
	plan.Duration = time.Minute
	for text, part := range map[string]string{
		"instance/2:paused=1s@0.5": "give instance/1:paused=1s@0.5", "instances:paused=1m@0.5": "within the duration",
		"instances:paused=20s@0.5": "--decision-timeout", "instances:restarted@0.5": "simulate it",
	} {
		plan.Trouble = trouble.MustParse(text)
		if err := (&Config{Plan: plan}).Complete(); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
