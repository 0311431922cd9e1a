package cli

import (
	"fmt"
	"time"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/answer"
)

// The default of --budget.
const (
	leastBudget = 60 * time.Second
	budgetEach  = 6 * time.Second // for each strategy
)

// look plans the rounds of a run for which nobody gave their number or length.
func (s *settings) look(c *measure.Config) {
	s.looking = s.lookup("budget") != nil && s.against == "" && !s.quick && s.rounds == 0 && s.duration == 0
	if !s.looking {
		return
	}
	c.Rounds = answer.LastLook
	if c.Budget == 0 {
		c.Budget = max(leastBudget, time.Duration(len(c.Strategies))*budgetEach)
	}
}

// lookAt has a measurement end after the first look if all is decided then.
func (s *settings) lookAt(c *measure.Config, file *results.File, p *progress) {
	p.most = c.Budget
	if s.looking {
		c.Enough = func(round int, runs []results.Run) bool { return round == answer.FirstLook && decided(*file, runs) }
	}
}

func decided(f results.File, runs []results.Run) bool {
	f.Runs, f.Summaries = runs, nil
	a := answer.Of(f)
	return a.Decided()
}

// ended says when the measurement ended and why, if no number of rounds was given or there
// was no time for it.
func (s *settings) ended(c *measure.Config, r *measure.Report, f *results.File) string {
	rounds := 0
	for i := range r.Runs {
		rounds = max(rounds, r.Runs[i].Repetition-c.Earlier)
	}
	text := "stopped after " + format.Plural(int64(rounds), "round", "rounds") + ": "
	switch {
	case r.Interrupted || !s.looking && !r.OutOfTime:
		return ""
	case r.OutOfTime && rounds < results.LeastRounds:
		return fmt.Sprintf("%sthe budget of %g s is spent; timings need %d rounds, so give a longer --budget", text, c.Budget.Seconds(), results.LeastRounds)
	case r.OutOfTime:
		return fmt.Sprintf("%sthe budget of %g s is spent", text, c.Budget.Seconds())
	case decided(*f, r.Runs):
		return text + "order and verdicts are decided"
	default:
		return format.Plural(int64(rounds), "round", "rounds") + ", all that were planned: order or verdicts are not all decided"
	}
}
