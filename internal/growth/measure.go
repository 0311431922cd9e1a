//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/machine"
)

// child is a process to measure: arguments of the command line, and what is known of it
// beforehand.
type child struct {
	line string
	x    float64
	args []string
}

// sweep is a quantity that is varied.
type sweep struct {
	name     string
	children []child
}

// The sweeps. Names are those of the record.
const (
	bySubjects = "subjects"
	byDays     = "days"
	byClients  = "clients"
	byLength   = "script"
	byStates   = "states"
)

// setUp is how many requests a simulation has that only sets its subjects up.
const setUp = 1000

// atRate are the requests per second of simulated days, and daySubjects their subjects.
const (
	atRate      = 2
	daySubjects = 1000
)

func sweeps() []sweep {
	subjects, days := sweep{name: bySubjects}, sweep{name: byDays}
	for _, strategy := range []string{"incr-expire-atomic", "three-tier"} {
		for n := 100; n <= 1_000_000; n *= 10 {
			for _, requests := range []int{setUp, 300_000} {
				subjects.children = append(subjects.children, child{strategy, float64(n), []string{
					"sim", strategy, "--policy", "agent-api", "--workload", "steady", "--rate", "5000",
					"--subjects", strconv.Itoa(n), "--requests", strconv.Itoa(requests), "--out", "out",
				}})
			}
		}
	}
	for d := 1; d <= 32; d *= 2 {
		days.children = append(days.children, child{"incr-expire-atomic", float64(d), []string{
			"sim", "incr-expire-atomic", "--policy", "agent-api", "--workload", "steady", "--rate", strconv.Itoa(atRate),
			"--subjects", strconv.Itoa(daySubjects), "--duration", fmt.Sprintf("%dh", 24*d), "--out", "out",
		}})
	}
	search := func(strategy string, x int, most string, more ...string) child {
		return child{strategy, float64(x), append([]string{
			"explore", strategy, "--property", "leak", "--preemptions", "0", "--timeout", "0", "--odds-rate", "0", "--max-states", most, "--json",
		}, more...)}
	}
	clients, length, states := sweep{name: byClients}, sweep{name: byLength}, sweep{name: byStates}
	for _, most := range []struct {
		strategy string
		clients  int
	}{{"check-then-set", 8}, {"lua-reserve", 6}, {"redis-hash", 3}} {
		for k := 2; k <= most.clients; k++ {
			clients.children = append(clients.children, search(most.strategy, k, "1000000", "--clients", strconv.Itoa(k), "--script", "take"))
		}
	}
	for _, most := range []struct {
		strategy string
		takes    int
	}{{"incr-expire", 6}, {"check-then-set", 5}, {"lua-reserve", 4}} {
		for n := 1; n <= most.takes; n++ {
			script := strings.TrimSuffix(strings.Repeat("take,", n), ",")
			length.children = append(length.children, search(most.strategy, n, "1000000", "--script", script))
		}
	}
	for _, n := range []int{1_000, 5_000, 20_000, 50_000, 100_000, 200_000} {
		states.children = append(states.children, search("three-tier", n, strconv.Itoa(n), "--clients", "3", "--script", "take"))
	}
	return []sweep{subjects, days, clients, length, states}
}

// measure runs every child once.
func measure(ctx context.Context, root string, all []sweep, stderr io.Writer) (rec *record, err error) {
	dir, err := os.MkdirTemp("", "quotabench-growth-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program := filepath.Join(dir, "quotabench")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", program, "./cmd/quotabench")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("quotabench does not build: %w: %s", err, out)
	}
	rec = &record{System: runtime.GOOS + "/" + runtime.GOARCH, Processors: runtime.NumCPU(), Go: runtime.Version()}
	before, began := machine.ReadCPU(), clock.Nano()
	own := 0.0
	for _, s := range all {
		fmt.Fprintf(stderr, "%s:", s.name)
		for i, c := range s.children {
			p, err := c.run(ctx, program, filepath.Join(dir, fmt.Sprintf("%s-%d", s.name, i)))
			if err != nil {
				fmt.Fprintln(stderr)
				return nil, err
			}
			p.Sweep = s.name
			rec.Points = append(rec.Points, *p)
			own += p.CPUSeconds
			fmt.Fprintf(stderr, " %g", c.x)
		}
		fmt.Fprintf(stderr, " (%.0f s so far)\n", time.Duration(clock.Nano()-began).Seconds())
	}
	if passed := machine.ReadCPU().Sub(before); passed.Total > 0 {
		rec.Others = math.Round(1000*max(0, passed.Busy-own)/passed.Total) / 1000
	}
	return rec, nil
}

// run measures the child in a directory of its own, which is removed. On Linux a child's
// peak is at least what its parent had when it began: this program draws after the last
// child, and is smaller than any of them until then.
func (c child) run(ctx context.Context, program, dir string) (p *point, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cmd := exec.CommandContext(ctx, program, c.args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	began := clock.Nano()
	if err := cmd.Run(); err != nil {
		// What a search or a simulation finds is no failure of it.
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 && exit.ExitCode() != 3 {
			return nil, fmt.Errorf("quotabench %s: %w: %s", strings.Join(c.args, " "), err, strings.TrimSpace(stderr.String()))
		}
	}
	p = &point{
		Line: c.line, X: c.x, Command: strings.Join(c.args, " "),
		WallSeconds: round(time.Duration(clock.Nano() - began)), CPUSeconds: round(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()),
	}
	if use, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		p.PeakBytes = int64(use.Maxrss) //nolint:unconvert // 32 bits on some systems
		if runtime.GOOS == "linux" {
			p.PeakBytes *= 1024
		}
	}
	if c.args[0] == "explore" {
		return p, p.searched(stdout.Bytes())
	}
	text, err := os.ReadFile(filepath.Join(dir, "out", "results.json"))
	if err != nil {
		return nil, fmt.Errorf("quotabench %s left no record: %w", p.Command, err)
	}
	return p, p.simulated(text)
}

func round(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// searched reads what a search counted.
func (p *point) searched(text []byte) error {
	var file struct {
		Searches []struct {
			States, Runs int64
			Capped       string
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return fmt.Errorf("%s: %w", p.Command, err)
	}
	if len(file.Searches) != 1 {
		return fmt.Errorf("%s: %d searches, and one was expected", p.Command, len(file.Searches))
	}
	s := file.Searches[0]
	p.States, p.Schedules, p.Capped = s.States, s.Runs, s.Capped != ""
	return nil
}

// simulated reads what a simulation counted.
func (p *point) simulated(text []byte) error {
	var file struct{ Runs []struct{ Issued int64 } }
	if err := json.Unmarshal(text, &file); err != nil {
		return fmt.Errorf("%s: %w", p.Command, err)
	}
	if len(file.Runs) != 1 {
		return fmt.Errorf("%s: %d runs, and one was expected", p.Command, len(file.Runs))
	}
	p.Decisions = file.Runs[0].Issued
	return nil
}
