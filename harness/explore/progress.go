package explore

import (
	"context"
	"sync"
)

// Progress is how far a search or an enumeration has come. Its zero value is one that
// has not begun. It may be read while the search goes on.
type Progress struct {
	mu    sync.Mutex
	sofar Sofar
}

// Sofar is one reading of a [Progress].
type Sofar struct {
	// Runs of a schedule from its start.
	Runs int64
	// States that were met, and those of them whose next steps have not been tried. An
	// enumeration knows no states.
	States, Waiting int64
	// Depth is the length of the longest schedule, in steps.
	Depth int64
	// Counting is set in the second part of a search, which counts preemptions, and
	// Preemptions is the number that it has come to.
	Counting    bool
	Preemptions int64
	// Share of all schedules that an enumeration has run, 0 to 1, as if all that is left
	// were as large as what is done; 0 if that is not known.
	Share float64
}

// Read returns how far the search has come.
func (p *Progress) Read() Sofar {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sofar
}

func (p *Progress) set(s Sofar) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.sofar = s
	p.mu.Unlock()
}

// firstFound is why a search ends that is asked for the first finding.
const firstFound = "it ended at the first violation"

// over says why the search is to end now; empty if it is not.
func (s *search) over(ctx context.Context) string {
	switch {
	case ctx.Err() != nil:
		return "interrupted"
	case s.timeUp() != "":
		return s.timeUp()
	default:
		return s.Run.Spent
	}
}
