// Command slower counts how often sim --against is right on a busy machine: of unchanged code, and of a limiter whose
// decisions take a share more processor time. It prints a table in Markdown.
//
//	go run -C tools ./slower [-n 20] [-busy 2] [-more 20] [-requests 50000]
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
)

// The variables that tell a process of this program what it is.
const (
	turns = "SLOWER_TURNS" // quotabench with a limiter that makes so many turns of a loop in each decision
	busy  = "SLOWER_BUSY"  // a busy loop
)

// limiter is [planted] with turns of a loop.
const limiter, planted = "planted", "incr-expire-atomic"

func main() {
	if os.Getenv(busy) != "" {
		for {
			spin(1 << 20)
		}
	}
	if n, err := strconv.Atoi(os.Getenv(turns)); err == nil {
		known, _ := strategies.Lookup(planted)
		meta := *known
		open := meta.Open
		meta.Name = limiter
		meta.Core = false
		meta.Open = func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
			strategy, err := open(ctx, env)
			return &slow{strategy, n}, err
		}
		strategies.Register(meta)
		os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	times := flag.Int("n", 20, "comparisons of each kind")
	loops := flag.Int("busy", 2, "busy loops next to them")
	more := flag.Int("more", 20, "percent of processor time that a decision of the changed limiter takes more")
	requests := flag.Int("requests", 50_000, "requests of a simulation")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := compareAll(ctx, *times, *loops, *more, *requests)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "slower:", err)
		os.Exit(1)
	}
}

type slow struct {
	strategies.Strategy
	turns int
}

func (s *slow) Take(ctx context.Context, request quota.Request) (quota.Decision, error) {
	spin(s.turns)
	return s.Strategy.Take(ctx, request)
}

var sink uint64

func spin(turns int) {
	x := uint64(turns)
	for range turns {
		x = x*6364136223846793005 + 1442695040888963407
	}
	sink = x
}

// study is what is compared how often.
type study struct {
	ctx       context.Context
	dir, self string
	requests  string
}

// compareAll compares so often, next to busy loops, and prints the table.
func compareAll(ctx context.Context, times, loops, percent, requests int) error {
	dir, err := os.MkdirTemp("", "slower-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	loopsEnd, end := context.WithCancel(ctx)
	defer end()
	for range loops {
		cmd := exec.CommandContext(loopsEnd, self)
		cmd.Env = append(os.Environ(), busy+"=1")
		go server.RunWithUs(cmd)
	}
	s := &study{ctx, dir, self, strconv.Itoa(requests)}
	added, err := s.calibrate(float64(percent) / 100)
	if err != nil {
		return err
	}
	heads := []head{{name: "unchanged"}, {name: fmt.Sprintf("%d %% more", percent), turns: added}}
	for i := range times {
		for k := range heads {
			err := s.compare(i, &heads[k])
			if err != nil {
				return err
			}
		}
	}
	fmt.Println("| the head | fails | inconclusive | passes | change, middle and range |\n|---|--:|--:|--:|--:|")
	for _, head := range heads {
		fmt.Printf("| %s | %d | %d | %d | %+.1f %% (%+.1f to %+.1f) |\n", head.name, head.worse, head.unknown, head.fine,
			stat.Median(head.changes), slices.Min(head.changes), slices.Max(head.changes))
	}
	return nil
}

// head is a limiter, and what comparisons say of it.
type head struct {
	name                 string
	turns                int
	worse, unknown, fine int
	changes              []float64 // in percent
}

// sim runs a simulation of the limiter with that many turns.
func (s *study) sim(n int, dir string, more ...string) error {
	args := append([]string{"sim", limiter, "--workload", "steady:subjects=100", "--rate", "2000", "--requests",
		s.requests, "--out", dir}, more...)
	cmd := exec.CommandContext(s.ctx, s.self, args...)
	cmd.Env = append(os.Environ(), turns+"="+strconv.Itoa(n))
	said, err := cmd.CombinedOutput()
	if _, failed := err.(*exec.ExitError); failed && cmd.ProcessState.ExitCode() == exit.Gate {
		return nil
	}
	if err != nil {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return err
}

// calibrate finds the turns that add a share to the processor time of a decision.
func (s *study) calibrate(share float64) (int, error) {
	const some, times = 1000, 7
	middle := map[int]float64{}
	for _, n := range []int{0, some} {
		var all []float64
		for i := range times {
			dir := filepath.Join(s.dir, fmt.Sprintf("%d-%d", n, i))
			if err := s.sim(n, dir, "--cpu"); err != nil {
				return 0, err
			}
			file, err := codec.Read(filepath.Join(dir, "results.json"))
			if err != nil {
				return 0, err
			}
			all = append(all, file.Runs[0].Cost.ClientCPU)
		}
		middle[n] = stat.Median(all)
	}
	fmt.Fprintf(os.Stderr, "%.0f ns per decision, %.0f more with %d turns of a loop\n", middle[0], middle[some]-middle[0],
		some)
	return int(some * share * middle[0] / (middle[some] - middle[0])), nil
}

// compare compares one without turns with the head.
func (s *study) compare(i int, h *head) error {
	base := filepath.Join(s.dir, "base")
	if err := os.WriteFile(base, []byte("#!/bin/sh\n"+turns+"=0 exec '"+s.self+"' \"$@\"\n"), 0o755); err != nil {
		return err
	}
	dir := filepath.Join(s.dir, fmt.Sprintf("compared-%d-%d", h.turns, i))
	if err := s.sim(h.turns, dir, "--against", base); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(dir, "comparison.json"))
	var comparison compare.Comparison
	if err == nil {
		err = json.Unmarshal(data, &comparison)
	}
	for _, row := range comparison.Rows {
		if row.Figure != compare.ClientCPU {
			continue
		}
		switch row.Verdict {
		case compare.Worse:
			h.worse++
		case compare.Inconclusive:
			h.unknown++
		default:
			h.fine++
		}
		h.changes = append(h.changes, 100*row.Test.Change)
		fmt.Fprintf(os.Stderr, "%s: %s, %+.1f %%, %.1f %% would have been shown\n", h.name, row.Verdict, 100*row.Test.Change,
			100*row.Test.Smallest)
	}
	return err
}
