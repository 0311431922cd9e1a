package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/stores"
)

// crowd has another client take all connections and end those of the run, again and again.
func (p *Store) crowd(ctx context.Context, scope stores.Scope) (mend func(context.Context) error, err error) {
	var taken []*pgx.Conn
	take := func(ctx context.Context) error {
		for {
			c, err := pgx.ConnectConfig(ctx, p.base.ConnConfig)
			switch {
			case err == nil:
				taken = append(taken, c)
			case len(taken) == 0:
				return err
			default: // there are no more
				_, err = taken[0].Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", scope.Schema())
				return err
			}
		}
	}
	err = take(ctx)
	crowding, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for crowding.Err() == nil {
			_, _ = take(crowding), clock.Wall{}.Sleep(crowding, 5*time.Millisecond)
		}
	}()
	return func(ctx context.Context) (err error) {
		stop()
		<-ended
		for _, c := range taken {
			err = errors.Join(err, c.Close(ctx))
		}
		return err
	}, err
}
