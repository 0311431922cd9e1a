package main

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExploredOrNamed builds the command and searches each limiter with it: what can be
// searched is, the defects are found and their twins are not accused; what cannot is
// named, with the reason, and nothing is claimed of it.
func TestExploredOrNamed(t *testing.T) {
	command := filepath.Join(t.TempDir(), "foreign")
	if out, err := exec.Command("go", "build", "-o", command, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct {
		args      []string
		code      int
		want, not []string
	}{
		{[]string{"own-clock"}, 0, []string{"PASS: no violation in any order of 1 caller", "with 2 x clock"},
			[]string{" in 2 steps", "LEAK", "FALSE-REJECT", "nothing is claimed"}},
		{[]string{"own-clock-late"}, 1,
			[]string{"FALSE-REJECT in ", "later: a window ends", "LEAK in ", " asks -> admitted",
				"replay: quotabench explore --replay"}, nil},
		{[]string{"background"}, 0, []string{"PASS: no violation in any order of 1 caller", "with 2 x clock"},
			[]string{"LEAK", "FALSE-REJECT"}},
		{[]string{"background-often"}, 1, []string{"LEAK in ", "GUARANTEE in ", "half of the window passes"}, nil},
		// two instances have two mutexes
		{[]string{"mutex-across", "--property", "guarantee", "--first"}, 1, []string{"GUARANTEE in "}, nil},
		{[]string{"mutex-across", "--instances", "1", "--decision-timeout", "2s"}, 3, []string{"sync.Mutex.Lock", "main.go:"},
			[]string{"LEAK", "PASS"}},
		{[]string{"own-pool"}, 3, []string{"no command came through the client that it was given"},
			[]string{"LEAK", "PASS"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			x := exec.Command(command, append([]string{"explore"}, c.args...)...)
			var both bytes.Buffer
			x.Stdout = &both
			x.Stderr = &both
			err := x.Run()
			var ended *exec.ExitError
			if err != nil && !errors.As(err, &ended) {
				t.Fatal(err)
			}
			text := strings.Join(strings.Fields(both.String()), " ")
			if code := x.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q", want)
				}
			}
			for _, not := range c.not {
				if strings.Contains(text, not) {
					t.Errorf("it says %q", not)
				}
			}
			if t.Failed() {
				t.Log(both.String())
			}
		})
	}
	// Those without a defect keep their guarantee for several subjects, window after window.
	out, err := exec.Command(command, "sim", "own-clock", "background", "--policy", "5 requests per fixed 10s",
		"--workload", "steady:subjects=3",
		"--instances", "1", "--rate", "3", "--duration", "2m", "--out", t.TempDir()).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
