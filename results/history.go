package results

import (
	"fmt"

	"github.com/quotabench/quotabench/internal/kit/format"
)

// HistoryName is the name of the file that keeps the run's history, without the directory:
// the strategy's label and the round.
func (r *Run) HistoryName() string {
	return fmt.Sprintf("%s-%d.history", format.FileName(r.Params.Label), r.Repetition)
}
