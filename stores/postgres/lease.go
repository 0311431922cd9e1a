package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/internal/server"
)

var _ stores.Keeper = (*Store)(nil)

// leases are the scopes that this process keeps on a server that others use too.
type leases struct {
	held map[stores.Scope]bool
	// owed are those that could not be removed, and are to be.
	owed map[stores.Scope]bool
	stop context.CancelFunc // ends the renewals; nil where there are none
	done chan struct{}
}

// lease is the comment on a schema: whose it is, and when that was last said, in
// seconds since 1970 of the server's clock. It goes with its schema, and any role that
// may make a schema may write it.
type lease struct {
	Owner   json.RawMessage `json:"quotabench"`
	Renewed float64         `json:"renewed"`
}

// retryTimeout bounds how long what is owed is tried again for.
const retryTimeout = 3 * time.Second

// shared reports whether leases are kept: the server outlives this process.
func (p *Store) shared() bool { return !p.Owned() && !p.replica }

// execer runs statements: a pool or a transaction.
type execer interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// comment makes the statement that writes the lease on a schema now.
func comment(ctx context.Context, on execer, schema string) (sql string, err error) {
	// A comment takes no parameters: the server quotes it.
	err = on.QueryRow(ctx, `
		SELECT format('COMMENT ON SCHEMA %I IS %L', $1::text,
		              json_build_object('quotabench', $2::json, 'renewed', extract(epoch FROM clock_timestamp())::float8)::text)`,
		schema, server.Us().Encode()).Scan(&sql)
	return sql, err
}

// prepareShared makes the schema of a scope together with its lease, so that there is
// no moment in which it is nobody's.
func (p *Store) prepareShared(ctx context.Context, scope stores.Scope) error {
	schema := scope.Schema()
	err := pgx.BeginFunc(ctx, p.admin, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{schema}.Sanitize()); err != nil {
			return err
		}
		sql, err := comment(ctx, tx, schema)
		if err == nil {
			_, err = tx.Exec(ctx, sql)
		}
		return err
	})
	if err != nil && (lost(err) || ctx.Err() != nil) {
		p.hold(scope) // it may be there although no answer came
		_ = p.wiped(scope, err)
	}
	if err != nil {
		return fmt.Errorf("%s schema %s: %w", create, schema, err)
	}
	p.hold(scope)
	return nil
}

// Lease implements [stores.Keeper], for a schema that exists.
func (p *Store) Lease(ctx context.Context, scope stores.Scope) error {
	if !p.shared() {
		return nil
	}
	if err := p.mark(ctx, scope.Schema()); err != nil {
		return fmt.Errorf("take a lease on schema %s: %w", scope.Schema(), err)
	}
	p.hold(scope)
	return nil
}

func (p *Store) mark(ctx context.Context, schema string) error {
	sql, err := comment(ctx, p.admin, schema)
	if err == nil {
		_, err = p.admin.Exec(ctx, sql)
	}
	return err
}

// hold notes a scope with a lease, and renews it from then on.
func (p *Store) hold(scope stores.Scope) {
	p.keeping.Lock()
	defer p.keeping.Unlock()
	if p.leases.held == nil {
		p.leases.held, p.leases.owed = map[stores.Scope]bool{}, map[stores.Scope]bool{}
	}
	p.leases.held[scope] = true
	if p.leases.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	p.leases.stop, p.leases.done = cancel, done
	go func() {
		defer close(done)
		for (clock.Wall{}).Sleep(ctx, server.LeaseRenewal) == nil {
			p.renew(ctx)
		}
	}()
}

// renew writes all leases anew. Where that fails it is tried again at the next
// renewal.
func (p *Store) renew(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, retryTimeout)
	defer cancel()
	p.keeping.Lock()
	held := slices.Sorted(maps.Keys(p.leases.held))
	p.keeping.Unlock()
	for _, scope := range held {
		_ = p.mark(ctx, scope.Schema()) // one that is gone meanwhile does not come back by it
	}
}

// wiped notes how the removal of a scope ended.
func (p *Store) wiped(scope stores.Scope, err error) error {
	p.keeping.Lock()
	defer p.keeping.Unlock()
	switch {
	case !p.leases.held[scope]:
	case err != nil:
		p.leases.owed[scope] = true
	default:
		delete(p.leases.held, scope)
		delete(p.leases.owed, scope)
		if len(p.leases.held) == 0 && p.leases.stop != nil {
			p.leases.stop()
			p.leases.stop = nil
		}
	}
	return err
}

// pay tries again to remove what could not be removed.
func (p *Store) pay(ctx context.Context) error {
	p.keeping.Lock()
	owed := slices.Sorted(maps.Keys(p.leases.owed))
	p.keeping.Unlock()
	for _, scope := range owed {
		if err := p.wiped(scope, p.DropSchema(ctx, scope.Schema())); err != nil {
			return err // the others would take as long to fail
		}
	}
	return nil
}

// leave pays what is owed when the store is closed, and ends the renewals.
func (p *Store) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), retryTimeout)
	defer cancel()
	err := p.pay(ctx)
	p.keeping.Lock()
	if p.leases.stop != nil {
		p.leases.stop()
		p.leases.stop = nil
	}
	done := p.leases.done
	p.keeping.Unlock()
	if done != nil {
		<-done
	}
	if err != nil {
		return fmt.Errorf("%w: quotabench clean removes what is left", err)
	}
	return nil
}

// Holdings implements [stores.Keeper]. It lists the schemas that this role may drop.
func (p *Store) Holdings(ctx context.Context, thorough bool) ([]stores.Holding, error) {
	if !p.shared() {
		return nil, nil
	}
	rows, err := p.admin.Query(ctx, `
		SELECT nspname, coalesce(obj_description(oid, 'pg_namespace'), ''),
		       extract(epoch FROM clock_timestamp())::float8, extract(epoch FROM pg_postmaster_start_time())::float8
		FROM pg_namespace
		WHERE starts_with(nspname, $1) AND pg_has_role(nspowner, 'USAGE')
		ORDER BY nspname`, family)
	if err != nil {
		return nil, fmt.Errorf("look for what runs left: %w", err)
	}
	var out []stores.Holding
	var name, text string
	var now, started float64
	_, err = pgx.ForEachRow(rows, []any{&name, &text, &now, &started}, func() error {
		h := stores.Holding{Scope: stores.Scope(strings.TrimPrefix(name, family)), Name: name, State: stores.HeldUnknown, Entry: text}
		var l lease
		o, ok := server.Owner{}, false
		if json.Unmarshal([]byte(text), &l) == nil {
			o, ok = server.ParseOwner(string(l.Owner))
		}
		if !ok {
			if thorough {
				out = append(out, h)
			}
			return nil
		}
		// A server that has just started may have been away for longer than a lease
		// lasts.
		renewed := now-l.Renewed < server.LeaseLife.Seconds() || now-started < server.JustStarted.Seconds()
		h.Owner, h.State = o.String(), stores.HeldDead
		if o.Lives(renewed) {
			h.State = stores.HeldLive
		}
		out = append(out, h)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for what runs left: %w", err)
	}
	return out, nil
}

// family begins the name of every schema of every run.
const family = "quotabench_"

// Discard implements [stores.Keeper].
func (p *Store) Discard(ctx context.Context, h stores.Holding) (removed int64, err error) {
	if !p.shared() || h.State == stores.HeldLive {
		return 0, nil
	}
	err = p.rollBackPrepared(ctx, h.Name)
	if err == nil {
		err = pgx.BeginFunc(ctx, p.admin, func(tx pgx.Tx) error {
			// A lease that was renewed meanwhile is another one.
			var now *string
			err := tx.QueryRow(ctx, `
				SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace
				WHERE nspname = $1`, h.Name).Scan(&now)
			if errors.Is(err, pgx.ErrNoRows) || err == nil && *now != h.Entry {
				return nil
			}
			if err == nil {
				_, err = tx.Exec(ctx, "SET LOCAL lock_timeout = '5s'")
			}
			if err == nil {
				_, err = tx.Exec(ctx, dropping(h.Name))
			}
			if err == nil {
				removed = 1
			}
			return err
		})
	}
	if err != nil {
		return 0, fmt.Errorf("%s schema %s: %w", drop, h.Name, err)
	}
	return removed, nil
}

// rollBackPrepared ends the prepared transactions that are named after a schema, which
// hold locks on what is in it and have no connection that could end.
func (p *Store) rollBackPrepared(ctx context.Context, schema string) error {
	rows, err := p.admin.Query(ctx, `
		SELECT format('ROLLBACK PREPARED %L', gid) FROM pg_prepared_xacts
		WHERE database = current_database() AND starts_with(gid, $1) AND substr(gid, length($1) + 1, 1) !~ '[a-z0-9_]'`, schema)
	if err != nil {
		return err
	}
	statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, sql := range statements {
		if _, err := p.admin.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}
