// Package testenv says which tests run, and whether golden files are
// written. A test binary that imports it has an environment of its own: it sees nothing of
// its caller's terminal, locale, proxies and stores.
//
// A test that takes seconds calls [Long] and runs only with QUOTABENCH_LONG=1, as in make
// test-all. Go knows which tests read a variable, so that all others keep their results and
// no test is built twice. A test in which the race detector has nothing to find, and which it makes much
// slower, calls [Sequential]. All other tests always run.
package testenv

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"testing"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// Update reports whether golden files are to be written: go test -update, or make golden
// for all packages.
func Update() bool { return *update }

// Long skips the test unless QUOTABENCH_LONG is set.
func Long(t testing.TB) {
	t.Helper()
	if !long() {
		t.Skip("long test: make test-all, or QUOTABENCH_LONG=1 go test, runs it")
	}
}

// Sequential skips the test under the race detector. The test must have nothing
// concurrent that another test does not run under it.
func Sequential(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("sequential test: runs without the race detector")
	}
}

// apart names the test for which Apart has started the process.
const apart = "QUOTABENCH_APART"

// Apart runs the test in a process of its own and reports whether this is that process. A
// test that leaves goroutines behind calls it first and returns if it reports false:
// whatever reads the stacks of all goroutines would be slower in all later tests.
func Apart(t *testing.T) bool {
	t.Helper()
	if os.Getenv(apart) == t.Name() {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+regexp.QuoteMeta(t.Name())+
		"$", "-test.v") //nolint:gosec // this test's own binary
	cmd.Env = append(os.Environ(), apart+"="+t.Name())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// Pick returns all if QUOTABENCH_LONG is set, and few otherwise. It sets how
// much a test tries.
func Pick[T any](few, all T) T {
	if long() {
		return all
	}
	return few
}

func long() bool { return os.Getenv("QUOTABENCH_LONG") != "" }
