package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

// TestRetry runs a module of tests that fail in known ways.
func TestRetry(t *testing.T) {
	for _, c := range []struct {
		name, body string
		passes     bool
		reported   bool
		says       string
	}{
		{"a right test", `t.Log("right")`, true, false, ""},
		{"fails once", `if count(t) == 1 { t.Error("by chance") }`, true, true, ""},
		{"fails in a subtest once", `n := count(t); t.Run("sub", func(t *testing.T) { if n == 1 { t.Error("by chance") } })`, true, true, ""},
		{"fails twice", `if count(t) <= 2 { t.Error("by chance") }`, false, false, "failed again"},
		{"fails at the third time too", `if n := count(t); n == 1 || n == 3 { t.Error("by chance") }`, false, false, "failed again"},
		{"always fails", `t.Error("always")`, false, false, "failed again"},
		{"panics once", `if count(t) == 1 { panic("once") }`, false, false, "a panic"},
		{"golden once", `if count(t) == 1 { t.Error("not as the golden file says") }`, false, false, "a golden file"},
		{"ends the process once", `if count(t) == 1 { os.Exit(3) }`, false, false, "a panic"},
		{"does not build", `t.NoSuchMethod()`, false, false, "failed outside of its tests"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			writeModule(t, dir, c.body)
			t.Chdir(dir)
			t.Setenv("COUNT", filepath.Join(dir, "count"))
			report := filepath.Join(dir, "report")
			var out bytes.Buffer
			err := retry([]string{"go", "test", "-vet=off", "./..."}, report, &out)
			if passed := err == nil; passed != c.passes {
				t.Errorf("it passes: %v (%v), want %v\n%s", passed, err, c.passes, &out)
			}
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("it fails with %q, which does not say %q", err, c.says)
			}
			text, readErr := os.ReadFile(report)
			if reported := readErr == nil; reported != c.reported {
				t.Errorf("it is reported: %v, want %v: %s", reported, c.reported, text)
			}
			if c.reported && (!strings.HasPrefix(string(text), "planted TestPlanted\n") ||
				!strings.Contains(string(text), "by chance")) {
				t.Errorf("the report says %q", text)
			}
		})
	}
}

// writeModule writes a module of one test, which counts how often it is run.
func writeModule(t *testing.T, dir, body string) {
	t.Helper()
	test := `package planted

import (
	"os"
	"testing"
)

func count(t *testing.T) int {
	t.Helper()
	file, err := os.OpenFile(os.Getenv("COUNT"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Size())
}

func TestPlanted(t *testing.T) {
	` + body + `
}
`
	for name, text := range map[string]string{"go.mod": "module planted\n\ngo 1.26\n", "planted_test.go": test} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestManyFailuresAreNotRepeated(t *testing.T) {
	dir := t.TempDir()
	writeModule(t, dir, `count(t)`)
	var more strings.Builder
	more.WriteString("package planted\n\nimport \"testing\"\n\n")
	for _, name := range []string{"A", "B", "C", "D", "E", "F"} {
		more.WriteString("func Test" + name + "(t *testing.T) { if count(t) <= 7 { t.Error(\"one cause\") } }\n\n")
	}
	if err := os.WriteFile(filepath.Join(dir, "more_test.go"), []byte(more.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	t.Setenv("COUNT", filepath.Join(dir, "count"))
	var out bytes.Buffer
	err := retry([]string{"go", "test", "-vet=off", "./..."}, filepath.Join(dir, "report"), &out)
	if err == nil || !strings.Contains(err.Error(), "6 tests failed") {
		t.Errorf("six failures: %v\n%s", err, &out)
	}
}
