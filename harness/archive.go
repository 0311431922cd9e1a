package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
)

// What is kept of a history.
const (
	// HistoryExt ends the name of a history file.
	HistoryExt = ".history"
	// HistoryNotKept is the code of the finding that a history could not be kept.
	HistoryNotKept = "history-not-kept"
)

// keep writes the run's history to the plan's archive, if it has one. What
// cannot be kept is noted: the run's figures stand.
func (j *judgement) keep(initial map[uint32]int64) {
	h, ok := j.History.(*oracle.History)
	if j.Plan.Archive == "" || !ok {
		return
	}
	head := oracle.Header{
		Strategy: j.run.Params.Label, Policy: *j.Policy, Epoch: j.Epoch, Counts: j.Selection.Counts, Initial: initial,
		Changes: j.LimitChanges, Tiers: j.Tiers,
	}
	if err := writeHistory(filepath.Join(j.Plan.Archive, j.run.HistoryName()), head, h); err != nil {
		j.note(HistoryNotKept, err.Error())
	}
}

func writeHistory(path string, head oracle.Header, h *oracle.History) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".history-*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := errors.Join(oracle.WriteHistory(f, head, h), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// JudgeFile judges a kept history again: requests, leak and false rejects, as they
// stand in the record of the run. Timings, drift and the audit need the run itself.
func JudgeFile(f *oracle.File) (results.Run, error) {
	p := &f.Header.Policy
	run := results.Run{Params: results.Params{
		Label: f.Header.Strategy, Limit: p.Limit, Unit: p.Unit, Window: windowText(p.Window),
	}}
	v, err := f.Judge()
	if err != nil {
		return run, fmt.Errorf("judge the history: %w", err)
	}
	if v.Malformed > 0 {
		return run, fmt.Errorf("judge the history: %d events have no valid form", v.Malformed)
	}
	run.Issued = v.Issued.Requests
	run.Admitted = v.Admitted.Requests
	run.Rejected = v.Rejected.Requests
	run.Errors = v.Failed.Requests
	correctness(&run, &v, p)
	byTier(&run, &v, f.Header.Tiers)
	return run, nil
}
