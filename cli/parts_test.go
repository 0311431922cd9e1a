package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/testenv"
)

// inParts has a command make all its parts, and returns their records, of the name.
func inParts(t *testing.T, of int, name string, args ...string) (files []string) {
	for part := range of {
		dir := fmt.Sprintf("%s%d-%d", args[0], part+1, of)
		o := call(t.Context(), append(slices.Clone(args), "--out", dir, "--part", fmt.Sprintf("%d/%d", part+1, of))...)
		if o.code != ExitOK && o.code != ExitGate && o.code != ExitFailed {
			t.Fatalf("part %d: exit %d: %s", part+1, o.code, o.stderr)
		}
		files = append(files, dir+"/"+name)
	}
	return files
}

// TestPartsMergeToTheByte: the parts of searches, of enumerations and of simulations, whose seeds differ, give the record of one
// process.
func TestPartsMergeToTheByte(t *testing.T) {
	testenv.Sequential(t)
	for name, c := range map[string]struct {
		file string
		of   int
		args []string
	}{
		"searches":          {"exploration.json", 3, []string{"explore", "liar", "broken", "honest", "monthly", "--limit", "1", "--timeout", "0"}},
		"schedules":         {"exploration.json", 3, []string{"explore", "monthly", "liar", "broken", "--full", "--clients", "3"}},
		"bounded schedules": {"exploration.json", 3, []string{"explore", "liar", "--full", "--clients", "4", "--max-schedules", "5"}},
		"simulations": {"results.json", 4, []string{"sim", "honest", "liar", "broken", "--workload", "steady", "--rate", "50", "--duration", "2s",
			"--limit", "5", "--param", "seed=1..3+1"}},
		"notes of points": {"results.json", 3, []string{"sim", "honest", "--workload", "hot-key", "--requests", "50", "--param", "fill=0,0.2,0.5"}},
		"strategies":      {"results.json", 2, []string{"sim", "honest", "liar", "--requests", "50"}},
	} {
		t.Run(name, func(t *testing.T) {
			newPlace(t, nil)
			whole := call(t.Context(), append(slices.Clone(c.args), "--out", "whole")...)
			files := inParts(t, c.of, c.file, c.args...)
			slices.Reverse(files) // their order does not matter
			if o := call(t.Context(), append(append([]string{"merge"}, files...), "--out", "merged.json")...); o.code != ExitOK {
				t.Fatalf("exit %d: %s", o.code, o.stderr)
			}
			want, err := os.ReadFile("whole/" + c.file)
			if err != nil {
				t.Fatalf("%v\n%s", err, whole.stderr)
			}
			if got, err := os.ReadFile("merged.json"); err != nil || string(got) != string(want) {
				t.Errorf("%v\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

// TestPartsThatDoNotFit are refused by their names.
func TestPartsThatDoNotFit(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	search := []string{"explore", "liar", "honest", "--property", "leak"}
	all := inParts(t, 2, "exploration.json", search...)
	other := inParts(t, 3, "exploration.json", append(search, "monthly", "--limit", "2")...)
	sims := inParts(t, 2, "results.json", "sim", "honest", "liar", "--requests", "50")
	if o := call(t.Context(), append(search, "--limit", "2", "--part", "2/2", "--out", "odd")...); o.code != ExitGate && o.code != ExitOK {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	for want, args := range map[string][]string{
		"are parts of different plans":             {"merge", all[0], "odd/exploration.json", "-o", "new.json"},
		"there are 3 files: give all parts":        {"merge", all[0], all[1], other[2], "-o", "new.json"},
		"there are 2 files: give all parts":        {"merge", all[0], other[1], "-o", "new.json"},
		"are both part 1/2":                        {"merge", all[0], all[0], "-o", "new.json"},
		"give records of runs alone":               {"merge", all[0], sims[1], "-o", "new.json"},
		"no more than 2 strategies":                append(search, "--part", "1/3"),
		"leave --first out":                        append(search, "--first", "--part", "1/2"),
		"no more than 1 combination of a strategy": {"sim", "honest", "--part", "1/2"},
		"leave --against out":                      {"sim", "honest", "--against", "./program", "--part", "1/2"},
		"give a part and how many":                 {"sim", "honest", "--part", "3/2"},
	} {
		o := call(t.Context(), args...)
		requireUsageError(t, o)
		if !strings.Contains(o.stderr, want) {
			t.Errorf("%q: %s, want %s", args, o.stderr, want)
		}
	}
}
