package choose

import (
	"fmt"

	"github.com/quotabench/quotabench/internal/answer"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
)

// breaks says in which way a summary passes what is tolerated; "" if it does not. How
// bad a strategy is, and the words for it, are those of package answer.
func (c *chooser) breaks(s *results.Summary) string {
	a := answer.Classify(s, 0)
	switch {
	case s.Leak.WorstUnits > c.cfg.TolerateLeak || s.FalseRejects.Count > 0:
		return a.Reason
	case (a.Group == answer.Unusable || a.Group == answer.Undecided) && s.Leak.Trials > 0:
		return a.Reason
	default:
		return ""
	}
}

// holds says what a summary shows if it breaks nothing.
func holds(s *results.Summary) string {
	switch {
	case s.Leak.Trials == 0:
		return "no request was rejected wrongly, and no limit was passed"
	case s.Leak.Units > 0:
		return fmt.Sprintf("over-admits %s at most in %s", format.Units(s.Leak.WorstUnits, s.Params.Unit),
			format.Plural(s.Leak.Trials, "trial", "trials"))
	default:
		return "no leak in " + format.Plural(s.Leak.Trials, "trial", "trials")
	}
}
