//go:build unix

package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/host/cores"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/programs"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

// Keys of samples that runs and redis-benchmark share. Times are nanoseconds.
var sharedMetrics = []metric{
	{what: "p50", key: "service p50", unit: "µs", per: 1e3},
	{what: "p99", key: "service p99", unit: "µs", per: 1e3},
	{what: "throughput", key: "throughput", unit: "1/s", more: true},
}

func named(prefix string) []metric {
	var out []metric
	for _, metric := range sharedMetrics {
		metric.what = prefix + metric.what
		out = append(out, metric)
	}
	return out
}

// saturated are the arguments of one round of a closed loop of incr-expire.
func saturated(clients int, more ...string) []string {
	return append([]string{"run", "incr-expire", "--loop", "closed", "--workers", strconv.Itoa(clients), "--redis",
		"process", "--postgres", "embedded",
		"--rounds", "1", "--duration", "2s", "--out", "out"}, more...)
}

// besideRedisBenchmark compares a closed loop of incr-expire with redis-benchmark on
// a server that is started as the run starts its own. Both clients and both servers
// are on the same cores. Further arguments are the run's: if it does not know the
// flag there is no figure.
func besideRedisBenchmark(clients int, more ...string) probe {
	p := probe{name: fmt.Sprintf("redis-benchmark %d", clients), pkg: cli, group: theirsAndOurs,
		metrics: named(format.Plural(int64(clients), "client", "clients") + ": ")}
	p.open = func(ctx context.Context, t *tool) (theirs, ours turn, done func() error, err error) {
		program, err := programs.Named("redis-benchmark").Path()
		if err != nil {
			return nil, nil, nil, err
		}
		ours = func(ctx context.Context) (sample, error) {
			return t.command(ctx, t.here, saturated(clients, more...), nil, results)
		}
		if len(more) > 0 {
			if known, err := t.here.knows(ctx, "run", more[0]); err != nil || !known {
				none := func(context.Context) (sample, error) { return sample{}, nil }
				return none, none, nil, err
			}
		}
		// The first run says where runs are placed and how many requests 2 s are.
		var first recorded
		if _, err := t.command(ctx, t.here, saturated(clients, more...), nil, func(out *output) (sample, error) {
			runs, err := read(out)
			if err == nil {
				first = runs[0]
			}
			return nil, err
		}); err != nil {
			return nil, nil, nil, err
		}
		server, err := redis.Open(ctx, "process", stores.Options{})
		if err != nil {
			return nil, nil, nil, err
		}
		args := flagsOf(server, clients, max(10_000, int(2*first.Throughput)))
		theirs = func(ctx context.Context) (sample, error) {
			return t.loadBy(ctx, server, first.Placement.Harness, first.Placement.Stores, program, args)
		}
		return theirs, ours, server.Close, nil
	}
	return p
}

func flagsOf(server *redis.Store, clients, requests int) []string {
	options := server.Admin().Options()
	args := []string{"-c", strconv.Itoa(clients), "-n", strconv.Itoa(requests), "-t", "incr", "--csv"}
	if host, port, err := net.SplitHostPort(options.Addr); err == nil {
		args = append(args, "-h", host, "-p", port)
	}
	if options.Password != "" {
		args = append(args, "-a", options.Password)
	}
	return args
}

// loadBy runs redis-benchmark. Lists of cores that are empty leave that side where
// the system puts it.
func (t *tool) loadBy(ctx context.Context, server *redis.Store, clientOn, serverOn, program string,
	args []string) (got sample, err error) {
	if serverOn != "" {
		set, err := cores.Parse(serverOn)
		if err == nil {
			err = server.Confine(ctx, set)
		}
		if err != nil {
			return nil, err
		}
	}
	if clientOn != "" {
		set, err := cores.Parse(clientOn)
		if err != nil {
			return nil, err
		}
		free, err := cores.ConfineSelf(set) // the client inherits it
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, free()) }()
	}
	out, err := execute(ctx, t.dir, program, args...)
	if err != nil {
		return nil, err
	}
	return fromCSV(string(out.stdout))
}

// fromCSV reads what redis-benchmark --csv prints: a line of names, and one of
// figures, in milliseconds.
func fromCSV(text string) (sample, error) {
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err == nil && len(lines) != 2 {
		err = errors.New("a line of names and one of figures was expected")
	}
	if err != nil {
		return nil, fmt.Errorf("redis-benchmark printed %q: %w", text, err)
	}
	s := sample{}
	for name, to := range map[string]struct {
		key string
		by  float64
	}{"rps": {"throughput", 1}, "p50_latency_ms": {"service p50", 1e6}, "p99_latency_ms": {"service p99", 1e6}} {
		for i, title := range lines[0] {
			if title != name {
				continue
			}
			value, err := strconv.ParseFloat(lines[1][i], 64)
			if err != nil {
				return nil, fmt.Errorf("redis-benchmark's %s: %w", name, err)
			}
			s[to.key] = value * to.by
		}
		if _, ok := s[to.key]; !ok {
			return nil, fmt.Errorf("redis-benchmark printed no %s: %q: version 6.2 or newer is needed", name, text)
		}
	}
	return s, nil
}

// placements compares cores that harness and Redis share with those that the
// harness chooses.
func placements() probe {
	return probe{name: "cores", pkg: cli, group: sharedAndAuto, metrics: named("incr-expire, 50 workers: "),
		open: func(_ context.Context, t *tool) (shared, auto turn, done func() error, err error) {
			of := func(args []string) turn {
				return func(ctx context.Context) (sample, error) { return t.command(ctx, t.here, args, nil, results) }
			}
			return of(saturated(50, "--cores", "shared")), of(saturated(50)), nil, nil
		}}
}
