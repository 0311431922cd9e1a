package searches

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/kit/exit"
	tables "github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	pgstore "github.com/quotabench/quotabench/stores/postgres"
	"github.com/quotabench/quotabench/strategies"
)

// Repeat replays a token.
func (s *Options) Repeat(cmd *cobra.Command) error {
	if len(s.Strategies) > 0 {
		return exit.Usagef("a token names its strategy itself: leave %s out", strings.Join(s.Strategies, ","))
	}
	for _, setting := range s.All() {
		switch setting.Name {
		case "replay", "redis", "service", "request", "env", "counter", "service-clock", "postgres", "json", "out",
			"exit-zero":
		default:
			if s.Given(setting.Name) {
				why := errors.New("a token holds all that its schedule depends on: leave it out with --replay")
				return s.Wrong(setting.Name, why)
			}
		}
	}
	exploration, err := s.start(cmd)
	if err != nil {
		return err
	}
	err = exploration.repeat(s.Replay)
	if errors.Is(err, explore.ErrToken) {
		err = s.Wrong("replay", err)
	}
	if err == nil {
		exploration.show()
	}
	return exploration.end(exit.With(exit.Failed, err))
}

// repeat replays a token on the store of --redis.
func (x *exploration) repeat(token string) error {
	replay, err := x.replay(token)
	if err != nil {
		return err
	}
	x.record.Replays = append(x.record.Replays, replay)
	x.gap()
	if err := tables.Replay(&x.text, x.page, replay, len(x.record.Searches) > 0); err != nil {
		return err
	}
	x.judge(replay.Finding, replay.Broken)
	if !replay.Broken && x.differs == "" {
		x.differs = fmt.Sprintf("the schedule does not break %s of %s on %s", replay.Property, replay.Strategy, replay.Store)
	}
	return nil
}

// openPostgres opens the server of --postgres if one of the strategies is explored on it, or if the flag is given: what
// it names must be right, also if nothing uses it. If there is none, the exploration says so of each of the strategies.
func (x *exploration) openPostgres(chosen []strategies.Selection) error {
	used := slices.ContainsFunc(chosen, explore.OnPostgres) || x.Asked.Service != "" && x.Given("postgres")
	if x.sql != nil || !used && x.Rank("postgres") != settings.ByFlag {
		return nil
	}
	if err := x.FromEnvironment(); err != nil {
		return err
	}
	server, err := pgstore.Open(x.ctx, *x.From["postgres"], stores.Options{})
	switch {
	case errors.As(err, new(*stores.AbsentError)) && x.Asked.Service != "":
		return x.Wrong("postgres", errors.New("a service needs a server: install PostgreSQL for process, or give container "+
			"or a URL"))
	case errors.As(err, new(*stores.AbsentError)):
		return nil
	case err != nil && x.ctx.Err() != nil:
		return exit.With(exit.Interrupted, errors.New("interrupted before anything was explored"))
	case err != nil:
		return exit.With(exit.Usage, err)
	}
	x.sql = server
	session.RemoveDead(x.ctx, x.stderr, string(strategies.NeedPostgres), server)
	if !used {
		fmt.Fprintln(x.stderr, "note: --postgres has no effect: no strategy here is explored on PostgreSQL")
	}
	return nil
}

// postgres is the server of --postgres, or nil.
func (x *exploration) postgres() stores.Store {
	if x.sql == nil {
		return nil
	}
	return x.sql
}

// replay repeats a token where it belongs.
func (x *exploration) replay(token string) (*results.Replay, error) {
	config := &x.Asked
	target := explore.Target{Isolate: config.Isolate, Process: config.Process}
	sel, err := explore.TokenStrategy(token)
	switch {
	case errors.Is(err, explore.ErrToken):
		return nil, err
	case err != nil:
		return nil, exit.With(exit.Usage, err)
	}
	if err := x.openPostgres([]strategies.Selection{sel}); err != nil {
		return nil, err
	}
	switch onPostgres := explore.OnPostgres(sel); {
	case onPostgres && x.sql != nil:
		target.Postgres = x.sql
	case !onPostgres && x.server != nil:
		target.RedisStore = x.server
		target.Redis = x.server.Admin()
		target.Name = fmt.Sprintf("Redis %s (%s)", x.server.Info().Version, x.server.Info().Kind)
	}
	if config.Service != "" {
		target.Postgres = x.postgres()
	}
	replay, err := explore.Replay(x.ctx, token, target)
	if errors.As(err, new(*explore.UnfitError)) {
		err = exit.With(exit.Usage, err)
	}
	return replay, err
}

// closeStores stops what was started.
func (x *exploration) closeStores() (err error) {
	if x.server != nil {
		err = x.server.Close()
	}
	if x.sql != nil {
		err = errors.Join(err, x.sql.Close())
	}
	return err
}
