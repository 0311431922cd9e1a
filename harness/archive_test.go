package harness

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
)

// TestArchive: a kept history is judged as the run was, what subjects had used at
// its beginning included. 13 units of a limit of 10 leak 3, and 1 of subject 1,
// which began with 9.
func TestArchive(t *testing.T) {
	f := planted(t, second, takes(0, 0, 13, oracle.Admitted), takes(1, 0, 2, oracle.Admitted))
	f.Initial = func(s uint32) int64 { return 9 * int64(s) }
	f.Plan.Archive = t.TempDir()
	run, _ := judged(t, f)
	file, err := oracle.OpenHistory(filepath.Join(f.Plan.Archive, run.HistoryName()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	again, err := JudgeFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if again.Leak.Units != 4 || !reflect.DeepEqual(again.Leak, run.Leak) ||
		!reflect.DeepEqual(again.FalseRejects, run.FalseRejects) || again.Issued != run.Issued {
		t.Errorf("judged again it is %+v, the run was %+v", again, run)
	}
}

// TestHistoryNotKept: a run whose history cannot be kept counts, and says so.
func TestHistoryNotKept(t *testing.T) {
	f := planted(t, second, takes(0, 0, 13, oracle.Admitted))
	f.Plan.Archive = filepath.Join(t.TempDir(), "missing")
	run, _ := judged(t, f)
	if run.Leak.Units != 3 || !run.Audit.Valid || len(run.Audit.Reasons) != 1 ||
		run.Audit.Reasons[0].Code != "history-not-kept" || run.Audit.Reasons[0].Discards != codes.DiscardsNothing {
		t.Errorf("leak %+v, audit %+v", run.Leak, run.Audit)
	}
}

func TestHistoryName(t *testing.T) {
	if got := (&results.Run{Params: results.Params{Label: "three-tier:names=literal,x=../y"},
		Repetition: 2}).HistoryName(); got != "three-tier_names=literal_x=.._y-2.history" {
		t.Error(got)
	}
}
