package explore

import (
	"context"
	"time"

	"github.com/quotabench/quotabench/explore/internal/inproc"
	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/virtual/bubble"
)

// otherWall is a time of the wall clock far from the present one and from virtual time.
var otherWall = time.Date(2080, time.March, 3, 3, 3, 3, 0, time.UTC)

// rehearsalStates bounds a search that is made again under another wall clock.
const rehearsalStates = 20_000

// acquit takes back the finding that the strategy sends the wall clock's time if it does
// not: a length of time may look like it, as 29 minutes in microseconds do. The search is
// made once more in a bubble, whose package time is another year: what is the wall clock's
// moves with it. If the other search does not come as far, nothing is taken back.
func (s *search) acquit(ctx context.Context) {
	w := s.Witness
	if s.cfg.rehearses || !w.Noted(witness.WallClock) || s.sel.Foreign || OnPostgres(s.sel) {
		return
	}
	cfg := s.cfg
	cfg.rehearses = true
	cfg.Workers = 1
	cfg.Samples = 0
	cfg.Timeout = 0
	cfg.Progress = nil
	cfg.sofar = nil
	cfg.MaxStates = min(cfg.MaxStates, rehearsalStates)
	cfg.Preemptions = -1
	innocent := false
	bubble.Run(func() {
		time.Sleep(otherWall.Sub(clock.Runtime{}.Now()))
		_, err := inproc.Search(s.sel, *cfg.setup(), func(engine *inproc.Engine) (*Result, error) {
			search, err := newSearch(engine, s.sel, cfg).run(bubble.Asked{Context: ctx})
			innocent = err == nil && ctx.Err() == nil && !engine.Witness.Noted(witness.WallClock) &&
				engine.Witness.Seen() >= w.NotedAfter(witness.WallClock)
			return search, err
		})
		innocent = innocent && err == nil
	})
	if innocent {
		w.Withdraw(witness.WallClock)
	}
}
