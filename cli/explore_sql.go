package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/stores"
	pgstore "github.com/quotabench/quotabench/stores/postgres"
	"github.com/quotabench/quotabench/strategies"
)

// openPostgres opens the server of --postgres if one of the strategies is explored
// on it. Where there is none, the exploration says so of each of them.
func (x *exploration) openPostgres(chosen []strategies.Selection) error {
	if x.sql != nil || !slices.ContainsFunc(chosen, explore.OnPostgres) {
		return nil
	}
	if err := x.fromEnvironment(); err != nil {
		return err
	}
	server, err := pgstore.Open(x.ctx, *x.from["postgres"], stores.Options{Image: *x.images["postgres"]})
	var absent *stores.AbsentError
	switch {
	case errors.As(err, &absent):
		return nil
	case err != nil && x.ctx.Err() != nil:
		return fail(ExitInterrupted, errors.New("interrupted before anything was explored"))
	case err != nil:
		return fail(ExitUsage, err)
	}
	x.sql = server
	removeDead(x.ctx, x.stderr, string(strategies.NeedPostgres), server)
	return nil
}

// replay repeats a token where it belongs.
func (x *exploration) replay(token string) (*explore.Replayed, error) {
	var on explore.Target
	if sel, ok := explore.TokenOnPostgres(token); ok {
		if err := x.openPostgres([]strategies.Selection{sel}); err != nil {
			return nil, err
		}
		if x.sql != nil {
			on.Postgres = x.sql
		}
	} else if x.server != nil {
		on.RedisStore = x.server
		on.Redis, on.Name = x.server.Admin(), fmt.Sprintf("Redis %s (%s)", x.server.Info().Version, x.server.Info().Kind)
	}
	replay := func() (*explore.Replayed, error) { return explore.Replay(x.ctx, token, on) }
	if isolates && explore.TokenIsForeign(token) && x.server == nil {
		replay = func() (*explore.Replayed, error) { return explore.IsolatedReplay(x.ctx, token) }
	}
	r, err := replay()
	var unfit *explore.UnfitError
	if errors.As(err, &unfit) {
		err = fail(ExitUsage, err)
	}
	return r, err
}

// closeStores stops what was started.
func (x *exploration) closeStores() error {
	var errs []error
	if x.server != nil {
		errs = append(errs, x.server.Close())
	}
	if x.sql != nil {
		errs = append(errs, x.sql.Close())
	}
	return errors.Join(errs...)
}
