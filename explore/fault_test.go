package explore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// planted is a strategy with a weakness that one fault, and nothing less, brings
// to light.
type planted struct {
	env  strategies.Env
	take func(ctx context.Context, p *planted, r quota.Request) (quota.Decision, error)
	jobs []strategies.Job
	seen int64 // memory of the instance
}

func (p *planted) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	return p.take(ctx, p, r)
}
func (p *planted) Close(context.Context) error { return nil }
func (p *planted) Jobs() []strategies.Job      { return p.jobs }

// set admits the request that creates the key, for as long as it lives.
func (p *planted) set(ctx context.Context, key string, life time.Duration) (bool, error) {
	return strategies.Redis(p.env).SetNX(ctx, p.env.Prefix+key, 1, life).Result()
}

// plant makes a selection of it.
func plant(take func(ctx context.Context, p *planted, r quota.Request) (quota.Decision, error),
	jobs ...string) strategies.Selection {
	return strategies.Selection{Meta: &strategies.Meta{
		Name: "planted", Doc: "has a weakness", Form: strategies.Baseline, Counts: quota.CountsNothing,
		Kinds: []quota.Kind{quota.Standing, quota.CalendarHour},
		Reset: strategies.ResetsMissing,
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			p := &planted{env: env, take: take}
			for _, name := range jobs {
				p.jobs = append(p.jobs, strategies.Job{Name: name, Singleton: true, Every: time.Hour,
					Run: func(ctx context.Context) (bool, error) {
						return true, strategies.Redis(env).Del(ctx, env.Prefix+"k").Err()
					}})
			}
			return p, nil
		},
	}}
}

func verdict(ok bool, err error) (quota.Decision, error) {
	return quota.Decision{Admitted: ok, Tier: quota.TierRedis}, err
}

// once is safe except for what happens to its key.
func once(ctx context.Context, p *planted, _ quota.Request) (quota.Decision, error) {
	return verdict(p.set(ctx, "k", 0))
}

// trusting takes an error for an admission.
func trusting(ctx context.Context, p *planted, _ quota.Request) (quota.Decision, error) {
	ok, err := p.set(ctx, "k", 0)
	return quota.Decision{Admitted: ok || err != nil, Tier: quota.TierRedis, Degraded: err != nil}, nil
}

func lease(ctx context.Context, p *planted, _ quota.Request) (quota.Decision, error) {
	return verdict(p.set(ctx, "k", time.Minute))
}

func twoPart(ctx context.Context, p *planted, _ quota.Request) (quota.Decision, error) {
	key := p.env.Prefix + "k"
	n, err := strategies.Redis(p.env).Incr(ctx, key).Result()
	if err == nil && n == 1 {
		err = strategies.Redis(p.env).Expire(ctx, key, time.Hour).Err()
	}
	return verdict(n == 1, err)
}

func counted(ctx context.Context, p *planted, r quota.Request) (quota.Decision, error) {
	n, err := strategies.Redis(p.env).Incr(ctx, p.env.Prefix+"k").Result()
	return verdict(n <= r.Policy.Limit, err)
}

func remembered(ctx context.Context, p *planted, r quota.Request) (quota.Decision, error) {
	if err := strategies.Redis(p.env).Incr(ctx, p.env.Prefix+"asked").Err(); err != nil {
		return verdict(false, err)
	}
	p.seen++
	return verdict(p.seen <= r.Policy.Limit, nil)
}

func windowed(ctx context.Context, p *planted, r quota.Request) (quota.Decision, error) {
	return verdict(p.set(ctx, r.Policy.Window.At(p.env.Clock.Now()).Start.Format(time.RFC3339), 0))
}

var tenants = func() quota.Policy {
	p, err := quota.LookupPolicy("tenant-uploads")
	if err != nil {
		panic(err)
	}
	return p
}()

// Each fault is needed, and the schedule found is the shortest there is.
func TestEachFaultIsFoundAtItsShortest(t *testing.T) {
	testenv.Sequential(t)
	hourly := tenants
	hourly.Window = quota.Window{Kind: quota.CalendarHour}
	for name, c := range map[string]struct {
		sel      strategies.Selection
		fault    quota.Fault
		cfg      explore.Config
		property explore.Property
		want     string
	}{
		"crash": {
			plant(twoPart), quota.FaultCrash,
			explore.Config{Policy: hourly}, explore.TTL, "A INCR, A crash",
		},
		"crash of an instance": {
			plant(remembered), quota.FaultCrash,
			explore.Config{Policy: tenants, Instances: 1, Limit: 1}, explore.Leak,
			"A starts, A INCR, A reply, instance 0 crash, B starts, B INCR, B reply",
		},
		"lost reply": {
			plant(trusting), quota.FaultLostReply,
			explore.Config{Policy: tenants, Limit: 1}, explore.Leak, "A SET, A reply, B SET, B lost-reply",
		},
		"retry": {
			plant(counted), quota.FaultRetry,
			explore.Config{Policy: tenants, Clients: 1, Limit: 1}, explore.FalseReject, "A INCR, A retry, A reply",
		},
		"clock": {
			plant(lease), quota.FaultClock,
			explore.Config{Policy: tenants, Limit: 1}, explore.Leak,
			"A starts, A SET, A reply, clock 1m, B starts, B SET, B reply",
		},
		"eviction": {
			plant(once), quota.FaultEviction,
			explore.Config{Policy: tenants, Limit: 1}, explore.Leak, "A SET, A reply, store evicts, B SET, B reply",
		},
		"outage": {
			plant(trusting), quota.FaultOutage,
			explore.Config{Policy: tenants, Limit: 1}, explore.Leak, "A starts, A SET, A reply, B starts, B outage",
		},
		"job": {
			plant(once, "sweep"), "",
			explore.Config{Policy: tenants, Limit: 1}, explore.Leak,
			"0:sweep round, A starts, A SET, 0:sweep DEL, A reply, B starts, B SET, B reply",
		},
		"skew": {
			plant(windowed), "",
			explore.Config{Policy: hourly, Limit: 1, Skew: []time.Duration{0, 45 * time.Minute}}, explore.Leak, "A SET, B SET",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Properties = []explore.Property{c.property}
			c.cfg.Asks = -1 // the clients alone
			search := func() *explore.Result {
				t.Helper()
				r, err := explore.Run(t.Context(), c.sel, c.cfg)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			faulty := c.cfg
			if c.fault != "" {
				if r := search(); len(r.Findings) > 0 || r.Capped != "" {
					t.Errorf("found without the fault: %s", words(&r.Findings[0]))
				}
				c.cfg.Faults = []quota.Fault{c.fault}
			} else { // what is needed is no fault
				c.cfg.JobRounds = -1
				c.cfg.Skew = nil
				if r := search(); len(r.Findings) > 0 || r.Capped != "" {
					t.Errorf("found without it: %s", words(&r.Findings[0]))
				}
				c.cfg = faulty
			}
			f := found(t, search(), c.property)
			if got := words(f); got != c.want && !sameSteps(got, c.want) {
				t.Errorf("by %s\nwant %s", got, c.want)
			}
		})
	}
}

// sameSteps allows for another order: several schedules may be as short, and
// which of them comes first is not promised.
func sameSteps(a, b string) bool {
	count := map[string]int{}
	for s := range strings.SplitSeq(a, ", ") {
		count[s]++
	}
	for s := range strings.SplitSeq(b, ", ") {
		count[s]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}
