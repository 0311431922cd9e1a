package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/results/codec"
)

// against is a directory with programs to measure this one against: "same" is this program
// itself, "other" is asked for something else, and "none" is no such program.
func against(t *testing.T) (run func(against string, more ...string) (code int, stdout, stderr string)) {
	t.Helper()
	binary := program(t)
	t.Setenv("TMPDIR", t.TempDir())
	t.Chdir(t.TempDir())
	script := func(name, text string) {
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script("same", `[ -n "$`+session.NoBitmaps+`" ] || exit 7; exec "`+binary+`" "$@"`)
	script("other", `exec "`+binary+`" "$@" --workers 3`)
	script("none", "echo it is no such program >&2; exit 7")
	return func(against string, more ...string) (code int, stdout, stderr string) {
		args := append([]string{"run", "incr-expire", "--redis", "embedded", "--requests", "300", "--workers", "4",
			"--rounds", "2", "--against", against, "--out", against + "-out"}, more...)
		return execute(t, args...)
	}
}

// requireTidy fails the test if something is left in the directory of temporary files.
func requireTidy(t *testing.T) {
	t.Helper()
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestAgainst measures this program against itself.
func TestAgainst(t *testing.T) {
	run := against(t)
	code, stdout, stderr := run("./same")
	if code != exit.OK || !strings.Contains(stdout, "nothing fails") || !strings.Contains(stdout, "exact figures") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	if !strings.Contains(stdout, "latency was not measured") || !strings.Contains(stdout, "e.g. --rate") {
		t.Errorf("nothing is said of latency: %s", stdout)
	}
	code, _, stderr = run("./same")
	if code != exit.Usage || !strings.Contains(stderr, "already holds") {
		t.Errorf("records are overwritten: exit %d: %s", code, stderr)
	}
	for _, side := range []string{"base", "head"} {
		f, err := codec.Read(filepath.Join("same-out", side, "results.json"))
		if err != nil {
			t.Fatal(err)
		}
		if f.Pairing == "" {
			t.Errorf("%s does not say that its rounds were made in pairs", side)
		}
		if len(f.Runs) != 2 || f.Runs[0].Repetition != 1 || f.Runs[1].Repetition != 2 {
			t.Errorf("%s: %d runs", side, len(f.Runs))
		}
	}
	stored, err := os.ReadFile("same-out/comparison.json")
	if err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if code := cli.Main([]string{"compare", "same-out/base", "same-out/head"}, &again, &again); code != exit.OK ||
		strings.Contains(again.String(), "before those of the head") {
		t.Errorf("exit %d: the stored records are not compared as pairs: %s", code, again.String())
	}
	var kept compare.Comparison
	if err := json.Unmarshal(stored, &kept); err != nil || len(kept.Rows) == 0 || len(kept.Notes) != 1 {
		t.Errorf("comparison.json: %v: %s", err, stored)
	}
	requireTidy(t)
}

// TestAgainstSimulated compares the processor time of this program's simulations with that of its own: one and two
// rounds cannot tell, so there are four, except of a baseline.
func TestAgainstSimulated(t *testing.T) {
	against(t)
	code, stdout, stderr := execute(t, "sim", "incr-expire", "exact", "--requests", "300", "--against", "./same",
		"--rounds", "1", "--out", "out", "--json")
	var found compare.Comparison
	if err := json.Unmarshal([]byte(stdout), &found); err != nil || code != exit.OK || found.Pairs != 2 {
		t.Fatalf("exit %d: %v: %s%s", code, err, stdout, stderr)
	}
	timed := 0
	rounds := map[string]int{"incr-expire": 4, "exact": 1}
	for _, r := range found.Rows {
		switch {
		case r.Figure == compare.ClientCPU && *r.Base > 0 && *r.Head > 0 && r.Test.BaseRounds == rounds[r.Strategy]:
			timed++
		case r.Kind != compare.Exact || r.Verdict != compare.Same || r.Of != "" && strings.Contains(r.Of, "round "):
			t.Errorf("%+v", r)
		}
	}
	if timed != 2 && runtime.GOOS == "linux" {
		t.Errorf("the processor time of %d strategies was compared", timed)
	}
	var out, errs bytes.Buffer
	if code := cli.Main([]string{"sim", "exact", "--rounds", "3", "--requests", "9"}, &out,
		&errs); code != exit.Usage || !strings.Contains(errs.String(), "give --against PROGRAM too") {
		t.Errorf("exit %d: %s", code, &errs)
	}
	requireTidy(t)
}

// TestAgainstFormats measures this program against itself at a rate, and with a gate that
// fails.
func TestAgainstFormats(t *testing.T) {
	testenv.Long(t)
	run := against(t)
	code, stdout, stderr := run("./same", "--json", "--rounds", "1", "--rate", "8000", "--out", "json-out")
	var found compare.Comparison
	if err := json.Unmarshal([]byte(stdout), &found); err != nil || code != exit.OK || found.Pairs != 1 ||
		len(found.Notes) > 0 {
		t.Errorf("exit %d: %v: %s%s", code, err, stdout, stderr)
	}
	t.Setenv("GITHUB_ACTIONS", "true")
	t.Setenv("GITHUB_STEP_SUMMARY", "summary.md")
	code, stdout, stderr = run("./same", "--require", "commands<=0", "--rounds", "1", "--out", "gated-out")
	if summary, err := os.ReadFile("summary.md"); err != nil ||
		!strings.Contains(string(summary), "| fails | incr-expire |") ||
		!strings.Contains(stdout, "::error title=quotabench::") {
		t.Errorf("%v: %s%s", err, summary, stdout)
	}
	if code != exit.Gate || !strings.Contains(stderr, "incr-expire: required commands<=0: fails: commands is ") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	requireTidy(t)
}

// TestAgainstOthers measures this program against one that was asked for something else,
// and against what is no such program.
func TestAgainstOthers(t *testing.T) {
	run := against(t)
	for against, want := range map[string]struct {
		code int
		text string
	}{
		"./other":  {exit.Failed, "workers 3 and not 4"},
		"./none":   {exit.Failed, "it is no such program"},
		"./absent": {exit.Usage, `--against: "./absent" cannot be run`},
	} {
		if code, stdout, stderr := run(against, "--rounds", "1"); code != want.code || !strings.Contains(stderr, want.text) {
			t.Errorf("%s: exit %d: %s%s", against, code, stdout, stderr)
		}
	}
	requireTidy(t)
}

// TestAgainstKilled: what is left of a killed comparison is found and removed.
func TestAgainstKilled(t *testing.T) {
	against(t)
	cmd := exec.Command(program(t), "run", "incr-expire", "--redis", "embedded", "--duration", "1h", "--rounds", "1",
		"--against", "./same", "--out", "killed", "--verbose")
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for line := bufio.NewScanner(said); line.Scan() && !strings.HasPrefix(line.Text(), "[1/1]"); {
	}
	// The round has its directory before it measures.
	for len(rounds(t)) == 0 {
		_ = (clock.Wall{}).Sleep(t.Context(), time.Millisecond)
	}
	children := childrenOf(t, cmd.Process.Pid)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	for _, pid := range children {
		for limit := 6000; runs(pid); limit-- {
			if limit == 0 {
				t.Errorf("process %d of a round goes on", pid)
				if p, err := os.FindProcess(pid); err == nil {
					_ = p.Kill()
				}
				break
			}
			_ = (clock.Wall{}).Sleep(t.Context(), 10*time.Millisecond)
		}
	}
	var out, errs bytes.Buffer
	if code := cli.Main([]string{"doctor", "--clean"}, &out, &errs); code != exit.OK ||
		strings.Count(out.String(), "directory") < 1 {
		t.Errorf("exit %d: %s%s", code, &out, &errs)
	}
	// Its round ends by itself, which the kernel asks it to.
	for {
		if code := cli.Main([]string{"doctor", "--clean", "--yes"}, &out, &errs); code != exit.OK {
			t.Fatalf("exit %d: %s%s", code, &out, &errs)
		}
		if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) == 0 {
			return
		}
		if (clock.Wall{}).Sleep(t.Context(), 10*time.Millisecond) != nil {
			requireTidy(t)
			return
		}
	}
}

// childrenOf are the processes that a process has started.
func childrenOf(t *testing.T, parent int) (pids []int) {
	t.Helper()
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // its thread has ended
		}
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 && runtime.GOOS == "linux" {
		t.Error("no process of a round runs")
	}
	return pids
}

// runs reports whether a process has not ended, whether anybody waits for it or not.
func runs(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(text), ") Z ")
}

// rounds are the directories of the rounds under way.
func rounds(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "quotabench-*", "1-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
