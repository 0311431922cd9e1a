package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/testenv"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

// TestPlot draws stored records again, apart and together.
func TestPlot(t *testing.T) {
	testenv.Sequential(t)
	run, other, explored := "../results/baseline/run-slow", "../results/baseline/run-uploads", "../results/baseline/explore"
	early := filepath.Join(t.TempDir(), "results.json") // of a version that counted nothing over time
	f, err := codec.Read(filepath.Join(run, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Runs {
		f.Runs[i].OverTime = nil
	}
	if b, err := codec.Encode(f); err != nil || os.WriteFile(early, b, 0o644) != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args   []string
		code   int
		files  []string
		stderr string
	}{
		"a directory":    {[]string{run, "--format", "svg", "--only", "latency,leakage"}, ExitOK, []string{"latency.svg", "leakage.svg"}, "2 files written"},
		"a file":         {[]string{filepath.Join(run, "results.json"), "--format", "svg", "--only", "leakage"}, ExitOK, []string{"leakage.svg"}, "1 file written"},
		"two runs":       {[]string{run, other, "--format", "svg", "--only", "leakage"}, ExitOK, []string{"run-slow-leakage.svg", "run-uploads-leakage.svg"}, "2 files written"},
		"one not drawn":  {[]string{early, "--format", "svg", "--only", "throughput,leakage"}, ExitOK, []string{"leakage.svg"}, "not drawn: nothing to plot: the record has no decisions over time"},
		"nothing":        {[]string{explored, "--only", "latency"}, ExitUsage, nil, "nothing to draw in " + explored},
		"no record":      {[]string{"../docs"}, ExitUsage, nil, "holds no record: give a directory that run, sim or explore wrote to"},
		"no file":        {[]string{"no-such"}, ExitUsage, nil, "cannot read no-such"},
		"no argument":    {nil, ExitUsage, nil, "plot needs a record"},
		"unknown plot":   {[]string{run, "--only", "latencies"}, ExitUsage, nil, `unknown plot "latencies"`},
		"unknown format": {[]string{run, "--format", "jpg"}, ExitUsage, nil, "give svg, png or both"},
	} {
		out := filepath.Join(t.TempDir(), "plots")
		r := call(t.Context(), append([]string{"plot", "--out", out}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.stderr, c.stderr) {
			t.Errorf("%s: exit %d, %q", name, r.code, r.stderr)
		}
		entries, _ := os.ReadDir(out)
		var got []string
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if strings.Join(got, " ") != strings.Join(c.files, " ") {
			t.Errorf("%s: files %q, want %q", name, got, c.files)
		}
	}

	// What is there is never written over.
	out := t.TempDir()
	mine := filepath.Join(out, "leakage.svg")
	if err := os.WriteFile(mine, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := call(t.Context(), "plot", run, "--only", "leakage", "--out", out)
	if b, err := os.ReadFile(mine); r.code != ExitUsage || !strings.Contains(r.stderr, "already holds leakage.svg") || err != nil || string(b) != "mine" {
		t.Errorf("exit %d, %q, %q, %v", r.code, r.stderr, b, err)
	}
}

// TestPlotOfABusyMachine: drawings that only lack timings because the machine was busy are
// a warning, and no wrong command.
func TestPlotOfABusyMachine(t *testing.T) {
	testenv.Sequential(t)
	f, err := codec.Read("../results/baseline/run-uploads/results.json")
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Runs {
		f.Runs[i].Audit.Discard("machine-busy", results.DiscardsRound, "planted")
		if p := f.Runs[i].Paced; p != nil {
			p.Audit.Discard("machine-busy", results.DiscardsRound, "planted")
		}
	}
	f.Summaries = nil
	busy := filepath.Join(t.TempDir(), "results.json")
	if b, err := codec.Encode(f); err != nil || os.WriteFile(busy, b, 0o644) != nil {
		t.Fatal(err)
	}
	o := call(t.Context(), "plot", busy, "--only", "latency", "--out", t.TempDir())
	if o.code != ExitOK || !strings.Contains(o.stderr, "not measurable here") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
}
