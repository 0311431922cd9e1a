package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/testenv"
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
		append([]string{"run", "liar", "honest", "--limit", "5", "--requests", "500", "--rounds", "2", "--redis", "embedded", "--out", "run"}, loops...),
		{"sim", "liar", "--limit", "5", "--requests", "500", "--out", "sim"},
		{"explore", "liar", "--out", "explore"},
	} {
		if o := call(t.Context(), args...); o.code != ExitGate { // the liar leaks, and had promised not to
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
			if records[path], err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	theRecords = records
}

// onAQuietMachine takes all findings out of a record: whether the tests' machine was quiet
// must not decide what is exported.
func onAQuietMachine(t *testing.T, path string) {
	t.Helper()
	f, err := codec.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Runs {
		for r := &f.Runs[i]; r != nil; r = r.Paced {
			r.Audit.Reasons, r.Audit.TimingsValid = []results.Reason{}, r.Audit.Valid
		}
	}
	text, err := codec.Encode(f)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(text))
}

func TestExport(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	recorded(t)
	onAQuietMachine(t, filepath.Join("run", "results.json"))
	t.Run("refuses", exportRefuses)
	for _, c := range []struct {
		args  []string
		lines int // of which each has the text
		text  string
	}{
		{[]string{"run/results.json", "--format", "gobench", "--strategy", "liar"}, 2, "BenchmarkStrategies/strategy=liar/workload=hot-key"},
		{[]string{"run/results.json", "--format", "csv"}, 2, ",honest"},
		{[]string{"run/results.json", "--format", "hgrm"}, 2, "#[service time of "},
		{[]string{"sim/results.json", "--format", "gobench"}, 1, "/kind=simulated"},
		{[]string{"sim/series.json", "--format", "csv"}, 1, "strategy,at_s,issued"},
		{[]string{"explore/exploration.json", "--format", "csv"}, 1, ",leak,broken,"},
	} {
		o := call(t.Context(), append([]string{"export"}, c.args...)...)
		n := 0
		for l := range strings.Lines(o.stdout) {
			if strings.Contains(l, c.text) {
				n++
			}
		}
		if o.code != ExitOK || o.stderr != "" || n < c.lines {
			t.Errorf("%q: exit %d, %s, %d lines with %q of\n%s", c.args, o.code, o.stderr, n, c.text, o.stdout)
		}
	}
	o := call(t.Context(), "export", "run/results.json", "--format", "hgrm", "-o", "out")
	files, _ := filepath.Glob("out/*.hgrm")
	if o.code != ExitOK || o.stdout != "" || !slices.Contains(files, filepath.Join("out", "honest-closed-service.hgrm")) {
		t.Errorf("exit %d, files %q: %s%s", o.code, files, o.stdout, o.stderr)
	}
	t.Run("json", documents)
	if o := call(t.Context(), "export", "run/results.json", "--format", "hgrm", "-o", "out"); o.code != ExitUsage || !strings.Contains(o.stderr, "already holds") {
		t.Errorf("written over: exit %d: %s", o.code, o.stderr)
	}
}

// documentOf is what a command that writes files says of them.
func documentOf(t *testing.T, args ...string) (d written) {
	t.Helper()
	o := call(t.Context(), args...)
	if err := json.Unmarshal([]byte(o.stdout), &d); o.code != ExitOK || err != nil {
		t.Fatalf("%q: exit %d, %v: %s%s", args, o.code, err, o.stdout, o.stderr)
	}
	for _, f := range d.Files {
		if fi, err := os.Stat(f.Name); f.Text == "" && (err != nil || fi.Size() != int64(f.Bytes)) {
			t.Errorf("%q: %s of %d bytes is not there: %v", args, f.Name, f.Bytes, err)
		}
	}
	return d
}

// documents begins where the records of recorded lie. Files that are named as written
// are, of that size, and standard output holds nothing else.
func documents(t *testing.T) {
	for _, c := range []struct {
		args  []string
		files int
	}{
		{[]string{"export", "run/results.json", "--format", "csv", "--json"}, 1},
		{[]string{"export", "run/results.json", "--format", "csv", "--json", "-o", "jsonexport"}, 1},
		{[]string{"report", "run", "--json", "-o", "json.html"}, 2},
		{[]string{"plot", "explore", "--only", "sequence,series", "--json", "-o", "jsonplot"}, 2},
	} {
		d := documentOf(t, c.args...)
		if len(d.Records) != 1 || d.Records[0] != c.args[1] || len(d.Files) < c.files {
			t.Errorf("%q: %+v", c.args, d)
		}
		if whole := d.Files[0].Text; strings.Contains(strings.Join(c.args, " "), "-o") != (whole == "") || whole != "" && !strings.Contains(whole, ",honest") {
			t.Errorf("%q: text of a file: %q", c.args, whole)
		}
	}
}

// exportRefuses begins where the records of recorded lie.
func exportRefuses(t *testing.T) {
	p := &place{t: t, dir: ".", temp: os.TempDir()}
	p.before = p.files()
	for want, args := range map[string][]string{
		"takes one file, but got 0":        {"--format", "csv"},
		"give --format gobench, hgrm, csv": {"run/results.json"},
		"give gobench or hgrm or csv":      {"run/results.json", "--format", "xml"},
		"unknown strategy \"lair\"":        {"run/results.json", "--format", "csv", "--strategy", "lair"},
		"gobench is for runs":              {"explore/exploration.json", "--format", "gobench"},
		"hgrm is for runs":                 {"sim/series.json", "--format", "hgrm", "-o", "new"},
		"no such file":                     {"none.json", "--format", "csv", "-o", "new"},
		"is a directory":                   {"run", "--format", "csv"},
	} {
		o := call(t.Context(), append([]string{"export"}, args...)...)
		requireUsageError(t, o)
		if !strings.Contains(o.stderr, want) {
			t.Errorf("%q: %s, want %s", args, o.stderr, want)
		}
	}
	p.requireUntouched()
}

// Every format of export has a name of its own, which no file of every run has.
func TestFormatsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range append(render.Renderers(), render.Exports()...) {
		if r.Name == "" || r.Ext == "" || r.Doc == "" || seen[r.Name] {
			t.Errorf("format %q (%q, %q) is incomplete or listed twice", r.Name, r.Ext, r.Doc)
		}
		seen[r.Name] = true
	}
}
