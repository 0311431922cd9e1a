package searches

import (
	"errors"

	"github.com/quotabench/quotabench/harness/explore"
)

// firstSearch is the first search of a strategy, which ends before the others of it begin: it finds out whether runs of the
// strategy are independent of each other.
type firstSearch struct {
	number int
	ended  chan struct{}
	err    error
}

// firsts are those of a plan by the names of their strategies.
func firsts(plan []asking) map[string]*firstSearch {
	out := map[string]*firstSearch{}
	for i := range plan {
		if name := plan[i].sel.String(); out[name] == nil {
			out[name] = &firstSearch{number: i, ended: make(chan struct{})}
		}
	}
	return out
}

// speaksOf waits for the end of the first search, and reports whether its error speaks of the search of that number, too: it
// does of none whose clock is stopped, if the clock went on in the first one.
func (f *firstSearch) speaksOf(i int, plan []asking) bool {
	if f.number == i {
		return false
	}
	<-f.ended
	return errors.Is(f.err, explore.ErrNotDeterministic) && plan[i].cfg.ServiceClock == plan[f.number].cfg.ServiceClock
}
