package explore

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/quotabench/quotabench/internal/clock"
)

// Progress is how far a search or an enumeration has come. Its zero value is one that
// has not begun. It may be read while the search goes on.
type Progress struct {
	runs, states, waiting, depth atomic.Int64
	share                        atomic.Uint64 // bits of a float64
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
	// Share of all schedules that an enumeration has run, 0 to 1, as if all that is left
	// were as large as what is done; 0 where that is not known.
	Share float64
}

// Read returns how far the search has come.
func (p *Progress) Read() Sofar {
	return Sofar{
		Runs: p.runs.Load(), States: p.states.Load(), Waiting: p.waiting.Load(), Depth: p.depth.Load(),
		Share: math.Float64frombits(p.share.Load()),
	}
}

func (p *Progress) set(s Sofar) {
	if p == nil {
		return
	}
	p.runs.Store(s.Runs)
	p.states.Store(s.States)
	p.waiting.Store(s.Waiting)
	p.depth.Store(s.Depth)
	p.share.Store(math.Float64bits(s.Share))
}

// firstFound is why a search ends that is asked for the first finding.
const firstFound = "it ended at the first violation"

// over says why the search is to end now; empty where it is not.
func (s *search) over(ctx context.Context) string {
	switch {
	case ctx.Err() != nil:
		return "interrupted"
	case s.cfg.Timeout > 0 && clock.Nano()-s.cfg.began >= int64(s.cfg.Timeout):
		return fmt.Sprintf("its time of %v was up", s.cfg.Timeout)
	default:
		return s.Run().Spent
	}
}
