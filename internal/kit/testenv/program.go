package testenv

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/programs"
)

// Program returns the path of a program of another project, by its name in
// internal/kit/programs. A test that lacks it is skipped, and says how to install it, or fails
// if QUOTABENCH_REQUIRE has the name.
//
// Tests reach all outside programs by this function or package storetest. What every
// machine has on which Go works needs neither: the base system, git and Go itself.
func Program(t testing.TB, name string) (path string) {
	t.Helper()
	return Programs(t, name)[0]
}

// Programs is as [Program], for what consists of several programs.
func Programs(t testing.TB, name string) (paths []string) {
	t.Helper()
	paths, err := programs.Named(name).Find()
	programs.Need(t, name, err)
	return paths
}

// Without runs another test of this binary twice as if a program were missing: the test must be
// skipped and say how to install the program, and must fail if QUOTABENCH_REQUIRE has the name.
func Without(t *testing.T, name, test string) {
	t.Helper()
	run := func(required string) (out string, err error) {
		cmd := exec.Command(os.Args[0], "-test.run=^"+regexp.QuoteMeta(test)+
			"$", "-test.v") //nolint:gosec // this test's own binary
		cmd.Env = append(os.Environ(), "QUOTABENCH_HIDE="+name, "QUOTABENCH_REQUIRE="+required)
		data, err := cmd.CombinedOutput()
		return string(data), err
	}
	install := programs.Named(name).Install()
	out, err := run("")
	if err != nil || !strings.Contains(out, "--- SKIP: "+test) || !strings.Contains(out, install) {
		t.Errorf("%s without %s: %v, want a skip that says %q\n%s", test, name, err, install, out)
	}
	out, err = run("another," + name)
	if err == nil || !strings.Contains(out, "--- FAIL: "+test) || !strings.Contains(out, install) {
		t.Errorf("%s without %s, which is required: %v, want a failure that says %q\n%s", test, name, err, install, out)
	}
}
