package measure

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// turned counts without a fault in the windows that a clock shows.
type turned struct {
	now  func(ctx context.Context) (time.Time, error)
	used *turnedUsage
}

type turnedUsage struct {
	mu sync.Mutex
	of map[string]map[int64]int64
}

func (s turned) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	now, err := s.now(ctx)
	if err != nil {
		return quota.Decision{}, err
	}
	s.used.mu.Lock()
	defer s.used.mu.Unlock()
	name := string(r.Subject)
	d := quota.Decision{Tier: quota.TierProcess}
	if s.used.of[name] == nil {
		s.used.of[name] = map[int64]int64{}
	}
	if w := r.Policy.Window.At(now).Index; s.used.of[name][w]+r.Units <= r.Policy.Limit {
		s.used.of[name][w] += r.Units
		d.Admitted = true
	}
	return d, nil
}

func (s turned) Close(context.Context) error { return nil }

// turning is a strategy that counts so, by a clock that an instance finds in its surroundings.
func turning(name string, needs []strategies.Need,
	now func(env strategies.Env) func(context.Context) (time.Time, error)) strategies.Selection {
	sel := (&planted{}).selection()
	sel.Name = name
	sel.Needs = needs
	sel.Counts = quota.CountsNothing
	sel.Guarantee = []quota.Clause{quota.Exactly(), quota.Exactly(quota.FaultClock)}
	used := &turnedUsage{of: map[string]map[int64]int64{}}
	sel.Open = func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		return turned{now(env), used}, nil
	}
	return sel
}

// oneSubject asks for more of one subject than its limit on both sides of a window's end.
func oneSubject(c *Config, limit int64) {
	c.Policy.Limit = limit
	c.Stream.Set("subjects", 1)
	c.Stream.Set("over-quota", 0)
}

// virtualWall is the time of a virtual clock.
type virtualWall struct {
	clock.Wall
	timebase *timebase
}

func (c virtualWall) Now() time.Time { return c.timebase.time(c.timebase.nano()) }

// TestWrongClock plants a leak of a whole limit: a clock that is 300 µs ahead begins the next window 300 requests
// early. By its own clock nothing leaks, and by a right one neither.
func TestWrongClock(t *testing.T) {
	for _, wrong := range []bool{true, false} {
		v := &virtual{}
		base := v.timebase()
		base.clock = virtualWall{timebase: base}
		r := measureOne(t, &planted{}, "boundary", func(c *Config) {
			oneSubject(c, 100)
			c.base = base
			c.Requests = 0
			c.Duration = 4 * time.Millisecond
			c.Trouble = trouble.List{trouble.ClockAhead(0, 300*time.Microsecond)}
			c.Strategies = []strategies.Selection{turning("planted", nil,
				func(env strategies.Env) func(context.Context) (time.Time, error) {
					return func(context.Context) (time.Time, error) {
						v.advance(time.Microsecond)
						if wrong {
							return env.Clock.Now(), nil
						}
						return env.TrueClock.Now(), nil
					}
				})}
		})
		requireValid(t, r)
		want := int64(0)
		if wrong {
			want = 100
		}
		if r.Leak.Units != want || r.Leak.Possible > want+1 || r.Admitted != 200 ||
			!slices.Equal(r.Params.Trouble.Strings(), []string{"instance/0:clock=300us"}) {
			t.Errorf("wrong %t: a leak of %d to %d, %d admitted, want a leak of %d; clocks %q", wrong, r.Leak.Units,
				r.Leak.Possible, r.Admitted,
				want, r.Params.Trouble)
		}
		if wrong && (len(r.Guarantee) != 1 || r.Guarantee[0].Certain != 0 || r.Guarantee[0].Possible > 1) {
			t.Errorf("by its own clock it is held to %+v", r.Guarantee)
		}
	}
}

// TestClocksOfStores: an instance whose clock is ahead admits the limit once more, and one that asks Redis for the time
// does not.
func TestClocksOfStores(t *testing.T) {
	plan, err := harness.NewPlan("incr-expire", "user-links", "boundary")
	if err != nil {
		t.Fatal(err)
	}
	var ahead time.Duration // the clock of the first instance
	by := func(name string, choose func(own, stored time.Time) time.Time) strategies.Selection {
		return turning(name, []strategies.Need{strategies.NeedRedis},
			func(env strategies.Env) func(context.Context) (time.Time, error) {
				want := ahead
				if env.Instance > 0 {
					want = 0
				}
				return func(ctx context.Context) (time.Time, error) {
					stored, err := strategies.Redis(env).Time(ctx).Result()
					before := env.TrueClock.Now()
					own := env.Clock.Now()
					if after := env.TrueClock.Now(); own.Sub(before) < want || own.Sub(after) > want {
						t.Errorf("the clock of instance %d is ahead by %v to %v, want %v", env.Instance, own.Sub(after), own.Sub(before),
							want)
					}
					return choose(own, stored), err
				}
			})
	}
	plan.Workers, plan.Instances, plan.Seed, plan.Stores = 4, 2, 3, setOf(t, storetest.EmbeddedRedis(t))
	report := longer(t, 200*time.Millisecond, func(d time.Duration) *Report {
		ahead = d / 4
		plan.Strategies = []strategies.Selection{
			by("by-caller", func(own, _ time.Time) time.Time {
				return own
			}), by("by-store", func(_, stored time.Time) time.Time { return stored }),
		}
		plan.Trouble = trouble.List{trouble.ClockAhead(0, ahead)}
		cfg := Config{Plan: plan, Rounds: 1, NoReference: true}
		oneSubject(&cfg, 50)
		cfg.Load = harness.Closed()
		cfg.Duration = d
		report, err := Measure(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}, func(report *Report) bool {
		return !slices.ContainsFunc(report.Runs, func(r results.Run) bool {
			return r.Admitted != 100
		}) && report.Runs[0].Leak.Units == 50
	})
	for i, want := range []int64{50, 0} {
		if r := report.Runs[i]; !r.Audit.Valid || r.Leak.Units != want || r.Admitted != 100 {
			t.Errorf("%s: a leak of %d, %d admitted, want a leak of %d; %+v", r.Strategy, r.Leak.Units, r.Admitted, want,
				r.Audit)
		}
	}
}

// TestClockSteps asks for the time at planted moments of a run of a second that began at 1000 s.
func TestClockSteps(t *testing.T) {
	const s = int64(time.Second)
	c := &stood{}
	tb := &timebase{nano: func() int64 { return c.now }}
	tb.time = func(nano int64) time.Time { return time.Unix(0, nano).UTC() }
	tb.clock = virtualWall{timebase: tb}
	at := &site{timebase: tb, clocks: []trouble.Clock{{Ahead: 2 * time.Second},
		{Ahead: -2 * time.Second, From: time.Second / 2}}}
	ahead := func(instance int, now int64) int64 {
		c.now = now
		return (skewed{Clock: at.clocks[instance], site: at}.Now().UnixNano() - now) / s
	}
	if a, b := ahead(0, 999*s), ahead(1, 1001*s); a != 2 || b != 0 {
		t.Errorf("before the pass the clocks are ahead by %d and %d s", a, b)
	}
	at.began.Store(1000 * s)
	for _, x := range []struct{ instance, now, want int64 }{
		{0, 1000*s + 1, 2}, {0, 1001 * s, 2}, {1, 1000*s + s/2 - 1, 0}, {1, 1000*s + s/2, -2}, {1, 1002 * s, -2},
	} {
		if got := ahead(int(x.instance), x.now); got != x.want {
			t.Errorf("the clock of instance %d is ahead by %d s at %d ns, want %d", x.instance, got, x.now-1000*s, x.want)
		}
	}
	if from := at.wrongFrom(at.clocks[1]); from != 1000*s+s/2 || at.wrongFrom(at.clocks[0]) > 0 {
		t.Errorf("they are so since %d and %d", at.wrongFrom(at.clocks[0]), from)
	}
}

// TestChangeBeforeThePass: a limit that changes before the first request is in force from the start.
func TestChangeBeforeThePass(t *testing.T) {
	o := &operator{made: []oracle.LimitChange{{From: 80, To: 90, Limit: 1}, {From: 95, To: 120, Limit: 2},
		{From: 130, To: 140, Limit: 3}}}
	if got := o.changes(100); !slices.Equal(got,
		[]oracle.LimitChange{{Limit: 1}, {To: 20, Limit: 2}, {From: 30, To: 40, Limit: 3}}) {
		t.Errorf("%+v", got)
	}
}

// TestNoSkew: what cannot be done is refused before anything is measured.
func TestNoSkew(t *testing.T) {
	plan, err := harness.NewPlan("incr-expire", "agent-api", "steady")
	if err != nil {
		t.Fatal(err)
	}
	plan.Instances = 2
	plan.Requests = 100
	for text, part := range map[string]string{"instance/2:clock=1s": "give instance/1:clock=1s",
		"instances:clock=1s@0.5": "needs a duration"} {
		plan.Trouble = trouble.MustParse(text)
		if err := (&Config{Plan: plan}).Complete(); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", text, err)
		}
	}
	plan.Trouble = trouble.MustParse("limit:is=7@0.5", "instance/0:clock=1s")
	plan.Duration = time.Minute
	c := Config{Plan: plan}
	if err := c.Complete(); err == nil || !strings.Contains(err.Error(), "leave out the clocks that are wrong") {
		t.Errorf("with a limit that changes: %v", err)
	}
	foreign := strategies.Selection{Meta: &strategies.Meta{Name: "theirs",
		Foreign: true, Kinds: quota.Kinds()}}
	if err := c.CannotRun(foreign); err == nil || !strings.Contains(err.Error(), "leave wrong clocks out") {
		t.Errorf("code that goes by package time: %v", err)
	}
}
