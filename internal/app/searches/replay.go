package searches

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/kit/exit"
	tables "github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/stores"
	pgstore "github.com/quotabench/quotabench/stores/postgres"
	"github.com/quotabench/quotabench/strategies"
)

// Repeat replays a token.
func (s *Options) Repeat(cmd *cobra.Command) error {
	if len(s.Strategies) > 0 {
		return exit.Usagef("a token names its strategy itself: leave %s out", strings.Join(s.Strategies, ","))
	}
	for _, x := range s.All() {
		switch x.Name {
		case "replay", "redis", "service", "request", "env", "counter", "service-clock", "postgres", "json", "out", "exit-zero":
		default:
			if s.Given(x.Name) {
				return s.Wrong(x.Name, errors.New("a token holds all that its schedule depends on: leave it out with --replay"))
			}
		}
	}
	x, err := s.start(cmd)
	if err != nil {
		return err
	}
	err = x.repeat(s.Replay)
	if errors.Is(err, explore.ErrToken) {
		err = s.Wrong("replay", err)
	}
	if err == nil {
		x.show()
	}
	return x.end(exit.With(exit.Failed, err))
}

// repeat replays a token on the store of --redis.
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

// openPostgres opens the server of --postgres if one of the strategies is explored
// on it. If there is none, the exploration says so of each of them.
func (x *exploration) openPostgres(chosen []strategies.Selection) error {
	if x.sql != nil || !slices.ContainsFunc(chosen, explore.OnPostgres) {
		return nil
	}
	if err := x.FromEnvironment(); err != nil {
		return err
	}
	server, err := pgstore.Open(x.ctx, *x.From["postgres"], stores.Options{})
	switch {
	case errors.As(err, new(*stores.AbsentError)):
		return nil
	case err != nil && x.ctx.Err() != nil:
		return exit.With(exit.Interrupted, errors.New("interrupted before anything was explored"))
	case err != nil:
		return exit.With(exit.Usage, err)
	}
	x.sql = server
	session.RemoveDead(x.ctx, x.stderr, string(strategies.NeedPostgres), server)
	return nil
}

// replay repeats a token where it belongs.
func (x *exploration) replay(token string) (*explore.Replayed, error) {
	c := &x.Asked
	on := explore.Target{Isolate: c.Isolate, Service: c.Service, Request: c.Request, Counter: c.Counter,
		ServiceClock: c.ServiceClock, Environment: c.Environment}
	sel, err := explore.TokenStrategy(token)
	switch {
	case errors.Is(err, explore.ErrToken):
		return nil, err
	case err != nil:
		return nil, exit.With(exit.Usage, err)
	}
	if explore.OnPostgres(sel) {
		if err := x.openPostgres([]strategies.Selection{sel}); err != nil {
			return nil, err
		}
		if x.sql != nil {
			on.Postgres = x.sql
		}
	} else if x.server != nil {
		on.RedisStore = x.server
		on.Redis = x.server.Admin()
		on.Name = fmt.Sprintf("Redis %s (%s)", x.server.Info().Version, x.server.Info().Kind)
	}
	r, err := explore.Replay(x.ctx, token, on)
	if errors.As(err, new(*explore.UnfitError)) {
		err = exit.With(exit.Usage, err)
	}
	return r, err
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
