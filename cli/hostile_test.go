package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// hostile are files that are no record, each with a part of what is said of it.
func hostile(t *testing.T) map[string]string {
	t.Helper()
	good, err := os.ReadFile("good/results.json")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]struct{ text, want string }{
		"empty":     {"", "is empty"},
		"truncated": {string(good[:len(good)/2]), "cut off"},
		"older":     {strings.Replace(string(good), `"schema": 4`, `"schema": 2`, 1), "has schema 2, this quotabench reads 4"},
		"newer":     {strings.Replace(string(good), `"schema": 4`, `"schema": 5`, 1), "use a newer quotabench"},
		"corrupt":   {strings.Replace(string(good), `"histogram": "`, `"histogram": "!`, 1), "decode histogram"},
		"edited":    {strings.Replace(string(good), `"rounds": 1`, `"rounds": 2`, 1), "does not follow from the runs"},
		"null":      {"null", "no \"schema\" field"},
		"list":      {"[{}]", "no \"schema\" field"},
		"binary":    {"\x00\x01\x1b[31m", "not valid JSON"},
		"deep":      {strings.Repeat("[", 200_000), "nested more than"},
		"many":      {`{"schema":4,"kind":"measured","runs":[` + strings.Repeat("{},", 100_000) + "{}]}", "more than 50000 runs"},
		"nothing":   {`{"schema":4,"kind":"measured"}`, "missing"},
	}
	wants := map[string]string{}
	for name, f := range files {
		if f.text == string(good) {
			t.Fatalf("%s is not spoilt", name)
		}
		write(t, filepath.Join(name, "results.json"), f.text)
		wants[name] = f.want
	}
	// A gigabyte, most of it not on the disk.
	write(t, "huge/results.json", string(good))
	if err := os.Truncate("huge/results.json", 1<<30); err != nil {
		t.Fatal(err)
	}
	wants["huge"] = "more than 256 MB"
	return wants
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Every command that reads a record says in one line what is wrong with one, writes
// nothing, and takes no more memory than the file can ask for.
func TestHostileRecords(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	if o := call(t.Context(), "sim", "honest", "--instances", "1", "--limit", "5", "--requests", "200", "--out",
		"good"); o.code != exit.OK {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	for name, want := range hostile(t) {
		path := filepath.Join(name, "results.json")
		for _, args := range [][]string{
			{"report", path, "--format", "csv"},
			{"report", path, "--format", "gobench", "-o", "new"},
			{"compare", "good", path},
			{"compare", name, "good"},
			{"judge", path},
		} {
			if args[0] == "judge" { // which reads histories
				want = "history"
			}
			t.Run(name+"/"+args[0], func(t *testing.T) {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				o := call(t.Context(), args...)
				runtime.ReadMemStats(&after)
				requireUsageError(t, o)
				if !strings.Contains(o.stderr, want) || !strings.Contains(o.stderr, path) || len(o.stderr) > 1000 {
					t.Errorf("%s, want one line about %s with %s", o.stderr, path, want)
				}
				if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 200 {
					t.Errorf("%d MB were allocated", took)
				}
				for _, left := range []string{"new", "new.json"} {
					if _, err := os.Lstat(left); err == nil {
						t.Errorf("%s was written", left)
					}
				}
			})
		}
	}
}

// Explorations and series likewise.
func TestHostileExplorations(t *testing.T) {
	newPlace(t, nil)
	for i, c := range []struct{ text, want string }{
		{`{"schema":2,"kind":"exploration","searches":[null],"censuses":[],"replays":[],"skipped":[],"failed":[],"interrupted":false}`, "searches.0"},
		{`{"schema":2,"kind":"exploration","searches":[` + strings.Repeat("{},", 100_000) + "{}]}", "more than 50000 runs"},
		{`{"schema":1,"kind":"exploration"}`, "explore again"},
		{`{"schema":2,"kind":"exploration"`, "cut off"},
		{`{"schema":9,"series":[]}`, "use a newer quotabench"},
		{`{"schema":1,"series":[{"strategy":"a","unit":"u","tracked":1,"tiers":["x"],"counters":[],"samples":[` +
			`{"at_ns":0,"issued":0,"admitted":0,"rejected":0,"errors":0,"in_flight":0,"usage":0,"fill":0,"leak":0,"false_rejects":0,"keys":0,"hits":[],"counters":[]}]}]}`, "0 hits"},
	} {
		path := fmt.Sprintf("dir%d/exploration.json", i)
		write(t, path, c.text)
		for _, args := range [][]string{{"report", path, "--format", "csv"}, {"compare", path, path}} {
			o := call(t.Context(), args...)
			requireUsageError(t, o)
			if !strings.Contains(o.stderr, c.want) || !strings.Contains(o.stderr, path) {
				t.Errorf("%q: %s, want %s", args, o.stderr, c.want)
			}
		}
	}
}
