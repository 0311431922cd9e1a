//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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
}

// Units that decide the words of a verdict.
const (
	mebibytes   = "MiB"
	allocations = "allocations"
)

// both has one turn for the commit and one for this tree.
func both(take func(context.Context, *tool, *side) (sample, error)) func(context.Context, *tool) (left, right turn, done func() error, err error) {
	return func(_ context.Context, t *tool) (left, right turn, done func() error, err error) {
		of := func(s *side) turn { return func(ctx context.Context) (sample, error) { return take(ctx, t, s) } }
		return of(t.base), of(t.here), nil, nil
	}
}

// bench is a probe of go test -bench.
func bench(name, pkg, pattern, benchtime string, metrics ...metric) probe {
	return probe{name: name, pkg: pkg, metrics: metrics, open: both(func(ctx context.Context, t *tool, s *side) (sample, error) {
		return t.benchmark(ctx, s, pkg, pattern, benchtime)
	})}
}

// command is a probe of the command line. A side that does not know the flag that
// optional begins with goes without these arguments.
func command(name string, args, optional []string, read func(*output) (sample, error), metrics ...metric) probe {
	return probe{name: name, pkg: cli, metrics: metrics, open: both(func(ctx context.Context, t *tool, s *side) (sample, error) {
		return t.command(ctx, s, args, optional, read)
	})}
}

// closed asks for a closed loop alone. Before the flag there was no other.
var closed = []string{"--loop", "closed"}

// measuring are the arguments of a run of a strategy on a Redis of its own.
func measuring(strategy string, more ...string) []string {
	return append([]string{"run", strategy, "--redis", "process", "--postgres", "embedded", "--rounds", "3", "--duration", "1s", "--out", "out"}, more...)
}

func probes() []probe {
	open := func(rate string) probe {
		return command("open loop "+rate, measuring("incr-expire", "--workload", "steady", "--rate", rate), nil, results,
			metric{what: "open loop, " + rate + "/s: response p50", key: "response p50", unit: "µs", per: 1e3},
			metric{what: "open loop, " + rate + "/s: response p99", key: "response p99", unit: "µs", per: 1e3})
	}
	all := []probe{
		bench("decision", "harness/measure", "^BenchmarkDecision$", "1x",
			metric{what: "decision of unlimited", key: "BenchmarkDecision x-two-clock-pairs", unit: "2 clock pairs"},
			metric{what: "decision of unlimited: allocations", key: "BenchmarkDecision allocs/decision", unit: allocations}),
		command("unlimited", []string{"run", "unlimited", "--redis", "embedded", "--postgres", "embedded", "--rounds", "3", "--duration", "1s", "--out", "out"}, closed, results,
			metric{what: "run unlimited: CPU per decision", key: "client CPU", unit: "ns"},
			metric{what: "run unlimited: throughput", key: "throughput", unit: "1/s", more: true}),
		command("closed loop", measuring("incr-expire", "--workers", "50"), closed, results,
			metric{what: "closed loop, 50 workers: service p50", key: "service p50", unit: "µs", per: 1e3},
			metric{what: "closed loop, 50 workers: service p99", key: "service p99", unit: "µs", per: 1e3},
			metric{what: "closed loop, 50 workers: throughput", key: "throughput", unit: "1/s", more: true},
			metric{what: "bare loop, 50 workers", key: "bare loop", unit: "1/s", more: true},
			metric{what: "throughput by the bare loop's", key: "by bare loop", unit: "ratio", more: true}),
		open("2000"),
		open("20000"),
		bench("pacer", "harness/measure", "^BenchmarkPacer$", "1x",
			metric{what: "pacer: median lateness", key: "BenchmarkPacer x-sleep-lateness", unit: "time.Sleep's"},
			metric{what: "pacer: processor time", key: "BenchmarkPacer cores", unit: "cores"}),
		bench("sim commands", "harness/sim", "^BenchmarkCommands$", "500ms",
			metric{what: "simulated commands", key: "BenchmarkCommands/incr commands/s", unit: "1/s", more: true},
			metric{what: "simulated scripts", key: "BenchmarkCommands/script commands/s", unit: "1/s", more: true}),
		bench("sim decisions", "harness/sim", "^BenchmarkSimulated$", "500ms",
			metric{what: "simulated decisions, incr-expire", key: "BenchmarkSimulated/incr-expire decisions/s", unit: "1/s", more: true},
			metric{what: "simulated decisions, incr-expire-atomic", key: "BenchmarkSimulated/incr-expire-atomic decisions/s", unit: "1/s", more: true}),
		command("sim day", []string{"sim", "three-tier", "--preset", "adr-005-day", "--requests", "300000", "--out", "out"}, nil, rusage,
			metric{what: "sim adr-005-day, 300,000 requests", key: "user", unit: "s of CPU"},
			metric{what: "sim adr-005-day, 300,000 requests", key: "peak", unit: mebibytes}),
		bench("schedules", "harness/explore", "^BenchmarkSchedules$", "500ms",
			metric{what: "schedules, check-then-set", key: "BenchmarkSchedules schedules/s", unit: "1/s", more: true}),
		command("search", []string{"explore", "three-tier", "--max-states", "20000", "--json"}, nil, searches,
			metric{what: "search of three-tier: CPU per run", key: "CPU per run", unit: "µs"}),
	}
	for _, clients := range []int{1, 4, 16, 50, 200} {
		all = append(all, besideRedisBenchmark(clients))
	}
	return append(all, placements())
}

// rusage is what the system counted.
func rusage(out *output) (sample, error) {
	return sample{"user": out.user.Seconds(), "peak": float64(out.peak) / (1 << 20)}, nil
}

// searches reads the JSON of explorations: schema 1 and 2 agree in what is read.
func searches(out *output) (sample, error) {
	var file struct{ Searches []struct{ Runs int64 } }
	if err := json.Unmarshal(out.stdout, &file); err != nil {
		return nil, fmt.Errorf("exploration: %w", err)
	}
	if len(file.Searches) != 1 || file.Searches[0].Runs == 0 {
		return nil, fmt.Errorf("exploration: %d searches", len(file.Searches))
	}
	return sample{"CPU per run": float64(out.cpu.Microseconds()) / float64(file.Searches[0].Runs)}, nil
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

// read returns the runs of a results.json, with times where schema 2 has them.
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
		r := &file.Runs[i]
		switch {
		case file.Schema == 2:
		case r.Params.Loop == "open":
			r.Response = r.Latency
		default:
			r.Service = r.Latency
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
	for _, r := range runs {
		put := func(key string, v float64) { values[key] = append(values[key], v) }
		put("throughput", r.Throughput)
		put("client CPU", r.Cost.Client)
		if r.Reference > 0 {
			put("bare loop", r.Reference)
			put("by bare loop", r.Throughput/r.Reference)
		}
		for name, p := range map[string]*percentiles{"service": r.Service, "response": r.Response} {
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
