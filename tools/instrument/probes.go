//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// group is what a probe compares, and the table that shows it.
type group int

const (
	beforeAndNow  group = iota // a commit and this tree
	theirsAndOurs              // redis-benchmark and incr-expire, both here
	sharedAndAuto              // cores that are shared and those that the harness chooses, both here
	groups
)

// probe measures one thing on two sides.
type probe struct {
	name, pkg string // the package whose program it runs
	group     group
	// open gets the two sides ready. done may be nil.
	open    func(context.Context, *tool) (left, right turn, done func() error, err error)
	metrics []metric
	// check compares what has to be the same, in place of taking samples.
	check func(context.Context, *tool) (checked, error)

	pairs int // at most; 0 for as many as are asked for
	when  when
}

// when says in which runs of the program a probe is taken. Each is taken if it is
// named.
type when int

const (
	always    when = iota
	long           // takes minutes
	onlyNamed      // explains a row of the tables, and is none
)

// Units that decide the words of a verdict.
const (
	mebibytes   = "MiB"
	allocations = "allocations"
	seconds     = "s"
	cpuSeconds  = "s of CPU"
)

// both has one turn for the commit and one for this tree.
func both(take func(context.Context, *tool, *side) (sample, error)) func(context.Context,
	*tool) (left, right turn, done func() error, err error) {
	return func(_ context.Context, t *tool) (left, right turn, done func() error, err error) {
		of := func(s *side) turn { return func(ctx context.Context) (sample, error) { return take(ctx, t, s) } }
		return of(t.base), of(t.here), nil, nil
	}
}

// bench is a probe of go test -bench.
func bench(name, pkg, pattern, benchtime string, metrics ...metric) probe {
	return probe{name: name, pkg: pkg, metrics: metrics,
		open: both(func(ctx context.Context, t *tool, s *side) (sample, error) {
			return t.benchmark(ctx, s, pkg, pattern, benchtime)
		})}
}

// alone has one turn for this tree, and none for the commit.
func alone(take func(context.Context, *tool, *side) (sample, error)) func(context.Context,
	*tool) (left, right turn, done func() error, err error) {
	return func(_ context.Context, t *tool) (left, right turn, done func() error, err error) {
		return func(context.Context) (sample, error) { return sample{}, nil },
			func(ctx context.Context) (sample, error) { return take(ctx, t, t.here) }, nil, nil
	}
}

// command is a probe of the command line. A side that does not know the flag that one
// of the optional groups begins with goes without the group.
func command(name string, args []string, optional [][]string, read func(*output) (sample, error),
	metrics ...metric) probe {
	return probe{name: name, pkg: cli, metrics: metrics,
		open: both(func(ctx context.Context, t *tool, s *side) (sample, error) {
			return t.command(ctx, s, args, optional, read)
		})}
}

// closed asks for a closed loop alone. Before the flag there was no other.
var closed = [][]string{{"--loop", "closed"}}

// onePart has a search make its first part alone, let no further client ask, simulate
// nothing that it has found, and take the time it needs. Before the flags there was no
// second part, no further client, no simulation and no limit of time.
var onePart = [][]string{{"--preemptions", "0"}, {"--asks", "0"}, {"--timeout", "0"}}

// sameEverywhere are strategies that the commit and this tree simulate alike, and
// searchedOnRedis those that both search without a server.
const (
	sameEverywhere  = "incr-expire,incr-expire-atomic,decr-expire,decr-literal"
	searchedOnRedis = "app-lock,check-then-set,decr-expire,decr-literal,fixed-window,incr-expire,incr-expire-atomic,lua-reserve,redis-hash,three-tier"
)

// in returns the probe as one that is taken at other times.
func (p probe) in(w when) probe { p.when = w; return p }

// times returns the probe with fewer pairs.
func (p probe) times(pairs int) probe { p.pairs = pairs; return p }

// measuring are the arguments of a run of a strategy on a Redis of its own.
func measuring(strategy string, more ...string) []string {
	return append([]string{"run", strategy, "--redis", "process", "--postgres", "embedded", "--rounds", "3", "--duration",
		"1s", "--out", "out"}, more...)
}

// twice, third and so on are aims: ratios to the commit.
const (
	twice   = 2
	third   = 0.3
	quarter = 0.25
)

func probes() []probe {
	return slices.Concat(simulating(), exploring(), measuringRuns(), reading(), []probe{
		{name: "same simulations", pkg: cli, check: compareSimulations},
		{name: "same counterexamples", pkg: cli, check: compareCounterexamples},
	}, explaining())
}

// simulating are the probes of sim.
func simulating() []probe {
	day := func(name, requests string) probe {
		args := []string{"sim", "three-tier", "--preset", "adr-005-day", "--out", "out"}
		what := "sim three-tier, adr-005-day, whole"
		if requests != "" {
			args = append(args, "--requests", requests)
			what = "sim three-tier, adr-005-day, " + requests + " requests"
		}
		return command(name, args, nil, rusage,
			metric{what: what, key: "wall", unit: seconds, wanted: 0.4},
			metric{what: what, key: "user", unit: cpuSeconds, wanted: 0.4},
			metric{what: what, key: "peak", unit: mebibytes, wanted: 0.4})
	}
	whole := day("whole day", "").times(1).in(long)
	whole.metrics = append(whole.metrics,
		metric{what: "sim three-tier, adr-005-day, whole: memory", key: "peak", unit: "GiB", per: 1024, limit: true,
			wanted: 1})
	return []probe{
		bench("sim commands", "harness/sim", "^BenchmarkCommands$", "500ms",
			metric{what: "counter commands in sim", key: "BenchmarkCommands/incr commands/s", unit: "1/s", more: true,
				wanted: twice},
			metric{what: "counter commands in sim", key: "BenchmarkCommands/incr allocs/op", unit: allocations},
			metric{what: "script calls in sim", key: "BenchmarkCommands/script commands/s", unit: "1/s", more: true,
				wanted: twice},
			metric{what: "script calls in sim", key: "BenchmarkCommands/script allocs/op", unit: allocations}),
		bench("sim decisions", "harness/sim", "^BenchmarkSimulated$/^incr-expire-atomic$", "500ms",
			metric{what: "decisions of incr-expire-atomic in sim, with oracle and trace",
				key: "BenchmarkSimulated/incr-expire-atomic decisions/s", unit: "1/s", more: true, wanted: twice}),
		day("sim day", "300000"),
		whole,
		command("sim all", []string{"sim", sameEverywhere, "--preset", "adr-008-month-end", "--out", "out"}, nil, rusage,
			metric{what: "sim of 4 strategies", key: "wall", unit: seconds, wanted: 0.55},
			metric{what: "sim of 4 strategies", key: "user", unit: cpuSeconds}).times(3),
		{name: "sim on all cores", pkg: cli, open: alone(simulateOnAllCores), metrics: []metric{
			{what: "sim of 4 strategies on all cores", key: "wall by one core's", unit: "--parallel 1", limit: true,
				wanted: 0.6},
			{what: "files that differ between the two", key: "files that differ", unit: "files", limit: true},
		}},
	}
}

// exploring are the probes of explore.
func exploring() []probe {
	search := func(name, what string, args ...string) probe {
		return command(name, append([]string{"explore"}, append(args, "--property", "leak", "--json")...), onePart, searches,
			metric{what: what, key: "wall", unit: seconds, wanted: quarter},
			metric{what: what, key: "user", unit: cpuSeconds},
			metric{what: what, key: "states", unit: "states"})
	}
	memory := func(name, states string) probe {
		p := search(name, "search of three-tier, 3 clients, "+states+
			" states", "three-tier", "--clients", "3", "--max-states", states).times(1)
		p.metrics = append(p.metrics, metric{what: "search of three-tier, 3 clients, " + states +
			" states", key: "peak", unit: mebibytes, wanted: 0.5})
		return p
	}
	return []probe{
		command("five clients", []string{"explore", "check-then-set", "--clients", "5", "--limit", "1", "--full", "--json"},
			nil, rusage,
			metric{what: "all 31,320 schedules of 5 clients, limit 1", key: "wall", unit: seconds, wanted: third},
			metric{what: "all 31,320 schedules of 5 clients, limit 1", key: "user", unit: cpuSeconds}),
		bench("schedules", "explore", "^BenchmarkSchedules$", "500ms",
			metric{what: "schedules of check-then-set, 4 clients", key: "BenchmarkSchedules schedules/s", unit: "1/s",
				more: true, wanted: 3},
			metric{what: "schedules of check-then-set, 4 clients, in all", key: "BenchmarkSchedules allocs/op",
				unit: allocations}),
		search("search three-tier", "search of three-tier, 3 clients, 50,000 states", "three-tier", "--clients", "3",
			"--max-states", "50000").times(3),
		search("search lua-reserve", "search of lua-reserve, 3 clients", "lua-reserve", "--clients", "3"),
		search("search all", "search of 10 strategies, 20,000 states each", searchedOnRedis, "--max-states", "20000"),
		memory("search memory", "200000"),
		memory("search memory 1M", "1000000").in(long),
		{name: "search bounded", pkg: cli, open: alone(boundedSearch), metrics: []metric{
			{what: "memory of a search of 100,000 states, beyond that of one of 1,000", key: "beyond by bound",
				unit: "--max-memory 64", limit: true, wanted: 1.5},
		}, pairs: 1},
	}
}

// measuringRuns are the probes of run.
func measuringRuns() []probe {
	beside50 := besideRedisBenchmark(50)
	beside50.metrics = mark(beside50.metrics, "throughput", 0)
	return []probe{
		bench("decision", "harness/measure", "^BenchmarkDecision$", "1x",
			metric{what: "decision of unlimited", key: "BenchmarkDecision x-two-clock-pairs", unit: "2 pairs of clock readings",
				limit: true, wanted: 0.6},
			metric{what: "decision of unlimited: allocations", key: "BenchmarkDecision allocs/decision",
				unit: allocations}).times(3),
		bench("bare loop", "harness/measure", "^BenchmarkIncrExpireOverBareLoop$", "1x",
			metric{what: "incr-expire", key: "BenchmarkIncrExpireOverBareLoop x-bare-incr-loop",
				unit: "bare INCR loop, like keys", more: true, limit: true, wanted: 0.98}).times(1),
		bench("pacer", "harness/measure", "^BenchmarkPacer$", "1x",
			metric{what: "pacer at 10,000/s: processor time", key: "BenchmarkPacer cores", unit: "cores", limit: true,
				wanted: 0.2},
			metric{what: "pacer at 10,000/s: median lateness", key: "BenchmarkPacer x-sleep-lateness", unit: "time.Sleep's",
				wanted: 1}).times(3),
		beside50.times(3),
		{name: "judge", pkg: cli, open: alone(judged), pairs: 2, metrics: []metric{
			{what: "judge of a 5 s history of incr-expire", key: "judge by run", unit: "time of the run", limit: true,
				wanted: 0.1},
		}},
		longHistory("judge of 3 M decisions", "3000000"),
		longHistory("judge of 60 M decisions", "60000000").times(1).in(long),
		goBench("go bench", "go test -bench, check-then-set", "/strategy=check-then-set$").times(1),
		goBench("go bench all", "go test -bench .", ".").times(1).in(long),
	}
}

// reading are the probes of the commands that read records.
func reading() []probe {
	quick := func(name string, within float64, args ...string) probe {
		return probe{name: name, pkg: cli, pairs: 3, open: both(func(ctx context.Context, t *tool, s *side) (sample, error) {
			if s == t.base && (args[0] == "report" || args[0] == "compare") {
				return sample{}, nil // it cannot read these records
			}
			return t.command(ctx, s, records(t, args), nil, rusage)
		}), metrics: []metric{{what: name, key: "user", unit: cpuSeconds, seconds: within}}}
	}
	return []probe{
		quick("report of a run", 1, "report", "run"),
		quick("report of everything", 5, "report", "run", "run-rolling", "run-services", "run-slow", "run-uploads", "first",
			"explore", "explore-faults", "sim-month-end", "sim-regions"),
		quick("compare", 1, "compare", "run", "run"),
		quick("list", 1, "list"),
		quick("doctor", 1, "doctor"),
	}
}

// explaining are probes whose rows belong to no table, for whoever looks for the cause
// of one that does.
func explaining() []probe {
	open := func(rate string) probe {
		return command("open loop "+rate, measuring("incr-expire", "--workload", "steady", "--rate", rate), nil, results,
			metric{what: "open loop, " + rate + "/s: response p50", key: "response p50", unit: "µs", per: 1e3},
			metric{what: "open loop, " + rate + "/s: response p99", key: "response p99", unit: "µs", per: 1e3}).in(onlyNamed)
	}
	all := []probe{
		command("unlimited", []string{"run", "unlimited", "--redis", "embedded", "--postgres", "embedded", "--rounds", "3",
			"--duration", "1s", "--out", "out"}, closed, results,
			metric{what: "run unlimited: CPU per decision", key: "client CPU", unit: "ns"},
			metric{what: "run unlimited: throughput", key: "throughput", unit: "1/s", more: true}).in(onlyNamed),
		command("closed loop", measuring("incr-expire", "--workers", "50"), closed, results,
			metric{what: "closed loop, 50 workers: service p50", key: "service p50", unit: "µs", per: 1e3},
			metric{what: "closed loop, 50 workers: service p99", key: "service p99", unit: "µs", per: 1e3},
			metric{what: "closed loop, 50 workers: throughput", key: "throughput", unit: "1/s", more: true},
			metric{what: "bare loop, 50 workers", key: "bare loop", unit: "1/s", more: true},
			metric{what: "throughput by the bare loop's", key: "by bare loop", unit: "ratio", more: true}).in(onlyNamed),
		open("2000"),
		open("20000"),
	}
	for _, clients := range []int{1, 4, 16, 200} {
		all = append(all, besideRedisBenchmark(clients).in(onlyNamed))
	}
	return append(all, placements().in(onlyNamed))
}

// mark sets what is wanted of the metrics whose name ends so.
func mark(metrics []metric, suffix string, wanted float64) []metric {
	for i := range metrics {
		if strings.HasSuffix(metrics[i].what, suffix) {
			metrics[i].wanted = wanted
		}
	}
	return metrics
}

// rusage is what the system counted.
func rusage(out *output) (sample, error) {
	return sample{"wall": out.wall.Seconds(), "user": out.user.Seconds(), "peak": float64(out.peak) / (1 << 20)}, nil
}

// searches reads the JSON of explorations: schema 1 and 2 agree in what is read.
func searches(out *output) (sample, error) {
	var file struct {
		Searches []struct{ Runs, States int64 }
	}
	if err := json.Unmarshal(out.stdout, &file); err != nil {
		return nil, fmt.Errorf("exploration: %w", err)
	}
	var runs, states int64
	for _, s := range file.Searches {
		runs += s.Runs
		states += s.States
	}
	if runs == 0 {
		return nil, fmt.Errorf("exploration: %d searches, and no schedule", len(file.Searches))
	}
	return sample{
		"wall": out.wall.Seconds(), "user": out.cpu.Seconds(), "states": float64(states),
		"peak": float64(out.peak) / (1 << 20),
	}, nil
}

type percentiles struct{ P50, P99 float64 }

// recorded is what results.json of both schemas holds of a run.
type recorded struct {
	Params     struct{ Loop string }
	Throughput float64      `json:"throughput_per_s"`
	Reference  float64      `json:"reference_per_s"`
	Latency    *percentiles `json:"latency_ns"` // schema 1: response times of an open loop, service times of a closed one
	Service    *percentiles `json:"service_ns"`
	Response   *percentiles `json:"response_ns"`
	Cost       struct {
		Client float64 `json:"client_cpu_ns"`
	}
	Placement struct{ Harness, Stores string }
}

// read returns the runs of a results.json, with times if schema 2 has them.
func read(out *output) ([]recorded, error) {
	text, err := os.ReadFile(filepath.Join(out.dir, "out", "results.json"))
	if err != nil {
		return nil, err
	}
	var file struct {
		Schema int
		Runs   []recorded
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("results.json: %w", err)
	}
	if file.Schema != 1 && file.Schema != 2 || len(file.Runs) == 0 {
		return nil, fmt.Errorf("results.json: schema %d with %d runs cannot be read here", file.Schema, len(file.Runs))
	}
	for i := range file.Runs {
		recorded := &file.Runs[i]
		switch {
		case file.Schema == 2:
		case recorded.Params.Loop == "open":
			recorded.Response = recorded.Latency
		default:
			recorded.Service = recorded.Latency
		}
	}
	return file.Runs, nil
}

// results takes the medians over the rounds. Times are nanoseconds.
func results(out *output) (sample, error) {
	runs, err := read(out)
	if err != nil {
		return nil, err
	}
	values := map[string][]float64{}
	for _, recorded := range runs {
		put := func(key string, value float64) { values[key] = append(values[key], value) }
		put("throughput", recorded.Throughput)
		put("client CPU", recorded.Cost.Client)
		if recorded.Reference > 0 {
			put("bare loop", recorded.Reference)
			put("by bare loop", recorded.Throughput/recorded.Reference)
		}
		for name, p := range map[string]*percentiles{"service": recorded.Service, "response": recorded.Response} {
			if p != nil {
				put(name+" p50", p.P50)
				put(name+" p99", p.P99)
			}
		}
	}
	s := sample{}
	for key, v := range values {
		s[key] = median(v)
	}
	return s, nil
}
