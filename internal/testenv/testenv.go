// Package testenv says which tests run in which build, and whether golden files are
// written.
//
// A test that takes seconds calls [Long] and runs only with -tags long, as make test-all
// does. A test in which the race detector has nothing to find, and which it makes much
// slower, calls [Sequential]. All other tests run in every build.
package testenv

import (
	"flag"
	"testing"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// Update reports whether golden files are to be written: go test -update, or make golden
// for all packages.
func Update() bool { return *update }

// Long skips the test unless it is built with -tags long.
func Long(t testing.TB) {
	t.Helper()
	if !long {
		t.Skip("long test: make test-all, or go test -tags long, runs it")
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

// Pick returns all if the test is built with -tags long, and few otherwise. It sets how
// much a test tries.
func Pick[T any](few, all T) T {
	if long {
		return all
	}
	return few
}
