package programs

import (
	"errors"
	"testing"
)

// Required reports whether QUOTABENCH_REQUIRE, a list with commas, has the name.
func Required(name string) bool { return lists(requireVariable, name) }

// Need ends a test that lacks what has the name, for the reason that err is; nil is none.
// The test fails if QUOTABENCH_REQUIRE has the name, or that of the program that is
// missing, and is skipped otherwise.
func Need(t testing.TB, name string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if Required(name) {
		t.Fatalf("%s names %s: %v", requireVariable, name, err)
	}
	if missing, ok := errors.AsType[*MissingError](err); ok {
		if Required(missing.Program.Name) {
			t.Fatalf("%s names %s: %v", requireVariable, missing.Program.Name, err)
		}
		err = missing // what a user of quotabench can do without it, a test cannot
	}
	t.Skipf("needs %s: %v", name, err)
}
