//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quotabench/quotabench/internal/host/machine"
	"github.com/quotabench/quotabench/internal/kit/clock"
)

// side is a source tree and what was built from it.
type side struct {
	root, bin string
	built     map[string]string // program by package; "" if the tree has no such package
	helps     map[string]string // of the commands, by name
}

// cli is the package of the command line. Of other packages the tests are built.
const cli = "cmd/quotabench"

// former are the paths that packages had at earlier commits, the latest first.
var former = map[string][]string{"harness/measure": {"harness"}, "oracle": {"harness/oracle"},
	"explore": {"harness/explore"}}

// folder is where the side has the package.
func (s *side) folder(pkg string) (path string, ok bool) {
	for _, text := range append([]string{pkg}, former[pkg]...) {
		path = filepath.Join(s.root, filepath.FromSlash(text))
		if files, err := filepath.Glob(filepath.Join(path, "*.go")); err == nil && len(files) > 0 {
			return path, true
		}
	}
	return "", false
}

// build builds the package's program, once.
func (s *side) build(ctx context.Context, pkg string) error {
	if _, done := s.built[pkg]; done {
		return nil
	}
	if s.built == nil {
		s.built = map[string]string{}
		s.helps = map[string]string{}
	}
	folder, ok := s.folder(pkg)
	if !ok {
		s.built[pkg] = ""
		return nil
	}
	program := filepath.Join(s.bin, "program-"+strings.ReplaceAll(pkg, "/", "-"))
	// Trimmed paths let Go's cache serve the commit, whose worktree is elsewhere each time.
	args := []string{"build", "-trimpath", "-buildvcs=false", "-o", program, "."}
	if pkg != cli {
		args = []string{"test", "-c", "-trimpath", "-buildvcs=false", "-o", program, "."}
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s does not build: %w: %s", folder, err, out)
	}
	if _, err := os.Stat(program); err != nil { // a package without tests
		program = ""
	}
	s.built[pkg] = program
	return nil
}

// knows reports whether a command of the side has the flag.
func (s *side) knows(ctx context.Context, command, flag string) (bool, error) {
	if _, asked := s.helps[command]; !asked {
		out, err := exec.CommandContext(ctx, s.built[cli], command, "--help-all").Output()
		if err != nil { // a build whose --help shows all flags
			out, err = exec.CommandContext(ctx, s.built[cli], command, "--help").Output()
		}
		if err != nil {
			return false, fmt.Errorf("quotabench %s --help: %w", command, err)
		}
		s.helps[command] = string(out)
	}
	return regexp.MustCompile(`(?m)^ +(-\w, )?` + regexp.QuoteMeta(flag) + `\b`).MatchString(s.helps[command]), nil
}

// output is what one run of a program left and used.
type output struct {
	dir       string // its working directory
	stdout    []byte
	wall      time.Duration
	user, cpu time.Duration // cpu is user and system
	peak      int64         // resident memory in bytes, of the largest process
	others    float64       // share of the processors that other programs took; -1 if the system does not tell
}

// execute runs a program to its end. An interruption is passed on, so that it can stop
// what it started. If the program fails there is an output in addition to the error.
func execute(ctx context.Context, dir, program string, args ...string) (*output, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir = dir
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	// A group of its own: Ctrl-C would reach it twice, and end it at once.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	before := machine.ReadCPU()
	began := clock.Nano()
	var failed error
	if err := cmd.Run(); err != nil {
		words := lastLine(stderr.String())
		if words == "" {
			words = lastLine(stdout.String())
		}
		// Not all arguments: a password may be among them.
		failed = fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args[:min(2, len(args))], " "), err, words)
	}
	if cmd.ProcessState == nil { // it did not begin
		return nil, failed
	}
	wall := time.Duration(clock.Nano() - began)
	passed := machine.ReadCPU().Sub(before)
	out := &output{dir: dir, stdout: stdout.Bytes(), wall: wall, user: cmd.ProcessState.UserTime(), others: -1}
	out.cpu = out.user + cmd.ProcessState.SystemTime()
	if use, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		out.peak = int64(use.Maxrss) //nolint:unconvert // 32 bits on some systems
		if runtime.GOOS == "linux" {
			out.peak *= 1024
		}
	}
	if passed.Total > 0 {
		out.others = max(0, passed.Busy-out.cpu.Seconds()) / passed.Total
	}
	return out, failed
}

// noise notes what other programs took while a program ran, which had started all
// the servers that it used.
func (t *tool) noise(out *output) {
	if out.others >= 0 {
		t.others = append(t.others, out.others)
	}
}

// suffix is the number of processors that go test appends to names.
var suffix = regexp.MustCompile(`-\d+$`)

// benchmarks reads what go test -bench prints. Its keys are the benchmark's name and
// the metric's, with a blank between them.
func benchmarks(out *output) (sample, error) {
	s := sample{}
	for line := range strings.Lines(string(out.stdout)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		if _, err := strconv.ParseInt(fields[1], 10, 64); err != nil {
			continue
		}
		name := suffix.ReplaceAllString(fields[0], "")
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%q is no result of a benchmark", strings.TrimSpace(line))
			}
			s[name+" "+fields[i+1]] = value
		}
	}
	return s, nil
}

// lastLine is the last line of a text that is not empty.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// benchmark takes a sample of a side's benchmarks. The sample is empty if the side
// lacks them.
func (t *tool) benchmark(ctx context.Context, s *side, pkg, pattern, benchtime string) (sample, error) {
	program := s.built[pkg]
	if program == "" {
		return sample{}, nil
	}
	folder, _ := s.folder(pkg)
	out, err := execute(ctx, folder, program, "-test.run", "^$", "-test.bench", pattern, "-test.benchtime", benchtime,
		"-test.timeout", "10m")
	if err != nil {
		return nil, err
	}
	t.noise(out)
	return benchmarks(out)
}

// command takes a sample of a side's command line. Groups of optional arguments are
// left out if the side does not know the flag that they begin with. A command may
// find a broken guarantee (1) or discard some of its figures (3): what it recorded is
// read all the same.
func (t *tool) command(ctx context.Context, s *side, args []string, optional [][]string,
	read func(*output) (sample, error)) (got sample, err error) {
	program := s.built[cli]
	if program == "" {
		return sample{}, nil
	}
	for _, group := range optional {
		knows, err := s.knows(ctx, args[0], group[0])
		if err != nil {
			return nil, err
		}
		if knows {
			args = append(args[:len(args):len(args)], group...)
		}
	}
	dir, err := os.MkdirTemp(t.dir, "run-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	out, failed := execute(ctx, dir, program, args...)
	if code := exitCode(failed); failed != nil && code != 1 && code != 3 {
		return nil, failed
	}
	t.noise(out)
	got, err = read(out)
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	return got, nil
}
