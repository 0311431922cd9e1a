// Command flaky runs the tests of the module in the current directory many times on a
// busy machine and lists each test that ever failed.
//
// Every test binary is built once. In each round all of them run with shuffled tests,
// two at a time, next to one busy loop per core. GOMAXPROCS is 1 in odd rounds and 2 in
// even ones. The exit code is 1 if a test failed.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

type config struct {
	rounds, loops, parallel int
	run                     string
	race                    bool
	timeout                 time.Duration
	logs                    string
	packages                []string
}

func main() {
	var c config
	flag.IntVar(&c.rounds, "n", 20, "rounds")
	flag.IntVar(&c.loops, "loops", runtime.NumCPU(), "busy loops that run next to the tests")
	flag.IntVar(&c.parallel, "p", 2, "test binaries that run at a time")
	flag.StringVar(&c.run, "run", "", "run only tests that match this regular expression")
	flag.BoolVar(&c.race, "race", false, "use the race detector")
	flag.DurationVar(&c.timeout, "timeout", 20*time.Minute, "time limit of one binary in one round")
	flag.StringVar(&c.logs, "logs", "", "directory for the output of failed runs (default: a temporary one)")
	busy := flag.Bool("busy", false, "spin until killed; flaky starts itself with it")
	flag.Parse()
	if *busy {
		spin()
	}
	c.packages = flag.Args()
	if len(c.packages) == 0 {
		c.packages = []string{"./..."}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := c.all(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "flaky:", err)
		code = 2
	}
	os.Exit(code)
}

// spin keeps one core busy until the parent ends.
func spin() {
	parent := os.Getppid()
	for n := 0; ; n++ {
		if n%(1<<30) == 0 && os.Getppid() != parent {
			os.Exit(0)
		}
	}
}

// binary is the built test of one package.
type binary struct{ pkg, dir, path string }

func (c *config) all(ctx context.Context) (int, error) {
	dir, err := os.MkdirTemp("", "quotabench-flaky-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.MkdirAll(c.logs, 0o755); c.logs != "" && err != nil {
		return 0, err
	}
	if c.logs == "" {
		c.logs, err = os.MkdirTemp("", "quotabench-flaky-logs-")
		if err != nil {
			return 0, err
		}
	}
	bins, err := c.build(ctx, dir)
	if err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	for range c.loops {
		loop := exec.CommandContext(ctx, self, "-busy")
		loop.Env = append(os.Environ(), "GOMAXPROCS=1")
		if err := loop.Start(); err != nil {
			return 0, err
		}
		defer func() { _ = loop.Process.Kill(); _ = loop.Wait() }()
	}
	fmt.Printf("%d packages, %d rounds, %d busy loops; output of failures: %s\n", len(bins), c.rounds, c.loops, c.logs)
	failed := map[string][]string{} // test to logs
	done := 0
	for round := 1; round <= c.rounds; round++ {
		began := time.Now()
		c.round(ctx, round, bins, failed)
		if ctx.Err() != nil {
			break
		}
		done = round
		fmt.Printf("round %d of %d, GOMAXPROCS %d: %.0f s, %d tests have failed so far\n", round, c.rounds, procs(round),
			time.Since(began).Seconds(), len(failed))
	}
	return report(failed, done), ctx.Err()
}

// build compiles the tests of all packages that have some.
func (c *config) build(ctx context.Context, dir string) ([]binary, error) {
	format := `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}`
	list, err := exec.CommandContext(ctx, "go", append([]string{"list", "-f", format}, c.packages...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var bins []binary
	for i, line := range strings.Split(strings.TrimSpace(string(list)), "\n") {
		pkg, at, ok := strings.Cut(line, " ")
		if !ok {
			continue
		}
		b := binary{pkg, at, filepath.Join(dir, fmt.Sprintf("%d.test", i))}
		args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", b.path}
		if c.race {
			args = append(args, "-race")
		}
		if out, err := exec.CommandContext(ctx, "go", append(args, pkg)...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", pkg, err, out)
		}
		bins = append(bins, b)
	}
	return bins, nil
}

// procs is the GOMAXPROCS of a round.
func procs(round int) int { return 2 - round%2 }

// round runs every binary once and notes the tests that fail.
func (c *config) round(ctx context.Context, round int, bins []binary, failed map[string][]string) {
	var mutex sync.Mutex
	var group sync.WaitGroup
	slots := make(chan struct{}, c.parallel)
	for i, binary := range bins {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			tests, out := c.once(ctx, round, binary)
			if len(tests) == 0 || ctx.Err() != nil {
				return
			}
			log := filepath.Join(c.logs, fmt.Sprintf("round-%d-%d.txt", round, i))
			if err := os.WriteFile(log, out, 0o644); err != nil {
				log = err.Error()
			}
			mutex.Lock()
			defer mutex.Unlock()
			for _, test := range tests {
				failed[binary.pkg+" "+test] = append(failed[binary.pkg+" "+test], log)
				fmt.Printf("FAIL %s %s: %s\n", binary.pkg, test, log)
			}
		})
	}
	group.Wait()
}

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// once runs one binary and returns the tests that failed and its output.
func (c *config) once(ctx context.Context, round int, b binary) ([]string, []byte) {
	cmd := exec.CommandContext(ctx, b.path, "-test.shuffle=on", "-test.timeout="+c.timeout.String(), "-test.run="+c.run)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", procs(round)))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil, nil
	}
	var tests []string
	for _, datas := range failure.FindAllSubmatch(out, -1) {
		tests = append(tests, string(datas[1]))
	}
	if len(tests) == 0 || bytes.Contains(out, []byte("\npanic: ")) {
		tests = append(tests, "(the whole binary: "+err.Error()+")")
	}
	return tests, out
}

// report prints each test that failed, the most frequent first, and returns the exit code.
func report(failed map[string][]string, rounds int) int {
	if len(failed) == 0 {
		fmt.Printf("no test failed in %d complete rounds\n", rounds)
		return 0
	}
	tests := make([]string, 0, len(failed))
	for test := range failed {
		tests = append(tests, test)
	}
	slices.SortFunc(tests, func(a, b string) int {
		if n := len(failed[b]) - len(failed[a]); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	for _, test := range tests {
		fmt.Printf("%d of %d rounds: %s (%s)\n", len(failed[test]), rounds, test, failed[test][0])
	}
	return 1
}
