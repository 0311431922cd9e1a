// Package e2e tests the program from end to end: its commands with all built-in strategies, and what is printed of them
// in the docs. A test that needs no process of its own calls [cli.Main].
package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	_ "time/tzdata" // as the program has it

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
)

// repo is the top of the repository.
const repo = "../../.."

// The program's source, and where the tests have it built.
var sourceDir, buildDir string

func TestMain(m *testing.M) {
	harness.ServeIsolated() // of commands that tests run in this process
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	storetest.Main(m, func() error { return os.RemoveAll(buildDir) })
}

func prepare() (err error) {
	sourceDir, err = filepath.Abs("..") // tests change their directory
	if err != nil {
		return err
	}
	buildDir, err = os.MkdirTemp("", "e2e-")
	return err
}

// build makes the program when the first test needs it, linked as the tests are.
var build = sync.OnceValues(func() (path string, err error) {
	// Go repeats a test if a file that it has read changes, and knows nothing of what go build reads.
	if _, err := os.ReadFile(filepath.Join(sourceDir, "main.go")); err != nil {
		return "", err
	}
	path = filepath.Join(buildDir, "quotabench")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, ".")
	cmd.Dir = sourceDir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// program is the path of the program, built once for all tests.
func program(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// execute runs the program as a process of its own. A comparison needs that: it measures the program that makes it.
func execute(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(program(t), args...)
	cmd.Stdout = &out
	cmd.Stderr = &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// The command has the built-in strategies, and every one of them can be asked
// for, listed and run, or is skipped for a reason. Without QUOTABENCH_LONG a few are run.
func TestEveryStrategy(t *testing.T) {
	testenv.Sequential(t)
	asked := testenv.Pick("incr-expire,check-then-set", "all")
	names := strings.Split(asked, ",")
	if asked == "all" {
		names = nil
		for _, m := range strategies.All() {
			names = append(names, m.Name)
		}
	}
	if len(names) == 0 {
		t.Fatal("no strategy is built in")
	}
	t.Setenv("TMPDIR", t.TempDir())
	t.Chdir(t.TempDir())
	var stdout, stderr bytes.Buffer
	// Few requests leak or not as chance will have it; broken guarantees are 1.
	code := cli.Main([]string{
		"run", asked, "--redis", "embedded", "--postgres", "embedded", "--policy", "user-links",
		"--workers", "4", "--requests", "200", "--rounds", "1", "--out", "out",
	}, &stdout, &stderr)
	if code != exit.OK {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
	f, err := codec.Read(filepath.Join("out", "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range f.Runs {
		seen[r.Strategy] = true
		if r.Issued != 200 {
			t.Errorf("%s: %d requests issued, want 200: %+v", r.Strategy, r.Issued, r.Audit)
		}
	}
	for _, s := range f.Skipped {
		seen[s.Strategy] = true
		if s.Reason == "" {
			t.Errorf("%s is skipped without a reason", s.Strategy)
		}
	}
	for _, name := range names {
		if !seen[name] {
			t.Errorf("%s was neither run nor skipped", name)
		}
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
