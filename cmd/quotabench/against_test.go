package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/results/codec"
)

// TestAgainst measures this program against itself, against one that was asked for
// something else, and against what is no such program.
func TestAgainst(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv(asCommand, "1")
	t.Chdir(t.TempDir())
	script := func(name, text string) {
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script("same", `exec "`+os.Args[0]+`" "$@"`)
	script("other", `exec "`+os.Args[0]+`" "$@" --workers 3`)
	script("none", "echo it is no such program >&2; exit 7")
	run := func(against string, more ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		args := append([]string{"run", "incr-expire", "--redis", "embedded", "--requests", "300", "--workers", "4", "--rounds", "2", "--against", against, "--out", against + "-out"}, more...)
		code = cli.Main(args, &out, &errs)
		return code, out.String(), errs.String()
	}
	code, stdout, stderr := run("./same")
	if code != cli.ExitOK || !strings.Contains(stdout, "nothing fails") || !strings.Contains(stdout, "exact figures") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	for _, side := range []string{"base", "head"} {
		f, err := codec.Read(filepath.Join("same-out", side, "results.json"))
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Runs) != 2 || f.Runs[0].Repetition != 1 || f.Runs[1].Repetition != 2 {
			t.Errorf("%s: %d runs", side, len(f.Runs))
		}
	}
	code, stdout, stderr = run("./same", "--fail-on", "commands>0", "--rounds", "1", "--out", "gated-out")
	if code != cli.ExitGate || !strings.Contains(stderr, "incr-expire: gate commands>0: fails") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	for against, want := range map[string]struct {
		code int
		text string
	}{
		"./other":  {cli.ExitFailed, "workers 3 and not 4"},
		"./none":   {cli.ExitFailed, "it is no such program"},
		"./absent": {cli.ExitUsage, `--against: "./absent" cannot be run`},
	} {
		if code, stdout, stderr := run(against, "--rounds", "1"); code != want.code || !strings.Contains(stderr, want.text) {
			t.Errorf("%s: exit %d: %s%s", against, code, stdout, stderr)
		}
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
