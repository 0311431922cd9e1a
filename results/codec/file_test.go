package codec

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/internal/report/plot"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/schema"
)

func TestWriteRead(t *testing.T) {
	for name, f := range map[string]results.File{"full": fixture.Full(t), "least": {Kind: results.Simulated},
		"fixture": fixture.New(3, fixture.Strategies...)} {
		path := filepath.Join(t.TempDir(), "results.json")
		if err := Write(path, f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := Read(path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f.Schema = results.SchemaVersion
		f.Summaries = results.Summarise(f.Runs)
		if want := complete(f); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read something else than was written", name)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if again := fixture.Must[[]byte](t)(Encode(got)); !bytes.Equal(again, b) {
			t.Errorf("%s: the same file was encoded to other bytes", name)
		}
		if bytes.Contains(b, []byte(": null")) && !bytes.Contains(b, []byte(`"drift": null`)) {
			t.Errorf("%s: an empty list was written as null", name)
		}
	}
}

// TestReadsCompressed: a record may be compressed, unless it is there as it is.
func TestReadsCompressed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "results.json")
	if err := Write(path, fixture.New(2)); err != nil {
		t.Fatal(err)
	}
	want, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"results.json": []byte("{"), "results.json.gz": out.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Read(path); err == nil {
		t.Error("what is there as it is was not read")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(path); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the compressed record differs: %v", err)
	}
	if err := os.WriteFile(path+".gz", out.Bytes()[:out.Len()/2], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.HasPrefix(err.Error(), path) {
		t.Errorf("half of it: %v", err)
	}
}

func TestWriteKeepsOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "results.json")
	if err := Write(path, results.File{Kind: results.Measured, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	bad := fixture.New(1, fixture.Strategies[0])
	bad.Runs[0].Cost.Commands = math.NaN()
	err := Write(path, bad)
	if err == nil || !strings.Contains(err.Error(), "runs[0].cost.commands is not a finite number") {
		t.Errorf("NaN: %v", err)
	}
	if f := fixture.Must[results.File](t)(Read(path)); f.Seed != 1 {
		t.Error("a failed write damaged the file that was there")
	}
	// The final rename fails on a directory; nothing may be left behind.
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(sub, results.File{Kind: results.Measured}); err == nil {
		t.Error("wrote over a directory")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2 {
		t.Errorf("left behind: %v", entries)
	}
	if err := Write(filepath.Join(dir, "none", "results.json"), results.File{Kind: results.Measured}); err == nil {
		t.Error("wrote into a folder that does not exist")
	}
}

func TestEncodeRefuses(t *testing.T) {
	for want, change := range map[string]func(*results.File){
		"not a finite number":        func(f *results.File) { f.Runs[0].Leak.PctOfLimit = math.Inf(1) },
		"kind":                       func(f *results.File) { f.Kind = "guessed" },
		"runs.0.guarantee.0.verdict": func(f *results.File) { f.Runs[0].Guarantee = []results.Clause{{Verdict: "fine"}} },
		"runs.0.audit.reasons.0.discards": func(f *results.File) {
			f.Runs[0].Audit.Reasons = []results.Reason{{Discards: "x"}}
		},
		"cannot write schema 7": func(f *results.File) { f.Schema = 7 },
		"runs.0.issued":         func(f *results.File) { f.Runs[0].Issued = -1 },
	} {
		f := fixture.New(1, fixture.Strategies[0])
		change(&f)
		if _, err := Encode(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	good := string(fixture.Must[[]byte](t)(Encode(fixture.Full(t))))
	edit := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the encoded file has no %q", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for want, text := range map[string]string{
		"is empty":                   "",
		"cut off":                    good[:len(good)/2],
		"line 2: not valid JSON":     "{\n oops",
		"no \"schema\" field":        `{"kind": "measured"}`,
		"schema 5, this quotabench":  edit(`"schema": 4`, `"schema": 5`),
		"measure again":              edit(`"schema": 4`, `"schema": 1`),
		`unknown field "extra"`:      edit(`"kind"`, `"extra": 1, "kind"`),
		"missing property 'kind'":    edit(`"kind": "measured"`, `"Kind": "measured"`),
		"runs.0: missing property":   withoutLeak(t, good),
		"cannot hold a string":       edit(`"seed": 18446744073709551615`, `"seed": "1"`),
		"more follows after its end": good + "{}",
		"decode histogram":           edit(`"histogram": "`, `"histogram": "!`),
		"seed":                       edit(`"seed": 18446744073709551615`, `"seed": -1`),
		"runs.0.params.loop":         edit(`"loop": "open"`, `"loop": "ajar"`),
		`"runs.params.workers" cannot hold a number 1e99`: edit(`"workers": 50`, `"workers": 1e99`),
	} {
		path := filepath.Join(t.TempDir(), "r.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(path)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %s", err, want)
			continue
		}
		if !strings.HasPrefix(err.Error(), path+": ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("not one line that begins with the path: %v", err)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

// withoutLeak takes the leak out of every run. Read as 0 it would be good news.
func withoutLeak(t *testing.T, encoded string) string {
	var m map[string]any
	d := json.NewDecoder(strings.NewReader(encoded))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	for _, r := range m["runs"].([]any) {
		delete(r.(map[string]any), "leak")
	}
	return string(fixture.Must[[]byte](t)(json.Marshal(m)))
}

// TestSchemaHolds validates real files with the schema as others would use it.
func TestSchemaHolds(t *testing.T) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	text := fixture.Must[[]byte](t)(schema.Files.ReadFile("results.schema.json"))
	doc := fixture.Must[any](t)(jsonschema.UnmarshalJSON(bytes.NewReader(text)))
	if err := c.AddResource("s.json", doc); err != nil {
		t.Fatal(err)
	}
	s := fixture.Must[*jsonschema.Schema](t)(c.Compile("s.json"))
	for name, f := range map[string]results.File{"full": fixture.Full(t), "least": {Kind: results.Simulated}} {
		b := fixture.Must[[]byte](t)(Encode(f))
		if err := s.Validate(fixture.Must[any](t)(jsonschema.UnmarshalJSON(bytes.NewReader(b)))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	// Small seeds: large ones are mutated where it does not matter.
	rich := fixture.Full(f)
	rich.Runs = rich.Runs[:1]
	for _, x := range []results.File{rich, {Kind: results.Measured}} {
		f.Add(fixture.Must[[]byte](f)(Encode(x)))
	}
	f.Add([]byte(`{"schema":2}`))
	f.Add([]byte(`{"schema":2,"kind":"measured","runs":[{"params":{"rate_per_s":1e-1000001}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := Decode(b)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of several lines: %q", err)
			}
			return
		}
		again := fixture.Must[[]byte](t)(Encode(x))
		y, err := Decode(again)
		if err != nil {
			t.Fatalf("read once, but not again: %v", err)
		}
		if !reflect.DeepEqual(x, y) {
			t.Error("read something else the second time")
		}
		if err := text.Table(io.Discard, layout.Page{}, x); err != nil {
			t.Error(err)
		}
		for _, plot := range []func(results.File) (*plot.Plot, error){plot.Latency, plot.Leak} {
			_, _ = plot(x) // may have nothing to plot, but has to say so
		}
	})
}
