package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/stores"
)

// tooManyConnections is the state of a server that refuses another one.
const tooManyConnections = "53300"

// fewest connections that a server is started with: those that it keeps for administrators, the harness' and some for a run.
const fewest, most = 20, 1000

// withConnections has a server that is started take so many connections, as "connections=40" says.
func withConnections(spec, list string, o stores.Options) (stores.Options, error) {
	var n int
	if _, err := fmt.Sscanf(list, "connections=%d", &n); err != nil || list != "connections="+strconv.Itoa(n) || n < fewest || n > most {
		return o, fmt.Errorf("--postgres %s: behind the colon stands connections=%d to %d", spec, fewest, most)
	}
	settings := map[string]string{}
	maps.Copy(settings, o.Settings)
	settings["max_connections"], o.Settings = strconv.Itoa(n), settings
	return o, nil
}

// crowd has another client take all connections, and then those of the run, which it ends, as they are opened again.
func (p *Store) crowd(ctx context.Context, scope stores.Scope) (mend func(context.Context) error, err error) {
	var taken []*pgx.Conn
	leave := func(ctx context.Context) (err error) {
		for _, c := range taken {
			err = errors.Join(err, c.Close(ctx))
		}
		return err
	}
	take := func(ctx context.Context) error {
		for {
			c, err := pgx.ConnectConfig(ctx, p.base.ConnConfig)
			if err != nil {
				return err
			}
			taken = append(taken, c)
		}
	}
	end := func(ctx context.Context) error {
		_, err := p.admin.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", scope.Schema())
		return err
	}
	var refused *pgconn.PgError
	if err := take(ctx); !errors.As(err, &refused) || refused.Code != tooManyConnections {
		return nil, errors.Join(fmt.Errorf("take all connections: %w", err), leave(ctx))
	}
	if err := end(ctx); err != nil {
		return leave, fmt.Errorf("end the connections of the run: %w", err)
	}
	crowding, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for crowding.Err() == nil {
			_, _ = take(crowding), end(crowding)
			_ = (clock.Wall{}).Sleep(crowding, 5*time.Millisecond)
		}
	}()
	return func(ctx context.Context) error {
		stop()
		<-ended
		return leave(ctx)
	}, nil
}
