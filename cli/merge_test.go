package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/testenv"
	"github.com/quotabench/quotabench/results/codec"
)

// Two processes share a load, and their results become one.
func TestMerge(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	args := []string{"merge", "-o", "whole.json"}
	issued, leaked := int64(0), int64(0)
	for _, part := range []string{"1", "2"} {
		out := "part" + part
		o := call(t.Context(), "sim", "liar", "honest", "--limit", "5", "--requests", "300", "--shard", part+"/2", "--out", out)
		if o.code != ExitGate { // the liar leaks, and had promised not to
			t.Fatalf("exit %d: %s", o.code, o.stderr)
		}
		f, err := codec.Read(out + "/results.json")
		if err != nil {
			t.Fatal(err)
		}
		issued, leaked = issued+f.Runs[0].Issued, leaked+f.Runs[0].Leak.Units
		args = append(args, out+"/results.json")
	}
	if o := call(t.Context(), args...); o.code != ExitOK || !strings.Contains(o.stderr, "2 runs of 2 files") {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	f, err := codec.Read("whole.json")
	if err != nil {
		t.Fatal(err)
	}
	if r := f.Runs[0]; r.Issued != issued || r.Leak.Units != leaked || leaked == 0 || r.Params.Shards != 2 || len(f.Merged) != 2 {
		t.Errorf("%+v", r)
	}
	written := append(slices.Clone(args[3:]), "-o", "again.json", "--json")
	if d := documentOf(t, append([]string{"merge"}, written...)...); d.Runs != 2 || len(d.Records) != 2 || len(d.Files) != 1 || d.Files[0].Name != "again.json" {
		t.Errorf("%+v", d)
	}
	p := &place{t: t, dir: ".", temp: "."}
	p.before = p.files()
	for want, args := range map[string][]string{
		"whole.json is there already":   args,
		"two files or more, but got 1":  {"merge", "part1/results.json", "-o", "new.json"},
		"give --out FILE":               {"merge", "part1/results.json", "part2/results.json"},
		"nowhere is no folder":          {"merge", "part1/results.json", "part2/results.json", "-o", "nowhere/new.json"},
		"their subjects are the same":   {"merge", "part1/results.json", "part1/results.json", "-o", "new.json"},
		"give all shards":               {"merge", "part1/results.json", "whole.json", "-o", "new.json"},
		"cannot read none.json: no suc": {"merge", "part1/results.json", "none.json", "-o", "new.json"},
		"give a part and how many":      {"sim", "honest", "--shard", "3/2"},
	} {
		o := call(t.Context(), args...)
		requireUsageError(t, o)
		if !strings.Contains(o.stderr, want) {
			t.Errorf("%q: %s, want %s", args, o.stderr, want)
		}
	}
	p.requireUntouched()
}

// documentOf is what merge says of the file that it writes.
func documentOf(t *testing.T, args ...string) (d written) {
	t.Helper()
	o := call(t.Context(), args...)
	if err := json.Unmarshal([]byte(o.stdout), &d); o.code != ExitOK || err != nil {
		t.Fatalf("%q: exit %d, %v: %s%s", args, o.code, err, o.stdout, o.stderr)
	}
	return d
}
