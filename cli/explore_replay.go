package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness/explore"
	tables "github.com/quotabench/quotabench/results/text"
)

// replayToken is --replay.
func (s *exploreSettings) replayToken(cmd *cobra.Command) error {
	if len(s.strategy) > 0 {
		return usagef("a token names its strategy itself: leave %s out", strings.Join(s.strategy, ","))
	}
	for _, x := range s.table {
		switch x.name {
		case "replay", "on", "postgres", "postgres-image", "json", "out", "exit-zero":
		default:
			if s.given(x.name) {
				return s.wrong(x.name, errors.New("a token holds all that its schedule depends on: leave it out with --replay"))
			}
		}
	}
	x, err := s.start(cmd)
	if err != nil {
		return err
	}
	if err := x.repeat(s.replay); err != nil {
		var e *exitError
		switch {
		case errors.As(err, &e):
		case errors.Is(err, explore.ErrToken):
			err = s.wrong("replay", err)
		default:
			err = fail(ExitFailed, err)
		}
		return x.end(err)
	}
	return x.end(x.show())
}

// repeat replays a token on the store of --on.
func (x *exploration) repeat(token string) error {
	r, err := x.replay(token)
	if err != nil {
		return err
	}
	x.record.Replays = append(x.record.Replays, r)
	x.gap()
	if err := tables.Replay(&x.text, x.page, r, len(x.record.Searches) > 0); err != nil {
		return err
	}
	x.judge(r.Finding, r.Broken)
	if !r.Broken && x.differs == "" {
		x.differs = fmt.Sprintf("the schedule does not break %s of %s on %s", r.Property, r.Strategy, r.Store)
	}
	return nil
}
