package cli

import (
	"github.com/quotabench/quotabench/internal/kit/exit"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An empty argument, as of a variable that is not set, is no name: init took it for the current directory, and faults
// for all strategies.
func TestEmptyArguments(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, map[string]string{"main.go": "package mine"})
	for _, c := range Command(io.Discard, io.Discard).Commands() {
		o := call(t.Context(), c.Name(), "")
		requireUsageError(t, o)
		want := "argument 1 of quotabench " + c.Name() + " is empty: give a value, or leave it out"
		if c.Name() == "completion" { // whose commands are its shells
			want = `unknown command ""`
		}
		if !strings.Contains(o.stderr, want) {
			t.Errorf("%s: %s", c.Name(), o.stderr)
		}
	}
	for _, args := range [][]string{{"init", "", "--replace", root}, {"init", "--claims", ""}, {"run", "honest", ""},
		{""}} {
		o := call(t.Context(), args...)
		requireUsageError(t, o)
		if !strings.Contains(o.stderr, "is empty: give a value, or leave it out") {
			t.Errorf("%q: %s", args, o.stderr)
		}
	}
	p.requireUntouched()
}

func TestInit(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	newPlace(t, map[string]string{"file": "", "full/one": ""})
	for _, c := range []struct {
		args []string
		want string // of an error; "" for none
	}{
		{[]string{"limits"}, "this program is no published version: give the clone that it was built from, --replace " +
			"DIRECTORY"},
		{[]string{"limits", "--replace", "full"},
			"--replace: full is no clone of quotabench: give the directory with its go.mod"},
		{[]string{"file", "--replace", root}, "file: not a directory: name another directory"},
		{[]string{"full", "--replace", root}, "full is not empty: name another directory"},
		{[]string{"--replace", root}, "init needs one directory, and got 0"},
		{[]string{"new/limits", "--replace", root}, ""},
		{[]string{"new/limits", "--replace", root}, "new/limits is not empty: name another directory"},
	} {
		o := call(t.Context(), append([]string{"init"}, c.args...)...)
		if c.want != "" {
			requireUsageError(t, o)
			if !strings.Contains(o.stderr, c.want) {
				t.Errorf("%q: %s, want %s", c.args, o.stderr, c.want)
			}
			continue
		}
		if o.code != exit.OK || !strings.Contains(o.stdout, "next: cd new/limits && go mod tidy && go test .") {
			t.Errorf("%q: exit %d: %s%s", c.args, o.code, o.stdout, o.stderr)
		}
		b, err := os.ReadFile("new/limits/go.mod")
		if err != nil {
			t.Fatal(err)
		}
		_, replaced, _ := strings.Cut(strings.TrimSpace(string(b)), ` => "`)
		replaced = strings.TrimSuffix(replaced, `"`)
		if _, err := os.Stat(filepath.Join("new/limits", replaced, "go.mod")); err != nil || filepath.IsAbs(replaced) {
			t.Errorf("a clone is at %q: %v", replaced, err)
		}
	}
}
