package sim_test

import (
	"bytes"
	"context"
	"reflect"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/plot"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	_ "github.com/quotabench/quotabench/stores/container" // what traces are compared with
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
)

// mixed is a run with everything in it that could tell two runs apart: jobs,
// regions, clocks that differ, expiry, a pipeline, scripts, a hot key.
func mixed(t testing.TB) sim.Config {
	cfg := config(t, "three-tier,redis-hash,lua-reserve,incr-expire,incr-expire-atomic,decr-expire,check-then-set,fixed-window", "agent-api", "steady")
	cfg.Start = time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC) // after any server's own clock
	cfg.Policy.Limit = 20
	cfg.Stream.Set("subjects", 30)
	cfg.Load, cfg.Duration = harness.OpenAt(2_000), testenv.Pick[time.Duration](100, 200)*time.Millisecond
	cfg.Instances = 2
	cfg.Topology = sim.Topology{Regions: []string{"a", "b"}}
	cfg.Trouble = trouble.List{trouble.ClockAhead(1, time.Millisecond)}
	cfg.Every = 50 * time.Millisecond
	cfg.Tracked = 10
	return cfg
}

func TestOneSeedOneTrace(t *testing.T) {
	testenv.Sequential(t)
	want := traces(run(t, mixed(t)))
	other := mixed(t)
	other.Seed++
	for i, h := range traces(run(t, other)) {
		if h == want[i] {
			t.Errorf("run %d has the same trace under another seed", i)
		}
	}
	metered := mixed(t)
	metered.CPU = true
	metered.Strategies = metered.Strategies[:2] // each is simulated four times
	timed := run(t, metered)
	same(t, "while its processor time is measured", timed, want)
	for i := range timed.Runs {
		if r := &timed.Runs[i]; (r.Cost.ClientCPU > 0) != (clock.Processor() > 0) {
			t.Errorf("%s: %g ns of processor time", r.Strategy, r.Cost.ClientCPU)
		}
	}
	shown := mixed(t)
	shown.Live = new(sim.Live)
	same(t, "while it is shown", run(t, shown), want)
	for _, f := range shown.Live.Figures() {
		if f.Judged == nil || f.Sample.AtNS == 0 {
			t.Errorf("%s was not shown: %+v", f.Strategy, f)
		}
	}
	for _, procs := range []int{1, 2} {
		before := runtime.GOMAXPROCS(procs)
		for range repeats(1) {
			same(t, "with "+strconv.Itoa(procs)+" processors", run(t, mixed(t)), want)
		}
		runtime.GOMAXPROCS(before)
	}
}

// However many strategies are simulated at the same time, the report is the same.
func TestParallelReport(t *testing.T) {
	var want *sim.Report
	for _, parallel := range []int{1, 3, 100} {
		cfg := mixed(t)
		cfg.Parallel = parallel
		got := run(t, cfg)
		if want == nil {
			want = got
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("the report of %d at the same time differs from that of one", parallel)
		}
	}
}

// The table that stands in for Redis is believed because a real server, asked
// the same, leads to the same run step by step.
func TestOneTraceOverARealServer(t *testing.T) {
	testenv.Sequential(t)
	server := storetest.Redis(t)
	want := traces(run(t, mixed(t)))
	runs := repeats(1)
	for range runs {
		cfg := mixed(t)
		cfg.Stores = setOf(t, server)
		same(t, "over a real server", run(t, cfg), want)
	}
	t.Logf("%d runs over %s", runs, server.Info().Version)
}

// A day of ADR-005, shortened, has one trace over the table, a server of this
// machine and one in a container.
func TestOneTraceOfADay(t *testing.T) {
	testenv.Sequential(t)
	day := func() sim.Config {
		preset, err := sim.LookupPreset("adr-005-day")
		if err != nil {
			t.Fatal(err)
		}
		cfg := sim.Config{}
		if err := preset.Set(&cfg); err != nil {
			t.Fatal(err)
		}
		cfg.Strategies, err = strategies.Parse("three-tier")
		if err != nil {
			t.Fatal(err)
		}
		cfg.Requests = 2_000
		cfg.Every = -1
		return cfg
	}
	want := traces(run(t, day()))
	for _, server := range []*redisstore.Store{storetest.Redis(t), storetest.ContainerRedis(t)} {
		cfg := day()
		cfg.Stores = setOf(t, server)
		same(t, string(server.Info().Kind), run(t, cfg), want)
	}
}

// Keys that expire in virtual time expire on the real server too.
func TestExpiryReachesARealServer(t *testing.T) {
	testenv.Sequential(t)
	cfg := config(t, "incr-expire,three-tier", "agent-api", "steady")
	cfg.Start = time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC)
	cfg.Policy.Limit = 5
	cfg.Stream.Set("subjects", 20)
	cfg.Load = harness.OpenAt(0.01)
	cfg.Duration = 20 * time.Hour
	cfg.Every = -1
	want := traces(run(t, cfg))
	cfg.Stores = setOf(t, storetest.Redis(t))
	same(t, "over a real server", run(t, cfg), want)
}

// traces are the hashes of all that happened, of each run.
func traces(r *sim.Report) (out []string) {
	for i := range r.Runs {
		out = append(out, r.Runs[i].Trace)
	}
	return out
}

func same(t testing.TB, how string, r *sim.Report, want []string) {
	t.Helper()
	for i, h := range traces(r) {
		if !r.Runs[i].Audit.Valid {
			t.Fatalf("%s: %v", r.Runs[i].Params.Label, r.Runs[i].Audit.Reasons)
		}
		if h != want[i] {
			t.Errorf("%s: trace %s %s, want %s", r.Runs[i].Params.Label, h, how, want[i])
		}
	}
}

func TestTwoRunsGiveTheSameBytes(t *testing.T) {
	testenv.Sequential(t)
	var first [3][]byte
	for i := range 2 {
		r := run(t, mixed(t))
		file, err := codec.Encode(results.File{Kind: results.Simulated, Seed: 7, Runs: r.Runs})
		if err != nil {
			t.Fatal(err)
		}
		series, err := codec.SeriesJSON(r.Series)
		if err != nil {
			t.Fatal(err)
		}
		drawing, err := plot.Series(r.Series[0])
		if err != nil {
			t.Fatal(err)
		}
		svg, err := drawing.SVG()
		if err != nil {
			t.Fatal(err)
		}
		for k, b := range [][]byte{file, series, svg} {
			if i == 1 && !bytes.Equal(b, first[k]) {
				t.Errorf("file %d differs between two runs", k)
			}
			first[k] = b
		}
	}
}

// Processor time is that of the least of four simulations, so a strategy is opened four times as often.
func TestProcessorTimeIsOfFour(t *testing.T) {
	opened := func(cpu bool) (n int) {
		cfg := mixed(t)
		cfg.CPU = cpu
		cfg.Parallel = 1
		cfg.Strategies = cfg.Strategies[:1]
		m := *cfg.Strategies[0].Meta
		open := m.Open
		m.Open = func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
			n++
			return open(ctx, env)
		}
		cfg.Strategies = []strategies.Selection{{Meta: &m, Options: cfg.Strategies[0].Options}}
		run(t, cfg)
		return n
	}
	if once, timed := opened(false), opened(true); once == 0 || timed != 4*once {
		t.Errorf("opened %d times, and %d times with its processor time", once, timed)
	}
}
