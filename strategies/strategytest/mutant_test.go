package strategytest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// stuck is never closed.
var stuck chan struct{}

// meeting lets the first caller go on when there is another one.
type meeting struct {
	begun  atomic.Bool
	over   chan struct{}
	ending sync.Once
}

func newMeeting() *meeting { return &meeting{over: make(chan struct{})} }

func (m *meeting) come() {
	if m.begun.CompareAndSwap(false, true) {
		<-m.over
		return
	}
	m.end()
}

func (m *meeting) end() { m.ending.Do(func() { close(m.over) }) }

// mutants are wrong in one way each, and the check that has to notice.
var mutants = []struct {
	name, check string
	meta        func(*strategies.Meta)
	make        func(*double)
}{
	{name: "admits one unit more", check: "sequential", make: func(d *double) {
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			return d.withPolicy(ctx, req, func(p *quota.Policy) { p.Limit++ })
		}
		d.grant = func(*double, context.Context, *quota.Policy, []strategies.Grant) error { return nil }
	}},
	{name: "keeps the first limit", check: "limit",
		meta: func(m *strategies.Meta) { m.Guarantee = []quota.Clause{quota.Exactly(quota.FaultLimit)} },
		make: func(d *double) {
			d.limit = func(*double, context.Context, *quota.Policy, []quota.Subject) error { return nil }
		}},
	{name: "cannot set a limit", check: "limit", make: func(d *double) {
		d.limit = func(*double, context.Context, *quota.Policy, []quota.Subject) error { return errors.New("no") }
	}},
	{name: "never admits", check: "sequential", make: func(d *double) {
		d.take = func(*double, context.Context, quota.Request) (quota.Decision, error) {
			return quota.Decision{Tier: quota.TierRedis}, nil
		}
	}},
	{name: "never admits and promises nothing", check: "sequential",
		meta: func(m *strategies.Meta) {
			m.Guarantee = nil
			m.Form = strategies.Documented
		},
		make: func(d *double) {
			d.take = func(*double, context.Context, quota.Request) (quota.Decision, error) {
				return quota.Decision{Tier: quota.TierRedis}, nil
			}
		}},
	{name: "names no tier", check: "sequential", make: func(d *double) {
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			dec, err := d.right(ctx, req)
			dec.Tier = ""
			return dec, err
		}
	}},
	{name: "remaining is one too many", check: "sequential", make: func(d *double) {
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			dec, err := d.right(ctx, req)
			dec.Remaining++
			return dec, err
		}
	}},
	{name: "shares its count and says that it does not", check: "per-process", meta: func(m *strategies.Meta) {
		m.PerProcess = true
	}},
	{name: "ignores the amount", check: "costs", make: func(d *double) {
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			r, err := d.full.Used(ctx, req.Subject, req.Policy)
			if err != nil || r[0].Units >= req.Policy.Limit {
				return quota.Decision{Tier: quota.TierRedis, Remaining: -1}, err
			}
			return d.withPolicy(ctx, req, func(p *quota.Policy) { p.Limit = unlimited })
		}
		d.grant = func(*double, context.Context, *quota.Policy, []strategies.Grant) error { return nil }
	}},
	{name: "charges rejected requests", check: "costs", make: func(d *double) {
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			dec, err := d.withPolicy(ctx, req, func(p *quota.Policy) { p.Limit = unlimited })
			if used := unlimited - dec.Remaining; err == nil && used > req.Policy.Limit {
				return quota.Decision{Tier: quota.TierRedis}, nil
			}
			dec.Remaining = -1
			return dec, err
		}
		d.grant = func(*double, context.Context, *quota.Policy, []strategies.Grant) error { return nil }
	}},
	{name: "grants more than was asked for", check: "costs", make: func(d *double) {
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			dec, err := d.right(ctx, req)
			if dec.Admitted {
				dec.Granted = req.Units + 1
			}
			return dec, err
		}
	}},
	{name: "grants fewer units than there are", check: "costs", make: func(d *double) {
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			return d.partly(ctx, req, 1)
		}
	}},
	{name: "grants what it has not got", check: "costs", make: func(d *double) {
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			dec, err := d.partly(ctx, req, req.Units)
			dec.Granted = 0
			dec.Reservation.Request = req
			if !dec.Admitted {
				dec.Reservation = quota.Reservation{}
			}
			return dec, err
		}
	}},
	{name: "reserves more than it grants", check: "costs", make: func(d *double) {
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			dec, err := d.partly(ctx, req, req.Units)
			if dec.Admitted {
				dec.Reservation.Request.Units = req.Units
			}
			return dec, err
		}
	}},
	{name: "mixes subjects", check: "subjects", make: func(d *double) {
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			inner := req
			inner.Subject = quota.Subject(strings.ToLower(string(req.Subject)))
			dec, err := d.right(ctx, inner)
			if dec.Admitted {
				dec.Reservation.Request = req
			}
			return dec, err
		}
	}},
	{name: "never resets", check: "next-window", make: func(d *double) {
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			return d.withPolicy(ctx, req, func(p *quota.Policy) { p.Window = quota.Window{} })
		}
	}},
	{name: "never lets go of a rolling window", check: "rolling", make: func(d *double) {
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			return d.withPolicy(ctx, req, func(p *quota.Policy) { p.Window.Length = time.Hour })
		}
	}},
	{name: "lets go of a rolling window too soon", check: "rolling", make: func(d *double) {
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			wait(req.Policy.Window.Length / 8)
			return d.withPolicy(ctx, req, func(p *quota.Policy) { p.Window.Length /= 8 })
		}
	}},
	{name: "forgets what was used at the start", check: "provision", make: func(d *double) {
		d.grant = func(d *double, ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
			for i := range grants {
				grants[i].Used = 0
			}
			return d.full.Provision(ctx, p, grants)
		}
	}},
	{name: "sets up the first batch only", check: "provision", make: func(d *double) {
		d.grant = func(d *double, ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
			return d.full.Provision(ctx, p, grants[:min(1000, len(grants))])
		}
	}},
	{name: "ignores a limit of the subject's own", check: "provision", make: func(d *double) {
		d.grant = func(d *double, ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
			grants = slices.Clone(grants)
			for i := range grants {
				grants[i].Limit = p.Limit
			}
			return d.full.Provision(ctx, p, grants)
		}
	}},
	{name: "forgets all subjects when there are many", check: "others", meta: forgetful(10_000)},
	{name: "gives ten subjects one quota", check: "others", make: func(d *double) {
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			inner := req
			inner.Subject = req.Subject[:min(len(req.Subject), len("other-1"))]
			dec, err := d.right(ctx, inner)
			if dec.Admitted {
				dec.Reservation.Request = req
			}
			return dec, err
		}
	}},
	{name: "charges what it rejects", check: "rejected", make: func(d *double) {
		var mu sync.Mutex
		charged := map[quota.Subject]int64{}
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			mu.Lock()
			defer mu.Unlock()
			dec, err := d.withPolicy(ctx, req, func(p *quota.Policy) { p.Limit -= charged[req.Subject] })
			if err == nil && !dec.Admitted {
				charged[req.Subject] += req.Units
			}
			return dec, err
		}
		d.grant = func(*double, context.Context, *quota.Policy, []strategies.Grant) error { return nil }
	}},
	{name: "takes a request over the limit of a subject without a count", check: "costs", make: func(d *double) {
		var mu sync.Mutex
		seen := map[quota.Subject]bool{}
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			mu.Lock()
			defer mu.Unlock()
			fresh := !seen[req.Subject]
			seen[req.Subject] = true
			return d.withPolicy(ctx, req, func(p *quota.Policy) {
				if fresh {
					p.Limit = unlimited
				}
			})
		}
		d.grant = func(*double, context.Context, *quota.Policy, []strategies.Grant) error { return nil }
	}},
	{name: "refunds nothing", check: "refund", make: func(d *double) {
		d.refund = func(*double, context.Context, quota.Reservation) error { return nil }
	}},
	{name: "refunds a unit too many", check: "refund", make: func(d *double) {
		d.refund = func(d *double, ctx context.Context, r quota.Reservation) error {
			return d.full.Commit(ctx, r, -1)
		}
	}},
	{name: "refunds twice", check: "double-refund", make: func(d *double) {
		var mu sync.Mutex
		seen := map[uint64]bool{}
		d.refund = func(d *double, ctx context.Context, r quota.Reservation) error {
			mu.Lock()
			defer mu.Unlock()
			if seen[r.Request.ID] {
				r.Request.ID++ // another request's
			}
			seen[r.Request.ID] = true
			return d.full.Refund(ctx, r)
		}
	}},
	{name: "a commit lets go", check: "commit", make: func(d *double) {
		d.commit = func(d *double, ctx context.Context, r quota.Reservation, _ int64) error {
			return d.full.Refund(ctx, r)
		}
	}},
	{name: "a commit keeps what was not used", check: "commit", make: func(d *double) {
		d.commit = func(*double, context.Context, quota.Reservation, int64) error { return nil }
	}},
	{name: "shows a unit too few", check: "used", make: func(d *double) {
		d.used = func(d *double, ctx context.Context, s quota.Subject, p *quota.Policy) ([]quota.Reading, error) {
			r, err := d.full.Used(ctx, s, p)
			for i := range r {
				r[i].Units = max(0, r[i].Units-1)
			}
			return r, err
		}
	}},
	{name: "declares attempts and counts admitted units", check: "used",
		meta: func(m *strategies.Meta) { m.Counts = quota.CountsAttempts }},
	{name: "shows counts and declares none", check: "used",
		meta: func(m *strategies.Meta) { m.Counts = quota.CountsNothing }},
	{name: "a job is never idle", check: "jobs", make: func(d *double) {
		d.jobs[0].Run = func(context.Context) (bool, error) { return true, nil }
	}},
	{name: "a job never runs", check: "jobs", make: func(d *double) { d.jobs[0].Every = 0 }},
	{name: "a job fails", check: "jobs", make: func(d *double) {
		d.jobs[0].Run = func(context.Context) (bool, error) { return false, errors.New("no") }
	}},
	{name: "decides for those who gave up", check: "cancelled", make: func(d *double) {
		d.take = func(d *double, _ context.Context, req quota.Request) (quota.Decision, error) {
			return d.right(context.Background(), req)
		}
	}},
	{name: "tells its store the wall clock's time", check: "clock", make: func(d *double) {
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			if err := strategies.Redis(d.env).Set(ctx, "last", clock.Wall{}.Now().UnixMilli(), 0).Err(); err != nil {
				return quota.Decision{}, err
			}
			return d.right(ctx, req)
		}
	}},
	{name: "takes giving up for an outage", check: "cancelled", make: func(d *double) {
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			dec, err := d.right(ctx, req)
			if err != nil {
				return quota.Decision{Tier: quota.TierProcess, Degraded: true}, nil
			}
			return dec, err
		}
	}},
	{name: "fails open and does not say so", check: "outage", make: func(d *double) {
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			dec, err := d.right(ctx, req)
			if err != nil && ctx.Err() == nil {
				return quota.Decision{Admitted: true, Tier: quota.TierProcess, Reservation: quota.Reservation{Request: req}}, nil
			}
			return dec, err
		}
	}},
	{name: "does not recover", check: "outage", make: func(d *double) {
		var down atomic.Bool
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			dec, err := d.right(ctx, req)
			if down.Load() || err != nil {
				down.Store(true)
				return quota.Decision{}, errOutage
			}
			return dec, err
		}
	}},
	{name: "leaves a goroutine behind", check: "close", make: func(d *double) {
		d.close = func(*double) { go func() { <-stuck }() }
	}},
	{name: "checks, and counts later", check: "concurrent", make: func(d *double) {
		last := strategies.SharedValue(d.env.Shared, "callers that see the last unit", newMeeting)
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			r, err := d.full.Used(ctx, req.Subject, req.Policy)
			if err != nil || r[0].Units+req.Units > req.Policy.Limit {
				last.end()
				return quota.Decision{Tier: quota.TierRedis, Remaining: -1}, err
			}
			if r[0].Units == req.Policy.Limit-1 {
				last.come()
			}
			return d.withPolicy(ctx, req, func(p *quota.Policy) { p.Limit = unlimited })
		}
		d.grant = func(*double, context.Context, *quota.Policy, []strategies.Grant) error { return nil }
	}},
	{name: "reads, and writes a moment later", check: "at-once", meta: func(m *strategies.Meta) {
		var used sync.Map
		open := strategies.FromFunc(m.Name, m.Kinds,
			func(_ context.Context, _ strategies.Env, p *quota.Policy) (strategies.Allower, error) {
				return strategies.AllowFunc(func(_ context.Context, key string) (bool, error) {
					n, _ := used.LoadOrStore(key, int64(0))
					runtime.Gosched()
					used.Store(key, n.(int64)+1)
					return n.(int64) < p.Limit, nil
				}), nil
			})
		m.Needs, m.Open, m.Guarantee = nil, open.Open, []quota.Clause{quota.Exactly()}
	}},
	{name: "reads, and writes a moment later, except for the first request", check: "at-once",
		meta: func(m *strategies.Meta) {
			var used sync.Map
			open := strategies.FromFunc(m.Name, m.Kinds,
				func(_ context.Context, _ strategies.Env, p *quota.Policy) (strategies.Allower, error) {
					return strategies.AllowFunc(func(_ context.Context, key string) (bool, error) {
						n, more := used.LoadOrStore(key, int64(1))
						if !more || n.(int64) >= p.Limit {
							return !more, nil
						}
						runtime.Gosched()
						used.Store(key, n.(int64)+1)
						return true, nil
					}), nil
				})
			m.Needs, m.Open, m.Guarantee = nil, open.Open, []quota.Clause{quota.Exactly()}
		}},
	{name: "fails under load", check: "concurrent", make: func(d *double) {
		var busy atomic.Int32
		two := newMeeting()
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			defer busy.Add(-1)
			if busy.Add(1) > 1 {
				two.come()
				return quota.Decision{}, errors.New("busy")
			}
			two.come()
			return d.right(ctx, req)
		}
	}},
	{name: "gives back twice under load", check: "concurrent-refunds", make: func(d *double) {
		var calls atomic.Int32
		d.refund = func(d *double, ctx context.Context, r quota.Reservation) error {
			if calls.Add(1)%4 == 0 {
				return d.full.Commit(ctx, r, -2)
			}
			return d.full.Refund(ctx, r)
		}
	}},
	{name: "an option value does not open", check: "options", meta: func(m *strategies.Meta) {
		m.Options = []quota.Option{{Name: "mode", Doc: "one that works, one that does not", Default: "good",
			Values: []string{"good", "bad"}}}
	}},
	{name: "a doc with a full stop", check: "meta", meta: func(m *strategies.Meta) { m.Doc += "." }},
	{name: "an excluded mode without a reason", check: "meta", meta: func(m *strategies.Meta) {
		m.Excluded = map[strategies.Mode]string{strategies.ModeExplore: ""}
	}},
	{name: "documented by nothing", check: "meta", meta: func(m *strategies.Meta) {
		m.Form = strategies.Documented
		m.Source = ""
	}},
	{name: "refunds and does not say so", check: "meta", meta: func(m *strategies.Meta) { m.GivesBack = false }},
	{name: "serves no policy", check: "meta", meta: func(m *strategies.Meta) {
		m.Serves = func(*quota.Policy) error { return errors.New("none") }
	}},
	{name: "a clause that promises nothing about leaks", check: "meta", meta: func(m *strategies.Meta) {
		m.Guarantee = []quota.Clause{{Property: quota.PropertyLeak, Formula: "all that was asked",
			Bound: func(p quota.Params) int64 { return p.Offered - p.Limit }}}
	}},
	{name: "a clause that promises nothing about rejections", check: "meta", meta: func(m *strategies.Meta) {
		m.Guarantee = []quota.Clause{{Property: quota.PropertyFalseReject, Formula: "all that was asked",
			Bound: func(p quota.Params) int64 { return p.Offered }}}
	}},
	{name: "a formula that is a speech", check: "meta", meta: func(m *strategies.Meta) {
		m.Guarantee = slices.Clone(m.Guarantee) // it is that of the registered strategy
		m.Guarantee[0].Formula = strings.Repeat("L and not more, ", 4)
	}},
	{name: "a bound that sinks", check: "meta", meta: func(m *strategies.Meta) {
		m.Guarantee = []quota.Clause{{Property: quota.PropertyLeak, Formula: "100 - in flight",
			Bound: func(p quota.Params) int64 { return 100 - p.InFlight }}}
	}},
}

// forgetful is a limiter in memory that empties its table when that has many entries.
func forgetful(many int) func(*strategies.Meta) {
	return func(m *strategies.Meta) {
		m.Kinds = []quota.Kind{quota.Fixed}
		open := strategies.FromFunc(m.Name, m.Kinds,
			func(_ context.Context, _ strategies.Env, p *quota.Policy) (strategies.Allower, error) {
				var mu sync.Mutex
				used := map[string]int64{}
				return strategies.AllowFunc(func(_ context.Context, key string) (bool, error) {
					mu.Lock()
					defer mu.Unlock()
					if len(used) > many {
						clear(used)
					}
					used[key]++
					return used[key] <= p.Limit, nil
				}), nil
			})
		m.Needs, m.Open, m.Guarantee, m.Serves = nil, open.Open, []quota.Clause{quota.Exactly()}, open.Serves
	}
}

// TestAtOnceTellsARace: if a single caller is admitted too much as well, it is no race.
func TestAtOnceTellsARace(t *testing.T) {
	testenv.Sequential(t)
	m := sample(nil)
	forgetful(100)(m)
	set(t, &crossingsPart, 10*crossingsPart)
	r := observe(t, func(tb testing.TB) { checkAtOnce(tb, m, Stores{}) })
	if text := r.text(); !r.failed || !strings.Contains(text, "a single caller") || strings.Contains(text, "same moment") {
		t.Errorf("failed %v: %s", r.failed, text)
	}
}

// set gives a limit of the suite another value until the test ends.
func set[T any](t *testing.T, limit *T, value T) {
	t.Helper()
	was := *limit
	*limit = value
	t.Cleanup(func() { *limit = was })
}

// TestRightStrategyPasses: the suite has nothing against the double as such, and
// leaves out only what it has no part in.
func TestRightStrategyPasses(t *testing.T) {
	s := embeddedStores(t, sample(nil))
	partly := func(d *double) {
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			return d.partly(ctx, req, req.Units)
		}
	}
	for name, change := range map[string]func(*double){"whole": nil, "in part": partly} {
		for _, c := range checks {
			r := observe(t, func(tb testing.TB) { c.run(tb, sample(change), s) })
			if r.failed || (r.skipped && c.name != "options" && c.name != "per-process" && c.name != "at-once") {
				t.Errorf("%s, %s: failed %v, skipped %v:\n%s", name, c.name, r.failed, r.skipped, r.log.String())
			}
		}
	}
}

// TestWrongStrategiesFail: every check notices what it is there for.
func TestWrongStrategiesFail(t *testing.T) {
	testenv.Sequential(t)
	testenv.Long(t)
	s := embeddedStores(t, sample(nil))
	set(t, &restLimit, 0) // what is wrong stays wrong, however long the suite waits
	tried := map[string]bool{}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			tried[m.check] = true
			meta := sample(m.make)
			if m.meta != nil {
				m.meta(meta)
			}
			r := observe(t, func(tb testing.TB) { named(t, m.check).run(tb, meta, s) })
			if !r.failed {
				t.Errorf("check %s did not notice:\n%s", m.check, r.log.String())
			}
		})
	}
	for _, c := range checks {
		if !tried[c.name] {
			t.Errorf("no wrong strategy shows that check %s can fail", c.name)
		}
	}
}

// TestReturnsTakeNoTime: units that never come back are asked for after longer and longer windows, whose time is that
// of the strategy and its stores. By the wall clock these would take 102 s.
func TestReturnsTakeNoTime(t *testing.T) {
	testenv.Sequential(t)
	never := redis.NewScript("return redis.call('INCR', KEYS[1])")
	for name, window := range map[string]time.Duration{"never": 0, "too late": 3 * time.Second, "right": 1} {
		m := strategies.FromFunc("counter", []quota.Kind{quota.FirstRequest},
			func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
				return strategies.AllowFunc(func(ctx context.Context, key string) (bool, error) {
					n, err := never.Run(ctx, strategies.Redis(env), []string{key}).Int64()
					if err == nil && n == 1 && window > 0 {
						err = strategies.Redis(env).PExpire(ctx, key, max(window, p.Window.RealLength())).Err()
					}
					return n <= p.Limit, err
				}), nil
			})
		began := clock.Nano()
		r := observe(t, func(tb testing.TB) { checkRolling(tb, &m, embeddedStores(tb, &m)) })
		if took := time.Duration(clock.Nano() - began); took > longestReturn {
			t.Errorf("%s: it took %v", name, took)
		}
		if wrong := name == "never"; r.failed != wrong || wrong && !strings.Contains(r.text(), "window of 51.2s") ||
			strings.Contains(r.text(), "too short") {
			t.Errorf("%s: failed %v: %s", name, r.failed, r.text())
		}
	}
}

// TestAtOnceOnOneProcessor: callers that ask at the same moment have two processors, also if the program uses one.
func TestAtOnceOnOneProcessor(t *testing.T) {
	testenv.Sequential(t)
	if runtime.NumCPU() == 1 {
		t.Skip("there is one processor")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var processors atomic.Int64
	open := func(_ context.Context, _ strategies.Env, p *quota.Policy) (strategies.Allower, error) {
		var used sync.Map
		return strategies.AllowFunc(func(_ context.Context, key string) (bool, error) {
			processors.Store(int64(runtime.GOMAXPROCS(0)))
			n, _ := used.LoadOrStore(key, new(atomic.Int64))
			return n.(*atomic.Int64).Add(1) <= p.Limit, nil
		}), nil
	}
	m := strategies.FromFunc("counter", []quota.Kind{quota.Fixed}, open)
	m.Needs, m.Guarantee = nil, []quota.Clause{quota.Exactly()}
	set(t, &crossingsPart, testenv.Pick(10, 1)*crossingsPart)
	r := observe(t, func(tb testing.TB) { checkAtOnce(tb, &m, Stores{}) })
	if now := runtime.GOMAXPROCS(0); r.failed || r.skipped || processors.Load() != 2 || now != 1 {
		t.Errorf("failed %v, skipped %v, with %d processors and %d after it:\n%s", r.failed, r.skipped, processors.Load(),
			now, r.log.String())
	}
}

// TestPrescribedErrorsPass: an error that the source asks for is no failure.
func TestPrescribedErrorsPass(t *testing.T) {
	s := Stores{Redis: clients(storetest.EmbeddedRedis(t))}
	var calls atomic.Int32
	m := sample(func(d *double) {
		d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
			if calls.Add(1)%5 == 0 {
				return quota.Decision{}, fmt.Errorf("as it is written: %w", strategies.ErrPrescribed)
			}
			return d.right(ctx, req)
		}
	})
	if r := observe(t, func(tb testing.TB) { checkConcurrent(tb, m, s) }); r.failed {
		t.Error(r.log.String())
	}
}

func TestEmptyRegistryFails(t *testing.T) {
	if r := observe(t, func(tb testing.TB) { notEmpty(tb, nil) }); !r.failed {
		t.Error("an empty registry passes")
	}
	if r := observe(t, func(tb testing.TB) { notEmpty(tb, strategies.All()) }); r.failed {
		t.Error("a registry that is not empty fails")
	}
}

// TestMissingStoreSkips: without its store a strategy is skipped, never passed
// over as if it had been tested.
func TestMissingStoreSkips(t *testing.T) {
	for _, need := range needs {
		m := sample(nil)
		m.Needs = []strategies.Need{need}
		r := observe(t, func(tb testing.TB) { open(tb, m, Stores{}, 1) })
		if want := need != strategies.NeedSource; r.skipped != want || r.failed {
			t.Errorf("%s is missing: skipped %v, failed %v", need, r.skipped, r.failed)
		}
	}
}
