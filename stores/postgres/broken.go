package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/stores"
)

var _ stores.Breakable = (*Store)(nil)

// faults inflict what befalls a PostgreSQL alone.
var faults = map[string]func(store *Store, ctx context.Context, scope stores.Scope) (mend func(context.Context) error,
	err error){
	"locked": (*Store).lockTables, "commits-fail": (*Store).failCommits, "connections-taken": (*Store).crowd,
}

// CanBreak implements [stores.Breakable]. The faults of a PostgreSQL of its own are "locked" (the tables of the run, so
// that statements wait), "commits-fail" (transactions that have changed one of them are rolled back when they commit)
// and "connections-taken" (by another client, which ends those of the run).
func (p *Store) CanBreak(ctx context.Context, fault string) error {
	switch {
	case faults[fault] == nil:
		return p.common.CanBreak(ctx, fault)
	case !p.Owned():
		return server.ErrNotOurs
	}
	return nil
}

// Break implements [stores.Breakable].
func (p *Store) Break(ctx context.Context, fault string,
	scope stores.Scope) (mend func(context.Context) error, err error) {
	if f := faults[fault]; f != nil {
		return f(p, ctx, scope)
	}
	return p.common.Break(ctx, fault, scope)
}

// tables are the names of those of a scope.
func (p *Store) tables(ctx context.Context, scope stores.Scope) ([]string, error) {
	// CollectRows returns the error of this.
	rows, _ := p.admin.Query(ctx, "SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY tablename",
		scope.Schema())
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func (p *Store) lockTables(ctx context.Context, scope stores.Scope) (mend func(context.Context) error, err error) {
	names, err := p.tables(ctx, scope)
	if err != nil {
		return nil, err
	}
	tx, err := p.admin.Begin(ctx)
	for _, name := range names {
		if err == nil {
			_, err = tx.Exec(ctx, "LOCK TABLE "+pgx.Identifier{scope.Schema(), name}.Sanitize()+" IN ACCESS EXCLUSIVE MODE")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lock the tables: %w", err)
	}
	return tx.Rollback, nil
}

// failCommits has a trigger of each table refuse at the commit.
func (p *Store) failCommits(ctx context.Context, scope stores.Scope) (mend func(context.Context) error, err error) {
	names, err := p.tables(ctx, scope)
	if err != nil {
		return nil, err
	}
	refuse := pgx.Identifier{scope.Schema(), "quotabench_refuse"}.Sanitize()
	_, err = p.admin.Exec(ctx, "CREATE FUNCTION "+refuse+"() RETURNS trigger LANGUAGE plpgsql AS "+
		"$$ BEGIN RAISE EXCEPTION 'planned failure of a commit' USING ERRCODE = 'disk_full'; END $$")
	for _, name := range names {
		if err == nil {
			_, err = p.admin.Exec(ctx, "CREATE CONSTRAINT TRIGGER quotabench_refuse AFTER INSERT OR UPDATE OR DELETE ON "+
				pgx.Identifier{scope.Schema(), name}.Sanitize()+" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "+
				refuse+"()")
		}
	}
	return func(ctx context.Context) error {
		_, err := p.admin.Exec(ctx, "DROP FUNCTION "+refuse+"() CASCADE")
		return err
	}, err
}

// crowd has another client take all connections and end those of the run, again and again.
func (p *Store) crowd(ctx context.Context, scope stores.Scope) (mend func(context.Context) error, err error) {
	var taken []*pgx.Conn
	take := func(ctx context.Context) error {
		for {
			conn, err := pgx.ConnectConfig(ctx, p.base.ConnConfig)
			switch {
			case err == nil:
				taken = append(taken, conn)
			case len(taken) == 0:
				return err
			default: // there are no more
				_, err = taken[0].Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1",
					scope.Schema())
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
			_ = take(crowding)
			_ = clock.Wall{}.Sleep(crowding, 5*time.Millisecond)
		}
	}()
	return func(ctx context.Context) (err error) {
		stop()
		<-ended
		for _, conn := range taken {
			err = errors.Join(err, conn.Close(ctx))
		}
		return err
	}, err
}
