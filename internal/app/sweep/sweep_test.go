package sweep_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/app/sweep"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"workers=1,8,64":        "1 8 64",
		"pool=1..64x2":          "1 2 4 8 16 32 64",
		"pool=1..60x2":          "1 2 4 8 16 32",
		"over-quota=0..1+0.25":  "0 0.25 0.5 0.75 1",
		"over-quota=0..0.3+0.1": "0 0.1 0.2 0.3",
		"three-tier.lag=0s, 1s": "0s 1s",
		"hold=1ms..8msx2":       "1ms 2ms 4ms 8ms",
		"rate=1000..3000+1000":  "1000 2000 3000",
		"workers=1,4..16x2":     "1 4 8 16",
		"popularity=zipf:1.1":   "zipf:1.1",
	} {
		p, err := sweep.Parse(text)
		if got := strings.Join(p.Values, " "); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "workers", "workers=", "=1", "workers=1,,2", "workers=8,8", "pool=1..64",
		"pool=0..64x2", "pool=1..64x1", "pool=64..1x2",
		"pool=1..64+0", "pool=1..1000+1", "hold=1ms..8x2", "pool=a..bx2", "pool=1..1000000+1", "workers=NaN..1+1",
		"workers=1..Inf+1"} {
		if p, err := sweep.Parse(text); err == nil {
			t.Errorf("%q is taken for %+v", text, p)
		}
	}
	for _, text := range []string{"5", "5..", "0..5", "7..5", "5..+Inf", "a..b"} {
		if low, high, err := sweep.ParseInterval(text); err == nil {
			t.Errorf("%q is taken for %v to %v", text, low, high)
		}
	}
}

// TestClocksAreSwept: a simulation has clocks and a first moment of its own at each point.
func TestClocksAreSwept(t *testing.T) {
	plan := config(t, &timed{servers: make(chan struct{}, 1)}).Plan
	var got []string
	swept := []results.Swept{{Name: "clock", Values: []string{"0s", "1s"}},
		{Name: "start", Values: []string{"2027-02-28T23:59:00Z", "2028-02-29T23:59:00Z"}}}
	points, err := sweep.Simulations(sim.Config{Plan: plan}, swept)
	for _, c := range points {
		got = append(got, fmt.Sprintf("%v %d %s", c.Trouble, c.Start.Year(), c.Point["clock"]))
	}
	if want := []string{"[instance/0:clock=0s] 2027 0s", "[instance/0:clock=0s] 2028 0s", "[instance/0:clock=1s] 2027 1s",
		"[instance/0:clock=1s] 2028 1s"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	for name, value := range map[string]string{"clock": "much", "start": "soon"} {
		if _, err := sweep.Simulations(sim.Config{Plan: plan},
			[]results.Swept{{Name: name, Values: []string{value}}}); err == nil {
			t.Errorf("%s takes %s", name, value)
		}
	}
	if _, err := sweep.Points(measure.Config{Plan: plan}, swept[:1]); err == nil {
		t.Error("a measurement takes clocks")
	}
}

// TestFailoverIsSwept: each point has its replica so far behind, and others keep theirs.
func TestFailoverIsSwept(t *testing.T) {
	plan := config(t, &timed{servers: make(chan struct{}, 1)}).Plan
	swept := []results.Swept{{Name: "failover", Values: []string{"0s", "5ms"}}}
	if _, err := sweep.Points(measure.Config{Plan: plan}, swept); err == nil ||
		!strings.Contains(err.Error(), "redis:failover@") {
		t.Errorf("without a failover: %v", err)
	}
	plan.Duration = time.Second
	plan.Trouble = trouble.MustParse("redis:away@0.1-0.2", "redis:failover=1ns@0.5-0.6")
	points, err := sweep.Points(measure.Config{Plan: plan}, swept)
	var got []time.Duration
	for _, c := range points {
		got = append(got, c.Trouble[0].What.For, c.Trouble[1].What.For)
	}
	if want := []time.Duration{0, 0, 0, 5 * time.Millisecond}; err != nil || !slices.Equal(got, want) ||
		plan.Trouble[1].What.For != 1 {
		t.Errorf("%v, %v", got, err)
	}
	for _, value := range []string{"soon", "-1ms"} {
		if _, err := sweep.Points(measure.Config{Plan: plan},
			[]results.Swept{{Name: "failover", Values: []string{value}}}); err == nil {
			t.Errorf("a lag of %s", value)
		}
	}
}

// timed is a limiter that admits all, has a planted number of servers, and serves a
// request in a planted time.
type timed struct {
	servers chan struct{}
	takes   time.Duration
	redis   redis.UniversalClient // if its connections are the servers
}

func (l *timed) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	d := quota.Decision{Admitted: true, Tier: quota.TierProcess}
	if r.ID >= bounds.ProbeID { // no request of the measured pass
		return d, nil
	}
	if l.redis != nil {
		c := l.redis.(*redis.Client).Conn()
		defer func() { _ = c.Close() }()
		if err := c.Ping(ctx).Err(); err != nil {
			return d, err
		}
	} else {
		l.servers <- struct{}{}
		defer func() { <-l.servers }()
	}
	return d, (clock.Wall{}).Sleep(ctx, l.takes)
}

func (*timed) Close(context.Context) error { return nil }

func config(t *testing.T, l *timed) measure.Config {
	t.Helper()
	p := harness.Plan{Workers: 8, Seed: 1}
	p.Policy = testkit.Policy(t, "agent-api")
	p.Policy.Limit = 10 // which is crossed
	var err error
	p.Workload, err = workloads.Lookup("hot-key")
	if err != nil {
		t.Fatal(err)
	}
	meta := &strategies.Meta{
		Name: "timed", Doc: "takes its time", Form: strategies.Baseline, Kinds: quota.Kinds(),
		Options: []quota.Option{{Name: "lag", Type: "duration", Default: "0s"}},
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			if l.servers == nil {
				l.redis = strategies.Redis(env)
			}
			return l, nil
		},
	}
	if l.servers == nil {
		meta.Needs = []strategies.Need{strategies.NeedRedis}
		redis := storetest.EmbeddedRedis(t)
		p.Stores = stores.NewSet()
		if err := p.Stores.Add("redis", redis); err != nil {
			t.Fatal(err)
		}
	}
	sel, err := meta.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Strategies = []strategies.Selection{sel}
	return measure.Config{Plan: p, Rounds: 2, NoReference: true}
}

// counting sees the order of the runs.
type counting struct {
	measure.Observer
	begun int
	ran   []string
}

func (c *counting) Begin(runs int)                { c.begun += runs }
func (c *counting) Running(name string, _, _ int) { c.ran = append(c.ran, name) }
func (*counting) Filling(float64)                 {}
func (*counting) SoFar([]results.Run)             {}
func (*counting) Done(results.Run)                {}
func (*counting) EndRound()                       {}

// speeds keeps the decisions per second of the last run at each rate, whether its timings
// count or not.
type speeds struct {
	counting
	perS map[float64]float64
}

func (s *speeds) Done(r results.Run) { s.perS[r.Params.RatePerS] = r.ThroughputPerS }

// TestPoolsByLittle sweeps the pool of 8 callers whose decisions take 4 ms each: no connection serves more of them than
// it can, and callers wait for one if there are fewer than 8.
func TestPoolsByLittle(t *testing.T) {
	const takes = 4 * time.Millisecond
	c := config(t, &timed{takes: takes})
	c.Requests = 40
	c.Rounds = 2
	seen := &counting{}
	c.Observer = seen
	params, err := sweep.ParseAll([]string{"pool=1..16x2"})
	if err != nil {
		t.Fatal(err)
	}
	points, err := sweep.Points(c, params)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sweep.Measure(t.Context(), points)
	if err != nil || r.Interrupted || len(r.Runs) != 10 || seen.begun != 10 {
		t.Fatalf("%d runs of %d, %v", len(r.Runs), seen.begun, err)
	}
	rounds := [][]string{seen.ran[:5], seen.ran[5:]}
	if slices.Equal(rounds[0], rounds[1]) {
		t.Errorf("both rounds have one order: %q", rounds[0])
	}
	for _, order := range rounds {
		slices.Sort(order)
		if len(slices.Compact(order)) != 5 {
			t.Errorf("a round has %q", order)
		}
	}
	for i := range r.Runs { // planted times count whatever the machine is busy with
		r.Runs[i].Audit = results.Audit{Valid: r.Runs[i].Audit.Valid}
	}
	f := results.File{Runs: r.Runs, Sweep: &results.Sweep{Parameters: params}}
	s := f.SweepSeries()
	if len(s) != 1 || s[0].Strategy != "timed" || len(s[0].Points) != 5 {
		t.Fatalf("series %+v", s)
	}
	for _, p := range s[0].Points {
		if !p.Summary.Counts() || p.Summary.PoolWait == nil {
			t.Fatalf("pool of %s: audit %+v", p.Value, p.Summary.Audit)
		}
		if wait := p.Summary.PoolWait; (wait.MeanNS.Value > 0) != (p.X < 8) {
			t.Errorf("pool of %s: a wait of %v ns", p.Value, wait.MeanNS.Value)
		}
		if most := min(p.X, 8) / takes.Seconds(); p.Summary.Throughput.Value > most {
			t.Errorf("pool of %s: %v decisions/s, at most %v are possible", p.Value, p.Summary.Throughput.Value, most)
		}
	}
}

// TestSearchFindsThePlantedEdge: the condition holds up to 3000/s and not above, so
// the two rates that the search ends with enclose it closely.
func TestSearchFindsThePlantedEdge(t *testing.T) {
	edges := []struct{ edge, low, high float64 }{{3000, 1000, 20000}, {100, 1000, 20000}, {90000, 1000, 20000},
		{3000, 0, 0}}
	for _, x := range edges[:testenv.Pick(3, 4)] {
		c := config(t, &timed{servers: make(chan struct{}, 8)})
		c.Requests = 20
		c.Rounds = 1
		seen := &counting{}
		c.Observer = seen
		s := &sweep.Search{Config: c, Low: x.low, High: x.high, Holds: func(_ *results.File, s *results.Summary) bool {
			return s.Params.RatePerS <= x.edge
		}}
		r, err := s.Measure(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		holds := 0.0
		fails := 1e12
		rounds := map[float64]int{}
		for i := range r.Runs {
			p := r.Runs[i].Params
			rounds[p.RatePerS]++
			if p.Point[sweep.Rate] != fmt.Sprint(p.RatePerS) || p.Loop != codes.OpenLoop ||
				r.Runs[i].Repetition != rounds[p.RatePerS] {
				t.Errorf("%+v, round %d", p, r.Runs[i].Repetition)
			}
			if p.RatePerS <= x.edge {
				holds = max(holds, p.RatePerS)
			} else {
				fails = min(fails, p.RatePerS)
			}
		}
		switch x.edge {
		case 100:
			if len(rounds) != 1 || holds != 0 || fails != x.low || rounds[x.low] != 2 {
				t.Errorf("even the lowest fails: measured %v", rounds)
			}
		case 90000:
			if holds != x.high || fails != 1e12 {
				t.Errorf("even the highest holds: measured %v", rounds)
			}
		default:
			if fails/holds > 1.05 || rounds[holds] != 2 || rounds[fails] != 2 || seen.begun == 0 {
				t.Errorf("the edge at %v is between %v and %v, measured %v", x.edge, holds, fails, rounds)
			}
		}
		if record := s.Sweep(); len(record.Parameters) != 1 || record.Parameters[0].Name != sweep.Rate ||
			len(record.Parameters[0].Values) != 2 || !record.Search {
			t.Errorf("sweep %+v", record)
		}
	}
}

// TestSearchOfACapacity: two servers that take 2 ms for a request decide on at most
// 1000/s, whatever the machine does. A machine on which not even the lowest rate holds is
// given more time for a request, and as much lower rates.
func TestSearchOfACapacity(t *testing.T) {
	for takes := 2 * time.Millisecond; ; takes *= 2 {
		c := config(t, &timed{servers: make(chan struct{}, 2), takes: takes})
		c.Requests = 60
		c.Rounds = 1
		c.Arrivals = "constant"
		capacity := 2 / takes.Seconds()
		seen := &speeds{perS: map[float64]float64{}}
		c.Observer = seen
		keepsUp := func(_ *results.File, s *results.Summary) bool {
			return seen.perS[s.Params.RatePerS] >= 0.8*s.Params.RatePerS
		}
		s := &sweep.Search{Config: c, Low: capacity / testenv.Pick(4., 10.), High: 8 * capacity, Within: 0.5, Holds: keepsUp}
		r, err := s.Measure(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		best := 0.0
		for _, x := range results.Summarise(r.Runs) {
			if keepsUp(nil, &x) {
				best = max(best, x.Params.RatePerS)
			}
		}
		if best > capacity/0.8 {
			t.Errorf("the highest rate that holds is %v/s, and %v/s can be served", best, capacity)
		}
		if best >= s.Low || t.Failed() {
			return
		}
		if takes > time.Second/4 {
			t.Fatalf("of requests that take %v this machine does not serve %v/s", takes, s.Low)
		}
	}
}

// TestNonsense: what makes no sense is an error before anything runs.
func TestNonsense(t *testing.T) {
	c := config(t, &timed{servers: make(chan struct{}, 1)})
	for _, x := range []struct {
		params []string
		change func(*measure.Config)
		says   string
	}{
		{[]string{"wrkers=1,2"}, nil, "did you mean workers"},
		{[]string{"workers=0"}, nil, "whole number from 1 to 20000"},
		{[]string{"life=soon"}, nil, "give a time from 0"},
		{[]string{"pool=0"}, nil, "option pool: 0 is not from 1 to"},
		{[]string{"cold=perhaps"}, nil, "option cold"},
		{[]string{"workers=1.5"}, nil, "whole number"},
		{[]string{"workers=30000"}, nil, "workers"},
		{[]string{"lag=soon"}, nil, "lag"},
		{[]string{"other.lag=1s"}, nil, "unknown parameter"},
		{[]string{"workers=1", "instances=2"}, nil, "each needs one"},
		{[]string{"rate=100"}, func(c *measure.Config) { c.Load = harness.Closed() }, "open loop"},
		{[]string{"rate=100"}, func(c *measure.Config) {
			c.Load = harness.Load{Loop: harness.Both, PerSecond: 5}
		}, "open loop"},
		{[]string{"workers=1..90+1", "pool=1..90+1"}, nil, "combinations"},
		{[]string{"workers=1..80+1"}, func(c *measure.Config) { c.Rounds = 1000 }, "runs"},
	} {
		own := c
		if x.change != nil {
			x.change(&own)
		}
		params, err := sweep.ParseAll(x.params)
		if err == nil {
			_, err = sweep.Points(own, params)
		}
		if err == nil || !strings.Contains(err.Error(), x.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", x.params, err)
		}
	}
	for _, texts := range [][]string{nil, {"workers=1", "workers=2"}, {"workers=1", "pool=1", "limit=1"}} {
		if p, err := sweep.ParseAll(texts); err == nil {
			t.Errorf("%q is taken for %+v", texts, p)
		}
	}
}

// TestPoints: each point is the base with its values in place, and the base stays what it
// was.
func TestPoints(t *testing.T) {
	c := config(t, &timed{servers: make(chan struct{}, 1)})
	params, err := sweep.ParseAll([]string{"lag=0s,1s", "cost=1,2"})
	if err != nil {
		t.Fatal(err)
	}
	points, err := sweep.Points(c, params)
	if err != nil || len(points) != 4 {
		t.Fatalf("%d points, %v", len(points), err)
	}
	for i, want := range []string{"timed 0s 1", "timed 0s 2", "timed:lag=1s 1s 1", "timed:lag=1s 1s 2"} {
		p := points[i]
		if got := fmt.Sprint(p.Strategies[0], " ", p.Point["lag"], " ", p.Stream.Options["cost"]); got != want ||
			p.Point["cost"] != p.Stream.Options["cost"] {
			t.Errorf("point %d is %q, want %q", i, got, want)
		}
	}
	if c.Strategies[0].String() != "timed" || c.Stream.Options["cost"] != "" || c.Point != nil {
		t.Errorf("the base is changed: %+v", c)
	}
}

// TestLatencyIsSwept: each point has its own network, and the base none.
func TestLatencyIsSwept(t *testing.T) {
	c := config(t, &timed{servers: make(chan struct{}, 1)})
	params, err := sweep.ParseAll([]string{"latency=0s,20ms"})
	if err != nil {
		t.Fatal(err)
	}
	points, err := sweep.Points(c, params)
	if err != nil || fmt.Sprint(points[0].Trouble, points[1].Trouble,
		c.Trouble) != "[redis:latency=0s] [redis:latency=20ms] []" {
		t.Errorf("%+v, %v", points, err)
	}
	params, err = sweep.ParseAll([]string{"latency=2"})
	if err == nil {
		_, err = sweep.Points(c, params)
	}
	if err == nil {
		t.Error("a latency without a unit")
	}
}
