//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// perDecision is how long a decision of a ten-minute run of 60 million takes.
const perDecision = 10 * time.Minute / 60_000_000

// inTemporary calls f with a directory that is removed afterwards.
func (t *tool) inTemporary(f func(dir string) (sample, error)) (got sample, err error) {
	dir, err := os.MkdirTemp(t.dir, "run-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return f(dir)
}

// simulateOnAllCores runs the same simulations on one core and on all, and compares how
// long that took and every file that was written.
func simulateOnAllCores(ctx context.Context, t *tool, s *side) (sample, error) {
	return t.inTemporary(func(dir string) (sample, error) {
		walls := map[string]float64{}
		for _, parallel := range []string{"1", "0"} {
			out, err := execute(ctx, dir, s.built[cli], "sim", sameEverywhere, "--preset", "adr-008-month-end", "--parallel",
				parallel, "--out", parallel)
			if err != nil && exitCode(err) != 1 && exitCode(err) != 3 {
				return nil, err
			}
			walls[parallel] = out.wall.Seconds()
		}
		differ, err := differing(filepath.Join(dir, "1"), filepath.Join(dir, "0"))
		return sample{"wall by one core's": walls["0"] / walls["1"], "files that differ": float64(differ)}, err
	})
}

// differing counts the files that are not the same in two directories. When and by
// which command they were made, which provenance.json says, does not count.
func differing(a, b string) (n int, err error) {
	names := map[string]bool{}
	for _, dir := range []string{a, b} {
		files, err := os.ReadDir(dir)
		if err != nil {
			return 0, err
		}
		for _, entry := range files {
			names[entry.Name()] = true
		}
	}
	for _, name := range []string{"provenance.json", "report.html"} { // which have the time and the arguments
		delete(names, name)
	}
	if len(names) == 0 {
		return 0, fmt.Errorf("%s is empty", a)
	}
	for name := range names {
		var texts [2][]byte
		for i, dir := range []string{a, b} {
			texts[i], err = os.ReadFile(filepath.Join(dir, name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return 0, err
			}
		}
		if texts[0] == nil || texts[1] == nil || !bytes.Equal(texts[0], texts[1]) {
			n++
		}
	}
	return n, nil
}

// boundedSearch says by how much a search that may take so much memory for states is
// larger than one of hardly any state.
func boundedSearch(ctx context.Context, t *tool, s *side) (sample, error) {
	const bound = 64 // MiB
	peak := map[string]float64{}
	for _, states := range []string{"1000", "100000"} {
		got, err := t.command(ctx, s, []string{
			"explore", "three-tier", "--clients", "3", "--property", "leak", "--max-states", states, "--max-memory",
			strconv.Itoa(bound), "--json",
		}, onePart, searches)
		if err != nil {
			return nil, err
		}
		peak[states] = got["peak"]
	}
	return sample{"beyond by bound": (peak["100000"] - peak["1000"]) / bound}, nil
}

// judged measures a strategy, keeps the history, and judges it.
func judged(ctx context.Context, t *tool, s *side) (sample, error) {
	return t.inTemporary(func(dir string) (sample, error) {
		const lasts = 5 * time.Second
		_, err := execute(ctx, dir, s.built[cli], "run", "incr-expire", "--loop", "closed", "--rounds", "1", "--duration",
			lasts.String(),
			"--redis", "process", "--postgres", "embedded", "--out", "out", "--history", "kept")
		if err != nil && exitCode(err) != 3 {
			return nil, err
		}
		files, err := filepath.Glob(filepath.Join(dir, "kept", "*"))
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, errors.New("the run kept no history")
		}
		out, err := execute(ctx, dir, s.built[cli], append([]string{"judge", "--json"}, files...)...)
		if err != nil {
			return nil, err
		}
		return sample{"judge by run": out.wall.Seconds() / lasts.Seconds()}, nil
	})
}

// longHistory judges a history of many decisions, as the oracle's own test makes it.
func longHistory(name, events string) probe {
	return probe{name: name, pkg: "oracle", pairs: 3,
		open: both(func(ctx context.Context, t *tool, s *side) (sample, error) {
			program := s.built["oracle"]
			folder, ok := s.folder("oracle")
			if program == "" || !ok {
				return sample{}, nil
			}
			out, err := execute(ctx, folder, "env", "QUOTABENCH_LONG_EVENTS="+
				events, program, "-test.run", "^TestManyEvents$", "-test.v", "-test.timeout", "10m")
			if err != nil {
				return nil, err
			}
			return longJudged(string(out.stdout))
		}), metrics: []metric{
			{what: name, key: "judge by run", unit: "run of 100,000/s", limit: true, wanted: 0.1},
			{what: name + ": memory", key: "GiB", unit: "GiB", limit: true, wanted: 1},
		}}
}

var judgedLine = regexp.MustCompile(`(\d+) events: recorded in \S+ \(\d+ MiB\), judged in (\S+) \((\d+) MiB\)`)

// longJudged reads what TestManyEvents logs. The sample is empty if there is no such
// test.
func longJudged(text string) (sample, error) {
	texts := judgedLine.FindStringSubmatch(text)
	if texts == nil {
		return sample{}, nil
	}
	events, err := strconv.ParseFloat(texts[1], 64)
	took, err2 := time.ParseDuration(texts[2])
	mebi, err3 := strconv.ParseFloat(texts[3], 64)
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, fmt.Errorf("%q: %w", texts[0], err)
	}
	return sample{"judge by run": float64(took) / (events * float64(perDecision)), "GiB": mebi / 1024}, nil
}

// root is the package of go test -bench.
const root = "."

// goBench is how long go test -bench takes as a user types it, without building.
func goBench(name, what, pattern string) probe {
	return probe{name: name, pkg: root, open: both(func(ctx context.Context, t *tool, s *side) (sample, error) {
		program := s.built[root]
		if program == "" {
			return sample{}, nil
		}
		out, err := execute(ctx, s.root, program, "-test.run", "^$", "-test.bench", pattern, "-test.timeout", "30m")
		if err != nil {
			return nil, err
		}
		t.noise(out)
		got, err := benchmarks(out)
		if err == nil && len(got) == 0 {
			err = fmt.Errorf("go test -bench %s: no benchmark ran", pattern)
		}
		units := map[string]bool{}
		for key := range got {
			units[key[strings.LastIndexByte(key, ' ')+1:]] = true
		}
		return sample{"wall": out.wall.Seconds(), "kinds": float64(len(units)), "benchmarks": float64(len(got))}, err
	}), metrics: []metric{
		{what: what, key: "wall", unit: seconds, wanted: 0.35},
		{what: what, key: "kinds", unit: "kinds of figures", more: true, wanted: 1},
	}}
}

// records replaces the names of reference results by their paths, and has a report
// written next to them if it is removed.
func records(t *tool, args []string) []string {
	out := args[:1:1]
	for _, name := range args[1:] {
		out = append(out, filepath.Join(t.here.root, "results", "baseline", name))
	}
	return out
}
