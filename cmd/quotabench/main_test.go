package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/strategies"
)

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
	if code != cli.ExitOK {
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

func TestListHasEveryStrategy(t *testing.T) {
	var text, encoded, stderr bytes.Buffer
	if code := cli.Main([]string{"list", "strategies"}, &text, &stderr); code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	if code := cli.Main([]string{"list", "strategies", "--json"}, &encoded, &stderr); code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	var entries []struct {
		Name, Doc string
	}
	if err := json.Unmarshal(encoded.Bytes(), &entries); err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(strategies.All()) {
		t.Errorf("%d entries, want %d", len(entries), len(strategies.All()))
	}
	for i, m := range strategies.All() {
		if entries[i].Name != m.Name || entries[i].Doc != m.Doc {
			t.Errorf("entry %d is %+v, want %s", i, entries[i], m.Name)
		}
		if !strings.Contains(text.String(), "\n  "+m.Name+" ") {
			t.Errorf("the text does not list %s", m.Name)
		}
		for _, o := range m.Options {
			if !strings.Contains(text.String(), "\n  "+m.Name+":"+o.Name+"=") {
				t.Errorf("the text does not list %s:%s", m.Name, o.Name)
			}
		}
	}
}
