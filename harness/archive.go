package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
)

// keep writes the run's history to the plan's archive, if it has one. What
// cannot be kept is noted: the run's figures stand.
func (j *judgement) keep(initial map[uint32]int64) {
	history, ok := j.History.(*oracle.History)
	if j.Plan.Archive == "" || !ok {
		return
	}
	head := oracle.Header{
		Strategy: j.run.Params.Label, Policy: *j.Policy, Epoch: j.Epoch, Counts: j.Selection.Counts, Initial: initial,
		Changes: j.LimitChanges, Tiers: j.Tiers,
	}
	if err := writeHistory(filepath.Join(j.Plan.Archive, j.run.HistoryName()), head, history); err != nil {
		j.note(codes.HistoryNotKept, err.Error())
	}
}

func writeHistory(path string, head oracle.Header, history *oracle.History) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".history-*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	if err := errors.Join(oracle.WriteHistory(file, head, history), file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// JudgeFile judges a kept history again: requests, leak and false rejects, as they
// stand in the record of the run. Timings, drift and the audit need the run itself.
func JudgeFile(file *oracle.File) (results.Run, error) {
	policy := &file.Header.Policy
	run := results.Run{Params: results.Params{
		Label: file.Header.Strategy, Quota: results.Quota{Limit: policy.Limit, Unit: policy.Unit,
			Window: windowText(policy.Window)},
	}}
	verdict, err := file.Judge()
	if err != nil {
		return run, fmt.Errorf("judge the history: %w", err)
	}
	if verdict.Malformed > 0 {
		return run, fmt.Errorf("judge the history: %d events have no valid form", verdict.Malformed)
	}
	run.Issued = verdict.Issued.Requests
	run.Admitted = verdict.Admitted.Requests
	run.Rejected = verdict.Rejected.Requests
	run.Errors = verdict.Failed.Requests
	correctness(&run, &verdict, policy)
	byTier(&run, &verdict, file.Header.Tiers)
	return run, nil
}
