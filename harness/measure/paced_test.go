package measure

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// TestPacedLatencyIsThePlantedOne: a strategy that takes 2 ms in every fiftieth
// decision has a p99 of at least that at the common rate, and its throughput and
// leak come from the closed loop.
func TestPacedLatencyIsThePlantedOne(t *testing.T) {
	testenv.Sequential(t)
	p := &planted{leak: 2}
	n := 0
	p.delay = func(context.Context) {
		p.mu.Lock()
		n++
		slow := n%50 == 0
		p.mu.Unlock()
		if slow {
			time.Sleep(2 * time.Millisecond)
		}
	}
	r := measureOne(t, p, "hot-key", func(c *Config) {
		c.base = nil
		c.Workers = 8
		c.Load = harness.Load{Loop: harness.Both, PerSecond: 2000}
		c.Arrivals = "constant"
		c.Requests = 0
		c.Duration = 250 * time.Millisecond
		c.ReferenceLength = 20 * time.Millisecond
		c.Stores = setOf(t, storetest.EmbeddedRedis(t))
	})
	o := r.Paced
	if o == nil || o.Response == nil || o.Params.Loop != codes.OpenLoop || o.Params.RatePerS != 2000 {
		t.Fatalf("no open loop at 2000/s: %+v", o)
	}
	if r.Params.Loop != codes.ClosedLoop || r.Response != nil || r.Lateness != nil {
		t.Errorf("the run itself is no closed loop: %+v", r.Params)
	}
	if r.Leak.Units != 2*r.Leak.LeakedTrials || r.Leak.Units == 0 {
		t.Errorf("leak %+v", r.Leak)
	}
	if o.Response.P99 < int64(2*time.Millisecond) {
		t.Errorf("p99 is %v with 2 ms in one of 50 decisions", time.Duration(o.Response.P99))
	}
	if n := o.Response.Samples; n != 500 { // those that no caller came to are among them
		t.Errorf("%d requests in 250 ms at 2000/s", n)
	}
	if r.Cost.Probe == nil || o.Cost.Probe != nil || o.Drift != nil {
		t.Error("the probe and the counters belong to the closed loop")
	}
	if r.Reference == nil || r.Reference.Samples == 0 || o.Reference == nil || o.Reference.Samples != 500 {
		t.Errorf("what a bare client sees: %+v in closed loop, %+v in open loop", r.Reference, o.Reference)
	}
}

// TestPacedLeavesNothingElse: without a rate, and if the loop is open by itself,
// there is one loop.
func TestPacedLeavesNothingElse(t *testing.T) {
	if r := measureOne(t, &planted{}, "hot-key", nil); r.Paced != nil {
		t.Error("an open loop that was not asked for")
	}
	r := measureOne(t, &planted{}, "steady", func(c *Config) {
		c.base = nil
		c.Load = harness.Load{Loop: harness.Both, PerSecond: 5000}
		c.Requests = 500
	})
	if r.Paced != nil || r.Params.RatePerS != 1000 {
		t.Errorf("an open loop beside an open loop: %+v", r.Params)
	}
}

func TestAutoRate(t *testing.T) {
	selected := []strategies.Selection{
		{Meta: &strategies.Meta{Name: "memory"}},
		{Meta: &strategies.Meta{Name: "fast", Needs: []strategies.Need{strategies.NeedRedis}}},
		{Meta: &strategies.Meta{Name: "slow", Needs: []strategies.Need{strategies.NeedPostgres}}},
	}
	runs := func(memory, fast, slow float64) (out []results.Run) {
		for i, x := range []float64{memory, fast, slow} {
			out = append(out, results.Run{Params: results.Params{Label: selected[i].Name},
				Rates: results.Rates{ThroughputPerS: x}})
		}
		return out
	}
	for _, c := range []struct {
		memory, fast, slow, want float64
		from                     string
	}{
		{1e6, 80_000, 2_468, 1_200, "half of what slow held in the first round"},
		// one without a store decides nothing
		{900, 80_000, 2_468, 1_200, ""},
		{1e6, 80_000, 300, 500, "the lowest automatic rate, since slow held less than twice as much"}, // never less
		// nor more than a pacer is precise at
		{1e6, 800_000, 700_000, 10000, "the highest automatic rate, since slow held more than twice as much"},
		// one that failed has no throughput
		{1e6, 80_000, 0, 10000, "the highest automatic rate, since fast held more than twice as much"},
		{1e6, 0, 0, 10000, ""},
		{5000, 0, 0, 2500, "half of what memory held in the first round"},
	} {
		got, from := CommonRate(runs(c.memory, c.fast, c.slow), selected)
		if got != c.want || c.from != "" && from != c.from {
			t.Errorf("%+v: %g, %s", c, got, from)
		}
	}
	if seed.PacedOrder == seed.RoundOrder {
		t.Error("both loops of a round have the same order")
	}
}

// tailed admits everything and takes a millisecond longer in one of n decisions.
func tailed(n int64, sleep func(time.Duration)) strategies.Selection {
	var calls atomic.Int64
	p := &planted{}
	sel := p.selection()
	sel.Open = func(context.Context, strategies.Env) (strategies.Strategy, error) {
		return takes(func() {
			if n > 0 && calls.Add(1)%n == 0 {
				sleep(time.Millisecond)
				return
			}
			sleep(0)
		}), nil
	}
	sel.Guarantee = nil
	sel.Counts = ""
	return sel
}

type takes func()

func (f takes) Take(context.Context, quota.Request) (quota.Decision, error) {
	f()
	return quota.Decision{Admitted: true, Tier: quota.TierProcess}, nil
}
func (takes) Close(context.Context) error { return nil }

// TestPlantedTail: a millisecond in 2 % of decisions is p99, and a millisecond in 0.5 %
// is p99.9 and not p99, in virtual time.
func TestPlantedTail(t *testing.T) {
	testenv.Sequential(t)
	const tail = int64(time.Millisecond)
	latency := func(n int64) results.Distribution {
		v := &virtual{}
		r := measureOne(t, &planted{}, "hot-key", func(c *Config) {
			c.base, c.Strategies = v.timebase(), []strategies.Selection{tailed(n, func(d time.Duration) {
				v.advance(d + time.Microsecond)
			})}
		})
		return r.Latency().Distribution
	}
	none := latency(0)
	many := latency(50)
	few := latency(200)
	if none.P9999 > tail/100 || many.P99 < tail || many.P99 > tail+tail/100 || few.P999 < tail || few.P99 > tail/100 {
		t.Errorf("p99.99 is %d ns with nothing planted, p99 is %d ns with 1 ms in 2 %%, p99.9 and p99 are %d and %d ns "+
			"with 1 ms in 0.5 %%", none.P9999, many.P99, few.P999, few.P99)
	}
}

// TestPlantedTailOnThisMachine is [TestPlantedTail] on the wall clock, in both loops: with
// nothing planted p99 is less than half of a millisecond. On a busy machine other things
// take a millisecond too, so that the upper bounds have to hold in one of many attempts,
// and the lower ones in each. If they never hold and the audit discards the timings,
// the machine is too busy to tell, and the test is skipped.
func TestPlantedTailOnThisMachine(t *testing.T) {
	testenv.Long(t)
	const tail, attempts, onABusyMachine = int64(time.Millisecond), 20, 5
	for _, loop := range []struct {
		name string
		rate float64
	}{{"closed loop of 50 callers", 0}, {"open loop at 20,000 per second", 20_000}} {
		t.Run(loop.name, func(t *testing.T) {
			discarded := ""
			latency := func(n int64) results.Distribution {
				r := measureOne(t, &planted{}, "hot-key", func(c *Config) {
					c.base, c.Workers, c.Load, c.NoReference = nil, 50, harness.OpenAt(loop.rate), true
					c.Requests = 0
					c.Duration = 300 * time.Millisecond
					c.Strategies = []strategies.Selection{tailed(n, time.Sleep)}
				})
				for _, reason := range r.Audit.Reasons {
					if reason.Discards != codes.DiscardsNothing {
						discarded = reason.Detail
					}
				}
				return r.Latency().Distribution
			}
			for attempt := 1; ; attempt++ {
				none := latency(0)
				many := latency(50)
				few := latency(200)
				if many.P99 < tail || few.P999 < tail {
					t.Fatalf("p99 is %v with 1 ms in 2 %%, p99.9 is %v with 1 ms in 0.5 %%", time.Duration(many.P99),
						time.Duration(few.P999))
				}
				if 2*none.P99 < many.P99 && 2*few.P99 < tail {
					return
				}
				switch {
				case attempt < onABusyMachine || discarded == "" && attempt < attempts:
				case discarded != "":
					t.Skipf("the audit discards these timings: %s", discarded)
				default:
					t.Fatalf("p99 is %v with nothing planted, %v with 1 ms in 2 %% and %v with 1 ms in 0.5 %%",
						time.Duration(none.P99), time.Duration(many.P99), time.Duration(few.P99))
				}
			}
		})
	}
}
