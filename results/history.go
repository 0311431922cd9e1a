package results

import (
	"fmt"
	"strings"
)

// HistoryName is the name of the file that keeps the run's history, without the directory:
// the strategy's label and the round.
func (r *Run) HistoryName() string {
	safe := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.ContainsRune("-_.=", c):
			return c
		}
		return '_'
	}, r.Params.Label)
	return fmt.Sprintf("%s-%d.history", safe, r.Repetition)
}
