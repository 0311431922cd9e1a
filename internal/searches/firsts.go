package searches

import (
	"errors"

	"github.com/quotabench/quotabench/harness/explore"
)

// firsts have the first search of each strategy end before the others of it begin: it finds out
// whether runs of it are independent of each other.
type firsts struct {
	plan  []asking
	first map[string]*firstSearch
}

type firstSearch struct {
	number int
	ended  chan struct{}
	err    error
}

func newFirsts(plan []asking) *firsts {
	f := &firsts{plan, map[string]*firstSearch{}}
	for i := range plan {
		if name := plan[i].sel.String(); f.first[name] == nil {
			f.first[name] = &firstSearch{number: i, ended: make(chan struct{})}
		}
	}
	return f
}

// begin waits for the first search of the same strategy. It returns its error if that speaks
// of all of them: of none whose clock is stopped, if the clock went on in the first one.
func (f *firsts) begin(i int) error {
	first := f.first[f.plan[i].sel.String()]
	if first.number == i {
		return nil
	}
	stopped := f.plan[i].cfg.ServiceClock != f.plan[first.number].cfg.ServiceClock
	if <-first.ended; errors.Is(first.err, explore.ErrNotDeterministic) && !stopped {
		return first.err
	}
	return nil
}

func (f *firsts) end(i int, err error) {
	if first := f.first[f.plan[i].sel.String()]; first.number == i {
		first.err = err
		close(first.ended)
	}
}
