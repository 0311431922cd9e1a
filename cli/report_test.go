package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
)

// theRecords are those of recorded, by their paths, once a test has made them.
var theRecords map[string][]byte

// recorded leaves the records of a measurement, a simulation and an exploration in the
// working directory. The first test that asks for them makes them.
func recorded(t *testing.T) {
	t.Helper()
	if theRecords != nil {
		for path, text := range theRecords {
			write(t, path, string(text))
		}
		return
	}
	for _, args := range [][]string{
		append([]string{"run", "liar", "honest", "--limit", "5", "--requests", "500", "--rounds", "2", "--redis", "embedded",
			"--out", "run"}, loops...),
		{"sim", "liar", "--limit", "5", "--requests", "500", "--out", "sim"},
		{"explore", "liar", "--out", "explore"},
	} {
		if o := call(t.Context(), args...); o.code != exit.Gate { // the liar leaks, and had promised not to
			t.Fatalf("%q: exit %d: %s", args, o.code, o.stderr)
		}
	}
	records := map[string][]byte{}
	for _, dir := range []string{"run", "sim", "explore"} {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			records[path], err = os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	theRecords = records
}

// contentOf is the content of a file that must be there.
func contentOf(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return b
}

func TestReport(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	recorded(t)
	// Files made from a record again are those made when it was new.
	for _, dir := range []string{"run", "sim", "explore"} {
		o := call(t.Context(), "report", dir, "--out", dir+"-again")
		if o.code != exit.OK || o.stderr != "written to "+dir+"-again: report.txt, report.html\n" {
			t.Errorf("exit %d: %s%s", o.code, o.stdout, o.stderr)
		}
		for _, name := range []string{"report.html", "report.txt"} {
			old := contentOf(t, filepath.Join(dir, name))
			if len(old) == 0 || !bytes.Equal(old, contentOf(t, filepath.Join(dir+"-again", name))) {
				t.Errorf("%s: %s differs from the one that was written with the record", dir, name)
			}
		}
	}
	o := call(t.Context(), "report", "run/results.json", "sim", "explore", "run")
	if o.code != exit.OK || o.stderr != "written to report: report.html\n" {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	page := string(contentOf(t, "report/report.html"))
	text := o.stdout
	for _, want := range []string{"simulated", "explored", "promises to count and does not",
		"quotabench explore --replay"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, name := range []string{"run", "sim", "explore"} {
		if strings.Count(text, "== "+name+" ==") != 1 || !strings.Contains(page, ">"+name+" <") {
			t.Errorf("%s is not in the report once", name)
		}
	}
}

// TestReportFormats: formats for other tools go to standard output, or to files.
func TestReportFormats(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	recorded(t)
	onAQuietMachine(t, filepath.Join("run", "results.json"))
	for _, c := range []struct {
		args  []string
		lines int // of which each has the text
		text  string
	}{
		{[]string{"run/results.json", "--format", "gobench", "--strategy", "liar"}, 2,
			"BenchmarkStrategies/strategy=liar/workload=hot-key"},
		{[]string{"run", "--format", "csv"}, 2, ",honest"},
		{[]string{"run/results.json", "--format", "hgrm"}, 2, "#[service time of "},
		{[]string{"run/results.json", "--format", "json"}, 2, `"strategy": "honest"`},
		{[]string{"sim/results.json", "--format", "gobench"}, 1, "/kind=simulated"},
		{[]string{"sim/series.json", "--format", "csv"}, 1, "strategy,at_s,issued"},
		{[]string{"explore", "--format", "csv"}, 1, ",leak,broken,"},
		{[]string{"explore", "--format", "text"}, 1, "replay: quotabench explore --replay"},
	} {
		o := call(t.Context(), append([]string{"report"}, c.args...)...)
		n := 0
		for l := range strings.Lines(o.stdout) {
			if strings.Contains(l, c.text) {
				n++
			}
		}
		if o.code != exit.OK || o.stderr != "" || n < c.lines {
			t.Errorf("%q: exit %d, %s, %d lines with %q of\n%s", c.args, o.code, o.stderr, n, c.text, o.stdout)
		}
	}
	o := call(t.Context(), "report", "run", "sim", "--format", "hgrm,csv", "-o", "out")
	for _, name := range []string{"run-honest-closed-service.hgrm", "run-runs.csv", "sim-runs.csv", "sim-series.csv"} {
		if len(contentOf(t, filepath.Join("out", name))) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
	if o.code != exit.OK || o.stdout != "" {
		t.Errorf("exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
}

// onAQuietMachine takes all findings out of a record: whether the tests' machine was quiet
// must not decide what is shown.
func onAQuietMachine(t *testing.T, path string) {
	t.Helper()
	f, err := codec.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Runs {
		for r := &f.Runs[i]; r != nil; r = r.Paced {
			r.Audit.Reasons = []results.Reason{}
		}
	}
	text, err := codec.Encode(f)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(text))
}

func TestReportRefuses(t *testing.T) {
	testenv.Sequential(t)
	p := newPlace(t, map[string]string{"none/notes.md": "", "bad/results.json": "{", "report/report.html": "mine"})
	recorded(t)
	p.before = p.files()
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "report needs a record"},
		{[]string{"run"}, "report already holds report.html"},
		{[]string{"run", "--out", "run"}, "run already holds report.txt"},
		{[]string{"run", "--out", "run/results.json"}, "is a file"},
		{[]string{"run", "--format", "jpg"}, `unknown format "jpg"`},
		{[]string{"run", "--format", "csv,gobench"},
			"gobench and csv cannot be printed together: give one of them, or --out DIRECTORY"},
		{[]string{"run", "--only", "latency"}, "give --format svg or --format png too"},
		{[]string{"run", "--format", "svg", "--only", "latencies"}, `unknown plot "latencies"`},
		{[]string{"run", "--strategy", "lair"}, `unknown strategy "lair"`},
		{[]string{"explore", "--format", "gobench"}, "explore has nothing for --format gobench"},
		{[]string{"explore", "--format", "svg", "--only", "latency"}, "explore has nothing for --format svg"},
		{[]string{"none", "--out", "new"}, "none holds no record"},
		{[]string{"gone", "--out", "new"}, "cannot read gone"},
		{[]string{"bad", "--out", "new"}, "bad/results.json"},
	} {
		o := call(t.Context(), append([]string{"report"}, c.args...)...)
		if o.code != exit.Usage || !strings.Contains(o.stderr, c.want) || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%q: exit %d, %s, want %s", c.args, o.code, o.stderr, c.want)
		}
	}
	p.requireUntouched()
}

// TestReportPlots draws stored records again, apart and together.
func TestReportPlots(t *testing.T) {
	testenv.Sequential(t)
	run := "../results/baseline/run-slow"
	other := "../results/baseline/run-uploads"
	for name, c := range map[string]struct {
		args   []string
		files  []string
		stderr string
	}{
		"a directory": {[]string{run, "--only", "latency,leakage"}, []string{"latency.svg", "leakage.svg"},
			"latency.svg, leakage.svg"},
		"a file": {[]string{filepath.Join(run, "results.json"), "--only", "leakage"}, []string{"leakage.svg"},
			"leakage.svg"},
		"two runs": {[]string{run, other, "--only", "leakage"},
			[]string{"run-slow-leakage.svg", "run-uploads-leakage.svg"}, "run-slow-leakage.svg"},
	} {
		out := filepath.Join(t.TempDir(), "plots")
		r := call(t.Context(), append([]string{"report", "--format", "svg", "--out", out}, c.args...)...)
		if r.code != exit.OK || r.stdout != "" || !strings.Contains(r.stderr, c.stderr) {
			t.Errorf("%s: exit %d, %q, %q", name, r.code, r.stdout, r.stderr)
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
}

// TestReportOfABusyMachine: all drawings are there, and say what disturbed their timings.
func TestReportOfABusyMachine(t *testing.T) {
	testenv.Sequential(t)
	f, err := codec.Read("../results/baseline/run-uploads/results.json")
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Runs {
		for r := &f.Runs[i]; r != nil; r = r.Paced {
			r.OthersShare = 0.71
			r.Audit.Discard("machine-busy", codes.Disturbs, "planted")
		}
	}
	f.Summaries = nil
	dir := t.TempDir()
	busy := filepath.Join(dir, "results.json")
	if b, err := codec.Encode(f); err != nil || os.WriteFile(busy, b, 0o644) != nil {
		t.Fatal(err)
	}
	o := call(t.Context(), "report", busy, "--format", "svg", "--only", "latency", "--out", filepath.Join(dir, "plots"))
	drawn, err := os.ReadFile(filepath.Join(dir, "plots", "latency.svg"))
	if o.code != exit.OK || err != nil || !strings.Contains(string(drawn), "other programs used 71 %") {
		t.Errorf("exit %d, %v: %s", o.code, err, o.stderr)
	}
}

// Every format has a name of its own, which no file of every run has.
func TestFormatsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range append(render.Renderers(), render.Exports()...) {
		if r.Name == "" || r.Ext == "" || r.Doc == "" || seen[r.Name] {
			t.Errorf("format %q (%q, %q) is incomplete or listed twice", r.Name, r.Ext, r.Doc)
		}
		seen[r.Name] = true
	}
}
