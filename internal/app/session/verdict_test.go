package session

import (
	"errors"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/results"
)

// TestHistoriesNotKept: a run whose histories are missing says so, and fails.
func TestHistoriesNotKept(t *testing.T) {
	full := results.Run{Audit: results.Audit{Valid: true,
		Reasons: []results.Reason{{Code: codes.HistoryNotKept, Discards: codes.DiscardsNothing,
			Detail: "no space left on device"}}}}
	err := Verdict(&results.File{Runs: []results.Run{{Audit: results.Audit{Valid: true}}, full, full}})
	var e *exit.Error
	if !errors.As(err, &e) || e.Code != exit.Failed ||
		err.Error() != "2 histories of 3 could not be kept: no space left on device" {
		t.Errorf("got %v", err)
	}
}

// TestInvalidFiguresFail: a finding on correctness is a failure, in the open loop next to the closed one too.
func TestInvalidFiguresFail(t *testing.T) {
	run := func(findings ...string) results.Run {
		r := results.Run{Audit: results.Audit{Valid: true}}
		for _, code := range findings {
			r.Audit.Discard(code, codes.DiscardsCorrectness, "planted")
		}
		return r
	}
	paced := run("planted")
	for i, r := range []results.Run{run(), run("planted"), {Audit: results.Audit{Valid: true}, Paced: &paced}} {
		if err := Verdict(&results.File{Runs: []results.Run{r}}); (err != nil) != (i > 0) {
			t.Errorf("run %d: %v", i, err)
		}
	}
}

// TestTooSlowToJudge: a strategy that was asked for too little fails no run that chose its strategies itself, unless all
// of them were.
func TestTooSlowToJudge(t *testing.T) {
	judged := results.Run{Audit: results.Audit{Valid: true}}
	judged.Leak.Trials = 1
	slow := results.Run{Audit: results.Audit{Valid: true}}
	slow.Audit.Discard(codes.NeverCrossed, codes.DiscardsCorrectness, "planted")
	chosen := []results.Considered{{Strategy: "slow"}}
	for name, c := range map[string]struct {
		file  results.File
		fails bool
	}{
		"one of several": {results.File{Considered: chosen, Runs: []results.Run{judged, slow}}, false},
		"all":            {results.File{Considered: chosen, Runs: []results.Run{slow, slow}}, true},
		"named":          {results.File{Runs: []results.Run{judged, slow}}, true},
	} {
		if err := Verdict(&c.file); (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}
