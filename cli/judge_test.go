package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

// A kept history is judged as the run was, in virtual time and on a real clock.
func TestJudge(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	for _, args := range [][]string{
		{"sim", "liar", "honest", "--limit", "5", "--requests", "500"},
		append([]string{"run", "liar", "honest", "--limit", "5", "--requests", "500", "--rounds", "2", "--redis", "embedded"},
			loops...),
	} {
		o := call(t.Context(), append(args, "--out", "out-"+args[0], "--history", "kept-"+args[0])...)
		if o.code != exit.Gate { // the liar leaks, and had promised not to
			t.Fatalf("%q: exit %d: %s", args, o.code, o.stderr)
		}
		text, err := os.ReadFile(filepath.Join("out-"+args[0], files.ResultsName))
		if err != nil {
			t.Fatal(err)
		}
		record, err := codec.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		files, _ := filepath.Glob("kept-" + args[0] + "/*")
		if len(files) != len(record.Runs) {
			t.Fatalf("%q: %d histories of %d runs", args, len(files), len(record.Runs))
		}
		o = call(t.Context(), append([]string{"judge", "--json"}, files...)...)
		var again []judged
		if err := json.Unmarshal([]byte(o.stdout), &again); err != nil || o.code != exit.OK {
			t.Fatalf("exit %d, %v: %s", o.code, err, o.stderr)
		}
		leaked := int64(0)
		for _, r := range record.Runs {
			leaked += r.Leak.Units
			if !judgedAlike(again, &r) {
				t.Errorf("%s, round %d: no history is judged as the run was: leak %+v, false rejects %+v\n%s", r.Params.Label,
					r.Repetition, r.Leak, r.FalseRejects, o.stdout)
			}
		}
		if leaked == 0 {
			t.Errorf("%q: nothing leaked, so nothing is shown", args)
		}
	}
	o := call(t.Context(), "judge", "--policy", "1000 requests per calendar-month", "kept-sim/liar-1.history")
	if o.code != exit.OK || !strings.Contains(o.stdout, "1,000 requests") || !strings.Contains(o.stdout, "0 of 0") {
		t.Errorf("by another policy: exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
}

// Histories are never overwritten.
func TestHistoryIsKept(t *testing.T) {
	newPlace(t, map[string]string{"kept/honest-1.history": "mine"})
	o := call(t.Context(), "sim", "honest", "--requests", "100", "--out", "out", "--history", "kept")
	requireUsageError(t, o)
	if b, err := os.ReadFile("kept/honest-1.history"); string(b) != "mine" || !strings.Contains(o.stderr, "1 history") {
		t.Errorf("%q, %v: %s", b, err, o.stderr)
	}
}

func judgedAlike(again []judged, r *results.Run) bool {
	for _, j := range again {
		if j.Strategy == r.Params.Label && j.Window == r.Params.Window && j.Limit == r.Params.Limit && j.Issued == r.Issued &&
			j.Admitted == r.Admitted && reflect.DeepEqual(j.Leak, r.Leak) && reflect.DeepEqual(j.FalseRejects, r.FalseRejects) {
			return true
		}
	}
	return false
}

// A history that was cut off is refused in one line.
func TestJudgeDamaged(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	call(t.Context(), "sim", "honest", "--requests", "100", "--out", "out", "--history", "kept")
	b, err := os.ReadFile("kept/honest-1.history")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("cut.history", b[:len(b)-9], 0o644); err != nil {
		t.Fatal(err)
	}
	requireUsageError(t, call(t.Context(), "judge", "cut.history"))
}
