package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotabench/quotabench/quota"
)

// usable reports what keeps runs from a server that was running already: a right or
// a setting. A replica is only read.
func (p *Store) usable(ctx context.Context) error {
	if p.self.Replica {
		return nil
	}
	var user, database, mode string
	var create bool
	err := p.admin.QueryRow(ctx, `
		SELECT current_user::text, current_database()::text, current_setting('transaction_read_only'),
		       has_database_privilege(current_database(), 'CREATE')`).
		Scan(&user, &database, &mode, &create)
	switch {
	case err != nil:
		return err
	case mode == "on":
		return fmt.Errorf("postgresql at %s is read-only for the user %q: "+
			"set default_transaction_read_only to off for it, or use another", p.self.About.Addr, user)
	case !create:
		return fmt.Errorf("postgresql at %s lets the user %q make no schema in the database %q, and each run needs one: "+
			"GRANT CREATE ON DATABASE to it, or use another", p.self.About.Addr, user, database)
	}
	return nil
}

// unusable puts what a server says that is reached and cannot be used into one line;
// nil if it is something else.
func unusable(err error, addr string) error {
	var pgError *pgconn.PgError
	if !errors.As(err, &pgError) {
		return nil
	}
	switch pgError.Code {
	case "57P03": // cannot_connect_now
		return fmt.Errorf("postgresql at %s is starting, stopping or recovering: try again when it is ready (%s)", addr,
			pgError.Message)
	case "53300": // too_many_connections
		return fmt.Errorf("postgresql at %s has no connection left for this user: "+
			"close some, or raise its max_connections or the CONNECTION LIMIT of role or database (%s)", addr, pgError.Message)
	case "3D000": // invalid_catalog_name
		return fmt.Errorf("postgresql at %s refuses the connection: there is no such database, so name another one in the "+
			"URL (%s)",
			addr, pgError.Message)
	}
	return nil
}

// Room is how many more connections the server takes of this user. known is false
// if it does not tell.
func (p *Store) Room(ctx context.Context) (left int, setting string, known bool) {
	var all, ofRole, ofDatabase, roleLimit, databaseLimit int
	err := p.admin.QueryRow(ctx, `
		SELECT count(*), count(*) FILTER (WHERE usename = current_user), count(*) FILTER (WHERE datname = current_database()),
		       (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user),
		       (SELECT datconnlimit FROM pg_database WHERE datname = current_database())
		FROM pg_stat_activity WHERE backend_type = 'client backend'`).
		Scan(&all, &ofRole, &ofDatabase, &roleLimit, &databaseLimit)
	if err != nil {
		return 0, "", false
	}
	// What the harness itself keeps is both in room and among those that are open.
	left = p.room - max(0, all-int(p.admin.Stat().TotalConns()))
	setting = "max_connections"
	for _, x := range []struct {
		limit, used int
		setting     string
	}{{roleLimit, ofRole, "the CONNECTION LIMIT of its role"},
		{databaseLimit, ofDatabase, "the CONNECTION LIMIT of its database"}} {
		if x.limit >= 0 && x.limit-x.used < left {
			left = x.limit - x.used
			setting = x.setting
		}
	}
	return left, setting, true
}

// errorKind is [stores.Driver.ErrorKind], by the server's code: see "PostgreSQL Error
// Codes" in its manual.
func errorKind(err error) quota.ErrorKind {
	var said *pgconn.PgError
	if !errors.As(err, &said) || len(said.Code) != 5 {
		return ""
	}
	switch said.Code {
	case "40001", "40P01", "55P03": // serialization_failure, deadlock_detected, lock_not_available
		return quota.ErrorContention
	case "57014", "25P03", "25P04": // query_canceled; a transaction that was idle, or took, too long
		return quota.ErrorTimeout
	case "25006", "42501": // read_only_sql_transaction, insufficient_privilege
		return quota.ErrorStore
	}
	switch said.Code[:2] {
	case "08", "28", "53", "57", "58", "XX": // connection, login, resources, operator, system, internal
		return quota.ErrorStore
	}
	return ""
}
